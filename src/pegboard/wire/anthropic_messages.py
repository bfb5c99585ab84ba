"""Anthropic's Messages: deferred tools that the history reveals and takes away, and two cache breakpoints.

A breakpoint stands only at the end of what comes again as it is (D4): behind the system's text, and behind the newest
message, since nothing that a loop adds to a history leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.wire.notes import is_note, note_marks, tag_note
from pegboard.wire.provider_forms import (
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
)
from pegboard.wire.result_blocks import ResultPart, parts_of

BETA: Final = "mid-conversation-tool-changes-2026-07-01"
"""What lets a history reveal and take away tools."""
_BREAKPOINT: Final = {"type": "ephemeral"}
_MOST_BREAKPOINTS: Final = 4
"""How many the provider takes in one request."""
_CHANGES: Final = {"tool_addition": "joined", "tool_removal": "left"}


class AnthropicMessages:
    """``client.messages.create(**request, max_tokens=...)``."""

    name = "anthropic"

    def request(self, parts: RequestParts, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the keyword arguments for the provider's client."""
        tools = [
            *map(_define_tool, parts.head),
            *({**_define_tool(tool), "defer_loading": True} for tool in parts.deferred),
        ]
        system = [{"type": "text", "text": text} for text in parts.system]
        blocks = _content_as_blocks(messages)
        own = _breakpoints(blocks)
        request: dict[str, Any] = {"model": parts.model, "messages": blocks if own else _with_breakpoints(blocks)}
        if own >= _MOST_BREAKPOINTS:
            request |= {"system": system} if system else {}
        elif system:
            request["system"] = [*system[:-1], {**system[-1], "cache_control": _BREAKPOINT}]
        elif parts.head:
            last = len(parts.head) - 1
            tools[last] = {**tools[last], "cache_control": _BREAKPOINT}
        if tools:
            request["tools"] = tools
            request |= _choice_of_tools(parts.choice)
        if parts.reveals:
            request["extra_headers"] = {"anthropic-beta": BETA}
        return request

    def reply(self, given: JsonObject) -> Reply:
        """Return what a reply says; a text without characters is not kept, since the provider does not take it back."""
        if not isinstance(given.get("content"), list):
            raise ValueError("content")
        blocks = [block for block in mappings(given["content"]) if block.get("type") != "text" or block.get("text")]
        # A message of the provider has a reason once it is whole; one that a host made of its parts may have none.
        reason = given.get("stop_reason") or (UNFINISHED if given.get("type") == "message" else "")
        return Reply(
            messages=({"role": "assistant", "content": blocks},) if blocks else (),
            calls=tuple(_call(block) for block in blocks if block.get("type") == "tool_use"),
            text=texts_in(blocks),
            unfinished=reason == "pause_turn",
            cut=cut_by(reason),
        )

    def text(self, text: str) -> list[Message]:
        """Return a text of the model as its message."""
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}] if text else []

    def results(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return one message with the results, in order."""
        return [{"role": "user", "content": [_result_block(result) for result in results]}]

    def change(self, change: HistoryChange, *, reveals: bool) -> list[Message]:
        """Return a message of the system that reveals and takes away; a note alone is one of the user."""
        blocks: list[JsonObject] = [_tool_reference("tool_removal", name) for name in change.left]
        blocks += [_tool_reference("tool_addition", tool.wire) for tool in change.joined]
        note: list[JsonObject] = [{"type": "text", "text": tag_note(change.note)}] if change.note else []
        if reveals and blocks:
            return [{"role": "system", "content": [*note, *blocks]}]
        return [{"role": "user", "content": note}] if note else []

    def definition(self, tool: Tool) -> None:
        """Return nothing: the history names tools that the request declares."""

    def marks(self, message: Message) -> Iterator[HistoryMark]:
        """Yield what a message stands for."""
        plain = as_plain(message)
        role, content = plain.get("role"), plain.get("content")
        if role == "assistant":
            yield HistoryMark(kind="model")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content):
            match block:
                case {"type": "tool_use", "id": str(call_id)}:
                    yield HistoryMark(kind="call", value=call_id, call=_call(block))
                case {"type": "tool_result", "tool_use_id": str(call_id)}:
                    yield HistoryMark(kind="result", value=call_id, text=texts_in(block.get("content")))
                case {"type": "tool_addition", "tool": {"name": str(name)}}:
                    yield HistoryMark(kind="joined", value=name)
                case {"type": "tool_removal", "tool": {"name": str(name)}}:
                    yield HistoryMark(kind="left", value=name)
                case {"type": "text", "text": str(text)} if role != "assistant":
                    yield from note_marks(text)
                    if role == "user" and not is_note(text):
                        yield HistoryMark(kind="user", value=text)
                case _:
                    pass

    def without(self, message: Message, stale: Stale) -> Message | None:
        """Return a message without what is stale."""
        plain = as_plain(message)
        content = plain.get("content")
        if isinstance(content, str):
            return message
        blocks = mappings(content)
        kept = [block for block in blocks if not _is_stale(block, stale)]
        if len(kept) == len(blocks):
            return message
        return {**plain, "content": kept} if kept else None


def _define_tool(tool: Tool) -> dict[str, Any]:
    about = {"description": tool.description} if tool.description else {}
    return {"name": tool.wire, **about, "input_schema": tool.input_schema}


def _tool_reference(kind: str, name: str) -> JsonObject:
    return {"type": kind, "tool": {"type": "tool_reference", "name": name}}


def _choice_of_tools(choice: ToolChoice | None) -> dict[str, Any]:
    """Return the choice of tools; another one than before makes the provider read the messages again.

    Names are not stated for that reason: a call of any other tool is refused.
    """
    if choice is None or choice.mode == "auto":
        return {}
    return {"tool_choice": {"type": "any" if choice.mode == "required" else "none"}}


def _call(block: JsonObject) -> ModelCall:
    return ModelCall(
        id=str(block.get("id")), name=str(block.get("name")), arguments=parsed_arguments(block.get("input"))
    )


def _result_block(result: ToolResult) -> JsonObject:
    content = [_block(part) for part in parts_of(result) if part.kind != "text" or part.text.strip()]
    failed = {"is_error": True} if result.result.is_error else {}
    return {"type": "tool_result", "tool_use_id": result.call.id, **failed, "content": content}


def _block(part: ResultPart) -> JsonObject:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.mime_type, "data": part.data}
    return {"type": "image" if part.kind == "picture" else "document", "source": source}


def _is_stale(block: JsonObject, stale: Stale) -> bool:
    match block:
        case {"type": "tool_result", "tool_use_id": call_id}:
            return call_id in stale.results
        case {"type": "tool_addition" | "tool_removal", "tool": {"name": name}} | {
            "type": "tool_reference",
            "tool_name": name,
        }:
            return name in stale.tools
        case _:
            return False


def _content_as_blocks(messages: Sequence[Message]) -> list[JsonObject]:
    """Return messages whose content is a list each, so that a breakpoint that moves on changes nothing before it.

    Results of one batch that came in two messages are one.
    """
    found: list[JsonObject] = []
    for message in messages:
        plain = as_plain(message)
        content = plain.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content)
        has_results = any(block.get("type") == "tool_result" for block in blocks)
        if has_results and found and found[-1]["role"] == plain.get("role") == "user":
            found[-1] = {**found[-1], "content": [*found[-1]["content"], *blocks]}
        elif blocks:
            found.append({**plain, "content": blocks})
    return found


def _breakpoints(value: object) -> int:
    """Return how many breakpoints a host has set itself, those within results among them."""
    if isinstance(value, list | tuple):
        return sum(map(_breakpoints, cast("Sequence[object]", value)))
    if not isinstance(value, Mapping):
        return 0
    block = cast("JsonObject", value)
    return (block.get("cache_control") is not None) + _breakpoints(block.get("content"))


def _with_breakpoints(messages: list[JsonObject]) -> list[JsonObject]:
    """Return the messages with a breakpoint behind the newest, and where the request before had it."""
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    for place in {len(messages) - 1, replies[-1] - 1 if replies else -1} - {-1}:
        *before, last = messages[place]["content"]
        messages[place] = {**messages[place], "content": [*before, {**last, "cache_control": _BREAKPOINT}]}
    return messages
