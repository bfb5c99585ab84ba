"""Every dialect by its name, imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from pegboard.dialects.names import Dialect

_CLASSES: Final = {
    "pegboard": "PegboardDialect",
    "toolkits": "ToolkitsDialect",
    "invokeother": "InvokeOtherDialect",
    "discovery": "DiscoveryDialect",
}


class Dialects(dict[str, Dialect]):
    """The dialects that were asked for; each is a module of this package, of its own name."""

    def __missing__(self, name: str) -> Dialect:
        """Return the dialect of a name, made now."""
        made = self[name] = getattr(import_module(f"pegboard.dialects.{name}"), _CLASSES[name])()
        return made
