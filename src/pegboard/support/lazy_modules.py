"""Packages whose modules are imported when they are first used, since no start needs them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def lazy_modules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package that imports these modules of it when they are first used."""

    def imported(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return imported
