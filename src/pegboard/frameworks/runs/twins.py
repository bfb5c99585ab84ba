"""Twins of objects of a framework: with their state, and with methods of ours before their own."""

from __future__ import annotations

from functools import cache
from typing import Any


def make_twin(whole: object, mixin: type) -> Any:
    """Return an object with the state of another one, and with the methods of a mixin before those of its class."""
    if isinstance(whole, mixin):
        return whole
    kind: Any = _twin_of(type(whole), mixin)
    made: Any = kind.__new__(kind)
    for name, value in vars(whole).items():
        setattr(made, name, value)
    return made


@cache
def _twin_of(kind: type, mixin: type) -> type:
    return type(kind.__name__, (mixin, kind), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
