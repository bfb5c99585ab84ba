"""What a value may be, wherever it is kept."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 64 * 1024
"""How many bytes a value may have."""
PATIENCE: Final = 10.0
"""How long one value may take, in seconds."""


def without_newline(text: str) -> str:
    r"""Return a text without the newline at its end.

    >>> without_newline("hunter22\r\n"), without_newline("two\n\n")
    ('hunter22', 'two\n')
    """
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
