"""What a session says to the model in a request of LangChain: policy behind the system's text, news behind messages.

An answer keeps in its metadata what stood before it in its request, so that later requests have it there again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from pegboard.core.surface.definitions import DEFINING, all_defined_in, definitions_ahead, not_defined
from pegboard.frameworks.langchain.returned import repeats_result
from pegboard.frameworks.runs import StepRequest
from pegboard.wire.passed_on import tool_called

_NOTED: Final = "pegboard"
"""Where an answer of the model has what stood before it in its request and in no message: its metadata, never sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestNote:
    """What is behind the newest message of a request, and what is loaded."""

    text: str
    loaded: str


def keep_note_in_answer(response: ModelResponse[Any], note: RequestNote) -> ModelResponse[Any]:
    """Return an answer that keeps what its request carried behind the newest message."""
    answer = response.result[0]
    if not note.text or not isinstance(answer, AIMessage):
        return response
    metadata = {**answer.response_metadata, _NOTED: {"note": note.text, "loaded": note.loaded}}
    return replace(response, result=[answer.model_copy(update={"response_metadata": metadata}), *response.result[1:]])


def loaded_before(messages: Sequence[AnyMessage]) -> str:
    """Return what the model read last of what is loaded, or nothing."""
    notes = (one.response_metadata.get(_NOTED) for one in reversed(messages) if isinstance(one, AIMessage))
    return next((str(note["loaded"]) for note in notes if note), "")


def definitions_for(step: StepRequest, messages: Sequence[AnyMessage]) -> str:
    """Return the definitions of what is loaded, ahead or before, that the history has nowhere (D4)."""
    notes = [one.response_metadata.get(_NOTED) for one in messages if isinstance(one, AIMessage)]
    answers = [one.text for one in messages if isinstance(one, ToolMessage) and one.name in DEFINING]
    texts = (*(str(note["note"]) for note in notes if note), *answers)
    known = all_defined_in(texts)
    calls = [call for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
    called = {tool_called(call["name"], call["args"]) for call in calls}
    anticipated = step.surface.anticipated if step.surface.ahead else ()
    new = {tool.wire: tool for tool in not_defined(anticipated, known)}
    return definitions_ahead((new | {tool.wire: tool for tool in not_defined(step.beside, known, called)}).values())


def with_notes(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a history as it was sent: each answer behind what stood before it in its request."""
    sent: list[AnyMessage] = []
    for message in messages:
        if repeats_result(message):
            continue
        note = message.response_metadata.get(_NOTED) if isinstance(message, AIMessage) else None
        sent = with_note(sent, note["note"]) if note else sent
        sent.append(message)
    return sent


def with_note(messages: list[AnyMessage], note: str) -> list[AnyMessage]:
    """Return messages with a note of the system behind the newest."""
    if not note:
        return messages
    text = f"<system>{note}</system>"
    newest = messages[-1] if messages else None
    if not isinstance(newest, HumanMessage | ToolMessage):
        return [*messages, HumanMessage(text)]
    content = newest.content
    with_text = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return [*messages[:-1], newest.model_copy(update={"content": with_text})]


def with_prefix(system: SystemMessage | None, prefix: str) -> SystemMessage | None:
    """Return the system's text with policy and hints behind it."""
    if not prefix:
        return system
    if system is None:
        return SystemMessage(prefix)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{prefix}"})
    return system.model_copy(update={"content": [*system.content, {"type": "text", "text": prefix}]})
