"""Which plugins a session needs to have seen, and how long it waits for them (G8, P6).

What is needed depends on permissions and leases alone, and is computed once for each; where all of it is known,
nothing is waited for and nothing is read again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.board.catalog.loader import IN_PROCESS, SERVER_WAIT, PluginRequest
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, read_snapshot
from pegboard.core.access.names import ExactName, NearName, UnknownName, UnseenTool, resolve
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import Ref, split_kind
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import starting_entries, starting_tools
from pegboard.core.state.commands import Load
from pegboard.core.state.requirements import all_required, plugins_to_ask
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import active_plugins, may_bring, tools_of_subject

ASKED: Final = IN_PROCESS | {"server"}
"""The kinds of plugins that can be asked without being loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnseenPlugins:
    """The plugins that are not known yet: those loaded from the start, and those that could be searched."""

    at_start: tuple[PluginRequest, ...]
    in_process: tuple[PluginRequest, ...]
    servers: tuple[PluginRequest, ...]


async def discover_loaded(services: Services, snapshot: Snapshot) -> Snapshot:
    """Return the session once the plugins that are loaded have been seen, as far as they answer in time.

    Servers that could be searched are asked in the background.
    """
    unseen = _unseen_plugins(snapshot.permissions)
    loaded = _unknown_loaded(snapshot.permissions, snapshot.state, unseen)
    seen = await _ask_plugins(services, snapshot, loaded, unseen.in_process)
    if seen is not snapshot:  # only now it is known what the tools require
        seen = await _ask_plugins(services, seen, _required_at_start(seen.permissions), ())
    services.loader.ask_stale(_variants_from_start(snapshot.permissions))
    for request in unseen.servers:  # last: the first server of all imports the SDK, which nothing above waits for
        services.loader.fetch(request)
    return seen


async def discover_searchable(services: Services, snapshot: Snapshot) -> Snapshot:
    """Return the session once the plugins that could be searched have been seen, as far as they answer in time."""
    unseen = _unseen_plugins(snapshot.permissions)
    return await _ask_plugins(services, snapshot, unseen.servers, unseen.in_process)


def are_all_searchable_known(snapshot: Snapshot) -> bool:
    """Return whether :func:`discover_searchable` has nothing to ask for."""
    unseen = _unseen_plugins(snapshot.permissions)
    return not unseen.servers and not unseen.in_process


async def _ask_plugins(
    services: Services, snapshot: Snapshot, loaded: Sequence[PluginRequest], in_process: Sequence[PluginRequest]
) -> Snapshot:
    """Return the session once plugins were asked for, with patience for those that are loaded."""
    if not loaded and not in_process:
        return snapshot
    waited = await services.loader.ready(loaded, wait=SERVER_WAIT, patient=True)
    waited = await services.loader.ready(in_process, wait=SERVER_WAIT) or waited
    return await read_snapshot(services, snapshot.info) if waited or _is_older(services, snapshot) else snapshot


def _is_older(services: Services, snapshot: Snapshot) -> bool:
    """Return whether plugins came in since the snapshot was read."""
    return services.compiler.world is not snapshot.permissions.world


async def discover_named(services: Services, snapshot: Snapshot, command: Load) -> Snapshot:
    """Return the session once the plugins that a load names have been seen, also those that failed before."""
    if snapshot.permissions.entries.unresolved:
        snapshot = await discover_searchable(services, snapshot)
    for retry in (True, False):
        named = _requests_by_name(snapshot.permissions, command)
        waited = await services.loader.ready(named, retry=retry, confirm=True)
        if not (waited or _is_older(services, snapshot)):
            break
        snapshot = await read_snapshot(services, snapshot.info)
    return snapshot


async def discover_called(services: Services, snapshot: Snapshot, owner: str) -> Snapshot:
    """Return the session once the plugin that may have a called tool has been seen, or all of them without one (X1)."""
    if not owner:
        unseen = _unseen_plugins(snapshot.permissions)
        return await _ask_plugins(
            services, snapshot, _unknown_loaded(snapshot.permissions, snapshot.state, unseen), unseen.in_process
        )
    waited = await services.loader.ready([PluginRequest(plugin=owner)], retry=True)
    return await read_snapshot(services, snapshot.info) if waited or _is_older(services, snapshot) else snapshot


async def discover_code(services: Services, snapshot: Snapshot, tool: Tool) -> Snapshot:
    """Return the session once the code that a tool runs has answered, where only the store knew it, or it failed."""
    request = PluginRequest(plugin=tool.plugin, overrides=snapshot.permissions.entries.of_tool(tool).overrides)
    waited = await services.loader.ready([request], retry=True, confirm=True)
    return await read_snapshot(services, snapshot.info) if waited or _is_older(services, snapshot) else snapshot


async def discover_every(services: Services, kinds: Container[str] = ASKED) -> None:
    """Ask every plugin of these kinds; operators may see all of it (P9)."""
    plugins = services.world.catalog.plugins.values()
    requests = [PluginRequest(plugin=p.name) for p in plugins if p.kind in kinds]
    if await services.loader.ready(requests, wait=SERVER_WAIT):
        await services.compiler.refresh()  # a part of the world follows the whole


def _unknown_loaded(permissions: CompiledPermissions, state: State, unseen: _UnseenPlugins) -> list[PluginRequest]:
    """Return what is loaded and not known yet, under the overrides with which it is loaded."""
    requests = list(unseen.at_start)
    if state.loadout is not None:
        requests += _requests_of_loadout(permissions, state.loadout)
    for lease in state.leases:
        requests += _requests_of_subject(permissions, lease.subject)
    plugins = permissions.world.catalog.plugins
    return [request for request in requests if may_bring(permissions, state, plugins[request.plugin])]


@once_per_permissions
def _unseen_plugins(permissions: CompiledPermissions) -> _UnseenPlugins:
    return _UnseenPlugins(
        at_start=tuple(unknown_at_start(permissions)),
        in_process=tuple(_worth_asking(permissions, IN_PROCESS)),
        servers=tuple(_worth_asking(permissions, frozenset({"server"}))),
    )


def unknown_at_start(permissions: CompiledPermissions) -> Iterator[PluginRequest]:
    """Yield what is loaded from the start and not known yet, under the overrides with which it is loaded."""
    yield from _requests_of_entries(permissions, starting_entries(permissions))
    plugins = permissions.world.catalog.plugins
    for name in permissions.entries.unresolved_from_start:
        if not plugins[name].variants:
            yield PluginRequest(plugin=name)


@once_per_permissions
def _requests_of_loadout(permissions: CompiledPermissions, loadout: str) -> tuple[PluginRequest, ...]:
    """Return the plugins that a session's loadout makes active and that are not known yet (L7)."""
    return tuple(
        _requests_of_entries(
            permissions, map(permissions.entries.of_plugin, sorted(active_plugins(permissions, loadout)))
        )
    )


@once_per_permissions
def _variants_from_start(permissions: CompiledPermissions) -> frozenset[tuple[str, str]]:
    """Return the variants that are loaded from the start, known or not."""
    return frozenset((entry.plugin, entry.key) for entry in starting_entries(permissions))


@once_per_permissions
def _required_at_start(permissions: CompiledPermissions) -> tuple[PluginRequest, ...]:
    """Return the plugins not asked yet of which the tools that are loaded from the start require something (T8)."""
    starting = starting_tools(permissions)
    names = (name for part in (starting.head, starting.tail) for one in part.values() for name in one.tool.requires)
    owners = dict.fromkeys(split_kind(name)[1].partition("/")[0] for name in names if "/" in name)
    plugins = (permissions.world.catalog.plugins.get(owner) for owner in owners)
    return tuple(PluginRequest(plugin=p.name) for p in plugins if p and not p.tools and permissions.grants_unseen(p))


@once_per_permissions
def _requests_of_subject(permissions: CompiledPermissions, subject: Ref) -> tuple[PluginRequest, ...]:
    return tuple(_requests_of_entries(permissions, tools_of_subject(permissions, subject).entries))


def _requests_of_entries(permissions: CompiledPermissions, entries: Iterable[Entry]) -> Iterator[PluginRequest]:
    for entry in entries:
        plugin = permissions.world.catalog.plugins[entry.plugin]
        variant = plugin.variant(entry.key)
        if variant.known or (variant.unavailable and not variant.stale):
            continue
        if entry.tools or permissions.grants_unseen(plugin):
            yield PluginRequest(plugin=entry.plugin, overrides=entry.overrides)


def named_plugins(permissions: CompiledPermissions, command: Load) -> tuple[str, ...]:
    """Return the plugins that a load names, itself or by what they have."""
    return tuple(dict.fromkeys(request.plugin for request in _requests_by_name(permissions, command)))


def _requests_by_name(permissions: CompiledPermissions, command: Load) -> tuple[PluginRequest, ...]:
    return tuple(request for name in command.names for request in _requests_of_name(permissions, name))


def _requests_of_name(permissions: CompiledPermissions, name: str) -> tuple[PluginRequest, ...]:
    """Return what a name stands for; a server may have a tool whose bare name is written."""
    match resolve(permissions, name):
        case ExactName(subject) | NearName(subject):
            return _requests_of_ref(permissions, subject)
        case UnseenTool(plugin):
            return (PluginRequest(plugin=plugin.name),)
        case UnknownName():
            return ()


@once_per_permissions
def _requests_of_ref(permissions: CompiledPermissions, subject: Ref) -> tuple[PluginRequest, ...]:
    """Return the plugins that a subject stands for, and those that have, or may have, what its tools require (T8)."""
    plugins, found = permissions.world.catalog.plugins, tools_of_subject(permissions, subject)
    tools = tuple(tool for tool, _ in found.tools)
    named = [entry for entry in found.entries if not permissions.scope_only(plugins[entry.plugin])]
    named += map(permissions.entries.of_tool, all_required(permissions, tools))
    requests = (PluginRequest(plugin=entry.plugin, overrides=entry.overrides) for entry in named)
    unknown = (PluginRequest(plugin=name) for name in plugins_to_ask(permissions, tools))
    return tuple({request.key: request for request in (*requests, *unknown)}.values())


def _worth_asking(permissions: CompiledPermissions, kinds: frozenset[str]) -> Iterator[PluginRequest]:
    """Yield the plugins without known tools that may have something for the agent."""
    for plugin in permissions.world.catalog.plugins.values():
        if (
            plugin.kind in kinds
            and not plugin.tools
            and (permissions.entries.unresolved or permissions.grants_unseen(plugin))
        ):
            yield PluginRequest(plugin=plugin.name)
