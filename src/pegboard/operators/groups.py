"""Toolkits and plugins as operators name them, and why an agent can, or cannot, load one (F5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pegboard.board.snapshot import Snapshot
from pegboard.core.access.decisions import Reason
from pegboard.core.model.agents import World
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.surface.searchable import Group
from pegboard.operators.reasons import denial_of

Subject = Tool | Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """Where a toolkit or plugin stands in a session.

    Attributes:
        verdict: one sentence that says it.
        permitted: whether the agent may load it.
        loaded: whether all is loaded of it that the agent may use.
        tools: the wire names of its tools.
        reasons: why, what decided first.
    """

    verdict: str
    permitted: bool
    loaded: bool
    tools: tuple[str, ...]
    reasons: tuple[Reason, ...]


def subject_of(world: World, name: str) -> Subject | None:
    """Return what a name means: a tool before a plugin before a toolkit, unless it says which."""
    found = _tool(world, name) or group_of(world, name)
    unseen = split_kind(name)[1]
    if found is None and unseen in world.catalog.plugins and split_kind(name)[0] in (None, "plugin"):
        return whole_group(world, "plugin", unseen)
    return found


def group_of(world: World, name: str) -> Group | None:
    """Return the toolkit, or the plugin whose tools are known, that a name means; None where a tool has it."""
    kind, bare = split_kind(name)
    plugin = world.catalog.plugins.get(bare)
    if kind == "tool" or (kind is None and _tool(world, name) is not None):
        return None
    if kind != "toolkit" and plugin is not None and plugin.tools:
        return whole_group(world, "plugin", bare)
    return whole_group(world, "toolkit", bare) if kind != "plugin" and bare in world.toolkits else None


def whole_group(world: World, kind: Literal["toolkit", "plugin"], name: str) -> Group:
    """Return a toolkit or plugin with all of its tools that are known."""
    if kind == "plugin":
        plugin = world.catalog.plugins[name]
        return Group(kind=kind, name=name, description=plugin.description, tools=tuple(t.id for t in plugin.tools))
    toolkit = world.toolkits[name]
    ids = (tool.id for entry in toolkit.entries(world.catalog) for tool in entry.tools)
    return Group(kind=kind, name=name, description=toolkit.description, tools=tuple(dict.fromkeys(ids)))


def written(world: World, group: Group) -> str:
    """Return the name that means this group and nothing else."""
    others = world.catalog.plugins if group.kind == "toolkit" else world.toolkits
    alone = group.name not in others and world.catalog.find_tool(group.name) is None
    return group.name if alone else f"{group.kind}:{group.name}"


def standing_of(snapshot: Snapshot, group: Group) -> GroupStanding:
    """Return where a toolkit or plugin stands in a session, and why."""
    permissions, catalog = snapshot.permissions, snapshot.permissions.world.catalog
    tools = [tool for tool_id in group.tools if (tool := catalog.by_id(tool_id)) is not None]
    own = [tool for tool in tools if permissions.permits(tool)]
    active = active_tools(permissions, snapshot.state)
    loaded = sum(tool.id in active for tool in own)
    denial = denial_of(permissions, group)
    what = f"{group.kind} '{group.name}'"
    if denial is not None:
        verdict = f"Agent '{permissions.agent.name}' may not load {what}. {denial.text}"
        reasons = [denial]
    else:
        are = f"{loaded} {'is' if loaded == 1 else 'are'} loaded"
        verdict = f"Agent '{permissions.agent.name}' may use {len(own)} of {len(tools)} tools of {what}; {are}."
        reasons = list(permissions.decide(own[0]).reasons) if own else []
    if denial is None and loaded < len(own):
        text = f"{len(own) - loaded} of its tools are not loaded in this session; they may be."
        reasons.append(Reason(code="not_loaded", text=text))
    return GroupStanding(
        verdict=verdict,
        permitted=denial is None,
        loaded=bool(own) and loaded == len(own),
        tools=tuple(tool.wire for tool in tools),
        reasons=tuple(reasons),
    )


def _tool(world: World, name: str) -> Tool | None:
    kind, bare = split_kind(name)
    if kind not in (None, "tool"):
        return None
    tool = world.catalog.find_tool(bare)
    if tool is None:
        near = {f.id: f for n in world.catalog.find_folded(bare) if (f := world.catalog.find_tool(n))}
        tool = next(iter(near.values())) if len(near) == 1 else None
    return tool
