"""Plugins as far as a check knows them without importing anything: their settings, and the names of their tools."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.core.model.specs import PythonSpec, RegisteredSpec
from pegboard.core.model.tools import Plugin, Tool


def stand_in(spec: PythonSpec | RegisteredSpec, names: Iterable[str]) -> Plugin:
    """Return a plugin with tools of these names, for the question who may use it."""
    return Plugin(
        name=spec.name,
        kind="python" if isinstance(spec, PythonSpec) else "agno",
        category=spec.category,
        tools=tuple(Tool(plugin=spec.name, name=name, wire=name) for name in names),
        shared_only=spec.shared_only,
        default_on=spec.default_on,
        by_category=isinstance(spec, RegisteredSpec) and spec.by_category,
        place=spec.place,
    )
