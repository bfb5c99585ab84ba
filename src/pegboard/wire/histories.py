"""What a history says of tools and calls, and the history as it may be sent today (D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.core.model.tools import JsonObject, text_result
from pegboard.core.surface.definitions import DEFINING, defined_in
from pegboard.wire.provider_forms import HistoryMark, Message, ModelCall, ProviderForm, Stale, ToolResult

_NOT_RUN = "This call has not run."


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a history says.

    Attributes:
        marks: what each message stands for.
        revealed: the tools that it reveals, each with its definition where it has that.
        removed: the tools that it takes away.
        defined: the tools that its notes and the answers to its loads and searches define, with these definitions.
        note: the newest note.
        message: the user's text where nothing but notes follows it: a turn begins with it.
        open_calls: the calls of the newest reply that have no result.
        stale_results: the ids of results without a call.
    """

    marks: tuple[tuple[HistoryMark, ...], ...]
    revealed: Mapping[str, JsonObject | None]
    removed: frozenset[str]
    defined: Mapping[str, JsonObject]
    note: str
    message: str | None
    open_calls: tuple[ModelCall, ...]
    stale_results: frozenset[str]


def read_history(form: ProviderForm, messages: Sequence[Message]) -> History:
    """Return what a history says."""
    marks = tuple(tuple(form.marks(message)) for message in messages)
    revealed: dict[str, JsonObject | None] = {}
    removed: set[str] = set()
    defined: dict[str, JsonObject] = {}
    open_calls: dict[str, ModelCall] = {}
    known: dict[str, str] = {}
    stale: set[str] = set()
    note, said = "", list[str]()
    for mark in (mark for of_message in marks for mark in of_message):
        match mark.kind:
            case "joined":
                revealed[mark.value] = mark.definition
                removed.discard(mark.value)
            case "left":
                revealed.pop(mark.value, None)
                removed.add(mark.value)
            case "defined" if mark.definition is not None:
                defined[mark.value] = mark.definition
            case "note":
                note = mark.value
            case "call" if mark.call is not None:
                open_calls[mark.value] = mark.call
                known[mark.value] = mark.call.name
            case "result":
                open_calls.pop(mark.value, None)
                stale |= {mark.value} - known.keys()
                if known.get(mark.value) in DEFINING:
                    defined.update(defined_in(mark.text))
            case _:
                open_calls = open_calls if mark.kind == "model" else {}
        if mark.kind == "user":
            said.append(mark.value)
        elif mark.kind in ("call", "result", "model"):
            said.clear()
    return History(
        marks=marks,
        revealed=revealed,
        removed=frozenset(removed),
        defined=defined,
        note=note,
        message="\n".join(said) if said else None,
        open_calls=tuple(open_calls.values()),
        stale_results=frozenset(stale),
    )


def sendable(
    form: ProviderForm, messages: Sequence[Message], history: History, tools: Mapping[str, JsonObject | None]
) -> list[Message]:
    """Return the history as it may be sent: its own messages, as long as nothing in them is stale.

    A tool that is gone or denied, or of which the history has another definition than today's, is not revealed any
    more; a result without a call is not sent; a call that no one answered before the user went on is answered.

    Args:
        form: the provider's.
        messages: the history.
        history: what it says.
        tools: those that may be revealed today, each with its definition where the history has that.
    """
    named = {mark.value for marks in history.marks for mark in marks if mark.kind in ("joined", "left")}
    gone = {name for name in named if name not in tools or _differs_from_today(history.revealed.get(name), tools[name])}
    stale = Stale(results=history.stale_results, tools=gone)
    waiting = {call.id for call in history.open_calls}
    answered = {mark.value for marks in history.marks for mark in marks if mark.kind == "result"} | waiting
    sent: list[Message] = []
    for message, marks in zip(messages, history.marks, strict=True):
        kept = form.without(message, stale) if stale.results or stale.tools else message
        if kept is not None:
            sent.append(kept)
        calls = [mark.call for mark in marks if mark.call is not None and mark.value not in answered]
        results = [ToolResult(call=call, result=text_result(_NOT_RUN, is_error=True), limit=1000) for call in calls]
        sent += form.results(results) if results else []
    return sent


def _differs_from_today(before: JsonObject | None, now: JsonObject | None) -> bool:
    """Return whether the history has another definition than today's."""
    return before is not None and now is not None and before != now
