"""The table of rows, one for each word piece: a text's vector is the sum of its pieces' rows."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pegboard.search.meaning.pieces import WordPieces

FORM: Final = 1
"""The form of the file; a table of another form is not read."""
STEPS: Final = 2048
"""A component of a vector is a whole number of so many parts.

Sums of products of two vectors stay below 2**24, so single precision is exact in whatever order they are added up: a
score depends on nothing but need and tool (P3).
"""
LONGEST: Final = 64
"""So many pieces of a text are read."""
LONGEST_BESIDE: Final = 32
BESIDE: Final = 0.5
"""How much what stands beside a document's text counts."""
_TOGETHER: Final = 512
_MEANS: Final = re.compile("[a-z]{2}")
"""A piece without it (digits, one letter, a script that the table has not learnt) is near anything by chance."""

Steps = NDArray[np.int16]
SHIPPED: Final = Path(__file__).with_name("table.npz")


class WrongTableError(ValueError):
    """A file that is no table, or one of another form."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordVectors:
    """The vectors of texts.

    Attributes:
        name: what it was made of, and when it was made anew; vectors of different tables do not compare.
        pieces: how texts are cut.
        rows: the row of each piece, as whole numbers.
        scales: what one step of each row is worth.
    """

    name: str
    pieces: WordPieces
    rows: NDArray[np.int8]
    scales: NDArray[np.float32]

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
            found[start : start + len(part)] = self._steps(part)
        return found

    def _steps(self, texts: Sequence[tuple[str, str]]) -> Steps:
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
def shipped() -> WordVectors:
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
