"""A local server that speaks the forms of model providers by a script, for frameworks' real clients."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread
from typing import Any

from framework_drivers import Answer, Call, Final


class Requests:
    """What a server was asked for, in order; behind its answers it says "done"."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    def take(self, body: dict[str, Any]) -> str | Sequence[Call]:
        self.bodies.append(body)
        answer = self._answers.pop(0) if self._answers else "done"
        assert not isinstance(answer, Final)
        return [answer] if isinstance(answer, Call) else answer

    def broken(self) -> int:
        """Return how many requests do not begin with the one before them, but for its newest message."""
        prefixes = [prefix(body) for body in self.bodies]
        return sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(prefixes))


def prefix(body: dict[str, Any]) -> list[str]:
    """Return what a provider caches by, piece for piece: tools, system, messages; without the marks of where."""
    text = body.get("system") or body.get("instructions") or ""
    messages = body.get("messages") or body.get("input") or []
    return [json.dumps(unmarked(piece)) for piece in (body.get("tools"), text, *messages)]


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [unmarked(one) for one in value] if isinstance(value, list) else value


@contextmanager
def provider(*answers: Answer) -> Iterator[tuple[str, Requests]]:
    """Run a server that gives these answers; yield its address and what it is asked for."""
    requests = Requests(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            form = next(make for path, make in FORMS.items() if self.path.split("?")[0].endswith(path))
            made = form(requests.take(body), len(requests.bodies), body)
            kind = "text/event-stream" if body.get("stream") else "application/json"
            reply = (events(made) if body.get("stream") else json.dumps(made)).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def anthropic(answer: str | Sequence[Call], n: int, body: dict[str, Any]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = (
        [{"type": "text", "text": answer}]
        if isinstance(answer, str)
        else [
            {"type": "tool_use", "id": f"toolu_{n}_{i}", "name": one.name, "input": dict(one.arguments)}
            for i, one in enumerate(answer)
        ]
    )
    return {
        "id": f"msg_{n}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": "end_turn" if isinstance(answer, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def events(message: dict[str, Any]) -> str:
    """Return a message of Anthropic's in the events that it is streamed by."""
    begun = {**message, "content": [], "stop_reason": None}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        tool = block["type"] == "tool_use"
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if tool
            else {"type": "text_delta", "text": block["text"]}
        )
        empty = {**block, "input": {}} if tool else {**block, "text": ""}
        sent.append({"type": "content_block_start", "index": index, "content_block": empty})
        sent.append({"type": "content_block_delta", "index": index, "delta": delta})
        sent.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": ended, "usage": message["usage"]})
    sent.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in sent)


def chat(answer: str | Sequence[Call], n: int, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer if isinstance(answer, str) else None}
    if not isinstance(answer, str):
        message["tool_calls"] = [
            {
                "id": f"call_{n}_{i}",
                "type": "function",
                "function": {"name": one.name, "arguments": json.dumps(one.arguments)},
            }
            for i, one in enumerate(answer)
        ]
    finish = "stop" if isinstance(answer, str) else "tool_calls"
    return {
        "id": f"chatcmpl_{n}",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def responses(answer: str | Sequence[Call], n: int, body: dict[str, Any]) -> dict[str, Any]:
    output: list[dict[str, Any]] = (
        [
            {
                "id": f"msg_{n}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": answer, "annotations": []}],
            }
        ]
        if isinstance(answer, str)
        else [
            {
                "id": f"fc_{n}_{i}",
                "call_id": f"call_{n}_{i}",
                "type": "function_call",
                "status": "completed",
                "name": one.name,
                "arguments": json.dumps(one.arguments),
            }
            for i, one in enumerate(answer)
        ]
    )
    return {
        "id": f"resp_{n}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    }


FORMS: dict[str, Callable[[Any, int, dict[str, Any]], dict[str, Any]]] = {
    "/messages": anthropic,
    "/chat/completions": chat,
    "/responses": responses,
}
