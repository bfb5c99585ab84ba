"""The table of rows, one for each word piece: a text is cut into pieces, its vector is the sum of their rows."""

from __future__ import annotations

import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FORM: Final = 1
"""The form of the file; a table of another form is not read."""
STEPS: Final = 2048
"""A component of a vector is a whole number of so many parts.

Sums of products of two vectors stay below 2**24, so single precision is exact in whatever order they are added up: a
score depends on nothing but query and tool (P3).
"""
LONGEST: Final = 64
"""So many pieces of a text are read."""
LONGEST_BESIDE: Final = 32
BESIDE: Final = 0.5
"""How much what stands beside a document's text counts."""
UNKNOWN: Final = "[UNK]"
SHIPPED: Final = Path(__file__).with_name("table.npz")
_TOGETHER: Final = 512
_WORD_LENGTH: Final = 3
_MEANS: Final = re.compile("[a-z]{2}")
"""A piece without it (digits, one letter, a script that the table has not learnt) is near anything by chance."""
_CONTINUED: Final = "##"
_LONGEST_WORD: Final = 100
_KEPT_WORDS: Final = 100_000
_NO_SPACES: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_WORD: Final = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+|[^\w\s]|_")
_PLAIN: Final = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")

Steps = NDArray[np.int16]


class WrongTableError(ValueError):
    """A file that is no table, or one of another form."""


class WordPieces:
    """A tokenizer over a vocabulary: the longest known piece first, and what a word is made of kept."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids[UNKNOWN]
        self._known: dict[str, tuple[int, ...]] = {}

    @property
    def vocabulary(self) -> Iterable[str]:
        """Return the pieces, in the order of their numbers."""
        return self._ids

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
            found += self._pieces_of(word) if pieces is None else pieces
        return found

    def _pieces_of(self, word: str) -> tuple[int, ...]:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class WordVectors:
    """The vectors of texts.

    Attributes:
        name: what it was made of, and when it was made again; vectors of different tables do not compare.
        pieces: how texts are cut.
        rows: the row of each piece, as whole numbers.
        scales: what one step of each row is worth.
    """

    name: str
    pieces: WordPieces
    rows: NDArray[np.int8]
    scales: NDArray[np.float32]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the pieces that are whole words and mean something, in the order of the table."""
        return tuple(piece for piece in self.pieces.vocabulary if len(piece) >= _WORD_LENGTH and piece.isalpha())

    @property
    def columns(self) -> int:
        """Return how many components a vector has."""
        return self.rows.shape[1]

    def sum(self, text: str) -> NDArray[np.float32]:
        """Return the sum of the rows of a text's pieces."""
        ids = self.pieces.ids(text)[: 4 * LONGEST]
        return self.scales[ids] @ self.rows[ids].astype(np.float32) if ids else np.zeros(self.columns, np.float32)

    def steps(self, texts: Sequence[tuple[str, str]]) -> Steps:
        """Return the vectors of documents as whole numbers of steps, one row each.

        Args:
            texts: What each is for, and what stands beside it and counts half, such as the names of parameters.
        """
        found = np.zeros((len(texts), self.columns), np.int16)
        for start in range(0, len(texts), _TOGETHER):
            part = texts[start : start + _TOGETHER]
            found[start : start + len(part)] = self._steps_of_texts(part)
        return found

    def _steps_of_texts(self, texts: Sequence[tuple[str, str]]) -> Steps:
        numbers: list[int] = []
        shares: list[float] = []
        lengths: list[int] = []
        for text, beside in texts:
            main, rest = self.pieces.ids(text)[:LONGEST], self.pieces.ids(beside)[:LONGEST_BESIDE]
            numbers += main + rest
            shares += [1.0] * len(main) + [BESIDE] * len(rest)
            lengths.append(len(main) + len(rest))
        found = np.zeros((len(texts), self.columns), np.int16)
        if numbers:
            rows = self.rows[numbers].astype(np.float32)
            rows *= (self.scales[numbers] * np.array(shares, np.float32))[:, None]
            read = np.array(lengths) > 0
            starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.array(lengths)[read])[:-1]))
            found[read] = in_steps(np.add.reduceat(rows, starts, axis=0))
        return found


def in_steps(vectors: NDArray[np.float32]) -> Steps:
    """Return vectors as whole numbers of steps, of length one."""
    lengths = np.sqrt(np.square(vectors).sum(-1, keepdims=True))
    return np.rint(vectors * (STEPS / np.maximum(lengths, 1e-9))).astype(np.int16)


@cache
def shipped_vectors() -> WordVectors:
    """Return the table of this package."""
    return read_vectors(SHIPPED)


def read_vectors(path: Path) -> WordVectors:
    """Return the table in a file.

    Raises:
        WrongTableError: The file is none, is damaged, or has another form.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            form, name, words, rows, scales = (file[key] for key in ("form", "name", "pieces", "rows", "scales"))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise WrongTableError(f"{path} is no table of word pieces: {error}") from error
    if int(form) != FORM:
        raise WrongTableError(f"{path} has form {int(form)}; this version reads form {FORM}")
    vocabulary = bytes(words).decode().split("\n")
    if rows.ndim != 2 or not len(vocabulary) == len(rows) == len(scales):
        raise WrongTableError(f"{path} is damaged: {len(vocabulary)} pieces, {len(rows)} rows, {len(scales)} scales")
    means = np.array([bool(_MEANS.search(piece)) for piece in vocabulary])
    return WordVectors(
        name=str(name), pieces=WordPieces(vocabulary), rows=rows, scales=scales.astype(np.float32) * means
    )


def write_vectors(path: Path, *, name: str, vocabulary: Sequence[str], rows: NDArray[Any]) -> None:
    """Write a table: each row in 255 steps of its own size.

    Args:
        path: The file.
        name: What the table is made of.
        vocabulary: The pieces, by number.
        rows: A row for each.
    """
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-9) / 127
    np.savez(
        path,
        form=FORM,
        name=name,
        pieces=np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        rows=np.rint(rows / scales[:, None]).astype(np.int8),
        scales=scales.astype(np.float16),
    )
