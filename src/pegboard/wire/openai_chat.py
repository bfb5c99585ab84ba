"""OpenAI's Chat Completions, and all that speak them: an array, and notes in the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.wire.notes import is_note, note_marks, tag_note
from pegboard.wire.provider_forms import (
    PARSED,
    UNFINISHED,
    HistoryChange,
    HistoryMark,
    Message,
    ModelCall,
    Reply,
    RequestParts,
    Stale,
    ToolChoice,
    ToolResult,
    as_plain,
    cut_by,
    mappings,
    texts_in,
    without_added,
    written_arguments,
)
from pegboard.wire.result_blocks import parts_of, text_of

_OF_REPLIES: Final = PARSED | {"annotations", "audio", "function_call", "role", "tool_calls"}
"""What the provider does not take back of its own messages, or takes in another form; all else goes back unchanged."""


_OF_STREAMS: Final = PARSED | {"index"}


class OpenAIChat:
    """``client.chat.completions.create(**request)``."""

    name = "chat"

    def request(self, parts: RequestParts, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the keyword arguments for the provider's client."""
        sent = list(messages)
        first = as_plain(sent[0]) if sent else EMPTY
        if parts.system and first.get("role") in ("system", "developer"):
            text = "\n\n".join((texts_in(first.get("content")), *parts.system))
            sent[0] = {**first, "content": text}
        elif parts.system:
            sent.insert(0, {"role": "system", "content": "\n\n".join(parts.system)})
        request: dict[str, Any] = {"model": parts.model, "messages": sent}
        if parts.head:
            request["tools"] = [_define_tool(tool) for tool in parts.head]
            request |= _choice_of_tools(parts.choice)
        return request

    def reply(self, given: JsonObject) -> Reply:
        """Return what a completion says, by its first choice."""
        choices = mappings(given.get("choices"))
        if not choices or "message" not in choices[0]:
            raise ValueError("choices")
        message = as_plain(choices[0]["message"])
        written = [call for call in mappings(message.get("tool_calls")) if "function" in call]
        kept: dict[str, Any] = dict(without_added(message, _OF_REPLIES))
        if isinstance(message.get("audio"), Mapping) and "id" in message["audio"]:
            kept["audio"] = {"id": message["audio"]["id"]}
        calls = tuple(map(_call, written))
        cut = cut_by(choices[0].get("finish_reason") or _why_broken(calls))
        if written:
            sent_back = [_call_for_provider(call, whole=not cut) for call in written]
            kept = {"content": None, **kept, "tool_calls": sent_back}
        text = texts_in(message.get("content")) or str(message.get("refusal") or "")
        empty = not written and not text
        return Reply(messages=() if empty else ({"role": "assistant", **kept},), calls=calls, text=text, cut=cut)

    def text(self, text: str) -> list[Message]:
        """Return a text of the model as its message."""
        return [{"role": "assistant", "content": text}] if text else []

    def results(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return one message for each result, and behind them one with their pictures."""
        answered: list[Message] = [
            {"role": "tool", "tool_call_id": result.call.id, "content": text_of(result)} for result in results
        ]
        pictures: list[JsonObject] = []
        for result in results:
            found = [part for part in parts_of(result) if part.kind == "picture"]
            if found:
                pictures.append({"type": "text", "text": tag_note(f"From {result.call.name}:")})
                pictures += [{"type": "image_url", "image_url": {"url": part.url}} for part in found]
        return [*answered, {"role": "user", "content": pictures}] if pictures else answered

    def change(self, change: HistoryChange, *, reveals: bool) -> list[Message]:  # noqa: ARG002
        """Return a note of the user, which every server takes at any place; nothing reveals tools in this form."""
        return [{"role": "user", "content": tag_note(change.note)}] if change.note else []

    def definition(self, tool: Tool) -> None:
        """Return nothing: a note says what it says."""

    def marks(self, message: Message) -> Iterator[HistoryMark]:
        """Yield what a message stands for."""
        plain = as_plain(message)
        match plain:
            case {"role": "assistant"}:
                yield HistoryMark(kind="model")
                for call in mappings(plain.get("tool_calls")):
                    if "function" in call:
                        yield HistoryMark(kind="call", value=str(call.get("id")), call=_call(call))
            case {"role": "tool", "tool_call_id": str(call_id)}:
                yield HistoryMark(kind="result", value=call_id, text=texts_in(plain.get("content")))
            case {"role": "user", "content": content}:
                text = texts_in(content)
                yield from note_marks(text)
                if not is_note(text):
                    yield HistoryMark(kind="user", value=text)
            case _:
                pass

    def without(self, message: Message, stale: Stale) -> Message | None:
        """Return a message, or None for a result without a call."""
        plain = as_plain(message)
        stale_result = plain.get("role") == "tool" and plain.get("tool_call_id") in stale.results
        return None if stale_result else message


def _define_tool(tool: Tool) -> JsonObject:
    function = {"name": tool.wire, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _choice_of_tools(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    if choice.mode == "none" or not choice.names:
        return {"tool_choice": choice.mode}
    tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}}


def _why_broken(calls: Iterable[ModelCall]) -> str:
    """Return whether a stream broke, of a reply that does not say why it ended, as some servers never do."""
    return UNFINISHED if any(call.arguments is None for call in calls) else ""


def _call(call: JsonObject) -> ModelCall:
    function = as_plain(call["function"])
    arguments = parsed_arguments(function.get("arguments"))
    return ModelCall(id=str(call.get("id")), name=str(function.get("name")), arguments=arguments)


def _call_for_provider(call: JsonObject, *, whole: bool) -> JsonObject:
    function = as_plain(call["function"])
    written = function.get("arguments")
    about = {**without_added(function), "arguments": written_arguments(written, whole=whole)}
    return {**without_added(call, _OF_STREAMS), "type": "function", "function": about}
