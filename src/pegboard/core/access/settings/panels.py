"""The switches of an agent as people see them: labels, pictures, states and reasons, and nothing secret (T6, P2)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pegboard.core.access.decisions import Reason, switch_reason
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.switches import Switch
from pegboard.core.model.masking import Masker
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin, Tool

_Row = dict[str, Any]


def panel(access: CompiledPermissions, masker: Masker) -> tuple[JsonObject, ...]:
    """Return every toolkit, then every plugin with those of its tools that stand in none, as plain JSON.

    Switches whose names mean nothing known follow.

    ``switch`` is the boolean that is in force, or None; ``default`` is whether it would be on without any switch;
    ``on`` is whether it is on now, of a toolkit without a switch whether any member is (seed 004); ``reason`` is what
    decides that. Inline overrides are no part of it.
    """
    shown = _Panel(access)
    world = access.world
    bundled: set[str] = set()
    rows: list[_Row] = []
    for name, toolkit in world.toolkits.items():
        entries = toolkit.entries(world.catalog)
        bundled.update(tool_id for entry in entries for tool_id in entry.ids)
        bundled.update(entry.plugin for entry in entries if entry.whole)
        rows.append(shown.toolkit(name, entries))
    rows += (row for plugin in world.catalog.plugins.values() if (row := shown.plugin(plugin, bundled)) is not None)
    rows += (_unknown(name, on=on) for name, on in access.switches.unknown.items())
    return tuple(masker.value(row) for row in rows)


class _Panel:
    """The rows of one agent's panel; ``bare`` are its permissions as they would be without any switch."""

    def __init__(self, access: CompiledPermissions) -> None:
        agent = replace(access.agent, switches=EMPTY, switch_places=EMPTY)
        self._access = access
        self._bare = CompiledPermissions(access.world, agent, replace(access.constraints, stored=EMPTY))

    def toolkit(self, name: str, entries: Sequence[Entry]) -> _Row:
        toolkit, switch = self._access.world.toolkits[name], self._access.switches.toolkits.get(name)
        members = [row for entry in entries for row in self._members(entry)]
        on = switch.on if switch is not None else any(row["on"] for row in members)
        return {
            "kind": "toolkit",
            "name": name,
            "label": toolkit.label or name,
            "icon": toolkit.icon,
            "description": toolkit.description,
            "default": any(row["default"] for row in members),
            "switch": _value(switch),
            "on": on,
            "reason": self._switched(switch) or _decisive(members, on=on),
            "members": members,
        }

    def plugin(self, plugin: Plugin, bundled: Container[str]) -> _Row | None:
        """Return a plugin with its tools that stand in no toolkit; None where a toolkit has all of it."""
        tools = [tool for tool in plugin.tools if tool.id not in bundled]
        if not tools and (plugin.tools or plugin.name in bundled):
            return None
        row, members = self._unseen(plugin), [self._tool(tool) for tool in tools]
        if not members:
            return {**row, "members": []}
        on, switch = any(member["on"] for member in members), self._access.switches.plugins.get(plugin.name)
        return {
            **row,
            "default": any(member["default"] for member in members),
            "on": on,
            "reason": self._switched(switch) if switch is not None and switch.on is on else _decisive(members, on=on),
            "members": members,
        }

    def _members(self, entry: Entry) -> Iterator[_Row]:
        plugin = self._access.world.catalog.plugins[entry.plugin]
        yield from (self._tool(tool, entry.key) for tool in entry.tools)
        if not entry.tools and entry.whole and not plugin.variant(entry.key).known:
            yield self._unseen(plugin, entry.key)

    def _tool(self, tool: Tool, key: str = "") -> _Row:
        access, own = self._access, self._access.switches.own(tool)
        fault = tool.unavailable or access.world.catalog.plugins[tool.plugin].variant(key).unavailable
        return {
            "kind": "tool",
            "name": tool.wire,
            "plugin": tool.plugin,
            "label": _title(tool),
            "description": tool.description,
            "default": self._bare.permits(tool),
            "switch": _value(own),
            "on": access.permits(tool),
            "reason": _plain(access.decide(tool).reasons[0]),
            "available": not fault,
            "unavailable": fault,
        }

    def _unseen(self, plugin: Plugin, key: str = "") -> _Row:
        """Return a plugin as a whole, as it is where its tools are not known yet."""
        decision, fault = self._access.decide_unseen(plugin), plugin.variant(key).unavailable
        return {
            "kind": "plugin",
            "name": plugin.name,
            "plugin": plugin.name,
            "label": plugin.name,
            "description": plugin.description,
            "default": self._bare.grants_unseen(plugin),
            "switch": _value(self._access.switches.plugins.get(plugin.name)),
            "on": decision.permitted,
            "reason": _plain(decision.reasons[0]),
            "available": not fault,
            "unavailable": fault,
        }

    def _switched(self, switch: Switch | None) -> JsonObject | None:
        return _plain(switch_reason(switch, self._access.agent)) if switch is not None else None


def _unknown(name: str, *, on: bool) -> _Row:
    reason = Reason(code="unknown", text="No toolkit, plugin or tool of this name is known.")
    row = {"kind": "unknown", "name": name, "label": name, "description": "", "default": False}
    return {**row, "switch": on, "on": False, "reason": _plain(reason)}


def _value(switch: Switch | None) -> bool | None:
    return switch.on if switch is not None else None


def _decisive(members: Sequence[_Row], *, on: bool) -> JsonObject:
    """Return the reason of the first member that is as the whole is."""
    found = next((row["reason"] for row in members if row["on"] is on), None)
    return found or _plain(Reason(code="not_seen", text="None of its tools is known."))


def _title(tool: Tool) -> str:
    """Return the name of a tool for people."""
    title = tool.annotations.get("title") or tool.extra.get("title")
    return title if isinstance(title, str) else tool.name


def _plain(reason: Reason) -> JsonObject:
    where = str(reason.where) if reason.where is not None else None
    return {"code": reason.code, "text": reason.text, "where": where}
