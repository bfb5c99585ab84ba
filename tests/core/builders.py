"""Build small worlds in one line."""

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, WorkerScope, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.loadouts import BUILT_IN, Loadout
from pegboard.core.model.selectors import Member, member
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Plugin, Tool, Variant
from pegboard.problems import Place

Written = str | tuple[str, Mapping[str, Any]]


def tool(tool_id: str, **fields: Any) -> Tool:
    plugin, _, name = tool_id.partition("/")
    return Tool(plugin=plugin, name=name, **fields)


def plugin(name: str, *tools: str | Tool, **fields: Any) -> Plugin:
    """Return a plugin that was asked; a tool that is given as text has nothing but its name."""
    held = tuple(Tool(plugin=name, name=item) if isinstance(item, str) else item for item in tools)
    variants = {"": Variant(tools=tuple(item.name for item in held))}
    return Plugin(name=name, tools=held, variants=variants, **fields)


def members(items: Iterable[Written]) -> tuple[Member, ...]:
    return tuple(member(item) if isinstance(item, str) else member(item[0], dict(item[1])) for item in items)


def toolkit(name: str, *items: Written, **fields: Any) -> Toolkit:
    return Toolkit(name=name, members=members(items), **fields)


def world(
    *plugins: Plugin,
    toolkits: Iterable[Toolkit] = (),
    loadouts: Iterable[Loadout] = (),
    sub_apps: Mapping[str, Iterable[Written]] | None = None,
) -> World:
    return World(
        catalog=Catalog(plugins),
        toolkits={held.name: held for held in toolkits},
        loadouts={**BUILT_IN, **{held.name.casefold(): held for held in loadouts}},
        sub_apps={name: members(items) for name, items in (sub_apps or {}).items()},
    )


def agent(
    *,
    tools: Iterable[Written] = (),
    essential: Iterable[Written] = (),
    allowed: Iterable[str] = (),
    initial: Iterable[str] = (),
    discoverable: Iterable[str] = (),
    switches: Mapping[str, bool] | None = None,
    **fields: Any,
) -> Agent:
    """Return the profile of agent ``ada``; the switches stand in lines 1, 2, … of ``pegboard.yaml``."""
    written = dict(switches or {})
    return Agent(
        name="ada",
        static=members(tools),
        essential=members(essential),
        allowed_toolkits=tuple(allowed),
        initial_toolkits=tuple(initial),
        discoverable=tuple(discoverable),
        switches=written,
        switch_places={name: Place(file="pegboard.yaml", line=line) for line, name in enumerate(written, 1)},
        **fields,
    )


def permissions_of(
    held: World,
    *,
    stored: Mapping[str, bool] | None = None,
    scope: WorkerScope | None = None,
    sub_app: str | None = None,
    parent: CompiledPermissions | None = None,
    **profile: Any,
) -> CompiledPermissions:
    circumstances = SessionConstraints(stored=stored or {}, worker_scope=scope, sub_app=sub_app, parent=parent)
    return CompiledPermissions(held, agent(**profile), circumstances)


def permitted(held: CompiledPermissions) -> set[str]:
    return {item.id for item in held.permitted}


def known(held: World | CompiledPermissions, tool_id: str) -> Tool:
    """Return the tool as it is in the catalog."""
    found = (held.world if isinstance(held, CompiledPermissions) else held).catalog.by_id(tool_id)
    assert found is not None, tool_id
    return found


def codes(held: CompiledPermissions, tool_id: str) -> list[str]:
    return [reason.code for reason in held.decide(known(held, tool_id)).reasons]
