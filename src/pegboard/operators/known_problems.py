"""What is wrong with what is configured as far as plugins are known; nothing is started, imported, stored or counted.

`pegboard check` asks plugins first and prints it; the console shows what is known when someone looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from shutil import which
from typing import Final

from pegboard.board.meta_tools import command_context
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import snapshot_without_refresh
from pegboard.core.access.approvals.demands import asks_for_destructive
from pegboard.core.access.extensions import not_passed, not_passed_text
from pegboard.core.access.permissions import LOCAL, CompiledPermissions, SessionConstraints
from pegboard.core.access.settings.predicates import is_error
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.delivery import LIBRARY
from pegboard.core.model.model_hosts import most_tools
from pegboard.core.model.naming import agents_named, some_of
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.core.model.tools import Plugin, Tool, excluded_text
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.name_conflicts import NameConflict, name_conflicts
from pegboard.core.state.requirements import unresolved_requirements
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.state.shrinking import excess, fit_to_budget, largest_fitting_loadout, size_of
from pegboard.dialects.host_tools import host_tool_definitions
from pegboard.operators.configuration import ConfigurationState, without_lines
from pegboard.operators.counting import SOON, count_ahead
from pegboard.ports import SessionKey
from pegboard.problems import Place, Problem
from pegboard.support.background import BackgroundComputations

ACCEPT: Final = "Look at what it does, then run `pegboard check --accept`."
_MOST_CUT: Final = 5
"""Fields of tools that one problem names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """What the start of an agent takes of its budget; ``place`` is where the agent is written."""

    agent: str
    share: float
    text: str
    place: str


class KnownProblems:
    """What `pegboard check --probe` would report beside the file, of what is known by now.

    It is computed beside everything else, and kept until the world, a switch or what a predicate said has changed.
    ``found`` is called when something is known that someone had to go without.
    """

    def __init__(self, services: Services, found: Callable[[], object] = lambda: None) -> None:
        self._services = services
        self._found = found
        self._looking = BackgroundComputations[Hashable, None](
            "look for problems", "what is wrong with plugins is not known"
        )
        self._key: Hashable = None
        self._kept: tuple[object, ...] = ()
        self._known: tuple[Problem, ...] = ()
        self.budgets: tuple[BudgetUse, ...] = ()
        """What the starts of agents take of their budgets, as of the last look."""

    async def now(self) -> tuple[Problem, ...]:
        """Return what is wrong now; what was last, where it takes longer than a moment to tell."""
        services = self._services
        await services.compiler.refresh()
        agents = tuple(map(services.compiler.permissions_of_agent, services.world.agents))
        asked = (name for name, spec in services.loader.specs.items() if spec.when)
        said = tuple(map(services.availability.newest_faults, asked))
        kept = services.world, *agents
        key = *map(id, kept), said
        if key != self._key:
            self._looking.supersede(key)
            with suppress(Exception):  # it is logged, and whoever asks next tries again
                await self._looking.value_within(SOON, key, partial(self._look_for_problems, key, kept))
        return self._known

    async def added_to(self, read: ConfigurationState) -> ConfigurationState:
        """Return a reading of the configuration with what is wrong with plugins; raises ``StoreError``."""
        return replace(read, of_plugins=without_lines(await self.now(), self._services.masker))

    async def _look_for_problems(self, key: Hashable, kept: tuple[object, ...]) -> None:
        problems = [one async for one in _all_problems(self._services)]
        budgets = [_use_of_budget(self._services, agent) for agent in self._services.world.agents.values()]
        self._key, self._kept, self._known = key, kept, tuple(problems)
        self.budgets = tuple(one for one in budgets if one is not None)
        self._found()

    async def aclose(self) -> None:
        """End what is being looked for; no one is told."""
        await self._looking.aclose()


async def _all_problems(services: Services) -> AsyncIterator[Problem]:
    """Yield everything that is wrong; others run meanwhile."""
    plugins = services.world.catalog.plugins
    untried = {name: spec for name, spec in services.loader.specs.items() if not plugins[name].faults()}
    parts = (
        shared_names(services),
        faults(services),
        not_tools(services),
        absent_commands(services.world, untried),
        condition_errors(services),
        requirements(services),
        waiting_tools(services),
        claims(services),
        harmless_claims(services),
    )
    for part in parts:
        for problem in part:
            yield problem
        await asyncio.sleep(0)
    for agent in services.world.agents.values():
        if agent.budget.tokens is not None:
            permissions = services.compiler.permissions_of_agent(agent.name)
            await count_ahead(services, (one.tool for one in active_tools(permissions, DEFAULT).values()))
        for problem in (*over_budget(services, agent), *many_tools(services, agent)):
            yield problem
        await asyncio.sleep(0)


def faults(
    services: Services, asked: Collection[str] | None = None, misfits: AbstractSet[tuple[str, str]] = frozenset()
) -> Iterator[Problem]:
    """Yield what cannot run now (P6): a warning, since everything else works.

    Args:
        asked: only of these plugins; None is all.
    """
    for plugin in services.world.catalog.plugins.values():
        spec = services.loader.specs.get(plugin.name)
        if spec is None or (asked is not None and plugin.name not in asked) or getattr(spec, "unavailable", ""):
            continue  # the file says so itself
        for reason in plugin.faults(without={key for name, key in misfits if name == plugin.name}):
            place = plugin.place or _named_at(services, plugin.name)
            whole = plugin.place is not None or reason.startswith("plugin ")
            message = reason if whole else f"plugin '{plugin.name}': {reason}"
            code = "needs_login" if plugin.needs_login else "unavailable"
            yield Problem(severity="warning", code=code, message=message, place=place)


def not_tools(services: Services, asked: Collection[str] | None = None) -> Iterator[Problem]:
    """Yield what is public in the code of a plugin and is no tool: a warning, since its other tools work.

    Args:
        asked: only of these plugins; None is all.
    """
    for plugin in services.world.catalog.plugins.values():
        if asked is None or plugin.name in asked:
            for name, reason in plugin.not_tools.items():
                message = f"plugin '{plugin.name}': '{name}' is public and is no tool: {reason}"
                place = plugin.place or _named_at(services, plugin.name)
                yield Problem(severity="warning", code="no_tool", message=message, place=place)


def _named_at(services: Services, plugin: str) -> Place | None:
    """Return where a list of tools first names a plugin."""
    world = services.world
    groups = [group for agent in world.agents.values() for group in (agent.essential, agent.static)]
    members = (item for group in (*groups, *(kit.members for kit in world.toolkits.values())) for item in group)
    named = next((item.place for item in members if split_kind(item.name)[1].partition("/")[0] == plugin), None)
    return named or next(_brought_at(services, plugin), None)


def _brought_at(services: Services, plugin: str) -> Iterator[Place | None]:
    """Yield where agents are written whose loadouts bring a plugin."""
    category = services.world.catalog.plugins[plugin].category
    for name, agent in services.world.agents.items():
        loadout = services.compiler.permissions_of_agent(name).loadout
        if loadout is not None and loadout.includes(plugin, category) is not None:
            yield agent.place


def absent_commands(world: World, specs: Mapping[str, PluginSpec]) -> Iterator[Problem]:
    """Yield servers that agents have from the start, or tools of theirs, and whose command is not there (P6)."""
    for name, spec in specs.items():
        if not isinstance(spec, ServerSpec) or spec.unavailable or spec.command is None:
            continue
        place = _named_from_start(world, {name, spec.prefix or name})
        beside = spec.cwd is not None and Path(spec.cwd, spec.command).is_file()
        if place is not None and not beside and which(spec.command, path=spec.env.get("PATH")) is None:
            message = f"server '{name}' cannot be started: there is no command '{spec.command}'."
            yield Problem(severity="warning", code="unavailable", message=message, place=spec.place or place)


def _named_from_start(world: World, names: AbstractSet[str]) -> Place | None:
    """Return where an agent first lists a plugin of these names, or a tool of it, among what it has from the start."""
    for agent in world.agents.values():
        for item in _from_start(world, agent):
            bare = split_kind(item.name)[1]
            if not names.isdisjoint((bare, bare.partition("/")[0], bare.partition("__")[0])):
                return item.place
    return None


def condition_errors(services: Services) -> Iterator[Problem]:
    """Yield the predicates that raised, or could not be imported, when they were last asked (T12)."""
    for name, spec in services.loader.specs.items():
        if spec.when:
            raised = (one for one in services.availability.newest_faults(name) if is_error(one.fault))
            for condition, fault in dict.fromkeys((one.condition, one.fault) for one in raised):
                yield Problem(
                    severity="warning",
                    code="unavailable",
                    message=f"plugin '{name}': {fault}",
                    hint=f"Correct `when: {condition}`, or provide the function.",
                    place=spec.place,
                )


def shared_names(services: Services, asked: Collection[str] | None = None) -> Iterator[Problem]:
    """Yield plugins of one agent whose tools have one name on the wire (G10), of those in ``asked``; None is all.

    It is an error where the file alone decides it, and a warning where a server has chosen the name, or where only some
    agents cannot load a toolkit. However many names two plugins share, it is one problem.
    """
    world, found = services.world, dict[Hashable, dict[str, NameConflict]]()
    agents_of = dict[Hashable, dict[str, None]]()
    for agent in world.agents:
        for one in name_conflicts(services.compiler.permissions_of_agent(agent)):
            if asked is None or {one.first.plugin, one.second.plugin} <= {*asked}:
                key = one.first.plugin, one.second.plugin, one.toolkit, one.within
                found.setdefault(key, {}).setdefault(one.second.wire, one)
                agents_of.setdefault(key, {})[agent] = None
    for key, (one, *others) in ((key, tuple(names.values())) for key, names in found.items()):
        plugins = [world.catalog.plugins[tool.plugin] for tool in (one.first, one.second)]
        decided = not any(plugin.kind == "server" for plugin in plugins)
        agents = tuple(agents_of[key])
        who = agents_named(agents)[0]
        also = f" They share {some_of([other.second.wire for other in others])} too." if others else ""
        yield Problem(
            severity="error" if decided and (one.within or not one.toolkit) else "warning",
            code="name_clash",
            message=f"{who[:1].upper()}{who[1:]}: {one.text}{also}",
            hint=one.fix,
            place=world.toolkits[one.toolkit].place
            if one.toolkit
            else plugins[1].place or _named_by(world, world.agents[agents[0]], plugins[1].name),
        )


def _named_by(world: World, agent: Agent, plugin: str) -> Place | None:
    """Return where an agent names a plugin among what it has from the start; else where the agent is written."""
    named = (item.place for item in _from_start(world, agent) if split_kind(item.name)[1].partition("/")[0] == plugin)
    return next(named, agent.place)


def _from_start(world: World, agent: Agent) -> Iterator[Member]:
    """Yield what is written of an agent that it has from the start."""
    kits = (world.toolkits[kit].members for kit in agent.initial_toolkits if kit in world.toolkits)
    yield from chain(agent.essential, agent.static, *kits)


def waiting_tools(services: Services) -> Iterator[Problem]:
    """Yield the servers of which tools wait for a person, since they changed or are new (A4)."""
    for plugin in services.world.catalog.plugins.values():
        if plugin.unreviewed.count:
            yield Problem(
                severity="warning",
                code="pin_waits",
                message=f"server '{plugin.name}': {plugin.unreviewed.text}",
                hint=f"`pegboard pins show` has the differences; `pegboard pins accept {plugin.name}` lets them count.",
                place=plugin.place,
            )


def excluded_tools(services: Services) -> Iterator[Problem]:
    """Yield the plugins of which tools cannot be used, or of which something had to be left out (G8, P6)."""
    for plugin in services.world.catalog.plugins.values():
        cut = [f"{what} ({reason})" for what, reason in islice(plugin.cut.items(), _MOST_CUT)]
        more = f" and {len(plugin.cut) - _MOST_CUT:,} more" if len(plugin.cut) > _MOST_CUT else ""
        server = plugin.kind == "server"
        for text in (
            excluded_text(plugin.excluded) if plugin.excluded else "",
            f"these are left out of its tools: {', '.join(cut)}{more}" if cut else "",
        ):
            if text:
                yield Problem(
                    severity="warning",
                    code="tool_excluded",
                    message=f"{'server' if server else 'plugin'} '{plugin.name}': {text}",
                    hint="Its author can correct the list." if server else "",
                    place=plugin.place or _named_at(services, plugin.name),
                )


def undeclared_capabilities(services: Services) -> Iterator[Problem]:
    """Yield the servers that declare what no client is told of (G7)."""
    for plugin in services.world.catalog.plugins.values():
        if names := not_passed(plugin.declares):
            yield Problem(
                severity="warning",
                code="not_passed",
                message=f"server '{plugin.name}': {not_passed_text(names)}",
                hint="Ignore this if no client needs it.",
                place=plugin.place,
            )


def claims(services: Services) -> Iterator[Problem]:
    """Yield what a trusted server claims of its tools only since it was first seen (G6)."""
    for plugin in services.world.catalog.plugins.values():
        for tool in services.pins.pending(plugin):
            yield Problem(
                severity="warning",
                code="read_only_later",
                message=f"'{tool.wire}' now claims to be read-only, which server '{plugin.name}' did not claim"
                " when it was first seen; it is not treated as read-only.",
                hint=ACCEPT,
                place=plugin.place,
            )


def harmless_claims(services: Services) -> Iterator[Problem]:
    """Yield what a trusted server claims only since it was first seen, where a rule would let it run unasked (A4)."""
    for plugin in services.world.catalog.plugins.values():
        for tool in later_harmless(services, plugin):
            yield Problem(
                severity="warning",
                code="harmless_later",
                message=f"Server '{plugin.name}' now marks '{tool.wire}' as non-destructive; it did not when first"
                " seen. It needs approval before it runs.",
                hint=ACCEPT,
                place=plugin.place,
            )


def later_harmless(services: Services, plugin: Plugin) -> Iterator[Tool]:
    """Yield the tools that claim only later to destroy nothing, and for which a rule asks therefore (A4)."""
    for tool in services.pins.pending_harmless(plugin):
        if asks_for_destructive(services.loader.specs[plugin.name], tool) and not tool.read_only:
            yield tool


def requirements(services: Services) -> Iterator[Problem]:
    """Yield what tools require and nothing can meet (T8), but for what the file itself names wrongly."""
    for tool, name, why in unresolved_requirements(services.world):
        spec = services.loader.specs.get(tool.plugin)
        written = spec.requires.get(tool.name, ()) if spec is not None else ()
        several = why.startswith("it may be")
        if name not in written or several:
            yield Problem(
                severity="error",
                code="unknown_tool",
                message=f"'{tool.wire}' requires '{name}', and {why}.",
                hint="Write plugin/tool." if several else "Correct the name; until then the tool cannot be loaded.",
                place=services.world.catalog.plugins[tool.plugin].place,
            )


def over_budget(services: Services, agent: Agent) -> Iterator[Problem]:
    """Yield a warning for an agent whose start takes more than its budget (S9), of what is known of it."""
    if not agent.budget:
        return
    permissions, info = _start(services, agent)
    over, smaller = _excess_of_start(permissions, services, info)
    if over:
        hint = "Raise it, or have less loaded from the start."
        if smaller is not None:
            hint += f" It would fit with loadout '{smaller}': write `shrink: true` in the budget to let it step in."
        message = f"what is loaded from the start exceeds the budget: {over}."
        yield Problem(severity="warning", code="over_budget", message=message, hint=hint, place=agent.place)


def many_tools(services: Services, agent: Agent) -> Iterator[Problem]:
    """Yield a warning for an agent that has more tools from the start than a request to its model has (D4)."""
    most = most_tools(agent.provider_model)
    permissions = services.compiler.permissions_of_agent(agent.name)
    start = [one.tool for one in active_tools(permissions, DEFAULT).values()]
    wires = [tool.wire for tool in (*start, *host_tool_definitions(permissions))]
    if most is None or len(wires) <= most:
        return
    models = "its model" if agent.provider_model else "a model of OpenAI"
    yield Problem(
        severity="warning",
        code="many_tools",
        message=f"{len(wires):,} tools are loaded from the start, and a request to {models} has at most {most}. "
        f"The others, about from '{wires[most]}' on, are not listed there: the model has to load them.",
        hint="Put tools into toolkits, which the model loads when it needs them.",
        place=agent.place,
    )


def _use_of_budget(services: Services, agent: Agent) -> BudgetUse | None:
    """Return what an agent's start takes of its budget, or None where it has none (S9)."""
    budget = agent.budget
    if not budget:
        return None
    permissions, info = _start(services, agent)
    terms = command_context(services, info, permissions)
    size = size_of(permissions, active_tools(permissions, fit_to_budget(permissions, DEFAULT, terms)), terms)
    parts = [("tools", size.tools, budget.tools), ("tokens", size.tokens, budget.tokens)]
    shares = [
        (taken / most if most else 1.0 + taken, f"{taken:,} {what} of {most:,}")
        for what, taken, most in parts
        if most is not None
    ]
    share, text = max(shares)
    return BudgetUse(agent=agent.name, share=share, text=text, place=str(agent.place or ""))


def _start(services: Services, agent: Agent) -> tuple[CompiledPermissions, SessionInfo]:
    """Return the permissions of a session of an agent that begins, and what is known of it."""
    key = SessionKey(principal=LOCAL, agent=agent.name, session="")
    info = SessionInfo(key=key, stable=True, host=LIBRARY, constraints=SessionConstraints())
    return snapshot_without_refresh(services, info, DEFAULT).permissions, info


def _excess_of_start(permissions: CompiledPermissions, services: Services, info: SessionInfo) -> tuple[str, str | None]:
    """Return by how much the start exceeds the budget, or nothing, and the loadout with which it would fit."""
    terms = command_context(services, info, permissions)
    over = excess(permissions, fit_to_budget(permissions, DEFAULT, terms), terms)
    return over, largest_fitting_loadout(permissions, DEFAULT, terms) if over else None
