"""What a name means: to a load, to a call, and to an operator (P9).

Exact names first, then the one thing whose name differs in nothing but its case. To a load and a call, what is denied
stands in the way of nothing and looks like what does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
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
class Hidden:
    """A tool of this name that the agent may not use, and why; its model learns of neither."""

    tool: Tool
    reason: Reason


@dataclass(slots=True)
class Unseen:
    """The plugin, not asked for its tools yet, to which a tool of this name would belong."""

    plugin: Plugin


@dataclass(slots=True)
class Unknown:
    """Nothing of this name, as far as is known."""


def resolve(permissions: CompiledPermissions, name: str) -> ExactName[Ref] | NearName[Ref] | Unseen | Unknown:
    """Return what a name means to a load, among what the agent may have: toolkit, then plugin, then tool.

    ``toolkit:``, ``plugin:``, ``tool:`` and ``category:`` in front say which; a category is never meant by a bare name.
    """
    if (exact := _exact(permissions, name)) is not None:
        return ExactName(exact)
    kind, bare = split_kind(name)
    fold = bare.casefold()
    toolkits = [n for n in permissions.entries.toolkits if n.casefold() == fold and kind in (None, "toolkit")]
    lead = f"{kind}:" if kind else ""
    alike = (*toolkits, *permissions.world.catalog.find_folded(bare))
    refs = {ref for other in alike if (ref := _exact(permissions, f"{lead}{other}")) is not None}
    return NearName(refs.pop()) if len(refs) == 1 else _not_found(permissions, name)


def lookup(permissions: CompiledPermissions, name: str) -> Ref | None:
    """Return the subject that a name means to a load, or None; see :func:`resolve`."""
    match resolve(permissions, name):
        case ExactName(subject) | NearName(subject):
            return subject
        case Unseen() | Unknown():
            return None


def resolve_called(
    permissions: CompiledPermissions, name: str
) -> ExactName[Tool] | NearName[Tool] | Hidden | Unseen | Unknown:
    """Return what a name means to a call: a tool by its wire name or id, else by its own name.

    A wire name or id means its one tool, permitted or not: a call never begins to mean another tool
    because of a switch. Tools of which only the own name fits are passed over where they are denied.
    """
    catalog = permissions.world.catalog
    exact = catalog.by_wire(name) or catalog.by_id(name)
    if exact is not None and permissions.permits(exact):
        return ExactName(exact)
    if exact is None:
        same = [tool for tool in catalog.named(name) if permissions.permits(tool)]
        if len(same) == 1:
            return ExactName(same[0])
        alike = [] if same else [tool for tool in catalog.but_for_case(name) if permissions.permits(tool)]
        if len(alike) == 1:
            return NearName(alike[0])
    missing = _not_found(permissions, name)
    denied = catalog.find_tool(name) if isinstance(missing, Unknown) else None
    return missing if denied is None else Hidden(denied, permissions.decide(denied).reasons[0])


def find_called(permissions: CompiledPermissions, name: str) -> Tool | None:
    """Return the permitted tool that a call of this name means, or None; see :func:`resolve_called`."""
    match resolve_called(permissions, name):
        case ExactName(tool) | NearName(tool):
            return tool
        case Hidden() | Unseen() | Unknown():
            return None


def resolve_tool(catalog: Catalog, name: str) -> ExactName[Tool] | NearName[Tool] | Unseen | Unknown:
    """Return the tool that a name means to an operator, whoever may use it (F5)."""
    kind, bare = split_kind(name)
    if kind in (None, "tool"):
        if (exact := catalog.find_tool(bare)) is not None:
            return ExactName(exact)
        alike = catalog.but_for_case(bare)
        if len(alike) == 1:
            return NearName(alike[0])
    owner = next(catalog.unseen_owners(name), None)
    return Unknown() if owner is None else Unseen(owner)


def named_tool(catalog: Catalog, name: str) -> Tool | None:
    """Return the tool that a name means to an operator, or None; see :func:`resolve_tool`."""
    match resolve_tool(catalog, name):
        case ExactName(tool) | NearName(tool):
            return tool
        case Unseen() | Unknown():
            return None


def _not_found(permissions: CompiledPermissions, name: str) -> Unseen | Unknown:
    """Return the plugin that may turn out to have what no known name means to the agent."""
    owners = permissions.world.catalog.unseen_owners(name)
    owner = next((plugin for plugin in owners if permissions.grants_unseen(plugin)), None)
    return Unknown() if owner is None else Unseen(owner)


def _exact(permissions: CompiledPermissions, name: str) -> Ref | None:
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
    return _tool(permissions, bare) if kind in (None, "tool") else None


def _tool(permissions: CompiledPermissions, name: str) -> Ref | None:
    """Return the tool of this wire name, this id or, if the agent may have only one such, this own name."""
    catalog = permissions.world.catalog
    for tool in (catalog.by_wire(name), catalog.by_id(name)):
        if tool is not None and _reachable(permissions, tool):
            return Ref("tool", tool.id)
    same = [tool for tool in catalog.named(name) if _reachable(permissions, tool)]
    return Ref("tool", same[0].id) if len(same) == 1 else None


def _reachable(permissions: CompiledPermissions, tool: Tool) -> bool:
    return permissions.permits(tool) or permissions.scope_alone(tool)


@once_per_permissions
def plugins_of_category(permissions: CompiledPermissions, category: str) -> tuple[Plugin, ...]:
    """Return the plugins of a category that the agent may have; else those that only the scope denies (P5)."""
    plugins = permissions.world.catalog.category(category)
    permitted = tuple(plugin for plugin in plugins if permissions.may_have_tools_of(plugin))
    return permitted or tuple(plugin for plugin in plugins if permissions.scope_only(plugin))


def suggestion(permissions: CompiledPermissions, name: str, within: Callable[[str], bool] | None = None) -> str:
    """Return what somebody may have meant, out of what is permitted only (P9), and of the plugins ``within`` takes."""
    kind, bare = split_kind(name)
    listed = (p for p in permissions.world.catalog.plugins.values() if within is None or within(p.name))
    plugins = tuple(p for p in listed if permissions.may_have_tools_of(p))
    if kind == "category":
        return did_you_mean(bare, (plugin.category for plugin in plugins if plugin.category), kind=kind)
    tools = (tool.wire for tool in permissions.permitted if within is None or within(tool.plugin))
    return did_you_mean(bare, (*permissions.entries.loadable_toolkits, *(plugin.name for plugin in plugins), *tools))


def title(permissions: CompiledPermissions, ref: Ref) -> str:
    """Return a subject as it stands at the beginning of a sentence."""
    name = ref.name if ref.kind == "category" else display_name(permissions, ref)
    return f"{ref.kind.capitalize()} '{name}'"


def display_name(permissions: CompiledPermissions, ref: Ref) -> str:
    """Return the name by which a model can load and unload a subject: a tool's wire name, ``category:NAME``."""
    tool = permissions.world.catalog.by_id(ref.name) if ref.kind == "tool" else None
    if tool is not None:
        return tool.wire
    return str(ref) if ref.kind == "category" else ref.name
