"""What tools cost: the tokens of their serialised schemas (F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pegboard.core.model.tools import Tool, counted_json

MOST_TEXTS: Final = 256
"""Of how many sets of texts the tokens are kept: those of hints are hundreds of lines, alike in many sessions."""


class ToolPrices:
    """The tokens of tools, each counted once in its life, and of the texts beside them."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._known: dict[str, tuple[Tool, int]] = {}
        self._texts: dict[tuple[str, ...], int] = {}

    def __call__(self, tools: Iterable[Tool]) -> int:
        """Return the tokens of the serialised tools together."""
        total = 0
        for tool in tools:
            known = self._known.get(tool.wire)
            if known is None or known[0] is not tool:
                known = self._known[tool.wire] = tool, self._count(counted_json(tool))
            total += known[1]
        return total

    def texts(self, texts: tuple[str, ...]) -> int:
        """Return the tokens of texts together, each counted by itself; those of the newest are kept."""
        found = self._texts.get(texts)
        if found is None:
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            found = self._texts[texts] = sum(map(self._count, texts))
        return found
