"""What leases stand for, and which of them still stand: stored state heals when it is read (S3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pegboard.core.access.names import plugins_of_category
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import Lease
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.sessions import State


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTools:
    """What a subject stands for to an agent: its entries, and its permitted tools."""

    entries: tuple[Entry, ...]
    tools: tuple[tuple[Tool, Entry], ...]


@once_per_permissions
def tools_of_subject(permissions: CompiledPermissions, subject: Ref) -> SubjectTools:
    """Return what a subject stands for, before any lease is asked."""
    entries = tuple(_entries(permissions, subject))
    tools = tuple((tool, entry) for entry in entries for tool in entry.tools if permissions.permits(tool))
    return SubjectTools(entries=entries, tools=tools)


def _entries(permissions: CompiledPermissions, subject: Ref) -> Iterator[Entry]:
    catalog = permissions.world.catalog
    match subject.kind:
        case "toolkit":
            if permissions.may_load_toolkit(subject.name):
                yield from permissions.entries.toolkits.get(subject.name, ())
        case "plugin":
            if subject.name in catalog.plugins:
                yield permissions.entries.of_plugin(subject.name)
        case "tool":
            tool = catalog.by_id(subject.name)
            if tool is not None:
                yield _entry_of_tool(permissions, tool)
        case "category":
            for plugin in plugins_of_category(permissions, subject.name):
                yield permissions.entries.of_plugin(plugin.name)


def _entry_of_tool(permissions: CompiledPermissions, tool: Tool) -> Entry:
    """Return the entry under which a tool runs, cut to the tool."""
    entry = permissions.entries.of_tool(tool)
    only = frozenset({tool.id})
    tools = (tool,) if tool.id in entry.ids else ()
    return replace(entry, whole=False, tools=tools, names=only & entry.names, ids=only & entry.ids)


def lease_entries(permissions: CompiledPermissions, lease: Lease) -> tuple[Entry, ...]:
    """Return the entries that a lease stands for, before any permission is asked."""
    return tools_of_subject(permissions, lease.subject).entries


def leased_tools(permissions: CompiledPermissions, lease: Lease) -> tuple[tuple[Tool, Entry], ...]:
    """Return the permitted tools that a lease loads, with the entries that they stand in."""
    tools = tools_of_subject(permissions, lease.subject).tools
    return tuple(pair for pair in tools if pair[0].id not in lease.excluded) if lease.excluded else tools


def unloaded_in_turn(permissions: CompiledPermissions, state: State, tool: Tool) -> bool:
    """Return whether a tool is of what was unloaded by name in this turn: no call loads it again (D2)."""
    return any(tool.id == one.id for ref in state.unloaded for one, _ in tools_of_subject(permissions, ref).tools)


def stands_for_nothing(permissions: CompiledPermissions, lease: Lease) -> bool:
    """Return whether no permitted tool is left of what a lease loads."""
    return not leased_tools(permissions, lease)


def heal(permissions: CompiledPermissions, state: State) -> State:
    """Return the state without the leases that no longer count (S3)."""
    kept = tuple(lease for lease in state.leases if still_stands(permissions, lease))
    return state if len(kept) == len(state.leases) else replace(state, leases=kept)


def still_stands(permissions: CompiledPermissions, lease: Lease) -> bool:
    """Return whether a stored lease still stands for something (S3).

    A plugin or server that is not known yet, or unavailable now, is not gone. A toolkit is out of
    scope as a whole, as it is loaded (S10).
    """
    subject = lease.subject
    if subject.kind == "toolkit" and permissions.out_of_scope(lease_entries(permissions, lease)):
        return False
    return not stands_for_nothing(permissions, lease) or _may_stand_later(permissions, lease)


def _may_stand_later(permissions: CompiledPermissions, lease: Lease) -> bool:
    """Return whether a lease may stand for something once plugins that are not known yet were asked."""
    catalog, subject = permissions.world.catalog, lease.subject
    if subject.kind == "tool":
        plugin = catalog.plugins.get(subject.name.partition("/")[0])
        return plugin is not None and not plugin.tools and _may_bring(permissions, plugin)
    toolkit = permissions.world.toolkits.get(subject.name) if subject.kind == "toolkit" else None
    if toolkit is not None and permissions.may_load_toolkit(toolkit.name) and not toolkit.complete(catalog):
        return True
    return any(
        not entry.tools and permissions.grants_unseen(catalog.plugins[entry.plugin])
        for entry in lease_entries(permissions, lease)
        if not catalog.plugins[entry.plugin].variant(entry.key).known
    )


def _may_bring(permissions: CompiledPermissions, plugin: Plugin) -> bool:
    return permissions.grants_unseen(plugin) or permissions.entries.unresolved
