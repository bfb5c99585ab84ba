"""Words that tools and requests use for the same thing: a line of `synonyms.txt` has those of one meaning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pegboard.search.analysis.words import stem

_CLASSES: Final = Path(__file__).with_name("synonyms.txt")


def _table() -> Mapping[str, tuple[str, ...]]:
    table: dict[str, set[str]] = {}
    for line in _CLASSES.read_text("utf-8").splitlines():
        stems = {stem(word) for word in line.split()}
        for one in stems:
            table.setdefault(one, set()).update(stems - {one})
    return {one: tuple(sorted(others)) for one, others in table.items()}


SYNONYMS: Final = _table()
"""The stems that may stand for a stem."""
