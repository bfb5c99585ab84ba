"""Packages whose modules, or names of them, are imported when they are first used, since no start needs them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_modules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package that imports these modules of it when they are first used."""

    def import_module_named(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return import_module_named


def lazy_names(package: str, names_of: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that imports a module of it when one of its names is first used.

    ``names_of`` has the names of each module, between blanks; no module may have such a name.
    """
    homes = {name: module for module, names in names_of.items() for name in names.split()}

    def imported(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return imported
