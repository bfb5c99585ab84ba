"""The scripted model: it calls the tool that a turn takes, and finds or loads it where it is not visible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from benchmarks.bill.conversations import Turn
from benchmarks.bill.requests_read import Read
from benchmarks.bill.toolkits import Made

Habit = Literal["loads", "searches"]
MOST: Final = 8
"""The model calls of a turn after which something is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call that the model makes."""

    name: str
    arguments: Mapping[str, Any]


class ScriptedModel:
    """A model that knows what a turn takes.

    What is visible it calls. Where ``load_capability`` is there it loads the toolkit; where the definition of the
    tool is in the conversation it calls it through ``call_tool``; else it loads the toolkit, or searches with the
    words of the user, by its habit.
    """

    def __init__(self, habit: Habit) -> None:
        self._habit: Habit = habit
        self._turn = Turn(message="", tool=None)
        self._asked = 0
        self._behind = 0
        self._searched = False
        self.at_once = 0

    def begin(self, turn: Turn) -> None:
        """Take up a turn."""
        self._turn, self._asked, self._searched = turn, 0, False

    def answer(self, request: Read) -> Called | str:
        """Return what the model answers to a request."""
        tool = self._turn.tool
        self._asked += 1
        if self._asked == 1:
            self._behind = sum(text == tool.answer for text in request.texts) if tool is not None else 0
        if tool is None or sum(text == tool.answer for text in request.texts) > self._behind:
            return "That is done."
        if self._asked > MOST:
            raise RuntimeError(f"{MOST} model calls have not called {tool.name}: {sorted(request.visible)}")
        return self._next(tool, request)

    def _next(self, tool: Made, request: Read) -> Called:
        through = "call_tool" in request.visible and _defined(tool.name, request.texts)
        if tool.name in request.visible or through:
            self.at_once += self._asked == 1
        if tool.name in request.visible:
            return Called(name=tool.name, arguments=tool.sample)
        if through:
            return Called(name="call_tool", arguments={"name": tool.name, "arguments": tool.sample})
        if "load_capability" in request.visible:
            return Called(name="load_capability", arguments={"id": tool.toolkit})
        search = next((name for name in request.visible if name.startswith("tool_search")), None)
        if search is not None:
            query = tool.description if self._searched else self._turn.message
            self._searched = True
            return Called(name=search, arguments={"query": query})
        if self._habit == "searches" and not self._searched:
            self._searched = True
            return Called(name="search_tools", arguments={"queries": [self._turn.message]})
        return Called(name="load_tools", arguments={"names": [tool.toolkit]})


def _defined(name: str, texts: Iterable[str]) -> bool:
    """Return whether a definition with arguments is in the texts."""
    pattern = re.compile(
        rf'"name":\s*"{name}",\s*(?:"loaded":\s*true,\s*)?"description":\s*"(?:[^"\\]|\\.)*",\s*"(?:arguments|inputSchema)"'
    )
    return any(pattern.search(text) for text in texts)
