"""A provider of models on 127.0.0.1 that follows a script: calls of tools, then a text. For loops without a key."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def scripted(script: Sequence[Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run it: each step is a text or `(name, arguments)`. Yields its address, and the requests that it had."""
    steps, requests = list(script), list[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            form = response if self.path.endswith("/responses") else message
            reply = json.dumps({"model": "scripted", **form(steps.pop(0), f"{len(requests)}")}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


def message(step: Any, number: str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": step}
    if not isinstance(step, str):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": step[1]}
    about = {"type": "message", "role": "assistant", "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": number, **about, "content": [block], "stop_reason": "end_turn", "usage": usage}


def response(step: Any, number: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": step, "annotations": []}
    item: dict[str, Any] = {"type": "message", "id": number, "role": "assistant", "content": [text]}
    if not isinstance(step, str):
        item = {"type": "function_call", "id": number, "call_id": f"call_{number}", "name": step[0]}
        item["arguments"] = json.dumps(step[1])
    about = {"object": "response", "created_at": 1, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {"id": number, **about, "output": [{**item, "status": "completed"}]}
