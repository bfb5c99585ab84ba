"""What a name means: to a load, to a call, and to an operator (P9).

Exact names first, then the one thing whose name differs in nothing but its case. To a load and a call, what is denied
blocks nothing and looks like what does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from typing import Generic, TypeVar

from pegboard.core.access.decisions import Reason
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import Catalog, Ref, split_kind
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import Plugin, Tool

T_co = TypeVar("T_co", Ref, Tool, covariant=True)
# What follows is not frozen: a class that is takes each start twice as long to make.


@dataclass(slots=True)
class ExactName(Generic[T_co]):
    """What has exactly this name."""

    meant: T_co


@dataclass(slots=True)
class NearName(Generic[T_co]):
    """The one thing whose name differs from this one in nothing but its case."""

    meant: T_co


@dataclass(slots=True)
class HiddenTool:
    """A tool of this name that the agent may not use, and why; its model learns of neither."""

    tool: Tool
    reason: Reason


@dataclass(slots=True)
class UnseenTool:
    """The plugin, not asked for its tools yet, to which a tool of this name would belong."""

    plugin: Plugin


@dataclass(slots=True)
class UnknownName:
    """Nothing of this name, as far as is known."""


def resolve(
    permissions: CompiledPermissions, name: str, loaded: Container[str] = ()
) -> ExactName[Ref] | NearName[Ref] | UnseenTool | UnknownName:
    """Return what a name means to a load, among what the agent may have: toolkit, then plugin, then tool.

    ``toolkit:``, ``plugin:``, ``tool:`` and ``category:`` in front say which; a category is never meant by a bare name.
    Of several tools with one name it means the one that is ``loaded`` (ids), else none: see :func:`tools_meant`.
    """
    if (exact := _exact(permissions, name, loaded)) is not None:
        return ExactName(exact)
    kind, bare = split_kind(name)
    fold = bare.casefold()
    toolkits = [n for n in permissions.entries.toolkits if n.casefold() == fold and kind in (None, "toolkit")]
    lead = f"{kind}:" if kind else ""
    alike = (*toolkits, *permissions.world.catalog.find_folded(bare))
    refs = {ref for other in alike if (ref := _exact(permissions, f"{lead}{other}", loaded)) is not None}
    return NearName(refs.pop()) if len(refs) == 1 else _not_found(permissions, name)


def lookup(permissions: CompiledPermissions, name: str, loaded: Container[str] = ()) -> Ref | None:
    """Return the subject that a name means to a load, or None; see :func:`resolve`."""
    match resolve(permissions, name, loaded):
        case ExactName(subject) | NearName(subject):
            return subject
        case UnseenTool() | UnknownName():
            return None


def tools_meant(permissions: CompiledPermissions, name: str) -> tuple[Tool, ...]:
    """Return the tools of this id, else of this wire name, else of this own name, of those that the agent may have."""
    kind, bare = split_kind(name)
    catalog = permissions.world.catalog
    if kind not in (None, "tool"):
        return ()
    by_id = catalog.by_id(bare)
    ways = ((by_id,) if by_id is not None else (), catalog.by_wire(bare), catalog.named(bare))
    found = (tuple(tool for tool in way if _reachable(permissions, tool)) for way in ways)
    return next(filter(None, found), ())


def name_to_load(permissions: CompiledPermissions, tool: Tool) -> str:
    """Return the name by which a model can load a tool: its wire name, or its id where others have that name (G10)."""
    alike = permissions.world.catalog.by_wire(tool.wire)
    alone = len(alike) == 1 or sum(_reachable(permissions, other) for other in alike) <= 1
    return tool.wire if alone else tool.id


def resolve_called(
    permissions: CompiledPermissions, name: str, *, loaded: Container[str] = (), used: Collection[str] = ()
) -> ExactName[Tool] | NearName[Tool] | HiddenTool | UnseenTool | UnknownName:
    """Return what a name means to a call: a tool by its id or wire name, else by its own name (G10).

    Of several permitted tools with one wire name the call means the one that is ``loaded``, else the first in the order
    of the file; ``loaded`` and ``used`` are ids. A call never begins to mean another tool because of a switch: a name
    under which a tool was ``used`` that is denied now means nothing, and neither does an exact name that is denied.
    Tools of which only the own name fits are passed over where they are denied.
    """
    catalog = permissions.world.catalog
    by_id = catalog.by_id(name)
    exact = (by_id,) if by_id is not None else catalog.by_wire(name)
    permitted = [tool for tool in exact if permissions.permits(tool)]
    if len(exact) > 1:
        here = [tool for tool in permitted if tool.id in loaded]
        denied = not here and any(tool.id in used and tool not in permitted for tool in exact)
        permitted = here or ([] if denied else permitted)
    if permitted:
        return ExactName(permitted[0])
    if not exact:
        same = [tool for tool in catalog.named(name) if permissions.permits(tool)]
        if len(same) == 1:
            return ExactName(same[0])
        alike = [] if same else [tool for tool in catalog.but_for_case(name) if permissions.permits(tool)]
        if len(alike) == 1:
            return NearName(alike[0])
    missing = _not_found(permissions, name)
    hidden = next(iter(catalog.meant_by(name)), None) if isinstance(missing, UnknownName) else None
    return missing if hidden is None else HiddenTool(hidden, permissions.decide(hidden).reasons[0])


def find_called(permissions: CompiledPermissions, name: str, loaded: Container[str] = ()) -> Tool | None:
    """Return the permitted tool that a call of this name means, or None; see :func:`resolve_called`."""
    match resolve_called(permissions, name, loaded=loaded):
        case ExactName(tool) | NearName(tool):
            return tool
        case HiddenTool() | UnseenTool() | UnknownName():
            return None


def resolve_tool(catalog: Catalog, name: str) -> ExactName[Tool] | NearName[Tool] | UnseenTool | UnknownName:
    """Return the tool that a name means to an operator, whoever may use it (F5)."""
    kind, bare = split_kind(name)
    if kind in (None, "tool"):
        if (exact := catalog.find_tool(bare)) is not None:
            return ExactName(exact)
        alike = catalog.but_for_case(bare)
        if len(alike) == 1:
            return NearName(alike[0])
    owner = next(catalog.unseen_owners(name), None)
    return UnknownName() if owner is None else UnseenTool(owner)


def tool_of_agent(permissions: CompiledPermissions, name: str, loaded: Container[str] = ()) -> Tool | None:
    """Return the tool that a name means to an operator who looks at one agent, or None (F5).

    Of several it is the one that is ``loaded`` (ids), else the first that is permitted, else the first.
    """
    kind, bare = split_kind(name)
    several = permissions.world.catalog.meant_by(bare) if kind in (None, "tool") else ()
    if len(several) <= 1:
        return named_tool(permissions.world.catalog, name)
    return min(several, key=lambda tool: (tool.id not in loaded, not permissions.permits(tool)))


def named_tool(catalog: Catalog, name: str) -> Tool | None:
    """Return the tool that a name means to an operator, or None; see :func:`resolve_tool`."""
    match resolve_tool(catalog, name):
        case ExactName(tool) | NearName(tool):
            return tool
        case UnseenTool() | UnknownName():
            return None


def _not_found(permissions: CompiledPermissions, name: str) -> UnseenTool | UnknownName:
    """Return the plugin that may turn out to have what no known name means to the agent."""
    owners = permissions.world.catalog.unseen_owners(name)
    owner = next((plugin for plugin in owners if permissions.grants_unseen(plugin)), None)
    return UnknownName() if owner is None else UnseenTool(owner)


def _exact(permissions: CompiledPermissions, name: str, loaded: Container[str]) -> Ref | None:
    kind, bare = split_kind(name)
    catalog = permissions.world.catalog
    if kind == "category":
        plugins = plugins_of_category(permissions, bare)
        return Ref("category", plugins[0].category or bare) if plugins else None
    if kind in (None, "toolkit") and permissions.may_load_toolkit(bare):
        return Ref("toolkit", bare)
    plugin = catalog.plugins.get(bare) if kind in (None, "plugin") else None
    if plugin is not None and (permissions.may_have_tools_of(plugin) or permissions.scope_only(plugin)):
        return Ref("plugin", bare)
    tools = tools_meant(permissions, name)
    if len(tools) > 1:
        tools = tuple(tool for tool in tools if tool.id in loaded)
    return Ref("tool", tools[0].id) if len(tools) == 1 else None


def _reachable(permissions: CompiledPermissions, tool: Tool) -> bool:
    return permissions.permits(tool) or permissions.scope_alone(tool)


@once_per_permissions
def plugins_of_category(permissions: CompiledPermissions, category: str) -> tuple[Plugin, ...]:
    """Return the plugins of a category that the agent may have; else those that only the scope denies (P5)."""
    plugins = permissions.world.catalog.category(category)
    permitted = tuple(plugin for plugin in plugins if permissions.may_have_tools_of(plugin))
    return permitted or tuple(plugin for plugin in plugins if permissions.scope_only(plugin))


def suggestion(permissions: CompiledPermissions, name: str, within: Callable[[str], bool] | None = None) -> str:
    """Return what someone may have meant, out of what is permitted only (P9), and of the plugins ``within`` takes."""
    kind, bare = split_kind(name)
    listed = (p for p in permissions.world.catalog.plugins.values() if within is None or within(p.name))
    plugins = tuple(p for p in listed if permissions.may_have_tools_of(p))
    if kind == "category":
        return did_you_mean(bare, (plugin.category for plugin in plugins if plugin.category), kind=kind)
    tools = (tool.wire for tool in permissions.permitted if within is None or within(tool.plugin))
    return did_you_mean(bare, (*permissions.entries.loadable_toolkits, *(plugin.name for plugin in plugins), *tools))


def title(permissions: CompiledPermissions, ref: Ref) -> str:
    """Return a subject as it is at the beginning of a sentence."""
    name = ref.name if ref.kind == "category" else display_name(permissions, ref)
    return f"{ref.kind.capitalize()} '{name}'"


def display_name(permissions: CompiledPermissions, ref: Ref) -> str:
    """Return the name by which a model can load and unload a subject: a tool's wire name, ``category:NAME``."""
    tool = permissions.world.catalog.by_id(ref.name) if ref.kind == "tool" else None
    if tool is not None:
        return tool.wire
    return str(ref) if ref.kind == "category" else ref.name
