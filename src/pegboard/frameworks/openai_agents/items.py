"""What passes between the SDK, a model and a session: requests, items of a history, results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agents import (
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
)

from pegboard.core.state.call_plans import CallAnswer
from pegboard.frameworks import runs
from pegboard.wire.passed_on import THROUGH

GOES_ON: Final = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)
"""What a model answers that the SDK answers in turn."""

_FILES: Final = frozenset({"application/pdf"})

_PARAMETERS: Final = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
"""Those that the SDK gives a model by their place."""


def request_of(args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a request by name."""
    return {**dict(zip(_PARAMETERS, args, strict=False)), **given}


def is_kept(request: Mapping[str, Any]) -> bool:
    """Return whether the server keeps the conversation, and with it all that it was ever sent."""
    return bool(request.get("previous_response_id") or request.get("conversation_id"))


def is_empty(text: str) -> bool:
    """Return whether a model wrote no arguments."""
    return text.strip() in ("", "null")


def real_call(name: object, arguments: dict[str, Any]) -> tuple[object, Any]:
    """Return what a call is a call of, also one through ``call_tool``."""
    through = name in THROUGH
    return (arguments.get("name"), arguments.get("arguments", {})) if through else (name, arguments)


def text_of(items: Sequence[Any]) -> str | None:
    """Return the text of the newest message of a user."""
    content: Any = next((item.get("content") for item in reversed(items) if item.get("role") == "user"), None)
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [str(part["text"]) for part in cast("list[dict[str, Any]]", content) if "text" in part]
    return "\n".join(texts) or None


def note_item(note: str) -> dict[str, Any]:
    """Return a note as an item of a history."""
    return {"role": "user", "content": f"<system>{note}</system>"}


def with_notes(items: Sequence[Any], notes: Sequence[str]) -> list[Any]:
    """Return a history with what is behind its items."""
    return [
        one for item, note in zip(items, notes, strict=True) for one in ((item, note_item(note)) if note else (item,))
    ]


def result_for_model(answer: CallAnswer) -> Any:
    """Return the result for the model; what it cannot read is named in the text."""
    text, media = runs.text_and_media(answer.result, _FILES)
    if not media:
        return text or answer.message
    parts: list[Any] = [ToolOutputText(text=text)] if text else []
    parts += [ToolOutputImage(image_url=runs.data_url(blob)) for blob in media.get("images", ())]
    parts += [
        ToolOutputFileContent(file_data=runs.data_url(blob), filename="file.pdf") for blob in media.get("files", ())
    ]
    if sounds := media.get("audios"):
        parts.append(ToolOutputText(text=json.dumps([{"mimeType": blob["mime_type"]} for blob in sounds])))
    return parts


def events_of(calls: Sequence[ResponseFunctionToolCall]) -> list[Any]:
    """Return the events of an answer that only makes calls."""
    done = [
        ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=call, output_index=index, sequence_number=index
        )
        for index, call in enumerate(calls)
    ]
    response = Response(
        id="pegboard",
        created_at=0,
        model="pegboard",
        object="response",
        output=[*calls],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        status="completed",
    )
    return [
        *done,
        ResponseCompletedEvent(type="response.completed", response=response, sequence_number=len(calls)),
    ]
