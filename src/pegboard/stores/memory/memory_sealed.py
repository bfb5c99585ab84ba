"""Secrets and leases in the memory of this process: nobody else reads it, so nothing is sealed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from pegboard.ports.sealed import SealedKind, SealedText


class MemorySealed:
    """Secrets by kind and key, and leases by name."""

    def __init__(self) -> None:
        self._texts: Final[dict[tuple[SealedKind, str], SealedText]] = {}
        self._leases: Final[dict[str, tuple[str, float]]] = {}
        self._version = 0

    def get(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, or None."""
        found = self._texts.get((kind, key))
        return found if found is not None and _counts(found) else None

    def all(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired, by key."""
        return sorted(text for (own, _), text in self._texts.items() if own == kind and _counts(text))

    def put(
        self, kind: SealedKind, key: str, text: str | None, *, expected: int | None, expires_at: float | None
    ) -> int | None:
        """Store a secret, or remove it, if its version is still the expected one; return the new one or None."""
        found = self.get(kind, key)
        if expected is not None and (0 if found is None else found.version) != expected:
            return None
        if text is None:
            self._texts.pop((kind, key), None)
            return 0
        self._version += 1
        self._texts[kind, key] = SealedText(key, text, self._version, expires_at)
        return self._version

    def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take a lease that nobody else has; return whether the holder has it."""
        now = time.time()
        own, until = self._leases.get(name, (holder, 0.0))
        if own != holder and now < until:
            return False
        self._leases[name] = holder, now + seconds
        return True

    def lease_holder(self, name: str) -> str | None:
        """Return who has a lease now, or None."""
        holder, until = self._leases.get(name, (None, 0.0))
        return holder if time.time() < until else None

    def end_lease(self, name: str, holder: str) -> None:
        """Give a lease back, if it is still this holder's."""
        if self._leases.get(name, ("", 0.0))[0] == holder:
            del self._leases[name]


def _counts(text: SealedText) -> bool:
    return text.expires_at is None or text.expires_at > time.time()
