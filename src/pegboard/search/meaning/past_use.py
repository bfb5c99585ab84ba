"""What was called after a need like this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pegboard.ports import PastUse
from pegboard.search.blocks import Floats
from pegboard.search.meaning.needs import Needs, Vector

WEIGHT: Final = 0.4
"""How much a tool gains that was called after the very same need; the best lexical score counts 1."""
LIKE: Final = 0.4
"""Needs that are less alike say nothing about each other."""


def gains(used: Sequence[PastUse], vector: Vector, needs: Needs, rows: Mapping[str, int], size: int) -> Floats:
    """Return what each row gains by past use: as much as the most similar need after which it was called.

    Args:
        used: What was called after which need; what is not found here any more counts nothing.
        vector: The need's vector.
        needs: The vectors of past needs.
        rows: The row of each tool, by id.
        size: How many rows there are.
    """
    found = np.zeros(size)
    known = [(past.need, rows[past.tool]) for past in used if past.tool in rows]
    length = float(np.linalg.norm(vector))
    if known and length:
        past: NDArray[np.float32] = np.stack([needs.vector(need) for need, _ in known])
        alike = np.maximum(past @ (vector / length) - LIKE, 0) / (1 - LIKE)
        np.maximum.at(found, [row for _, row in known], WEIGHT * alike)
    return found
