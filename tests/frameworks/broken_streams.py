"""Streams of providers that break within a call."""

import json
from typing import Any

from pegboard.testing import ModelAnswer, RawReply, ScriptedModel


def streamed(form: str, name: str, calls: list[str]) -> str:
    """Return what a provider has sent of an answer when its stream breaks: calls of a tool by that name."""
    events: list[dict[str, Any]] = []
    match form:
        case "anthropic":
            message: Any = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
                            "stop_reason": None, "stop_sequence": None,
                            "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
            events.append({"type": "message_start", "message": message})
            for place, written in enumerate(calls):
                block = {"type": "tool_use", "id": f"t{place}", "name": name, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": written}
                events.append({"type": "content_block_start", "index": place, "content_block": block})
                events.append({"type": "content_block_delta", "index": place, "delta": delta})
                events += [{"type": "content_block_stop", "index": place}] if place < len(calls) - 1 else []
        case "responses":
            about: Any = {"id": "r", "object": "response", "created_at": 1, "status": "in_progress", "model": "m",
                          "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip
            events.append({"type": "response.created", "response": about})
            for place, written in enumerate(calls):
                item = {"type": "function_call", "id": f"f{place}", "call_id": f"c{place}", "name": name}
                at = {"output_index": place, "item_id": f"f{place}"}
                begun = {**item, "arguments": "", "status": "in_progress"}
                events.append({"type": "response.output_item.added", "output_index": place, "item": begun})
                events.append({"type": "response.function_call_arguments.delta", **at, "delta": written})
                if place < len(calls) - 1:
                    done = {**item, "arguments": written, "status": "completed"}
                    events.append({"type": "response.output_item.done", "output_index": place, "item": done})
            events = [{**one, "sequence_number": n} for n, one in enumerate(events)]
        case _:
            for place, written in enumerate(calls):
                function = {"name": name, "arguments": written}
                call = {"index": place, "id": f"c{place}", "type": "function", "function": function}
                delta = {"role": "assistant", "tool_calls": [call]}
                choice = {"index": 0, "finish_reason": None, "delta": delta}
                events.append({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                               "choices": [choice]})  # fmt: skip
    return "".join(f"event: {one.get('type', '')}\ndata: {json.dumps(one)}\n\n" for one in events)


def broken(form: str, calls: list[str], lost: bool, name: str = "call_tool") -> ScriptedModel:
    """Return a model whose first answer breaks; then it answers "Done."."""
    left: list[ModelAnswer] = [
        RawReply(body=streamed(form, name, calls), content_type="text/event-stream", lost=lost),
    ]
    return lambda _: left.pop() if left else "Done."
