"""What a switch would change before it is set: for its agent, and for every session of it (P2, P4)."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from pegboard.board.catalog.permission_compiler import PermissionCompiler
from pegboard.board.meta_tools import command_context, runnable_host_tools
from pegboard.board.permissions import grants_more, require_switch
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo, sessions_above
from pegboard.board.snapshot import narrowed_above_of, settle_state
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints, host_tools
from pegboard.core.access.switches import is_paused
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import Lease, LeaseReason
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import available_tools, tools_loaded_at_start
from pegboard.core.state.requirements import unknown_plugins
from pegboard.core.state.sessions import State
from pegboard.dialects.host_tools import host_tool_definitions
from pegboard.errors import UnknownAgentError
from pegboard.operators.counting import AT_ONCE, count_ahead
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.snapshots import KnownSession, known_by_key, known_sessions
from pegboard.ports import SessionKey, SwitchKind

MOST_PARSED: Final = 10_000
"""Of how many sessions what is loaded is kept as it was read."""

_PLAIN: Final = SessionConstraints()

Above = tuple[str | None, ...]
"""The active loadouts of the sessions above one, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChange:
    """What a switch would change in one session.

    ``gained`` and ``lost`` are the wire names of tools that would be loaded then, or not any longer, without
    meta-tools; the tokens are those of what is loaded.
    """

    principal: Name
    agent: Name
    session: Name
    gained: tuple[Name, ...]
    lost: tuple[Name, ...]
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPreview:
    """What a switch would change.

    Attributes:
        agent: the agent's name.
        name: the switch.
        value: what it would be set to, None to take the stored one back.
        stored: the stored boolean as of now, None where none is stored: what ``permissions.set`` expects.
        gained: the wire names of what the agent could use then and cannot now.
        lost: the wire names of what it can use now and could not then.
        gained_tokens: those of what is gained.
        lost_tokens: those of what is lost.
        gained_unknown: plugins that would be granted and whose tools are not known yet; they count in no figure.
        lost_unknown: those that would no longer be granted.
        grants: whether it grants what the file does not, which takes the right `configure`.
        sessions: what changes, by session, the newest first.
        unchanged: how many other sessions of the agent there are.
        unreadable: how many there are whose stored state is damaged.
    """

    agent: Name
    name: Name
    value: bool | None
    stored: bool | None
    gained: tuple[Name, ...]
    lost: tuple[Name, ...]
    gained_tokens: int
    lost_tokens: int
    gained_unknown: tuple[Name, ...]
    lost_unknown: tuple[Name, ...]
    sessions: tuple[SessionChange, ...]
    unchanged: int
    unreadable: int = 0
    grants: bool = False


class SwitchPreviews:
    """What switches would change, before they are set; what is read of sessions is kept for the next preview."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._parsed = ParsedLeases()

    async def of_switch(self, agent: str, name: str, value: bool | None) -> SwitchPreview:
        """Return what a switch would change; nothing is stored, asked for or started."""
        require_switch(self._services, agent, name, value)
        return await self.of_change(agent, name, value)

    async def of_change(self, agent: str, name: str, value: bool | None, kind: SwitchKind = "switch") -> SwitchPreview:
        """Return what a change of a switch or pause would come to; the arguments are those of ``SwitchChange``."""
        services, compiler = self._services, self._services.compiler
        sessions = await sessions_of(services, agent)
        await compiler.refresh()
        before = compiler.permissions_of_agent(agent)
        _ = before.permitted  # what is decided before is carried over into what is supposed
        if kind == "switch":
            supposed, stored = compiler.supposing_switch(agent, name, value), compiler.stored(agent).get(name)
        else:
            supposed = compiler.supposing_pause(agent, name or None, on=value is False)
            stored = False if is_paused(compiler.pauses(agent), name or None) else None
        after = supposed.permissions_of_agent(agent)
        gained, lost = only_in(after, before), only_in(before, after)
        comparison = Comparison(services, supposed, SwitchReach(before, after), self._parsed)
        await comparison.add(sessions)
        await count_ahead(services, (*gained, *lost, *comparison.tools()))
        unknown, unknown_then = frozenset(unknown_plugins(before)), frozenset(unknown_plugins(after))
        found = SwitchPreview(
            agent=agent,
            name=name,
            value=value,
            stored=stored,
            gained=wire_names(gained),
            lost=wire_names(lost),
            gained_tokens=services.prices(gained),
            lost_tokens=services.prices(lost),
            gained_unknown=tuple(sorted(unknown_then - unknown)),
            lost_unknown=tuple(sorted(unknown - unknown_then)),
            sessions=comparison.changes(),
            unchanged=comparison.unchanged,
            unreadable=comparison.unreadable,
            grants=kind == "switch" and await grants_more(services, agent, name, value),
        )
        return mask_value(found, await shown_names(services))


def only_in(these: CompiledPermissions, others: CompiledPermissions) -> tuple[Tool, ...]:
    """Return what is permitted here and not there."""
    found: list[Tool] = []
    for plugin in these.world.catalog.plugins.values():
        mine, theirs = these.plugin_permissions.tools_of(plugin), others.plugin_permissions.tools_of(plugin)
        if mine is not theirs:
            there = {tool.id for tool in theirs}
            found += (tool for tool in mine if tool.id not in there)
    host_tools_there = {tool.id for tool in host_tool_definitions(others)}
    return (*found, *(tool for tool in host_tool_definitions(these) if tool.id not in host_tools_there))


def wire_names(tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the wire names of tools in order."""
    return tuple(sorted(tool.wire for tool in tools))


async def sessions_of(services: Services, agent: str) -> list[tuple[KnownSession, Above]]:
    """Return the sessions of an agent, and those of others that are children of one in this process (P8).

    With each come the active loadouts of the sessions above it.
    """
    found = list(await known_sessions(services, agent=agent))
    for info, _ in services.live:
        if info.key.agent != agent and any(above.key.agent == agent for above in sessions_above(info)):
            child = await known_by_key(services, info.key)
            found += [child] if child is not None else []
    return [
        (known, await narrowed_above_of(services, known.info) if known.info.parent is not None else ())
        for known in found
    ]


class ParsedLeases:
    """The turns, leases and loadouts of a board's sessions as they were read last: reading a thousand takes long."""

    def __init__(self) -> None:
        self._known: OrderedDict[SessionKey, tuple[int, State]] = OrderedDict()

    def state_of(self, session: KnownSession) -> State:
        """Return what is loaded in a session, without anything else; raises ``ValueError`` where that is damaged."""
        if session.text is None:
            return session.info.start
        known = self._known.get(session.key)
        if known is None or known[0] != session.version:
            state = session.state()
            state = State(turn=state.turn, leases=state.leases, loadout=state.loadout)
            known = self._known[session.key] = session.version, state
            if len(self._known) > MOST_PARSED:
                self._known.popitem(last=False)
        return known[1]


class AffectedSessions(Protocol):
    """What knows in which sessions something may change."""

    def touches(self, state: State) -> bool:
        """Return whether a session in this state may have other tools loaded afterwards."""
        ...


class SwitchReach:
    """What differs between the permissions of one agent before and after a switch, plugin by plugin.

    It says "touched" where it is in doubt: what it rules out is certain, and spares most sessions a comparison.
    """

    def __init__(self, before: CompiledPermissions, after: CompiledPermissions) -> None:
        self._before = before
        self._after = after
        self._subjects: dict[Ref, bool] = {}
        self._starts: dict[str | None, bool] = {}

    def touches(self, state: State) -> bool:
        """Return whether a session in this state may have other tools loaded afterwards."""
        if self._before.budgeted or self._other_duties or self._other_start(state.loadout):
            return True
        return any(self._touches_subject(lease.subject) for lease in state.leases)

    @cached_property
    def _other_duties(self) -> bool:
        return host_tools(self._before) != host_tools(self._after)

    @cached_property
    def _plugins(self) -> frozenset[str]:
        """Return the plugins of which other tools are permitted, or which other entries name."""
        before, after = self._before, self._after
        was, then = before.entries.by_plugin, after.entries.by_plugin
        return frozenset(
            plugin.name
            for plugin in before.world.catalog.plugins.values()
            if before.plugin_permissions.tools_of(plugin) is not after.plugin_permissions.tools_of(plugin)
            or was.get(plugin.name) != then.get(plugin.name)
            or (not plugin.tools and before.grants_unseen(plugin) is not after.grants_unseen(plugin))
        )

    def _other_start(self, loadout: str | None) -> bool:
        """Return whether something else is loaded from the start under an active loadout."""
        known = self._starts.get(loadout)
        if known is None:
            state = State(loadout=loadout)
            before, after = tools_loaded_at_start(self._before, state), tools_loaded_at_start(self._after, state)
            known = self._starts[loadout] = before != after
        return known

    def _touches_subject(self, subject: Ref) -> bool:
        known = self._subjects.get(subject)
        if known is None:
            known = self._subjects[subject] = self._reaches_subject(subject)
        return known

    def _reaches_subject(self, subject: Ref) -> bool:
        catalog = self._before.world.catalog
        match subject.kind:
            case "tool":
                tool = catalog.by_id(subject.name)
                return tool is None or tool.plugin in self._plugins or bool(tool.requires)
            case "plugin":
                plugin = catalog.plugins.get(subject.name)
                return plugin is None or plugin.name in self._plugins or any(tool.requires for tool in plugin.tools)
            case "toolkit":
                was, then = _toolkit_entries(self._before, subject.name), _toolkit_entries(self._after, subject.name)
                if was != then or self._before.out_of_scope(was) != self._after.out_of_scope(then):
                    return True
                return any(one.plugin in self._plugins or any(tool.requires for tool in one.tools) for one in was)
            case "category":
                return True


def _toolkit_entries(permissions: CompiledPermissions, name: str) -> tuple[Entry, ...]:
    return permissions.entries.toolkits.get(name, ()) if permissions.may_load_toolkit(name) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolDifference:
    """What is loaded before and after, by wire name."""

    before: Mapping[str, Tool]
    after: Mapping[str, Tool]
    gained: tuple[str, ...]
    lost: tuple[str, ...]


class Comparison:
    """The sessions before and after; those with equal permissions and equal leases share one comparison."""

    def __init__(
        self, services: Services, supposed: PermissionCompiler, reach: AffectedSessions, parsed: ParsedLeases
    ) -> None:
        self.unchanged = 0
        self.unreadable = 0
        self._reach = reach
        self._parsed = parsed
        self._services = services
        self._supposed = supposed
        self._known: dict[Hashable, _ToolDifference | None] = {}
        self._changed: list[tuple[SessionKey, _ToolDifference]] = []

    async def add(self, sessions: Iterable[tuple[KnownSession, Above]]) -> None:
        """Compare sessions; others run meanwhile."""
        until = time.perf_counter() + AT_ONCE
        for known, above in sessions:
            self._add(known, above)
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + AT_ONCE

    def _add(self, known: KnownSession, above: Above) -> None:
        try:
            state = self._parsed.state_of(known)
        except ValueError:
            self.unreadable += 1
            return
        with suppress(UnknownAgentError):  # a child of an agent that is no longer configured
            found = self._compare_session(known.info, state, above)
            if found is None:
                self.unchanged += 1
            else:
                self._changed.append((known.key, found))

    def _compare_session(self, info: SessionInfo, state: State, above: Above) -> _ToolDifference | None:
        services = self._services
        if info.parent is None and info.constraints == _PLAIN and not self._reach.touches(state):
            return None
        before = _access(services, services.compiler, info, above)
        after = _access(services, self._supposed, info, above)
        key = before, after, id(command_context(services, info, before)), _shape_of_state(state)
        if key not in self._known:
            self._known[key] = _difference(
                _loaded_tools(services, info, before, state), _loaded_tools(services, info, after, state)
            )
        return self._known[key]

    def tools(self) -> Iterator[Tool]:
        """Yield the tools of what changes, for their tokens."""
        for found in self._known.values():
            if found is not None:
                yield from (*found.before.values(), *found.after.values())

    def changes(self) -> tuple[SessionChange, ...]:
        """Return what changes, with its tokens."""
        tokens: dict[int, tuple[int, int]] = {}
        for found in self._known.values():
            if found is not None:
                price = self._services.prices
                tokens[id(found)] = price(found.before.values()), price(found.after.values())
        return tuple(
            SessionChange(
                principal=key.principal,
                agent=key.agent,
                session=key.session,
                gained=found.gained,
                lost=found.lost,
                tokens_before=tokens[id(found)][0],
                tokens_after=tokens[id(found)][1],
            )
            for key, found in self._changed
        )


def _access(services: Services, compiler: PermissionCompiler, info: SessionInfo, above: Above) -> CompiledPermissions:
    permissions = compiler.permissions(info, above)
    return services.availability.with_known_faults(info, permissions) if services.loader.conditional else permissions


def _loaded_tools(
    services: Services, info: SessionInfo, permissions: CompiledPermissions, state: State
) -> Mapping[str, Tool]:
    tools = available_tools(permissions, settle_state(services, info, permissions, state))
    return {tool.wire: tool for tool in (*runnable_host_tools(services, permissions), *tools)}


def _difference(before: Mapping[str, Tool], after: Mapping[str, Tool]) -> _ToolDifference | None:
    gained, lost = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    return (
        _ToolDifference(before=before, after=after, gained=tuple(gained), lost=tuple(lost)) if gained or lost else None
    )


def _shape_of_state(state: State) -> Hashable:
    """Return all of a state that determines which tools are loaded."""
    leases = (
        (one.subject, one.excluded, one.until, one.because, one.pending(state.turn), _age_of_lease(one))
        for one in state.leases
    )
    return state.loadout, tuple(leases)


def _age_of_lease(lease: Lease) -> int:
    """Return by what a budget chooses among what was loaded ahead of being asked for (S9)."""
    return lease.used_turn if lease.because is LeaseReason.ANTICIPATED else 0
