"""The sentences of a message: each may need something of its own (S5)."""

from __future__ import annotations

import re
from typing import Final

_ENDS: Final = re.compile(r"(?<=[.!?…;])\s+|(?<=[。！？；])|\n")
_LEAST: Final = 10
"""How many letters a sentence has that may need something."""
_MOST: Final = 8
"""How many sentences of a message are looked at: of a longer one as many from its beginning as from its end."""
_READ: Final = 8_000
"""How many characters of a message are looked at from either end."""


def sentences(message: str) -> tuple[str, ...]:
    """Return the sentences of a message that may each need something; none where it is one sentence."""
    text = message if len(message) <= 2 * _READ else f"{message[:_READ]}\n{message[-_READ:]}"
    found = [one for part in _ENDS.split(text) if sum(map(str.isalpha, one := part.strip())) >= _LEAST]
    if len(found) > _MOST:
        found = [*found[: _MOST // 2], *found[-_MOST // 2 :]]
    return tuple(found) if len(found) > 1 else ()
