"""The table of rows, one for each word piece: a text's vector is the sum of its pieces' rows."""

from __future__ import annotations

import zipfile
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
"""Pieces of a document that are read."""
_TOGETHER: Final = 512

Steps = NDArray[np.int16]
SHIPPED: Final = Path(__file__).with_name("table.npz")


class WrongTable(ValueError):
    """A file that is no table, or one of another form."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
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

    def vector(self, text: str, longest: int = 4 * LONGEST) -> NDArray[np.float32]:
        """Return a text's vector, of length one, or of zeros where the text says nothing."""
        ids = self.pieces.ids(text)[:longest]
        total = self.scales[ids] @ self.rows[ids].astype(np.float32) if ids else np.zeros(self.columns, np.float32)
        return total / max(float(np.linalg.norm(total)), 1e-9)

    def steps(self, texts: Sequence[str]) -> Steps:
        """Return the texts' vectors as whole numbers of steps, one row each."""
        found = np.zeros((len(texts), self.columns), np.int16)
        for start in range(0, len(texts), _TOGETHER):
            part = texts[start : start + _TOGETHER]
            found[start : start + len(part)] = self._steps([self.pieces.ids(text)[:LONGEST] for text in part])
        return found

    def _steps(self, texts: Sequence[Sequence[int]]) -> Steps:
        lengths = np.array([len(ids) for ids in texts])
        found = np.zeros((len(texts), self.columns), np.int16)
        ids = np.fromiter((number for text in texts for number in text), np.int64, int(lengths.sum()))
        if len(ids):
            rows = self.rows[ids].astype(np.float32)
            rows *= self.scales[ids, None]
            told = lengths > 0
            starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[told])[:-1]))
            found[told] = in_steps(np.add.reduceat(rows, starts, axis=0))
        return found


def in_steps(vectors: NDArray[np.float32]) -> Steps:
    """Return vectors as whole numbers of steps, of length one."""
    lengths = np.sqrt(np.square(vectors).sum(-1, keepdims=True))
    return np.rint(vectors * (STEPS / np.maximum(lengths, 1e-9))).astype(np.int16)


@cache
def shipped() -> Table:
    """Return the table of this package."""
    return read(SHIPPED)


def read(path: Path) -> Table:
    """Return the table in a file.

    Raises:
        WrongTable: The file is none, is damaged, or has another form.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            form, name, words, rows, scales = (file[key] for key in ("form", "name", "pieces", "rows", "scales"))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise WrongTable(f"{path} is no table of word pieces: {error}") from error
    if int(form) != FORM:
        raise WrongTable(f"{path} has form {int(form)}; this version reads form {FORM}")
    vocabulary = bytes(words).decode().split("\n")
    if rows.ndim != 2 or not len(vocabulary) == len(rows) == len(scales):
        raise WrongTable(f"{path} is damaged: {len(vocabulary)} pieces, {len(rows)} rows, {len(scales)} scales")
    return Table(name=str(name), pieces=WordPieces(vocabulary), rows=rows, scales=scales.astype(np.float32))


def write(path: Path, *, name: str, vocabulary: Sequence[str], rows: NDArray[Any]) -> None:
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
