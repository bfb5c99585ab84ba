"""What was read last of a store, by key (S2)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST: Final = 10_000
"""Of how many keys it is known; those that were asked for longest ago go first."""


_NOTHING: Final = object()


class LastRead(Generic[K, V]):
    """Values as they were read or written last; a reading that another has overtaken is not the last."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()

    async def read(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return what is answered for a key, which is the last that is known from now on."""
        before = self._values.get(key, _NOTHING)
        value = await ask()
        if self._values.get(key, _NOTHING) is before:
            self.put(key, value)
        return value

    def __contains__(self, key: K) -> bool:
        """Return whether something was read or written."""
        return key in self._values

    def __getitem__(self, key: K) -> V:
        """Return what was read or written last."""
        return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Note what was written."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MOST:
            self._values.popitem(last=False)
