"""A mapping that shares with the one before it what has not changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ROOM: Final = 16
"""The square of the changes may be this many times the size of what they stand over."""


class PersistentMap(Generic[K, V]):
    """An immutable mapping: a base that many versions share, and over it what has changed since (None: gone).

    A change copies the changes before it; once they are about as many as the square root of the base, both become a
    new base. So n entries that come one after the other cost n times the square root of n at worst, in copies that
    no Python code steps through, and a look-up costs two.
    """

    __slots__ = ("_base", "_changes")

    def __init__(self, base: Mapping[K, V], changes: Mapping[K, V | None] | None = None) -> None:
        self._base = base
        self._changes: Mapping[K, V | None] = changes or {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._changes[key] if key in self._changes else self._base.get(key)

    def changed(self, changes: Mapping[K, V | None]) -> PersistentMap[K, V]:
        """Return the mapping with other values, and without the keys whose value is None."""
        if not changes:
            return self
        over = {**self._changes, **changes}
        if len(over) ** 2 <= _ROOM * len(self._base):
            return PersistentMap(self._base, over)
        whole = dict(self._base)
        for key, value in over.items():
            if value is None:
                whole.pop(key, None)
            else:
                whole[key] = value
        return PersistentMap(whole)
