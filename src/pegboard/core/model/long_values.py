"""Long values in text, of which there may be many: tokens of logins, of each of a thousand users."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

LONG: Final = 16
"""How many characters a value has at least, all of one word, that is found by how it begins."""
_HEAD: Final = 8
_WORD: Final = re.compile(rf"\S{{{LONG},}}")


def is_long(value: str) -> bool:
    """Return whether a value is looked for here.

    >>> is_long("eyJhbGciOiJSUzI1NiJ9.e30"), is_long("hunter22"), is_long("a sentence of many words")
    (True, False, False)
    """
    return _WORD.fullmatch(value) is not None


class LongValues:
    """Long values by how they begin: what a text costs, or one value more, does not depend on how many there are.

    >>> known = LongValues()
    >>> known.add(["access-0123456789", "access-0123456789abc"])
    >>> list(known.spans('{"token":"access-0123456789abc"}'))
    [(10, 30)]
    """

    __slots__ = ("_by_head", "_counts", "longest")

    def __init__(self) -> None:
        self._by_head: dict[str, tuple[str, ...]] = {}  # the longest first
        self._counts: Counter[str] = Counter()
        self.longest = 0

    def __bool__(self) -> bool:
        return bool(self._by_head)

    def __contains__(self, value: str) -> bool:
        return value in self._counts

    @property
    def values(self) -> Iterable[str]:
        """Return what is looked for."""
        return self._counts

    def add(self, values: Iterable[str]) -> None:
        """Look for these, too, once more for each time that they are given."""
        for value in values:
            self._counts[value] += 1
            if self._counts[value] == 1:
                head = value[:_HEAD]
                self._by_head[head] = tuple(sorted((*self._by_head.get(head, ()), value), key=len, reverse=True))
                self.longest = max(self.longest, len(value))

    def remove(self, values: Iterable[str]) -> None:
        """Look for these no more, as often as they were given."""
        for value in values:
            self._counts[value] -= 1
            if self._counts[value] <= 0:
                del self._counts[value]
                head = value[:_HEAD]
                left = tuple(other for other in self._by_head[head] if other != value)
                if left:
                    self._by_head[head] = left
                else:
                    del self._by_head[head]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where values begin and end in a text, in order and apart."""
        heads = self._by_head
        for word in _WORD.finditer(text) if heads else ():
            at, last = word.start(), word.end() - LONG
            while at <= last:
                values = heads.get(text[at : at + _HEAD])
                found = None if values is None else _first_at(at, text, values)
                if found is None:
                    at += 1
                else:
                    yield at, at + len(found)
                    at += len(found)


def _first_at(at: int, text: str, values: Iterable[str]) -> str | None:
    return next((value for value in values if text.startswith(value, at)), None)
