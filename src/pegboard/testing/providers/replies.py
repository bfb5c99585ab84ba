"""What a provider of models answers by a script, in the form of each address, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

Calls = Sequence[tuple[str, Any]]
"""The calls of one answer: each a name, and arguments as an object or as the text that the model wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRefusal:
    """An error with which the provider answers a request.

    Attributes:
        text: its sentence.
        status: the status of HTTP.
        param: where in the request it is, as OpenAI states it.
        code: OpenAI's word for the kind of error.
    """

    text: str
    status: int = 400
    param: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutReply:
    """A reply that its limit of tokens, or a filter of the provider, ended within a call.

    Attributes:
        name: the tool that is called.
        written: what there is of the text of the arguments.
        read: what a client that reads streams makes of that.
        filtered: whether a filter ended it.
    """

    name: str
    written: str
    read: Mapping[str, Any]
    filtered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """What is answered as it stands, in no provider's form: the page of a proxy, half of a stream.

    Attributes:
        body: the text.
        content_type: its type.
        status: the status of HTTP.
        lost: whether the connection is lost behind the body, which says that there is more of it.
    """

    body: str
    content_type: str = "application/json"
    status: int = 200
    lost: bool = False


ModelAnswer = str | Calls | ProviderRefusal | CutReply | RawReply
"""What a model answers: a text, calls, an error, a reply that is cut, or anything else."""


def form_of(path: str, body: Mapping[str, Any]) -> str:
    """Return the form of a request: ``anthropic``, ``responses``, ``chat``, or ``gemini`` in the form of Chat."""
    form = next((form for ending, form in _PATHS.items() if path.partition("?")[0].endswith(ending)), "chat")
    return "gemini" if form == "chat" and "gemini" in str(body.get("model")).casefold() else form


def response(path: str, body: Mapping[str, Any], said: ModelAnswer, number: int) -> tuple[int, str, bytes]:
    """Return the status, type and body of the answer to a request.

    Args:
        path: the address, which tells the form.
        body: the request.
        said: what the model answers.
        number: of the answer, by which ids are its own.
    """
    form = form_of(path, body)
    if isinstance(said, RawReply):
        return said.status, said.content_type, said.body.encode()
    if isinstance(said, ProviderRefusal):
        return said.status, "application/json", json.dumps(_error(form, said)).encode()
    make, events = _FORMS[form]
    cut = said if isinstance(said, CutReply) else None
    calls = (
        said if not isinstance(said, CutReply) else [(said.name, said.read if form == "anthropic" else said.written)]
    )
    reply = {**make(calls, number), "model": body.get("model")}
    if form == "gemini":
        _sign(reply)
    if cut is not None:
        _cut_reply(reply, filtered=cut.filtered)
    if body.get("stream"):
        return 200, "text/event-stream", "".join(events(reply)).encode()
    return 200, "application/json", json.dumps(reply).encode()


def _error(form: str, refused: ProviderRefusal) -> Any:
    """Return the body of a refusal as each provider writes it."""
    if form == "anthropic":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": refused.text}}
    if form == "gemini":
        return [{"error": {"code": refused.status, "message": refused.text, "status": "INVALID_ARGUMENT"}}]
    stated = {"type": "invalid_request_error", "param": refused.param, "code": refused.code}
    return {"error": {"message": refused.text, **stated}}


def _sign(reply: dict[str, Any]) -> None:
    """Let the first call of a reply have the signature of a thought, which has to come back with it."""
    for call in reply["choices"][0]["message"].get("tool_calls", ())[:1]:
        call["extra_content"] = {"google": {"thought_signature": f"signature of {call['id']}"}}


def _cut_reply(reply: dict[str, Any], *, filtered: bool) -> None:
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
    numbers = count()

    def event(kind: str, **about: Any) -> str:
        return _event({"type": f"response.{kind}", "sequence_number": next(numbers), **about})

    yield event("created", response={**reply, "status": "in_progress", "output": []})
    for place, item in enumerate(reply["output"]):
        about = {"output_index": place, "item_id": item["id"]}
        yield event(
            "output_item.added", output_index=place, item={**item, "status": "in_progress"} | _without_parts(item)
        )
        if "arguments" in item:
            yield event("function_call_arguments.delta", **about, delta=item["arguments"])
            yield event("function_call_arguments.done", **about, name=item["name"], arguments=item["arguments"])
        for number, part in enumerate(item.get("content", ())):
            about["content_index"] = number
            yield event("content_part.added", **about, part={**part, "text": ""})
            yield event("output_text.delta", **about, delta=part["text"], logprobs=[])
            yield event("output_text.done", **about, text=part["text"], logprobs=[])
            yield event("content_part.done", **about, part=part)
        yield event("output_item.done", output_index=place, item=item)
    yield event(reply["status"], response=reply)


def _without_parts(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an item has before its parts come."""
    return {"arguments": ""} if "arguments" in item else {"content": []}


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


_PATHS: Final = {"/messages": "anthropic", "/responses": "responses", "/chat/completions": "chat"}
_FORMS: Mapping[str, tuple[Callable[..., dict[str, Any]], Callable[..., Iterator[str]]]] = {
    "anthropic": (_message, _message_events),
    "responses": (_output, _output_events),
    "chat": (_completion, _completion_events),
    "gemini": (_completion, _completion_events),
}
