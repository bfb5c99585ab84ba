"""What an equipped agent keeps over its runs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from agents import (
    RunContextWrapper,
)

from pegboard.frameworks import runs
from pegboard.frameworks.openai_agents.items import (
    is_empty,
)
from pegboard.wire.kept_notes import KeptNotes
from pegboard.wire.passed_on import CallThrough

AnyContext = RunContextWrapper[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallThroughMetaTool:
    """A call through ``call_tool``, with its arguments as text: as the SDK is shown them, and as the model wrote."""

    call: CallThrough
    shown: str
    written: str


_MOST_PASSED: Final = 10_000
"""How many calls through ``call_tool`` are sent back as they were made; older ones as calls of the tool itself."""

_MOST_WAITING: Final = 1000
"""How many runs that wait are known again in this process; the others go on as in a new one."""


class AgentState:
    """What an equipped agent keeps over its runs; ``model`` is the one that it was given."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.owned: WeakKeyDictionary[object, Callable[[], Awaitable[None]]] = WeakKeyDictionary()
        """What ends a run, by what the SDK gives to models with the end of it."""
        self.kept = KeptNotes()
        self.passed: dict[str, CallThroughMetaTool] = {}
        self.empty: dict[str, str] = {}
        self.waiting: list[Any] = []

    def note_empty(self, call_id: str, written: str) -> None:
        """Note what the model wrote as the arguments of a call that has none; the oldest is forgotten first."""
        self.empty[call_id] = written
        if len(self.empty) > _MOST_PASSED:
            del self.empty[next(iter(self.empty))]

    def note_passed(self, call_id: str, passed: CallThroughMetaTool) -> None:
        """Note how the model made a call through ``call_tool``; the oldest is forgotten first."""
        self.passed[call_id] = passed
        if len(self.passed) > _MOST_PASSED:
            del self.passed[next(iter(self.passed))]

    def note_waiting(self, run: object) -> None:
        """Note that a run waits for a person; the one that has waited longest is forgotten first."""
        self.waiting = [*(one for one in self.waiting if one is not run), run][-_MOST_WAITING:]

    def with_arguments(self, item: Any) -> Any:
        """Return a call of the session as the SDK can read it: without arguments, it has an empty object.

        Half a character in them, at which the SDK ends the run, becomes U+FFFD.
        """
        if "\\ud" in item.arguments.lower() and (read := runs.arguments_of(item.arguments)) is not None:
            return item.model_copy(update={"arguments": json.dumps(read, ensure_ascii=False)})
        if not is_empty(item.arguments):
            return item
        self.note_empty(item.call_id, item.arguments)
        return item.model_copy(update={"arguments": "{}"})

    def call_for_session(self, call_id: str, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return name and arguments of a call for the session."""
        passed = self.passed.get(call_id)
        return (name, arguments) if passed is None else passed.call.of_session(name, arguments)

    def as_written(self, item: Any) -> Any:
        """Return an item of a history for the model: a call as it was made."""
        if item.get("type") != "function_call":
            return item
        passed = self.passed.get(item.get("call_id"))
        if passed is None:
            written = self.empty.get(item.get("call_id"))
            return item if written is None or item["arguments"] != "{}" else {**item, "arguments": written}
        name, arguments = passed.call.of_session(item["name"], runs.arguments_of(item["arguments"]) or {})
        same = (item["name"], item["arguments"]) == (passed.call.name, passed.shown)
        return {**item, "name": name, "arguments": passed.written if same else json.dumps(arguments)}
