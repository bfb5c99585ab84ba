"""The switches of an agent as people see them: labels, pictures, states and reasons, and nothing secret (T6, P2)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Literal

from pegboard.core.access.decisions import Reason, switch_reason
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions, tool_fault
from pegboard.core.access.switches import Switch, ToolkitEntries, subjects_named
from pegboard.core.model.catalog import Ref
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import JsonObject, Plugin, Tool

RowKind = Literal["toolkit", "plugin", "tool", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPart:
    """Tools of one plugin that stand in a group under the key of their overrides; none where they are not known yet."""

    plugin: Plugin
    tools: tuple[Tool, ...]
    key: str = ""

    @property
    def size(self) -> int:
        """Return for how many members it stands: what is not known yet is one."""
        return len(self.tools) or 1

    def permitted(self, permissions: CompiledPermissions) -> int:
        """Return how many of the members are permitted."""
        if not self.tools:
            return int(permissions.grants_unseen(self.plugin))
        if len(self.tools) == len(self.plugin.tools):
            return len(permissions.plugin_permissions.tools_of(self.plugin))
        return sum(map(permissions.permits, self.tools))

    def members(self) -> Iterator[Tool | None]:
        """Yield the tools, or None for what is not known yet."""
        yield from self.tools or (None,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelGroup:
    """A toolkit, a plugin or a name that means nothing known, with what is in it, in order."""

    kind: Literal["toolkit", "plugin", "unknown"]
    name: str
    parts: tuple[PanelPart, ...] = ()

    @property
    def size(self) -> int:
        """Return how many members it has."""
        return sum(part.size for part in self.parts)

    def permitted(self, permissions: CompiledPermissions) -> int:
        """Return how many of its members are permitted."""
        return sum(part.permitted(permissions) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRow:
    """One row: what it is, its switch and state, and what decides that.

    ``switch`` is the one that is in force; ``default`` is whether it would be on without any switch; ``on`` is whether
    it is on now, of a toolkit without a switch whether any member is (seed 004). ``fault`` is why it cannot run now;
    None says that this is no question of such a row. ``subject`` is what a switch of it is about.
    """

    kind: RowKind
    name: str
    label: str
    description: str
    default: bool
    switch: bool | None
    on: bool
    reason: Reason
    plugin: str | None = None
    icon: str | None = None
    fault: str | None = None
    subject: Ref | None = None


def panel(permissions: CompiledPermissions, bare: CompiledPermissions, masker: Masker) -> tuple[JsonObject, ...]:
    """Return every toolkit, then every plugin with those of its tools that stand in none, as plain JSON.

    Switches whose names mean nothing known follow. ``bare`` are the permissions as they would be without any switch.
    Inline overrides are no part of it.
    """
    rows = PanelRows(permissions, bare)
    return tuple(_with_members(rows, group, masker) for group in groups(permissions))


def _with_members(rows: PanelRows, group: PanelGroup, masker: Masker) -> JsonObject:
    found = _masked_row(rows.row_of_group(group), masker)
    if group.kind == "unknown":
        return found
    return {**found, "members": [_masked_row(row, masker) for row in rows.members(group)]}


def _masked_row(row: PanelRow, masker: Masker) -> JsonObject:
    """Return a row without secrets; names stay, since switches are set by them (X5)."""
    found = _json(row)
    return {**masker.value(found), **{key: found[key] for key in ("name", "plugin") if key in found}}


def _json(row: PanelRow) -> JsonObject:
    found = {"kind": row.kind, "name": row.name}
    found |= {"plugin": row.plugin} if row.plugin is not None else {}
    found |= {"label": row.label}
    found |= {"icon": row.icon} if row.icon is not None else {}
    where = str(row.reason.where) if row.reason.where is not None else None
    found |= {
        "description": row.description,
        "default": row.default,
        "switch": row.switch,
        "on": row.on,
        "reason": {"code": row.reason.code, "text": row.reason.text, "where": where},
    }
    return found if row.fault is None else {**found, "available": not row.fault, "unavailable": row.fault}


# -- what stands where -----------------------------------------------------------------------------


def groups(permissions: CompiledPermissions) -> tuple[PanelGroup, ...]:
    """Return the toolkits, the plugins that have something outside of these, and the switches of nothing known."""
    unknown = (PanelGroup(kind="unknown", name=name) for name in permissions.switches.unknown)
    return (*_groups(permissions.entries.looked_up), *unknown)


@once_per_permissions
def _groups(toolkits: ToolkitEntries) -> tuple[PanelGroup, ...]:
    """Return what there is to switch in a world; no switch changes it."""
    world = toolkits.world
    bundled: set[str] = set()
    whole: set[str] = set()
    found: list[PanelGroup] = []
    for name in world.toolkits:
        parts: list[PanelPart] = []
        for entry in toolkits.entries_of_toolkit(name):
            plugin = world.catalog.plugins[entry.plugin]
            bundled |= entry.ids
            whole |= {entry.plugin} if entry.whole else set()
            if entry.tools or (entry.whole and not plugin.variant(entry.key).known):
                parts.append(PanelPart(plugin=plugin, tools=entry.tools, key=entry.key))
        found.append(PanelGroup(kind="toolkit", name=name, parts=tuple(parts)))
    plugins = (_group_outside_toolkits(plugin, bundled, whole) for plugin in world.catalog.plugins.values())
    found += (group for group in plugins if group is not None)
    return tuple(found)


def _group_outside_toolkits(plugin: Plugin, bundled: Container[str], whole: Container[str]) -> PanelGroup | None:
    """Return a plugin with its tools that stand in no toolkit; None where a toolkit has all of it."""
    tools = tuple(tool for tool in plugin.tools if tool.id not in bundled)
    if not tools and (plugin.tools or plugin.name in whole):
        return None
    parts = (PanelPart(plugin=plugin, tools=tools),) if tools else ()
    return PanelGroup(kind="plugin", name=plugin.name, parts=parts)


# -- the rows --------------------------------------------------------------------------------------


class PanelRows:
    """The rows of one agent's panel, made one by one; ``bare`` are its permissions without any switch."""

    def __init__(self, permissions: CompiledPermissions, bare: CompiledPermissions) -> None:
        self._access = permissions
        self._bare = bare

    def row_of_group(self, group: PanelGroup) -> PanelRow:
        """Return the row of a group."""
        match group.kind:
            case "toolkit":
                return self._toolkit(group)
            case "plugin":
                return self._plugin(group)
            case "unknown":
                return _unknown(group.name, on=self._access.switches.unknown[group.name])

    def members(self, group: PanelGroup) -> Iterator[PanelRow]:
        """Yield the rows of what is in a group, in order."""
        return (self.member(part, tool) for part in group.parts for tool in part.members())

    def member(self, part: PanelPart, tool: Tool | None) -> PanelRow:
        """Return the row of a member; None is what is not known yet."""
        return self._tool(tool, part.key) if tool is not None else self._row_of_unseen(part.plugin, part.key)

    def _toolkit(self, group: PanelGroup) -> PanelRow:
        permissions, toolkit = self._access, self._access.world.toolkits[group.name]
        switch = permissions.switches.toolkits.get(group.name)
        on = switch.on if switch is not None else group.permitted(permissions) > 0
        return PanelRow(
            kind="toolkit",
            name=group.name,
            label=toolkit.label or group.name,
            icon=toolkit.icon,
            description=toolkit.description,
            default=group.permitted(self._bare) > 0,
            switch=_value(switch),
            on=on,
            reason=self._reason_of_switch(switch) or self._deciding_reason(group, on=on),
            subject=Ref("toolkit", group.name),
        )

    def _plugin(self, group: PanelGroup) -> PanelRow:
        permissions, plugin = self._access, self._access.world.catalog.plugins[group.name]
        if not group.parts:
            return self._row_of_unseen(plugin)
        on, switch = group.permitted(permissions) > 0, permissions.switches.plugins.get(plugin.name)
        reason = self._reason_of_switch(switch) if switch is not None and switch.on is on else None
        return self._row_of_plugin(
            plugin,
            default=group.permitted(self._bare) > 0,
            on=on,
            reason=reason or self._deciding_reason(group, on=on),
        )

    def _deciding_reason(self, group: PanelGroup, *, on: bool) -> Reason:
        """Return the reason of the first member that is as the whole is."""
        for part in group.parts:
            permitted = part.permitted(self._access)
            if permitted if on else permitted < part.size:
                return next(self._reasons(part, on=on))
        return Reason(code="not_seen", text="None of its tools is known.")

    def _reasons(self, part: PanelPart, *, on: bool) -> Iterator[Reason]:
        permissions = self._access
        for tool in part.members():
            decision = permissions.decide(tool) if tool is not None else permissions.decide_unseen(part.plugin)
            if decision.permitted is on:
                yield decision.reasons[0]

    def _tool(self, tool: Tool, key: str) -> PanelRow:
        permissions, own = self._access, self._access.switches.switch_of_tool(tool)
        return PanelRow(
            kind="tool",
            name=tool.wire,
            plugin=tool.plugin,
            label=tool.title,
            description=tool.description,
            default=self._bare.permits(tool),
            switch=_value(own),
            on=permissions.permits(tool),
            reason=permissions.decide(tool).reasons[0],
            fault=tool_fault(permissions, tool, key),
            subject=Ref("tool", tool.id),
        )

    def _row_of_unseen(self, plugin: Plugin, key: str = "") -> PanelRow:
        """Return the row of a plugin as a whole, as it is where its tools are not known yet."""
        decision = self._access.decide_unseen(plugin)
        return self._row_of_plugin(
            plugin,
            key,
            default=self._bare.grants_unseen(plugin),
            on=decision.permitted,
            reason=decision.reasons[0],
        )

    def _row_of_plugin(self, plugin: Plugin, key: str = "", *, default: bool, on: bool, reason: Reason) -> PanelRow:
        return PanelRow(
            kind="plugin",
            name=plugin.name,
            plugin=plugin.name,
            label=plugin.name,
            description=plugin.description,
            default=default,
            switch=_value(self._access.switches.plugins.get(plugin.name)),
            on=on,
            reason=reason,
            fault=plugin.variant(key).unavailable,
            subject=Ref("plugin", plugin.name),
        )

    def _reason_of_switch(self, switch: Switch | None) -> Reason | None:
        return switch_reason(switch, self._access.agent) if switch is not None else None


def switch_name(permissions: CompiledPermissions, row: PanelRow) -> str:
    """Return the name under which a row is switched: as its stored switch is written, else one that means it alone."""
    subject = row.subject
    if subject is None:
        return row.name
    standing = permissions.switches.switch_of(subject)
    if standing is not None and standing.at_run_time and standing.kind == subject.kind:
        return standing.name
    alone = subjects_named(permissions.world, row.name, on=True) == (subject,)
    return row.name if alone else f"{subject.kind}:{row.name}"


def _unknown(name: str, *, on: bool) -> PanelRow:
    reason = Reason(code="unknown", text="Nothing with this name is known yet; the switch applies as soon as there is.")
    return PanelRow(
        kind="unknown", name=name, label=name, description="", default=False, switch=on, on=False, reason=reason
    )


def _value(switch: Switch | None) -> bool | None:
    return switch.on if switch is not None else None
