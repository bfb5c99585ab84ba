"""Long values in text, of which there may be many: tokens of logins, of each of a thousand users."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

LONG: Final = 16
"""How many characters a value has at least, all of one word, that is found by how it ends."""
_END: Final = 8
"""How many last characters tell values apart: tokens of one kind begin alike."""
_WORD: Final = re.compile(rf"\S{{{LONG},}}")


def is_long(value: str) -> bool:
    """Return whether a value is looked for here.

    >>> is_long("eyJhbGciOiJSUzI1NiJ9.e30"), is_long("hunter22"), is_long("a sentence of many words")
    (True, False, False)
    """
    return _WORD.fullmatch(value) is not None


class LongValues:
    """Long values by how they end: what a text costs, or one value more, does not depend on how many there are.

    >>> known = LongValues()
    >>> known.add(["access-0123456789", "access-0123456789abc"])
    >>> list(known.spans('{"token":"access-0123456789abc"}'))
    [(10, 30)]
    """

    __slots__ = ("_by_end", "_counts", "longest")

    def __init__(self) -> None:
        self._by_end: dict[str, tuple[str, ...]] = {}  # the longest first
        self._counts: Counter[str] = Counter()
        self.longest = 0

    def __bool__(self) -> bool:
        return bool(self._by_end)

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
                end = value[-_END:]
                self._by_end[end] = tuple(sorted((*self._by_end.get(end, ()), value), key=len, reverse=True))
                self.longest = max(self.longest, len(value))

    def remove(self, values: Iterable[str]) -> None:
        """Look for these no more, as often as they were given."""
        for value in values:
            self._counts[value] -= 1
            if self._counts[value] <= 0:
                del self._counts[value]
                end = value[-_END:]
                left = tuple(other for other in self._by_end[end] if other != value)
                if left:
                    self._by_end[end] = left
                else:
                    del self._by_end[end]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where values begin and end in a text, in order and apart; values that overlap are one span."""
        for word in _WORD.finditer(text) if self._by_end else ():
            joined: list[tuple[int, int]] = []
            for start, end in self._ends(text, word.start(), word.end()):
                first = start
                while joined and joined[-1][1] > first:
                    first = min(first, joined.pop()[0])
                joined.append((first, end))
            yield from joined

    def _ends(self, text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the longest value that ends at each place of a word."""
        values = self._by_end
        for end in range(first + LONG, last + 1):
            if (tail := text[end - _END : end]) in values:
                found = next((value for value in values[tail] if text.endswith(value, first, end)), None)
                if found is not None:
                    yield end - len(found), end
