"""What is in a folder, read once for as long as nothing comes or goes there."""

from __future__ import annotations

import os
import time
from itertools import islice
from typing import Final, NamedTuple

from pegboard.core.access.named_paths import folded

_SECOND: Final = 1_000_000_000
_FINE: Final = _SECOND // 10
_COARSE: Final = 3 * _SECOND
"""Nanoseconds within which a second change may leave a folder the time of the first: most clocks tick every few
milliseconds, some file systems count in whole seconds, or in two."""
_MOST: Final = 5_000
"""How many entries of a folder are kept."""


class _Seen(NamedTuple):
    """A folder as it was: what tells it from another and from a later state, and its entries, folded.

    ``names`` is None where they are not known: there are too many, or a later change may look the same.
    """

    state: tuple[int, int, int]
    names: frozenset[str] | None
    too_many: bool = False


class FolderNames:
    """The entries of folders: whether one is there costs one look at the folder, however many are asked for."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def of(self, folder: str) -> frozenset[str] | None:
        """Return the entries of a folder, folded, or None where they are not known; links to nothing count."""
        try:
            status = os.stat(folder)  # noqa: PTH116
        except OSError:
            return None
        state = (status.st_dev, status.st_ino, status.st_mtime_ns)
        seen = self._seen.get(folder)
        if seen is None or seen.state != state or (seen.names is None and not seen.too_many):
            seen = self._seen[folder] = _read(folder, state)
        return seen.names


def _read(folder: str, state: tuple[int, int, int]) -> _Seen:
    changed = state[2]
    if time.time_ns() - changed < (_FINE if changed % _SECOND else _COARSE):
        return _Seen(state, None)
    try:
        with os.scandir(folder) as entries:
            names = frozenset(folded(entry.name) for entry in islice(entries, _MOST + 1))
    except OSError:
        return _Seen(state, None)
    return _Seen(state, None, too_many=True) if len(names) > _MOST else _Seen(state, names)
