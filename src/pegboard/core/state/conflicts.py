"""The same tool from two places (T5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.leases import STICKY
from pegboard.core.model.masking import Masker, masked
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin
from pegboard.core.state.active_tools import LoadedTool


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A tool that two places want with different overrides, or a name that two tools want."""

    tool: str
    existing: JsonObject = field(default=EMPTY)
    candidate: JsonObject = field(default=EMPTY)
    message: str = ""


def conflict_of(
    permissions: CompiledPermissions, active: Mapping[str, LoadedTool], entries: tuple[Entry, ...], masker: Masker
) -> Conflict | None:
    """Return the first conflict between what is loaded and what would be loaded, or within the latter."""
    by_plugin: dict[str, list[LoadedTool]] = {}
    for loaded in active.values():
        by_plugin.setdefault(loaded.tool.plugin, []).append(loaded)
    for position, entry in enumerate(entries):
        plugin = permissions.world.catalog.plugins[entry.plugin]
        for other in entries[:position]:
            if other.ids & entry.ids and not equal(plugin, other.overrides, entry.overrides):
                return _overrides_differ(plugin, other.overrides, entry.overrides, masker, _WITHIN)
        for loaded in by_plugin.get(entry.plugin, ()):
            if loaded.tool.id in entry.ids and not equal(plugin, loaded.overrides, entry.overrides):
                how = _WITH_WHAT_IS_LOADED if STICKY.isdisjoint(loaded.because) else _WITH_WHAT_IS_STICKY
                return _overrides_differ(plugin, loaded.overrides, entry.overrides, masker, how)
        if (clash := _name_taken(permissions, plugin, entry)) is not None:
            return clash
    return None


def _name_taken(permissions: CompiledPermissions, plugin: Plugin, entry: Entry) -> Conflict | None:
    """Return the conflict of a tool that is not in the catalog because another one has its name (G10)."""
    for clash in permissions.world.catalog.clashes:
        if clash.second.partition("/")[0] == plugin.name and _stands(plugin, entry, clash.second):
            message = (
                f"conflicts with another tool that is called '{clash.wire}': give plugin '{plugin.name}' a prefix."
            )
            return Conflict(tool=clash.wire, message=message)
    return None


def _stands(plugin: Plugin, entry: Entry, tool_id: str) -> bool:
    name = tool_id.partition("/")[2]
    variant = plugin.variant(entry.key)
    member = entry.member
    if name in member.exclude or (member.include is not None and name not in member.include):
        return False
    return entry.whole and (variant.tools is None or name in variant.tools)


_WITH_WHAT_IS_LOADED = (
    "is loaded already with other settings. Unload it first, or write the same settings in both places."
)
_WITH_WHAT_IS_STICKY = (
    "is loaded from the start with other settings, and cannot be unloaded. Write the same settings in both places."
)
_WITHIN = "stands in it twice, with different settings. Write the same settings in both places."


def _overrides_differ(
    plugin: Plugin, existing: JsonObject, candidate: JsonObject, masker: Masker, how: str
) -> Conflict:
    return Conflict(
        tool=plugin.name,
        existing=masked(existing, masker, plugin.secrets),
        candidate=masked(candidate, masker, plugin.secrets),
        message=f"conflicts: '{plugin.name}' {how}",
    )


def equal(plugin: Plugin, left: JsonObject, right: JsonObject) -> bool:
    """Return whether two overrides mean the same, ``5`` and ``"5"`` for an integer included."""
    return normalised(plugin, left) == normalised(plugin, right)


def normalised(plugin: Plugin, overrides: JsonObject) -> dict[str, Any]:
    """Return overrides with every value in the type that the plugin's parameter has."""
    return {name: _coerced(value, plugin.parameters.get(name, "")) for name, value in overrides.items()}


def _coerced(value: Any, kind: str) -> Any:
    try:
        match kind, value:
            case ("boolean", str()) if value.casefold() in ("true", "false"):
                return value.casefold() == "true"
            case ("integer", str()):
                return int(value)
            case ("number", str() | int()) if not isinstance(value, bool):
                return float(value)
            case ("string", int() | float()) if not isinstance(value, bool):
                return str(value)
            case _:
                return value
    except ValueError:
        return value
