"""Numbers for words and their stems, and the known words beside a misspelled one."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from pegboard.core.model.naming import is_within
from pegboard.search.analysis.words import STOP_WORDS, stem

SHORTEST_CORRECTED: Final = 5
"""Shorter words are too near to each other."""

BEGINNING: Final = 0.6
"""The share of a word that a related one begins with, at least :data:`SHORTEST_BEGINNING` letters."""
SHORTEST_BEGINNING: Final = 4
MOST_RELATED: Final = 12

_STEM: Final = "\0"
"""Stands before a stem, so that it is no word."""


class Vocabulary:
    """The words of all texts that were indexed; it only grows, so a number stays good.

    It may know words of texts that a search must not see: whether a number counts is for the index to say.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []
        self._stems: list[int] = []
        self._stops: list[bool] = []
        self._near: dict[int, int | list[int]] = {}
        self._near_until = 0
        self._ordered: list[str] = []
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._words)

    def number_of(self, word: str) -> int | None:
        """Return the number of a word, or None."""
        return self._numbers.get(word)

    def word(self, number: int) -> str:
        """Return the word of a number."""
        return self._words[number]

    def stem(self, number: int) -> int:
        """Return the number of a word's stem."""
        return self._stems[number]

    def known_stem(self, word: str) -> int | None:
        """Return the number of the stem of a word that need not be known, or None."""
        return self.known_root(stem(word))

    def known_root(self, root: str) -> int | None:
        """Return the number of a stem, or None."""
        return self._numbers.get(_STEM + root)

    def numbers(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of words; new words are added."""
        known, wanted = self._numbers, tuple(words)
        try:
            return [known[word] for word in wanted]
        except KeyError:
            with self._lock:
                return [self._add_word(word) for word in wanted]

    def stems_and_stops(self, count: int) -> tuple[list[int], list[bool]]:
        """Return the stems of the first words, and which of them are stop words."""
        return self._stems[:count], self._stops[:count]

    def _add_word(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is not None:
            return number
        root = _STEM + stem(word)
        base = self._numbers.get(root)
        if base is None:
            base = self._entry(root, len(self._words), stop=False)
        return self._entry(word, base, stop=word in STOP_WORDS)

    def _entry(self, text: str, root: int, *, stop: bool) -> int:
        """Return the number of a new entry, which readers without the lock find only once it is whole."""
        number = len(self._words)
        self._words.append(text)
        self._stems.append(root)
        self._stops.append(stop)
        self._numbers[text] = number
        return number

    def correct_word(self, word: str, frequency: Callable[[int], int]) -> int | None:
        """Return the most frequent word at distance one, or None; words of frequency 0 do not exist.

        Args:
            word: A word, in lower case.
            frequency: In how many documents a word stands.
        """
        if len(word) < SHORTEST_CORRECTED or not word.isalpha():
            return None
        near: set[int] = set()
        for key in (word, *_deletions(word)):
            found = self._near.get(hash(key), ())
            near.update((found,) if isinstance(found, int) else found)
        candidates = [(-count, self._words[n], n) for n in near if (count := frequency(n))]
        return min((c for c in candidates if is_within(word, c[1], 1)), default=(0, "", None))[2]

    def related_stems(self, word: str, frequency: Callable[[int], int]) -> list[int]:
        """Return the stems of words that begin like a word that nothing has; those of frequency 0 do not exist.

        Args:
            word: A word, in lower case.
            frequency: In how many documents a stem stands.
        """
        if len(word) < SHORTEST_CORRECTED or not word.isalpha():
            return []
        beginning = word[: max(SHORTEST_BEGINNING, math.ceil(BEGINNING * len(word)))]
        ordered = self._ordered
        found: dict[int, None] = {}
        for place in range(bisect_left(ordered, beginning), len(ordered)):
            if not ordered[place].startswith(beginning) or len(found) == MOST_RELATED:
                break
            root = self._stems[self._numbers[ordered[place]]]
            if frequency(root):
                found[root] = None
        return list(found)

    def index_spelling(self) -> None:
        """Let the words that came since the last time be found as corrections."""
        with self._lock:
            near = self._near
            fresh: list[str] = []
            for number in range(self._near_until, len(self._words)):
                word = self._words[number]
                if len(word) < SHORTEST_CORRECTED - 1 or not word.isalpha():
                    continue
                fresh.append(word)
                for key in (word, *_deletions(word)):
                    found = near.setdefault(hash(key), number)
                    if isinstance(found, list):
                        found.append(number)
                    elif found != number:
                        near[hash(key)] = [found, number]
            self._near_until = len(self._words)
            if fresh:
                self._ordered = sorted([*self._ordered, *fresh])


def _deletions(word: str) -> list[str]:
    return [word[:at] + word[at + 1 :] for at in range(len(word))]
