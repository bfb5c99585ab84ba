"""What the editing of a configuration needs of its file, and for which agents an edit changes something (A5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pegboard.board.services import Services
from pegboard.core.access.grants import REGISTERED, GrantChange
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import matches_pattern
from pegboard.operators.configuration import ShownProblem
from pegboard.operators.edit_preview import AgentChange


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """One change of a configuration: what is to stand at a path of keys, or that nothing is to stand there."""

    path: tuple[str, ...]
    value: Any = field(default=None, repr=False)
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenText:
    """A configuration as it is written now; ``secrets`` are the texts in it that are never shown."""

    file: str
    text: str = field(repr=False)
    digest: str
    secrets: frozenset[str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditJudgement:
    """What a text would be as the configuration.

    ``world`` is None where it cannot be used; it is without what waits, and has the catalog as far as it is known.
    ``changes`` are those of what was accepted last, ``waiting`` those among them that the file makes already: they
    wait, or count once it is read. ``added`` are the
    problems that it has more than the file has now.
    """

    problems: tuple[ShownProblem, ...]
    added: tuple[ShownProblem, ...] = ()
    world: World | None = None
    changes: tuple[GrantChange, ...] = ()
    waiting: tuple[GrantChange, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


class EditableConfiguration(Protocol):
    """The file of a configuration, for operators who may edit it."""

    @property
    def path(self) -> str:
        """Return the absolute path of the file."""
        ...

    @property
    def exists(self) -> bool:
        """Return whether there is a file that could be edited."""
        ...

    async def read(self) -> WrittenText:
        """Return what is in the file; raises ``ConfigError`` where there is none that could be edited."""
        ...

    def value(self, text: str, path: Sequence[str]) -> Any:
        """Return what is at a path of keys in a text, as it is written; None where there is nothing."""
        ...

    def servers(self, text: str) -> tuple[str, ...]:
        """Return the keys under which the servers of a text stand."""
        ...

    def edit_text(self, text: str, changes: Sequence[ConfigurationChange]) -> str:
        """Return a text with changes in it; raises ``ConfigError`` where one would change something else."""
        ...

    def lines(self, value: Mapping[str, Any]) -> list[str]:
        """Return the lines of a text which says this alone."""
        ...

    def secrets(self, text: str) -> frozenset[str]:
        """Return what is never shown of a text."""
        ...

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of a configuration."""
        ...

    async def judge_text(self, text: str) -> EditJudgement:
        """Return what a text would be as the configuration; nothing is stored or started."""
        ...

    async def reference_for(self, name: str, value: str) -> str:
        """Return the reference under which a secret would be kept: in the keyring, or sealed in the store.

        Its name is free, or has this value already. Raises ``ConfigError`` where the keyring cannot be asked.
        """
        ...

    async def keep_secret(self, reference: str, value: str) -> None:
        """Keep a secret under a reference; raises ``ConfigError`` or ``StoreError`` where that cannot be."""
        ...

    async def save(self, text: str, *, expected: str, by: str, decision: str, reason: str) -> str:
        """Put a text in the place of the one with a digest, take it up in someone's name, and return its digest.

        Raises:
            ConfigError: it was changed meanwhile, or cannot be written.
        """
        ...


_SHARED: tuple[str, ...] = ("servers", "mcpServers", "plugins")


async def edited_agents(
    services: Services, changes: Sequence[ConfigurationChange], judgement: EditJudgement, effects: Iterable[AgentChange]
) -> frozenset[str] | None:
    """Return the agents that an edit is about; None where it is about what all agents share."""
    await services.compiler.refresh()
    worlds = [services.world, *([judgement.world] if judgement.world is not None else [])]
    found = {effect.agent for effect in effects}
    for change in changes:
        about = _agents_affected(services, change.path, worlds)
        if about is None:
            return None
        found |= about
    if any(_is_shared(change) for change in judgement.changes if change not in judgement.waiting):
        return None
    return frozenset(found)


def _agents_affected(services: Services, path: Sequence[str], worlds: Sequence[World]) -> set[str] | None:
    match path:
        case ("agents", agent, *_):
            return {agent}
        case ("toolkits", name, *_):
            return {agent for world in worlds for agent in _agents_naming(world, name)}
        case ("loadouts", name, *_):
            return {agent for world in worlds for agent in _agents_having(world, name)}
        case (section, plugin, "approve", *_) if section in _SHARED:
            compiler = services.compiler
            return {name for name in services.world.agents if _can_reach(compiler.without_switches(name), plugin)}
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


def _agents_naming(world: World, toolkit: str) -> Iterator[str]:
    """Yield the agents that name a toolkit anywhere."""
    for name, agent in world.agents.items():
        if toolkit in _names_of(agent) or any(matches_pattern(pattern, toolkit) for pattern in agent.discoverable):
            yield name


def _names_of(agent: Agent) -> set[str]:
    members = (member.name for member in (*agent.static, *agent.essential))
    named = (*members, *agent.allowed_toolkits, *agent.initial_toolkits, *agent.discoverable, *agent.switches)
    return {split_kind(name)[1] for name in named}


def _agents_having(world: World, loadout: str) -> Iterator[str]:
    """Yield the agents whose loadout is one, or inherits from it."""
    for name, agent in world.agents.items():
        at, seen = (agent.loadout or "").casefold(), set[str]()
        while at and at not in seen:
            seen.add(at)
            known = world.loadouts.get(at)
            at = (known.parent or "").casefold() if known is not None else ""
        if loadout.casefold() in seen:
            yield name


def _can_reach(permissions: CompiledPermissions, plugin: str) -> bool:
    known = permissions.world.catalog.plugins.get(plugin)
    return known is not None and permissions.may_have_tools_of(known)
