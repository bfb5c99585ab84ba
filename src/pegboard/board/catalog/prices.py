"""What tools cost: the tokens of their serialised schemas (F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pegboard.core.model.tools import Tool, serialised


class Prices:
    """The tokens of tools, each counted once in its life."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._known: dict[str, tuple[Tool, int]] = {}

    def __call__(self, tools: Iterable[Tool]) -> int:
        """Return the tokens of the serialised tools together."""
        total = 0
        for tool in tools:
            known = self._known.get(tool.wire)
            if known is None or known[0] is not tool:
                known = self._known[tool.wire] = tool, self._count(serialised(tool))
            total += known[1]
        return total
