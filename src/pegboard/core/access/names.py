"""What a name means to an agent: exact first, then a unique match but for case (P9)."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref, split_kind
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import Plugin, Tool


def lookup(permissions: CompiledPermissions, name: str) -> Ref | None:
    """Return what a name means among what the agent may have: toolkit, then plugin, then tool.

    ``toolkit:``, ``plugin:``, ``tool:`` and ``category:`` in front say which; a category is never meant by a bare name.
    What is denied looks exactly like what does not exist: it stands in the way of nothing.
    """
    found = _exact(permissions, name)
    if found is not None:
        return found
    kind, bare = split_kind(name)
    fold = bare.casefold()
    toolkits = [n for n in permissions.entries.toolkits if n.casefold() == fold and kind in (None, "toolkit")]
    lead = f"{kind}:" if kind else ""
    near = (*toolkits, *permissions.world.catalog.find_folded(bare))
    refs = {ref for n in near if (ref := _exact(permissions, f"{lead}{n}")) is not None}
    return next(iter(refs)) if len(refs) == 1 else None


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
