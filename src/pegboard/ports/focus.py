"""The rules that a message is matched against (F3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FocusRules(Protocol):
    """The focus rules of a configuration, matched against messages (F3)."""

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether a pattern is found in a message, in bounded time.

        Args:
            pattern: A regular expression that ``check`` has accepted.
            message: The user's message.

        Returns:
            Whether it is found anywhere in it.
        """
        ...

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return the answer of a hook.

        Args:
            hook: ``module:function``.
            message: The user's message.
            tools: The wire names of the visible tools.

        Returns:
            What the function returned.

        Raises:
            Exception: What it raised; ``TimeoutError`` where it took too long.
        """
        ...
