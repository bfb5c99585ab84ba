"""What tools need: the names in ``requires``, and which tools come with a tool because of them (T8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from pegboard.core.access.names import lookup
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions, tool_fault
from pegboard.core.model.agents import World
from pegboard.core.model.catalog import Catalog, Ref, split_kind
from pegboard.core.model.selectors import find
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.subjects import tools_of_subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One name in a tool's ``requires``: the permitted tools that it stands for, or why it stands for none."""

    name: str
    tools: tuple[Tool, ...] = ()
    problem: str = ""


def requirements(permissions: CompiledPermissions, tool: Tool) -> tuple[Requirement, ...]:
    """Return what a tool needs, name by name; what is denied looks like what does not exist (P9)."""
    return tuple(_requirement(permissions, tool.plugin, name) for name in tool.requires)


@once_per_permissions
def _requirement(permissions: CompiledPermissions, plugin: str, name: str) -> Requirement:
    """Return what a name stands for to a tool of this plugin: its sibling first, else what lookup finds."""
    catalog = permissions.world.catalog
    own = _find_sibling(catalog, plugin, name)
    ref = Ref("tool", own.id) if own is not None else lookup(permissions, name)
    tools = tuple(tool for tool, _ in tools_of_subject(permissions, ref).tools) if ref is not None else ()
    if tools:
        return Requirement(name=name, tools=tools)
    same = [tool.wire for tool in _tools_of_own_name(catalog, name) if permissions.permits(tool)]
    if own is None and len(same) > 1:
        return Requirement(name=name, problem=f"'{name}', which may be {' or '.join(map(repr, same))}.")
    return Requirement(name=name, problem=f"'{name}', which is not available to this agent.")


def required_tools(permissions: CompiledPermissions, tool: Tool) -> Iterator[Tool]:
    """Yield the permitted tools that a tool requires."""
    for requirement in requirements(permissions, tool):
        yield from requirement.tools


def all_required(permissions: CompiledPermissions, tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the permitted tools that these require, directly or not."""
    pending, found = deque(tools), dict[str, Tool]()
    while pending:
        fresh = [tool for tool in required_tools(permissions, pending.popleft()) if tool.id not in found]
        found.update((tool.id, tool) for tool in fresh)
        pending.extend(fresh)
    return tuple(found.values())


@once_per_permissions
def usable(permissions: CompiledPermissions) -> tuple[Tool, ...]:
    """Return everything that the agent may use and that can run, of what is known (F4)."""
    return tuple(tool for tool in permissions.permitted if not tool_fault(permissions, tool))


@once_per_permissions
def unknown_plugins(permissions: CompiledPermissions) -> tuple[str, ...]:
    """Return the plugins that the agent may use, whose tools are not known yet and of which none cannot run (F4)."""
    plugins = permissions.world.catalog.plugins.values()
    return tuple(
        plugin.name
        for plugin in plugins
        if _is_unasked(plugin) and permissions.grants_unseen(plugin) and not _cannot_run(permissions, plugin)
    )


def _cannot_run(permissions: CompiledPermissions, plugin: Plugin) -> bool:
    """Return whether a plugin is known to be unavailable, however the agent names it (P6)."""
    if not plugin.variants:
        return False
    named = permissions.entries.by_plugin.get(plugin.name) or (permissions.entries.of_plugin(plugin.name),)
    return all(plugin.variant(entry.key).unavailable for entry in named)


@once_per_permissions
def unknown_toolkits(permissions: CompiledPermissions) -> tuple[str, ...]:
    """Return the toolkits that the agent may load with a member whose tools are not known yet (X1)."""
    unknown = frozenset(unknown_plugins(permissions))
    toolkits = permissions.entries.loadable_toolkits
    return tuple(
        name for name in toolkits if any(e.plugin in unknown for e in permissions.entries.toolkits.get(name, ()))
    )


def missing_requirements(permissions: CompiledPermissions, tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return which tools cannot be loaded because something that they require cannot, directly or not (T8)."""
    pending = deque(tools)
    known = {tool.id for tool in pending}
    found: list[str] = []
    while pending:
        tool = pending.popleft()
        found.extend(_missing_requirements(permissions, tool))
        fresh = [
            other
            for other in required_tools(permissions, tool)
            if other.id not in known and not tool_fault(permissions, other)
        ]
        known.update(other.id for other in fresh)
        pending.extend(fresh)
    return tuple(dict.fromkeys(found))


def _missing_requirements(permissions: CompiledPermissions, tool: Tool) -> Iterator[str]:
    for requirement in requirements(permissions, tool):
        if requirement.problem:
            yield f"{tool.wire} needs {requirement.problem}"
        for other in requirement.tools:
            if fault := tool_fault(permissions, other):
                yield f"{tool.wire} needs '{other.wire}', which is not available now: {fault}"


def with_required(permissions: CompiledPermissions, tool: Tool, loaded: Container[str]) -> tuple[Tool, ...] | None:
    """Return a tool and what it requires beyond what is loaded, or None where that cannot come (T8)."""
    together = {tool.id: tool} if tool.id not in loaded else {}
    pending = list(together.values())
    while pending:
        by = pending.pop()
        if next(_missing_requirements(permissions, by), None) is not None:
            return None
        fresh = {t.id: t for t in required_tools(permissions, by) if t.id not in loaded and t.id not in together}
        together.update(fresh)
        pending.extend(fresh.values())
    return tuple(together.values())


def plugins_to_ask(permissions: CompiledPermissions, tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the plugins that were not asked for their tools yet and may have what these tools require."""
    names = {item.name for tool in tools for item in requirements(permissions, tool) if item.problem}
    found = {
        plugin.name: None
        for name in names
        for plugin in _possible_owners(permissions.world.catalog, split_kind(name)[1])
        if _is_unasked(plugin) and permissions.grants_unseen(plugin)
    }
    return tuple(found)


# -- whoever the agent is --------------------------------------------------------------------------


def unresolved_requirements(world: World) -> Iterator[tuple[Tool, str, str]]:
    """Yield for every tool of the catalog the names that it requires and that stand for nothing, and why.

    A name that may be a tool of a plugin which was not asked yet is not among them.
    """
    for tool in world.catalog:
        for name in tool.requires:
            if problem := _why_unresolved(world, tool.plugin, name):
                yield tool, name, problem


def _why_unresolved(world: World, plugin: str, name: str) -> str:
    catalog = world.catalog
    kind, bare = split_kind(name)
    if _find_sibling(catalog, plugin, name) is not None or (kind in (None, "toolkit") and bare in world.toolkits):
        return ""
    ref = find(name, catalog)
    if ref is not None and (ref.kind != "category" or catalog.category(ref.name)):
        return ""
    same = _tools_of_own_name(catalog, name)
    if len(same) > 1:
        return f"it may be {' or '.join(repr(tool.id) for tool in same)}"
    if kind in (None, "tool") and any(_is_unasked(other) for other in _possible_owners(catalog, bare)):
        return ""
    return "no toolkit, plugin or tool is known under this name"


def _possible_owners(catalog: Catalog, name: str) -> Iterable[Plugin]:
    """Return the plugins that a name stands for or may be a tool of: the one that the name gives, or any."""
    owner = catalog.plugins.get(name.partition("/")[0])
    return (owner,) if owner is not None else catalog.plugins.values()


def _is_unasked(plugin: Plugin) -> bool:
    return not plugin.tools and not any(variant.known for variant in plugin.variants.values())


def _find_sibling(catalog: Catalog, plugin: str, name: str) -> Tool | None:
    kind, bare = split_kind(name)
    return catalog.by_id(f"{plugin}/{bare}") if kind in (None, "tool") else None


def _tools_of_own_name(catalog: Catalog, name: str) -> tuple[Tool, ...]:
    kind, bare = split_kind(name)
    return catalog.named(bare) if kind in (None, "tool") else ()
