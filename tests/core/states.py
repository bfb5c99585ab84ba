"""Small worlds, and a desk at which a session is played through pure transitions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.model.loadouts import BUILT_IN, Loadout
from pegboard.core.model.selectors import Member, member
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Manifest, Plugin, Tool
from pegboard.core.state.commands import Command, CommandContext, EndTurn, Fallback, Item, Load, Outcome, Unload, Use
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.policy import apply_with_policy
from pegboard.core.surface.surfaces import Surface, resolve

PLAIN = CommandContext()
Written = str | tuple[str, Mapping[str, Any]] | Member


def tool(plugin: str, name: str, **changes: Any) -> Tool:
    given: dict[str, Any] = {"description": f"Does {name}. At once.", **changes}
    return Tool(plugin=plugin, name=name, **given)


def plugin(name: str, *tools: str | Tool, requires: Mapping[str, str] | None = None, **changes: Any) -> Plugin:
    """Return a plugin whose tools are known; ``requires`` maps own names to ids."""
    needs = requires or {}
    held = (
        t if isinstance(t, Tool) else tool(name, t, requires=(needs[t],) if t in needs else ())
        for t in tools
    )  # fmt: skip
    parameters = changes.pop("parameters", {})
    return Plugin(name=name, **changes).with_manifest("", Manifest(tools=tuple(held), parameters=parameters))


def members(written: Iterable[Written]) -> tuple[Member, ...]:
    def one(item: Written) -> Member:
        match item:
            case str():
                return member(item)
            case Member():
                return item
            case (name, overrides):
                return member(name, overrides)

    return tuple(one(item) for item in written)


def toolkit(name: str, *written: Written, description: str = "") -> Toolkit:
    return Toolkit(name=name, description=description, members=members(written))


def access_of(
    *plugins: Plugin,
    toolkits: Iterable[Toolkit] = (),
    static: Iterable[Written] = (),
    essential: Iterable[Written] = (),
    loadouts: Iterable[Loadout] = (),
    circumstances: SessionConstraints | None = None,
    **profile: Any,
) -> CompiledPermissions:
    agent = Agent(name="assistant", static=members(static), essential=members(essential), **profile)
    world = World(
        catalog=Catalog(plugins),
        toolkits={kit.name: kit for kit in toolkits},
        loadouts={**BUILT_IN, **{loadout.name: loadout for loadout in loadouts}},
        agents={agent.name: agent},
    )
    return CompiledPermissions(world, agent, circumstances)


@dataclass
class Desk:
    """Play one session: every method applies one command and keeps the state that it left."""

    permissions: CompiledPermissions
    state: State = DEFAULT
    terms: CommandContext = PLAIN
    said: list[Outcome] = field(default_factory=list)

    def do(self, command: Command) -> Outcome:
        self.state, outcome = apply_with_policy(self.permissions, self.state, command, self.terms)
        self.said.append(outcome)
        return outcome

    def load(self, *names: str, until: LeaseTerm | None = None) -> Outcome:
        return self.do(Load(names=names, until=until))

    def unload(self, *names: str) -> Outcome:
        return self.do(Unload(names=names))

    def fallback(self) -> Item:
        return self.do(Fallback()).items[0]

    def use(self, tool_id: str) -> Outcome:
        return self.do(Use(tool=tool_id))

    def end_turns(self, count: int = 1) -> tuple[str, ...]:
        """End so many turns; return the wire names that went."""
        return tuple(name for _ in range(count) for name in self.do(EndTurn()).removed)

    @property
    def surface(self) -> Surface:
        return resolve(self.permissions, self.state)

    @property
    def out(self) -> list[str]:
        return list(self.surface.names)


def statuses(outcome: Outcome) -> list[str]:
    return [item.status for item in outcome.items]


def words(text: str) -> int:
    """Count words: a token counter whose answers can be checked by eye."""
    return len(text.split())


def flat(price: int) -> Callable[[Iterable[Tool]], int]:
    """Return a price list on which every tool costs the same."""
    return lambda tools: price * sum(1 for _ in tools)
