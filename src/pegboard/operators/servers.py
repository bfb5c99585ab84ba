"""Servers and other plugins for operators: what they do, since when, what they printed; restarting and asking them."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

from pegboard.board.catalog.apply_settings import misnamed_tools
from pegboard.board.catalog.availability import ConditionFault
from pegboard.board.catalog.loader import SERVER_WAIT, PluginRequest
from pegboard.board.discover import ASKED, discover_every
from pegboard.board.services import Services
from pegboard.core.access.permissions import LOCAL, CompiledPermissions
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import did_you_mean, label_problem, one_line
from pegboard.core.model.specs import PluginSpec, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.tools import Frozen, Manifest, Plugin
from pegboard.core.state.name_conflicts import name_conflicts
from pegboard.errors import ToolUnavailableError, UsageError
from pegboard.operators.counting import AT_ONCE, CatalogCounting, count_ahead
from pegboard.operators.known_problems import later_harmless
from pegboard.operators.login_standing import LoginNeeded, LoginStanding, login_standing, standings
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.ports import (
    ConfiningSource,
    ConnectionState,
    Excluded,
    PrintedLine,
    RefusedAccess,
    Restartable,
    ServerActivity,
    SessionKey,
    Source,
)

ServerPhase = Literal["unavailable", "needs_login", "not_started", "idle", "starting", "up", "down", "backing_off"]
"""What a plugin does: ``needs_login`` wants a login that no one has, ``not_started`` was not needed yet, ``idle`` is
stopped until it is needed again."""

_GRAVEST: Final = ("backing_off", "down", "starting", "up", "idle")
"""The states of connections: of several the first counts for their server."""
_NO_LOGIN: Final = LoginStanding()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A plugin with what is behind it; times are in seconds since the epoch, nothing in it is secret.

    Attributes:
        name: its name in the configuration.
        kind: where it comes from: ``server``, ``python``, or the loader of a registered plugin, such as ``agno``.
        transport: ``stdio``, ``http`` or ``sse``; nothing for what runs in this process.
        target: the command, the address or the module.
        place: where the configuration names it, as ``file:line:column``.
        state: the gravest of its connections.
        since: when that state began, where it is known.
        started_at: since when that connection is up.
        era: the version of the protocol that it speaks.
        pid: its process.
        in_flight: the requests under way over all connections.
        restarts: how often a connection came up again.
        failures: how often one did not come up, or ended by itself.
        last_error: why one of them last failed, also where it is up again.
        failed_at: when that was.
        unavailable: why it, or a tool of it, cannot run, as ``pegboard check`` reports it.
        conditions: what its predicates said newly of whom it cannot run for.
        warnings: what is not as someone meant it: names that two tools want, rules that count for nothing, claims that
            do not count.
        connections: each connection with its scope.
        known: whether its tools have been seen.
        tools: how many it has.
        tokens: what all of them cost; None while that is being counted.
        dropped: tools that are not listed.
        excluded: other items and lists that are not listed.
        refused: what its processes, being confined, say they were refused, with the line that would allow it.
        agents: how many agents may use some of it.
        login: whether it requires a login: ``needed``, that no one has; ``held`` by someone; the gateway's ``own``.
        logins: who has one that counts, the newest first.
        restartable: whether :func:`restart_plugin` can do something for it.
    """

    name: Name
    kind: Verbatim
    transport: Verbatim
    target: str
    place: Verbatim
    state: ServerPhase
    since: float | None
    started_at: float | None
    era: str
    pid: int | None
    in_flight: int
    restarts: int
    failures: int
    last_error: str
    failed_at: float | None
    unavailable: tuple[str, ...]
    conditions: tuple[ConditionFault, ...]
    warnings: tuple[str, ...]
    connections: tuple[ConnectionState, ...]
    known: bool
    tools: int
    tokens: int | None
    dropped: tuple[Excluded, ...]
    excluded: tuple[Excluded, ...]
    refused: tuple[RefusedAccess, ...]
    agents: int
    login: LoginNeeded
    logins: tuple[Name, ...]
    restartable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool of a plugin, without secrets: its own name, its one name for models, what it is for and what it costs."""

    name: Name
    wire: Name
    description: str
    tokens: int


async def server_states(services: Services, counting: CatalogCounting) -> tuple[ServerState, ...]:
    """Return the state of every plugin of the configuration, in its order; others run meanwhile."""
    await services.compiler.refresh()
    counted, until = await counting.done(), time.perf_counter() + AT_ONCE
    agents, found = _agents(services), list[ServerState]()
    names, logins = await shown_names(services), await standings(services)
    for plugin, spec in _configured_plugins(services):
        login = logins.get(plugin.name, _NO_LOGIN)
        found.append(mask_value(_state(services, plugin, spec, agents, login, counted=counted), names))
        if time.perf_counter() > until:
            await asyncio.sleep(0)
            until = time.perf_counter() + AT_ONCE
    return tuple(found)


async def server_state(services: Services, name: str) -> ServerState:
    """Return the state of one plugin; raises ``UsageError`` where there is none."""
    await services.compiler.refresh()
    plugin, spec = named_plugin(services, name)
    await count_ahead(services, plugin.tools)
    login = await login_standing(services, spec)
    state = _state(services, plugin, spec, _agents(services), login, counted=True)
    return mask_value(state, await shown_names(services))


def _agents(services: Services) -> list[CompiledPermissions]:
    return [services.compiler.permissions_of_agent(agent) for agent in services.world.agents]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRunning:
    """A server that does not run although it should, with why; nothing in it is masked yet."""

    name: str
    state: Literal["unavailable", "down", "backing_off"]
    since: float | None
    error: str
    place: str
    restartable: bool


def not_running(services: Services) -> Iterator[NotRunning]:
    """Yield the servers that do not run although they should, in the order of the configuration."""
    for plugin, spec in _configured_plugins(services):
        source = services.loader.source_of(spec)
        connections = source.connections(spec) if isinstance(source, Restartable) else ()
        failed = [one for one in connections if one.state in ("down", "backing_off")]
        first = min(failed, key=lambda one: _GRAVEST.index(one.state), default=None)
        if first is None and not (plugin.kind == "server" and plugin.unavailable):
            continue
        if plugin.needs_login:
            continue  # a person logs in; there is nothing to start again
        yield NotRunning(
            name=plugin.name,
            state="unavailable" if first is None else "backing_off" if first.state == "backing_off" else "down",
            since=first.since if first is not None else None,
            error=plugin.unavailable if first is None else first.error,
            place=str(plugin.place or ""),
            restartable=_may_restart(plugin, spec, source),
        )


def refused_of(services: Services, spec: PluginSpec) -> tuple[RefusedAccess, ...]:
    """Return what the processes of a plugin, being confined, say they were refused; nothing in it is masked yet."""
    source = services.loader.source_of(spec)
    return tuple(source.refused(spec)) if isinstance(source, ConfiningSource) else ()


def _configured_plugins(services: Services) -> Iterator[tuple[Plugin, PluginSpec]]:
    for plugin in services.world.catalog.plugins.values():
        if (spec := services.loader.specs.get(plugin.name)) is not None:
            yield plugin, spec


async def server_tools(services: Services, name: str, *, offset: int = 0, limit: int = 50) -> tuple[ServerTool, ...]:
    """Return some tools of a plugin, in its order; raises ``UsageError`` where there is no such plugin."""
    plugin, _ = named_plugin(services, name)
    shown = plugin.tools[offset : offset + limit]
    found = (
        ServerTool(name=tool.name, wire=tool.wire, description=tool.description, tokens=services.prices([tool]))
        for tool in shown
    )
    return mask_value(tuple(found), await shown_names(services))


async def printed_lines(services: Services, name: str) -> tuple[PrintedLine, ...]:
    """Return what a server printed, the newest last; raises ``UsageError`` where there is no such plugin."""
    _, spec = named_plugin(services, name)
    source = services.loader.source_of(spec)
    lines = source.printed(spec) if isinstance(source, Restartable) else ()
    return mask_value(tuple(lines), await shown_names(services))


def activity(services: Services) -> ServerActivity:
    """Return counts that change with the state of a server, and with each line that one prints."""
    found = [source.activity() for source in services.loader.sources if isinstance(source, Restartable)]
    return ServerActivity(states=sum(one.states for one in found), lines=sum(one.lines for one in found))


async def restart_plugin(services: Services, name: str, *, by: str = LOCAL) -> ServerState:
    """Start a server again, or ask a plugin that cannot run once more; return its state as soon as it is known."""
    if problem := label_problem(by):
        raise UsageError(f"`by` {problem}", hint="Give the name of the person who decides, as a short text.")
    plugin, spec = named_plugin(services, name)
    source = services.loader.source_of(spec)
    if isinstance(spec, ServerSpec) and spec.unavailable:
        raise ToolUnavailableError(f"Server {name!r} is not available: {spec.unavailable}", location=spec.place)
    if not _may_restart(plugin, spec, source):
        message = f"Plugin '{name}' runs in the process of Pegboard, and works."
        raise UsageError(message, hint="Restart Pegboard to take up a change of its code.")
    key = SessionKey(principal=LOCAL, agent="", session="")
    await services.recorder.note(services.recorder.entry(key, 0, "server", name, "restarted", by=by))
    if isinstance(source, Restartable):
        await source.restart(spec)
    await asyncio.wait({services.loader.fetch(want) for want in _to_ask(plugin)}, timeout=SERVER_WAIT)
    return await server_state(services, name)


def _to_ask(plugin: Plugin) -> list[PluginRequest]:
    """Return the requests for a plugin as it is, and under the overrides with which it cannot run."""
    failed = [key for key, variant in plugin.variants.items() if key and variant.unavailable]
    return [PluginRequest(plugin=plugin.name, overrides=Frozen(json.loads(key or "{}"))) for key in ("", *failed)]


def named_plugin(services: Services, name: str) -> tuple[Plugin, PluginSpec]:
    """Return a plugin by its name, and how it is brought in; raises ``UsageError`` where there is none."""
    plugins, spec = services.world.catalog.plugins, services.loader.specs.get(name)
    if name not in plugins or spec is None:
        shown = one_line(name, limit=100)
        raise UsageError(
            f"There is no server or plugin '{shown}'.", code="unknown_name", hint=did_you_mean(name, plugins)
        )
    return plugins[name], spec


def _may_restart(plugin: Plugin, spec: PluginSpec, source: Source) -> bool:
    if isinstance(source, Restartable):
        return not (isinstance(spec, ServerSpec) and spec.unavailable)
    return any(variant.unavailable for variant in plugin.variants.values())


def _state(
    services: Services,
    plugin: Plugin,
    spec: PluginSpec,
    agents: Sequence[CompiledPermissions],
    login: LoginStanding,
    *,
    counted: bool,
) -> ServerState:
    source = services.loader.source_of(spec)
    connections = tuple(source.connections(spec)) if isinstance(source, Restartable) else ()
    gravest = min(connections, key=lambda one: _GRAVEST.index(one.state), default=None)
    failed = max((one for one in connections if one.error), key=lambda one: one.failed_at or 0.0, default=None)
    return ServerState(
        name=plugin.name,
        kind=plugin.kind,
        transport=spec.transport if isinstance(spec, ServerSpec) else "",
        target=_target_text(spec, services.masker),
        place=str(plugin.place or ""),
        state="needs_login" if login.login == "needed" else _phase(services, plugin, gravest),
        since=gravest.since if gravest is not None else None,
        started_at=gravest.started_at if gravest is not None else None,
        era=gravest.era if gravest is not None else "",
        pid=gravest.pid if gravest is not None else None,
        in_flight=sum(one.in_flight for one in connections),
        restarts=sum(max(one.starts - 1, 0) for one in connections),
        failures=sum(one.failures for one in connections),
        last_error=failed.error if failed is not None else "",
        failed_at=failed.failed_at if failed is not None else None,
        unavailable=plugin.faults(),
        conditions=services.availability.newest_faults(plugin.name),
        warnings=tuple(_warnings(services, plugin, spec)),
        connections=connections,
        known=any(variant.known for variant in plugin.variants.values()),
        tools=len(plugin.tools),
        tokens=services.prices(plugin.tools) if counted else None,
        dropped=tuple(dict.fromkeys(_dropped_tools(services, plugin, connections))),
        excluded=tuple(dict.fromkeys(_excluded_parts(plugin, connections))),
        refused=refused_of(services, spec),
        agents=sum(permissions.may_have_tools_of(plugin) for permissions in agents),
        login=login.login,
        logins=login.holders,
        restartable=_may_restart(plugin, spec, source),
    )


def _dropped_tools(services: Services, plugin: Plugin, connections: Sequence[ConnectionState]) -> Iterator[Excluded]:
    """Yield the tools of a plugin that are not listed or never loaded: not valid, or with the name of another (G10)."""
    for name, reason in plugin.excluded.items():
        yield Excluded(name=name, reason=reason)
    for connection in connections:
        yield from connection.dropped
    for agent in services.world.agents:
        for one in name_conflicts(services.compiler.permissions_of_agent(agent)):
            if one.second.plugin == plugin.name:
                yield Excluded(name=one.second.name, reason=f"Agent '{agent}': {one.text} {one.fix}")


def _excluded_parts(plugin: Plugin, connections: Sequence[ConnectionState]) -> Iterator[Excluded]:
    """Yield what else of a server is left out: parts of its tools, other lists and items of them."""
    for what, reason in plugin.cut.items():
        yield Excluded(name=what, reason=reason)
    for connection in connections:
        yield from connection.excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWithoutEffect:
    """A rule of a plugin that names no tool: its place, and what is wrong."""

    plugin: str
    place: str
    text: str


def rules_without_effect(services: Services) -> list[RuleWithoutEffect]:
    """Return the rules of plugins that name none of their tools, as far as these are known (G10, T10)."""
    return [
        RuleWithoutEffect(plugin=plugin.name, place=str(plugin.place or ""), text=text)
        for plugin, spec in _configured_plugins(services)
        for text in _without_effect(plugin, spec)
    ]


def _without_effect(plugin: Plugin, spec: PluginSpec) -> Iterator[str]:
    if any(variant.known for variant in plugin.variants.values()):
        for fault in misnamed_tools(Manifest(tools=plugin.tools), spec):
            yield f"{fault.message} It is ignored. {fault.hint}".strip()


def _warnings(services: Services, plugin: Plugin, spec: PluginSpec) -> Iterator[str]:
    """Yield what `check` and the log of the gateway say of a plugin beside what it cannot do (G6, G10, T10)."""
    yield from _without_effect(plugin, spec)
    if plugin.unreviewed.count:
        yield plugin.unreviewed.text
    for tool in services.pins.pending(plugin):
        yield f"'{tool.wire}' newly claims to be read-only: it is not treated as read-only."
    for tool in later_harmless(services, plugin):
        yield f"'{tool.wire}' newly claims to be non-destructive: it needs approval before it runs."


def _phase(services: Services, plugin: Plugin, gravest: ConnectionState | None) -> ServerPhase:
    """Return what a plugin does; one that was not constructed is unavailable, although its process ended in peace."""
    without = _without_connection(services, plugin)
    if gravest is None or (gravest.state == "idle" and plugin.kind != "server" and without == "unavailable"):
        return without
    return gravest.state


def _without_connection(services: Services, plugin: Plugin) -> ServerPhase:
    if any(variant.unavailable for variant in plugin.variants.values()):
        return "unavailable"
    return "up" if plugin.kind != "server" and services.loader.has_answered(plugin) else "not_started"


def _target_text(spec: PluginSpec, mask: Masker) -> str:
    """Return what is started or asked, without what may be secret in it."""
    match spec:
        case ServerSpec(url=str(url)):
            parts = urlsplit(url)
            return mask.text(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))
        case ServerSpec():
            return mask.text(shlex.join((spec.command or "", *_arguments(spec.args, mask))))
        case PythonSpec():
            return mask.text(spec.target)
        case RegisteredSpec():
            return mask.text(spec.loader)


def _arguments(args: Sequence[str], mask: Masker) -> Iterator[str]:
    """Yield the arguments of a command, without the values of those whose name tells that they are secret."""
    flag = ""
    for argument in args:
        name, equals, value = argument.partition("=")
        if equals:
            yield f"{name}={mask.value({name.lstrip('-'): value})[name.lstrip('-')]}"
        else:
            yield mask.value({flag: argument})[flag]
        flag = argument.lstrip("-") if argument.startswith("-") else ""


def unasked_plugins(services: Services) -> tuple[str, ...]:
    """Return the names of the plugins whose tools no one asked for, as far as they can be asked."""
    plugins = (plugin for plugin in services.world.catalog.plugins.values() if not plugin.tools)
    missing = services.loader.missing
    return tuple(p.name for p in plugins if p.kind in ASKED and missing(PluginRequest(plugin=p.name)))


async def ask_plugins(services: Services) -> tuple[str, ...]:
    """Ask all of them, and return those that have not answered within the time of a request."""
    await discover_every(services)
    return unasked_plugins(services)
