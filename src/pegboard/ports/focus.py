"""The rules that a message is matched against (F3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FocusRules(Protocol):
    """The focus rules of a configuration, matched against messages (F3)."""

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether a pattern that ``check`` has accepted is found anywhere in a message, in bounded time."""
        ...

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return what a hook, ``module:function``, answers to a message and the wire names of the visible tools.

        It raises what the function raised; ``TimeoutError`` where it took too long.
        """
        ...
