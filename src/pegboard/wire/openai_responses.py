"""OpenAI's Responses: tools that join in the history with their definitions, and a choice of allowed tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.wire.notes import is_note, note_marks, tag_note
from pegboard.wire.provider_forms import (
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
from pegboard.wire.result_blocks import ResultPart, parts_of, text_of

ENCRYPTED: Final = "reasoning.encrypted_content"
"""What lets a reasoning item go back to a provider that has not stored it."""


class OpenAIResponses:
    """``client.responses.create(**request)``."""

    name = "responses"

    def request(self, parts: RequestParts, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the keyword arguments for the provider's client."""
        request: dict[str, Any] = {"model": parts.model, "input": list(messages)}
        if parts.system:
            request["instructions"] = "\n\n".join(parts.system)
        if parts.encrypted:
            request["include"] = [ENCRYPTED]
        if parts.head:
            request["tools"] = [_define_tool(tool) for tool in parts.head]
            request |= _choice_of_tools(parts.choice)
        return request

    def reply(self, given: JsonObject) -> Reply:
        """Return what a response says; what a stream ended with may be its last event."""
        inner = given.get("response")
        response = given if inner is None else as_plain(inner)
        if not isinstance(response.get("output"), list):
            raise ValueError("output")
        if response.get("status") in ("in_progress", "queued"):  # a stream that stopped
            raise ValueError("end")
        items = mappings(response["output"])
        texts = [texts_in(item.get("content"), "output_text") for item in items if item.get("type") == "message"]
        calls = tuple(_call(item) for item in items if item.get("type") == "function_call")
        empty = not calls and not any(texts)
        cut = cut_by(as_plain(response.get("incomplete_details") or EMPTY).get("reason"))
        if not cut and response.get("status") == "incomplete":
            cut = cut_by("length")
        kept = tuple(_item_for_provider(item, whole=not cut) for item in items)
        return Reply(messages=() if empty else kept, calls=calls, text="\n".join(texts), cut=cut)

    def text(self, text: str) -> list[Message]:
        """Return a text of the model as its message."""
        return [{"role": "assistant", "content": text}] if text else []

    def results(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return one item for each result, in order."""
        return [_result_item(result) for result in results]

    def change(self, change: HistoryChange, *, reveals: bool) -> list[Message]:
        """Return an item with the tools that join, and one with a note; nothing takes tools away in this form."""
        tools = [dict(_define_tool(tool)) for tool in change.joined] if reveals else []
        joined = [{"type": "additional_tools", "role": "developer", "tools": tools}] if tools else []
        note = [{"role": "developer", "content": tag_note(change.note)}] if change.note else []
        return [*note, *joined]

    def definition(self, tool: Tool) -> JsonObject:
        """Return the definition that the history has."""
        return _define_tool(tool)

    def marks(self, message: Message) -> Iterator[HistoryMark]:
        """Yield what an item stands for."""
        plain = as_plain(message)
        match plain:
            case {"type": "function_call", "call_id": str(call_id)}:
                yield HistoryMark(kind="call", value=call_id, call=_call(plain))
            case {"type": "function_call_output", "call_id": str(call_id)}:
                yield HistoryMark(kind="result", value=call_id, text=texts_in(plain.get("output"), "input_text"))
            case {"type": "additional_tools"}:
                for tool in mappings(plain.get("tools")):
                    yield HistoryMark(kind="joined", value=str(tool.get("name")), definition=tool)
            case {"role": "user" | "developer" | "system" as role, "content": content}:
                text = content if isinstance(content, str) else texts_in(content, "input_text")
                yield from note_marks(text)
                if role == "user" and not is_note(text):
                    yield HistoryMark(kind="user", value=text)
            case _:
                yield HistoryMark(kind="model")

    def without(self, message: Message, stale: Stale) -> Message | None:
        """Return an item without what is stale."""
        plain = as_plain(message)
        if plain.get("type") == "function_call_output":
            return None if plain.get("call_id") in stale.results else message
        if plain.get("type") != "additional_tools":
            return message
        tools = mappings(plain.get("tools"))
        kept = [tool for tool in tools if tool.get("name") not in stale.tools]
        if len(kept) == len(tools):
            return message
        return {**plain, "tools": kept} if kept else None


def _define_tool(tool: Tool) -> dict[str, Any]:
    about = {"name": tool.wire, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", **about, "strict": False}


def _choice_of_tools(choice: ToolChoice | None) -> dict[str, Any]:
    """Return the choice of tools, which narrows a step without an edit of the list (F3)."""
    if choice is None:
        return {}
    if choice.mode == "none" or not choice.names:
        return {"tool_choice": choice.mode}
    tools = [{"type": "function", "name": name} for name in choice.names]
    return {"tool_choice": {"type": "allowed_tools", "mode": choice.mode, "tools": tools}}


def _call(item: JsonObject) -> ModelCall:
    arguments = parsed_arguments(item.get("arguments"))
    return ModelCall(id=str(item.get("call_id")), name=str(item.get("name")), arguments=arguments)


def _item_for_provider(item: JsonObject, *, whole: bool) -> JsonObject:
    """Return an item of a reply as the provider takes it back."""
    kept = without_added(item)
    if item.get("type") != "function_call":
        return kept
    return {**kept, "arguments": written_arguments(item.get("arguments"), whole=whole)}


def _result_item(result: ToolResult) -> JsonObject:
    parts = parts_of(result)
    plain = all(part.kind == "text" for part in parts)
    output = text_of(result) if plain else [_block(part) for part in parts]
    return {"type": "function_call_output", "call_id": result.call.id, "output": output}


def _block(part: ResultPart) -> JsonObject:
    match part.kind:
        case "text":
            return {"type": "input_text", "text": part.text}
        case "picture":
            return {"type": "input_image", "image_url": part.url, "detail": "auto"}
        case "file":
            return {"type": "input_file", "filename": "file.pdf", "file_data": part.url}
