"""A server on 127.0.0.1 that speaks the forms of the providers, for the real clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from benchmarks.bill.cache import ANSWER, Cost, PromptCache
from benchmarks.bill.events import stream
from benchmarks.bill.model import Called, ScriptedModel
from benchmarks.bill.requests_read import Form, Read, read, server_search
from benchmarks.bill.tool_search import ToolSearch


class Provider:
    """A provider with a model, a prompt cache, and a record of what was asked."""

    def __init__(
        self, form: Form, model: ScriptedModel, count: Callable[[str], int], search: ToolSearch | None = None
    ) -> None:
        self.requests: list[Read] = []
        self.costs: list[Cost] = []
        self.bodies: list[dict[str, Any]] = []
        self.form: Form = form
        self._model = model
        self._search = search
        self._cache = PromptCache(form, count)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def respond(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a request; each search that it asks the provider for is a step of the model."""
        searched = list[dict[str, Any]]()
        own = server_search(body) if self._search is not None else ""
        while True:
            request = read(self.form, _behind(self.form, body, searched))
            cost = self._cache.ask(request)
            self.bodies.append(body)
            self.requests.append(request)
            self.costs.append(cost)
            answer = self._model.answer(request)
            number = len(self.requests)
            if self._search is None or not isinstance(answer, Called) or answer.name != own:
                break
            found = self._search.found(str(answer.arguments["query"]))
            searched += _searched(self.form, body, answer, found, number)
        form = {"anthropic": _anthropic, "responses": _responses, "chat": _chat}[self.form]
        response = form(answer, number, body["model"], cost)
        if isinstance(answer, Called) and self.form == "responses":
            response["output"] = [{**response["output"][0], **_namespace(body, answer)}]
        if searched:
            place = "content" if self.form == "anthropic" else "output"
            response[place] = [*searched, *response[place]]
        return response

    @property
    def breaks(self) -> int:
        """Return how many requests have another prefix of tools and system text than the one before."""
        return sum(one.head != other.head for one, other in zip(self.requests, self.requests[1:], strict=False))


def _namespace(body: dict[str, Any], call: Called) -> dict[str, str]:
    """Return the namespace that a call of a deferred tool has in Responses: its own name."""
    deferred = {tool.get("name") for tool in body.get("tools", []) if tool.get("defer_loading")}
    return {"namespace": call.name} if call.name in deferred else {}


def _behind(form: Form, body: dict[str, Any], searched: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a request with what the model has searched for since."""
    if not searched:
        return body
    if form == "anthropic":
        return {**body, "messages": [*body["messages"], {"role": "assistant", "content": searched}]}
    return {**body, "input": [*body["input"], *searched]}


def _searched(
    form: Form, body: dict[str, Any], call: Called, found: Sequence[str], number: int
) -> list[dict[str, Any]]:
    """Return a search and what it found, as parts of a response."""
    if form == "anthropic":
        asked = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": call.name, "input": call.arguments}
        references = [{"type": "tool_reference", "tool_name": name} for name in found]
        content = {"type": "tool_search_tool_search_result", "tool_references": references}
        return [asked, {"type": "tool_search_tool_result", "tool_use_id": asked["id"], "content": content}]
    about = {"execution": "server", "status": "completed", "call_id": None}
    tools = {tool.get("name"): tool for tool in body["tools"]}
    return [
        {"type": "tool_search_call", "id": f"tsc_{number}", "arguments": call.arguments, **about},
        {"type": "tool_search_output", "id": f"tso_{number}", "tools": [tools[name] for name in found], **about},
    ]


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, kind = 200, "application/json"
            try:
                answer = provider.respond(body)
                data = json.dumps(answer).encode()
                if body.get("stream"):
                    data, kind = stream(provider.form, answer), "text/event-stream"
            except Exception as error:  # the client reads what went wrong
                status = 400
                data = json.dumps({"error": {"type": "invalid_request_error", "message": repr(error)}}).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _anthropic(answer: Called | str, number: int, model: str, cost: Cost) -> dict[str, Any]:
    block: Mapping[str, Any] = {"type": "text", "text": answer}
    if isinstance(answer, Called):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.name, "input": answer.arguments}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": "tool_use" if isinstance(answer, Called) else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": cost.plain,
            "cache_read_input_tokens": cost.read,
            "cache_creation_input_tokens": cost.written,
            "output_tokens": ANSWER,
        },
    }


def _responses(answer: Called | str, number: int, model: str, cost: Cost) -> dict[str, Any]:
    text = {"type": "output_text", "text": answer, "annotations": []}
    item: dict[str, Any] = {"type": "message", "id": f"m{number}", "role": "assistant", "content": [text]}
    if isinstance(answer, Called):
        arguments = json.dumps(answer.arguments)
        item = {"type": "function_call", "id": f"fc_{number}", "name": answer.name, "arguments": arguments}
        item["call_id"] = f"call_{number}"
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": [{**item, "status": "completed"}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": cost.total,
            "input_tokens_details": {"cached_tokens": cost.read, "cache_write_tokens": 0},
            "output_tokens": ANSWER,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": cost.total + ANSWER,
        },
    }


def _chat(answer: Called | str, number: int, model: str, cost: Cost) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer}
    if isinstance(answer, Called):
        function = {"name": answer.name, "arguments": json.dumps(answer.arguments)}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    finish = "tool_calls" if isinstance(answer, Called) else "stop"
    return {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": cost.total,
            "prompt_tokens_details": {"cached_tokens": cost.read},
            "completion_tokens": ANSWER,
            "total_tokens": cost.total + ANSWER,
        },
    }
