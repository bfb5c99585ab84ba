"""From text to word pieces, as BERT's uncased tokenizer cuts it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

UNKNOWN = "[UNK]"
_CONTINUED = "##"
_LONGEST_WORD = 100
_KEPT_WORDS = 100_000
_NO_SPACES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+|[^\w\s]|_")
_PLAIN = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
_CASES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_./:#-]+")


def spaced_name(name: str) -> str:
    """Return a name with its words apart.

    >>> spaced_name("GorillaFS__readFile"), spaced_name("getHTTPStatus")
    ('Gorilla FS read File', 'get HTTP Status')
    """
    return " ".join(_CASES.sub(" ", name).split())


class WordPieces:
    """A tokenizer over a vocabulary: the longest known piece first, and what a word is made of kept."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids[UNKNOWN]
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, in order.

        Args:
            text: Any text; case and accents do not count.

        Returns:
            A number for each piece; a word that cannot be put together is one unknown piece.
        """
        words = _PLAIN.findall(text.lower()) if text.isascii() else _WORD.findall(_without_accents(text.lower()))
        known = self._known
        found: list[int] = []
        for word in words:
            pieces = known.get(word)
            found += self._cut(word) if pieces is None else pieces
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        pieces = self._pieces(word)
        if len(self._known) >= _KEPT_WORDS:
            self._known.clear()
        self._known[word] = pieces
        return pieces

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = _CONTINUED if start else ""
            for end in range(len(word), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)


def _without_accents(text: str) -> str:
    kept = (letter for letter in unicodedata.normalize("NFD", text) if unicodedata.category(letter) != "Mn")
    return "".join(
        " " if unicodedata.category(letter) in {"Cc", "Cf"} and not letter.isspace() else letter for letter in kept
    )
