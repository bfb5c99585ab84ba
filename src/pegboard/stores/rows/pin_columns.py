"""Pins as they stand in columns: what is known of a definition as flags (A4, G6)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from pegboard.core.access.pins import Pin
from pegboard.core.access.read_only import Claims

_READ_ONLY: Final = 1
_HARMLESS: Final = 2
_LATER: Final = 4


def flags_of(pin: Pin) -> int:
    """Return what is known of the definition of a pin."""
    return _READ_ONLY * pin.read_only | _HARMLESS * pin.harmless | _LATER * pin.later


def pin_of(tool: str, digest: str, waiting: str, flags: int, by: str) -> Pin:
    """Return a pin with the flags that :func:`flags_of` returned."""
    known = bool(flags & _READ_ONLY), bool(flags & _HARMLESS), bool(flags & _LATER)
    return Pin(tool, digest, waiting, *known, by)


def claims_of(text: str) -> Claims | None:
    """Return what counted before definitions were pinned, or None where nothing is kept of that."""
    if not text:
        return None
    try:
        read_only, harmless = json.loads(text)
        return Claims(read_only=frozenset(_texts(read_only)), harmless=frozenset(_texts(harmless)))
    except (ValueError, TypeError):
        return Claims()


def _texts(names: Iterable[Any]) -> Iterable[str]:
    return (name for name in names if isinstance(name, str))
