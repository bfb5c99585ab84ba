"""The rules that a message is matched against (F3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FocusRules(Protocol):
    """Hold messages against focus rules (F3)."""

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether the regular expression is found in the message; takes bounded time."""
        ...

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return what the function ``module:function`` answers to the message and the visible tools."""
        ...
