"""The switches of an agent as people see them: labels, pictures and states, and nothing secret (T6, T9)."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.masking import Masker
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import JsonObject


def panel(access: CompiledPermissions, masker: Masker) -> tuple[JsonObject, ...]:
    """Return every toolkit with its label, picture, members and the state of its switch, as plain JSON.

    ``switch`` is the boolean that is in force, or None; ``on`` is that boolean or, where there is
    none, whether any member is on (seed 004). Inline overrides are no part of it.
    """
    found = (_toolkit(access, name) for name in access.world.toolkits)
    return tuple(masker.value(shown) for shown in found)


def _toolkit(access: CompiledPermissions, name: str) -> JsonObject:
    toolkit = access.world.toolkits[name]
    members = [part for entry in toolkit.entries(access.world.catalog) for part in _members(access, entry)]
    switch = access.switches.toolkits.get(name)
    return {
        "name": name,
        "label": toolkit.label or name,
        "icon": toolkit.icon,
        "description": toolkit.description,
        "switch": switch.on if switch is not None else None,
        "on": switch.on if switch is not None else any(part["on"] for part in members),
        "members": members,
    }


def _members(access: CompiledPermissions, entry: Entry) -> Iterator[dict[str, object]]:
    plugin = access.world.catalog.plugins[entry.plugin]
    own = access.switches.plugins.get(entry.plugin)
    for tool in entry.tools:
        switch = access.switches.tools.get(tool.id, own)
        yield {
            "name": tool.wire,
            "plugin": plugin.name,
            "description": tool.description,
            "switch": switch.on if switch is not None else None,
            "on": access.permits(tool),
            "available": not (tool.unavailable or plugin.variant(entry.key).unavailable),
        }
    if not entry.tools and entry.whole and not plugin.variant(entry.key).known:
        yield {
            "name": plugin.name,
            "plugin": plugin.name,
            "description": plugin.description,
            "switch": own.on if own is not None else None,
            "on": access.grants_unseen(plugin),
            "available": not plugin.variant(entry.key).unavailable,
        }
