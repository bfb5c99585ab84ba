"""What a name means to an agent: exact first, then a unique match but for case (P9)."""

from __future__ import annotations

from pegboard.core.catalog import Ref, split_kind
from pegboard.core.naming import did_you_mean
from pegboard.core.permissions import Access
from pegboard.core.selectors import find


def lookup(access: Access, name: str) -> Ref | None:
    """Return what a name means among what the agent may have: toolkit, then plugin, then tool.

    What is denied looks exactly like what does not exist.
    """
    found = _exact(access, name)
    if found is not None:
        return found
    kind, bare = split_kind(name)
    fold = bare.casefold()
    toolkits = [n for n in access.toolkits if n.casefold() == fold and kind in (None, "toolkit")]
    lead = f"{kind}:" if kind else ""
    near = (*toolkits, *access.world.catalog.find_folded(bare))
    refs = {ref for n in near if (ref := _exact(access, f"{lead}{n}")) is not None}
    return next(iter(refs)) if len(refs) == 1 else None


def _exact(access: Access, name: str) -> Ref | None:
    kind, bare = split_kind(name)
    if kind in (None, "toolkit") and access.may_load_toolkit(bare):
        return Ref("toolkit", bare)
    ref = find(name, access.world.catalog) if kind != "category" else None
    return ref if ref is not None and _reachable(access, ref) else None


def _reachable(access: Access, ref: Ref) -> bool:
    catalog = access.world.catalog
    if ref.kind == "plugin":
        plugin = catalog.plugins[ref.name]
        return access.may_hold(plugin) or access.scope_only(plugin)
    tool = catalog.by_id(ref.name)
    return tool is not None and (access.permits(tool) or access.scope_only(catalog.plugins[tool.plugin]))


def suggestion(access: Access, name: str) -> str:
    """Return what somebody may have meant, out of what is permitted only (P9)."""
    _, bare = split_kind(name)
    loadable = (n for n in access.toolkits if access.may_load_toolkit(n))
    plugins = (p.name for p in access.world.catalog.plugins.values() if access.may_hold(p))
    tools = (tool.wire for tool in access.permitted)
    return did_you_mean(bare, (*loadable, *plugins, *tools))
