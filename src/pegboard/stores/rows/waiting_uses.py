"""Remembered use that is stored together with what waits to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pegboard.ports import USES_KEPT, UseRecord

MOST_WAITING: Final = 10_000
MOST_READ: Final = 128
"""Of how many principals and agents what was read is kept."""


def joined(stored: Sequence[UseRecord], waiting: Sequence[UseRecord]) -> tuple[UseRecord, ...]:
    """Return what is stored and what waits, equal uses once, the newest last."""
    newest = {(use.need, use.tool): use for use in waiting}
    return (*(use for use in stored if (use.need, use.tool) not in newest), *newest.values())[-USES_KEPT:]
