"""The plugin names that are known without any configuration: Agno's toolkits, packaged plugins, and names alone.

Nothing is imported here: the tables are checked against the installed Agno and our own package by tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pegboard.core.model.loadouts import PLUGIN_CATEGORIES, category_of
from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.model.toolkits import SHARED_ONLY
from pegboard.core.model.tools import Frozen

_NAMES: Final = ("batchEdit", "mcpEcosystem", "parityDocs", "skillParity")
"""The names of seed 003 that are not all lower case."""

_ONLY_NAMED: Final = ("homeassistant",)

_PACKAGED: Final = {
    "diff": "pegboard.quickstart.text:compare_files",
    "git": "pegboard.quickstart.git",
    "search": "pegboard.quickstart.text:search_text",
}
"""Names of seed 003 for which no toolkit of Agno stands, and which packaged plugin, or which of its functions, does."""

_COUNTERPARTS: Final = {"file": "pegboard.quickstart.files"}
"""Toolkits of Agno for which a packaged plugin is in where Agno is not installed."""

_AGNO: Final = Path(__file__).with_name("agno_toolkits.txt")
"""A toolkit a line: its name, the module below ``agno.tools`` (nothing for the same) and the class, what it imports."""


@cache
def registered_plugins() -> Mapping[str, RegisteredSpec]:
    """Return every plugin that is known by name; packages may take these names over.

    Toolkits of Agno have the loader ``agno:module:Class``, packaged plugins ``packaged:module`` or
    ``packaged:module:function``, names that only a package can bring ``missing:``; ``packages`` are what the
    plugin imports besides.
    """
    found = {spec.name: spec for spec in map(_agno, _AGNO.read_text("utf-8").splitlines())}
    spelled = {name.casefold(): name for name in _NAMES}
    for fold in (*PLUGIN_CATEGORIES, *_ONLY_NAMED):
        name = spelled.get(fold, fold)
        if name not in found:
            loader = f"packaged:{_PACKAGED[name]}" if name in _PACKAGED else "missing:"
            found[name] = RegisteredSpec(
                name=name, loader=loader, category=category_of(name), shared_only=name in SHARED_ONLY
            )
    return Frozen(found)


_ABOUT: Final[Mapping[str, str]] = {
    "scheduler": "Schedules, which are stored here and run only where the host runs them."
}
_POLICY: Final[Mapping[str, Mapping[str, str]]] = {
    "scheduler": dict.fromkeys(
        ("create_schedule", "enable_schedule", "trigger_schedule"),
        "A schedule is only stored: it runs where the host of this agent runs schedules, and nowhere else.",
    )
}


def _agno(line: str) -> RegisteredSpec:
    name, target, *packages = line.split()
    module, _, toolkit = target.rpartition(":")
    return RegisteredSpec(
        name=name,
        loader=f"agno:agno.tools.{module or name}:{toolkit}",
        category=category_of(name),
        description=_ABOUT.get(name, ""),
        policy=Frozen(_POLICY.get(name, {})),
        packages=tuple(packages),
        shared_only=name in SHARED_ONLY,
        counterpart=_COUNTERPARTS.get(name, ""),
    )
