"""What a text costs (F4)."""

from __future__ import annotations

from typing import Protocol


class TokenCounter(Protocol):
    """A counter of tokens, with a real tokenizer (F4)."""

    def count(self, text: str) -> int:
        """Return how many tokens a text takes."""
        ...
