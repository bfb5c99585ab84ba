"""Every dialect by its name, imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from pegboard.dialects.names import Dialect

_CLASSES: Final = {
    "pegboard": "PegboardDialect",
    "toolkits": "ToolkitsDialect",
    "invokeother": "InvokeOtherDialect",
    "discovery": "DiscoveryDialect",
}


class Dialects(Mapping[str, Dialect]):
    """The dialects; each is a module of this package, of its own name."""

    def __init__(self) -> None:
        self._made: dict[str, Dialect] = {}

    def __getitem__(self, name: str) -> Dialect:
        """Return the dialect of a name."""
        found = self._made.get(name)
        if found is None:
            kind = _CLASSES[name]
            found = self._made[name] = getattr(import_module(f"pegboard.dialects.{name}"), kind)()
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        return iter(_CLASSES)

    def __len__(self) -> int:
        """Return how many dialects there are."""
        return len(_CLASSES)
