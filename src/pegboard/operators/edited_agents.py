"""For which agents an edit of the configuration changes something: who may make it (A5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pegboard.board.services import Services
from pegboard.core.access.grants import REGISTERED, GrantChange
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import matches
from pegboard.operators.edit_preview import AgentChange
from pegboard.operators.editable import ConfigurationChange, EditJudgement

_SHARED: tuple[str, ...] = ("servers", "mcpServers", "plugins")


async def edited_agents(
    services: Services, changes: Sequence[ConfigurationChange], judgement: EditJudgement, effects: Iterable[AgentChange]
) -> frozenset[str] | None:
    """Return the agents that an edit is about; None where it is about what all agents share."""
    await services.compiler.refresh()
    worlds = [services.world, *([judgement.world] if judgement.world is not None else [])]
    found = {effect.agent for effect in effects}
    for change in changes:
        about = _about(services, change.path, worlds)
        if about is None:
            return None
        found |= about
    if any(_is_shared(change) for change in judgement.changes if change not in judgement.waiting):
        return None
    return frozenset(found)


def _about(services: Services, path: Sequence[str], worlds: Sequence[World]) -> set[str] | None:
    match path:
        case ("agents", agent, *_):
            return {agent}
        case ("toolkits", name, *_):
            return {agent for world in worlds for agent in _naming(world, name)}
        case ("loadouts", name, *_):
            return {agent for world in worlds for agent in _having(world, name)}
        case (section, plugin, "approve", *_) if section in _SHARED:
            compiler = services.compiler
            return {name for name in services.world.agents if _reaches(compiler.without_switches(name), plugin)}
        case _:
            return None


def _is_shared(change: GrantChange) -> bool:
    """Return whether what is granted otherwise is not for some agents alone, or is code that runs."""
    match change.key:
        case ("loadouts", _, "shadows"):  # children have it by its name
            return True
        case ("agents", *_) | ("loadouts", *_) | ("plugins", _, "approve", *_):
            return False
        case ("toolkits", _, *rest):
            return rest == ["hooks"]
        case ("plugins", _):
            return any(one is not None and one.value != REGISTERED for one in (change.before, change.after))
        case _:
            return True


def _naming(world: World, toolkit: str) -> Iterator[str]:
    """Yield the agents that name a toolkit anywhere."""
    for name, agent in world.agents.items():
        if toolkit in _names_of(agent) or any(matches(pattern, toolkit) for pattern in agent.discoverable):
            yield name


def _names_of(agent: Agent) -> set[str]:
    members = (member.name for member in (*agent.static, *agent.essential))
    named = (*members, *agent.allowed_toolkits, *agent.initial_toolkits, *agent.discoverable, *agent.switches)
    return {split_kind(name)[1] for name in named}


def _having(world: World, loadout: str) -> Iterator[str]:
    """Yield the agents whose loadout is one, or inherits from it."""
    for name, agent in world.agents.items():
        at, seen = (agent.loadout or "").casefold(), set[str]()
        while at and at not in seen:
            seen.add(at)
            known = world.loadouts.get(at)
            at = (known.parent or "").casefold() if known is not None else ""
        if loadout.casefold() in seen:
            yield name


def _reaches(permissions: CompiledPermissions, plugin: str) -> bool:
    known = permissions.world.catalog.plugins.get(plugin)
    return known is not None and permissions.may_have_tools_of(known)
