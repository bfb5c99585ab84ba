"""A provider's response as the events of a stream, for clients that ask for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.bill.requests_read import Form

Event = tuple[str, dict[str, Any]]


def stream(form: Form, response: dict[str, Any]) -> bytes:
    """Return a response as server-sent events."""
    if form == "chat":
        return "".join((*(f"data: {json.dumps(chunk)}\n\n" for chunk in _chat(response)), "data: [DONE]\n\n")).encode()
    events = _anthropic(response) if form == "anthropic" else _responses(response)
    return "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events).encode()


def _anthropic(response: dict[str, Any]) -> Iterator[Event]:
    yield "message_start", {"message": {**response, "content": [], "stop_reason": None}}
    for place, block in enumerate(response["content"]):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        delta: dict[str, Any] = {"type": "text_delta", "text": block.get("text", "")}
        if block["type"] == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": place, "content_block": empty}
        yield "content_block_delta", {"index": place, "delta": delta}
        yield "content_block_stop", {"index": place}
    stop = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {"output_tokens": response["usage"]["output_tokens"]}}
    yield "message_stop", {}


def _responses(response: dict[str, Any]) -> Iterator[Event]:
    yield "response.created", {"sequence_number": 0, "response": {**response, "status": "in_progress", "output": []}}
    for place, item in enumerate(response["output"]):
        about = {"output_index": place, "item": item}
        yield "response.output_item.added", {"sequence_number": 2 * place + 1, **about}
        yield "response.output_item.done", {"sequence_number": 2 * place + 2, **about}
    yield "response.completed", {"sequence_number": 2 * len(response["output"]) + 1, "response": response}


def _chat(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    [choice] = response["choices"]
    message = choice["message"]
    if message.get("tool_calls"):
        message = {**message, "tool_calls": [{**call, "index": n} for n, call in enumerate(message["tool_calls"])]}
    base = {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    yield {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**base, "choices": [], "usage": response["usage"]}
