"""What was called after needs like this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pegboard.ports import PastUse
from pegboard.search.meaning.need_vectors import NeedVectors, Vector
from pegboard.search.postings_block import Floats

WEIGHT: Final = 0.5
"""How much a tool gains that alone was called after every need like this one; the best row's score counts 1."""
LIKE: Final = 0.2
"""Needs with a lower cosine say nothing about each other."""
DOUBT: Final = 0.5
"""How much speaks against all of them: a single past need that is the same counts two thirds."""


def gains(used: Sequence[PastUse], vector: Vector, needs: NeedVectors, rows: Mapping[str, int], size: int) -> Floats:
    """Return what each row gains by past use: the share of it among what was called after similar needs.

    Args:
        used: What was called after which need; a tool that is not found here counts nothing.
        vector: The need's vector.
        needs: The vectors of past needs.
        rows: The row of each tool, by id.
        size: How many rows there are.
    """
    found = np.zeros(size)
    known = [(past.need, rows[past.tool]) for past in used if past.tool in rows]
    length = float(np.linalg.norm(vector))
    if not known or not length:
        return found
    number = {need: at for at, need in enumerate(dict.fromkeys(need for need, _ in known))}
    cosines = np.stack([needs.vector(need) for need in number]) @ (vector / np.float32(length))
    alike = (np.maximum(cosines - LIKE, 0) / (1 - LIKE)) ** 2
    np.add.at(found, [row for _, row in known], alike[[number[need] for need, _ in known]])
    return found * (WEIGHT / (DOUBT + float(alike.sum())))
