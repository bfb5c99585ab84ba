"""A provider of models on 127.0.0.1 that follows a script and keeps what it was sent, in the form of each address."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Calls = Sequence[tuple[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error with which the provider answers a request."""

    text: str
    status: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A reply that its limit of tokens ended within its calls, or what else ``reason`` names in the provider's words.

    The arguments are those of which the end is missing: ``written`` is what there is of their text, ``read`` what a
    client that reads streams makes of that.
    """

    name: str
    written: str
    read: Mapping[str, Any]
    filtered: bool = False


Said = str | Calls | Refusal | Cut
Model = Callable[[Mapping[str, Any]], Said]
"""What the model answers to a request: a text, calls, each a name and arguments, or an error."""


@dataclass
class ProviderServer:
    """The address of the provider, and the requests that it had: their bodies and headers."""

    url: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def prefixes(self) -> list[str]:
        """Return of each request what stands before the history, byte for byte: tools, then the system's text."""
        return [json.dumps([body.get(key) for key in ("tools", "system", "instructions")]) for body in self.bodies]

    @property
    def breaks(self) -> int:
        """Return how many requests had another prefix than the one before."""
        return sum(before != now for before, now in zip(self.prefixes, self.prefixes[1:], strict=False))


def script(*answers: Said) -> Model:
    """Return a model that gives these answers in order, then "Done."."""
    left = list(answers)
    return lambda _: left.pop(0) if left else "Done."


@contextmanager
def provider(model: Model) -> Iterator[ProviderServer]:
    """Run a provider with this model until the test is done with it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.bodies.append(body)
            server.headers.append({key.lower(): value for key, value in self.headers.items()})
            status, kind, data = response(self.path, body, model(body), len(server.bodies))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = ProviderServer(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def response(path: str, body: Mapping[str, Any], said: Said, number: int) -> tuple[int, str, bytes]:
    """Return the status, type and body of the answer to a request of the form that its path has."""
    if isinstance(said, Refusal):
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": said.text}}
        return said.status, "application/json", json.dumps(error).encode()
    make, events = next(pair for ending, pair in _FORMS.items() if path.partition("?")[0].endswith(ending))
    cut = said if isinstance(said, Cut) else None
    calls = said if cut is None else [(cut.name, cut.read if make is _message else cut.written)]
    reply = {**make(calls, number), "model": body["model"]}
    if cut is not None:
        _cut(reply, filtered=cut.filtered)
    if body.get("stream"):
        return 200, "text/event-stream", "".join(events(reply)).encode()
    return 200, "application/json", json.dumps(reply).encode()


def _cut(reply: dict[str, Any], *, filtered: bool) -> None:
    """Let a reply of any form say that it is not whole."""
    if "stop_reason" in reply:
        reply["stop_reason"] = "refusal" if filtered else "max_tokens"
    elif "choices" in reply:
        reply["choices"][0]["finish_reason"] = "content_filter" if filtered else "length"
    else:
        reason = "content_filter" if filtered else "max_output_tokens"
        reply |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        reply["output"][-1]["status"] = "incomplete"


def _message(said: str | Calls, number: int) -> dict[str, Any]:
    calls = [] if isinstance(said, str) else said
    used = [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": said}] if isinstance(said, str) and said else used,
        "stop_reason": "tool_use" if used else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _message_events(reply: Mapping[str, Any]) -> Iterator[str]:
    yield _event({"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}})
    for place, block in enumerate(reply["content"]):
        used = block["type"] == "tool_use"
        start = {**block, "input": {}} if used else {**block, "text": ""}
        words = [] if used else block["text"].split(" ")
        deltas = [{"type": "text_delta", "text": f" {word}" if n else word} for n, word in enumerate(words)]
        deltas += [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}] if used else []
        yield _event({"type": "content_block_start", "index": place, "content_block": start})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": place, "delta": delta})
        yield _event({"type": "content_block_stop", "index": place})
    ended = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}})
    yield _event({"type": "message_stop"})


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _output(said: str | Calls, number: int) -> dict[str, Any]:
    if isinstance(said, str):
        text = {"type": "output_text", "text": said, "annotations": []}
        about = {"role": "assistant", "status": "completed", "content": [text] if said else []}
        output: list[dict[str, Any]] = [{"type": "message", "id": f"msg_{number}", **about}]
    else:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{number}_{place}",
                "call_id": f"call_{number}_{place}",
                "name": name,
                "arguments": _arguments(arguments),
                "status": "completed",
            }
            for place, (name, arguments) in enumerate(said)
        ]
    about = {"object": "response", "created_at": 1, "status": "completed", "parallel_tool_calls": True}
    return {"id": f"resp_{number}", **about, "tool_choice": "auto", "tools": [], "output": output}


def _output_events(reply: Mapping[str, Any]) -> Iterator[str]:
    begun = {**reply, "status": "in_progress", "output": []}
    yield _event({"type": "response.created", "sequence_number": 0, "response": begun})
    for place, item in enumerate(reply["output"]):
        for number, kind in enumerate(("added", "done")):
            about = {"sequence_number": 1 + 2 * place + number, "output_index": place, "item": item}
            yield _event({"type": f"response.output_item.{kind}", **about})
    yield _event({"type": f"response.{reply['status']}", "sequence_number": 99, "response": reply})


def _completion(said: str | Calls, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": _arguments(arguments)},
            }
            for place, (name, arguments) in enumerate(said)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(said, str) else "tool_calls"}
    return {"id": f"chat_{number}", "object": "chat.completion", "created": 1, "choices": [choice]}


def _completion_events(reply: Mapping[str, Any]) -> Iterator[str]:
    choice = reply["choices"][0]
    calls = [{**call, "index": place} for place, call in enumerate(choice["message"].get("tool_calls", ()))]
    delta = choice["message"] | ({"tool_calls": calls} if calls else {})
    for part, ended in ((delta, None), ({}, choice["finish_reason"])):
        chunk = {"index": 0, "delta": part, "finish_reason": ended}
        yield _event({**reply, "object": "chat.completion.chunk", "choices": [chunk]})
    yield "data: [DONE]\n\n"


def _event(data: Mapping[str, Any]) -> str:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


_FORMS: Mapping[str, tuple[Callable[..., dict[str, Any]], Callable[..., Iterator[str]]]] = {
    "/v1/messages": (_message, _message_events),
    "/responses": (_output, _output_events),
    "/chat/completions": (_completion, _completion_events),
}
