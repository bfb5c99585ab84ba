"""One-time codes: whoever started the gateway signs in with one (G2)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from time import monotonic
from typing import Final

LIFETIME: Final = 600.0
"""For how long a code can be used, in seconds."""
MOST: Final = 64
"""How many codes are good at once; the oldest gives way."""


class Codes:
    """Codes of 128 random bits, each good once and for ten minutes; only their digests are kept."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}

    def new(self) -> str:
        """Return a new code."""
        code = secrets.token_urlsafe(16)
        while len(self._until) >= MOST:
            del self._until[next(iter(self._until))]
        self._until[digest(code)] = self._clock() + LIFETIME
        return code

    def redeem(self, code: str) -> bool:
        """Return whether the code is good, and use it up."""
        until = self._until.pop(digest(code), None)
        return until is not None and self._clock() < until


def digest(secret: str) -> bytes:
    """Return what is kept of a secret: looking it up tells nothing of the secret itself."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
