"""Which plugins a session needs to have seen, and how long it waits for them (G8, P6).

What is needed depends on permissions and leases alone, and is computed once for each; where all of it is known,
nothing is waited for and nothing is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pegboard.board.catalog.loader import IN_PROCESS, SERVER_WAIT, PluginRequest
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, read
from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.lookup import lookup
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref, split_kind
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Plugin
from pegboard.core.state.commands import Load
from pegboard.core.state.narrowing import may_bring
from pegboard.core.state.sessions import State, tools_of_subject


async def bring_in_loaded(services: Services, snapshot: Snapshot) -> Snapshot:
    """Return the session once the plugins that are loaded have been seen, as far as they answer in time.

    Servers that could be searched are asked in the background.
    """
    waited = await services.loader.ready(_loaded(snapshot.access, snapshot.state), wait=SERVER_WAIT, patient=True)
    waited = await services.loader.ready(_unseen(snapshot.access, in_process=True), wait=SERVER_WAIT) or waited
    for request in _unseen(snapshot.access, in_process=False):
        services.loader.fetch(request)
    return await read(services, snapshot.info) if waited else snapshot


async def bring_in_searchable(services: Services, snapshot: Snapshot) -> Snapshot:
    """Return the session once the plugins that could be searched have been seen, as far as they answer in time."""
    servers, near = _unseen(snapshot.access, in_process=False), _unseen(snapshot.access, in_process=True)
    waited = await services.loader.ready(servers, wait=SERVER_WAIT, patient=True)
    waited = await services.loader.ready(near, wait=SERVER_WAIT) or waited
    return await read(services, snapshot.info) if waited else snapshot


async def bring_in_named(services: Services, snapshot: Snapshot, command: Load) -> Snapshot:
    """Return the session once the plugins that a load names have been seen, also those that failed before."""
    if snapshot.access.unresolved:
        snapshot = await bring_in_searchable(services, snapshot)
    if await services.loader.ready(_named(snapshot.access, command), retry=True):
        snapshot = await read(services, snapshot.info)
        if await services.loader.ready(_named(snapshot.access, command)):
            snapshot = await read(services, snapshot.info)
    return snapshot


async def bring_in_called(services: Services, snapshot: Snapshot, name: str) -> Snapshot:
    """Return the session once the plugin that the called name belongs to has been seen (X1)."""
    owner = owner_of(snapshot.access, name)
    if owner is not None:
        waited = await services.loader.ready([PluginRequest(plugin=owner)], retry=True)
    else:
        requests = _loaded(snapshot.access, snapshot.state)
        waited = await services.loader.ready(requests, wait=SERVER_WAIT, patient=True)
        waited = await services.loader.ready(_unseen(snapshot.access, in_process=True), wait=SERVER_WAIT) or waited
    return await read(services, snapshot.info) if waited else snapshot


async def bring_in_everything(services: Services) -> None:
    """Ask whatever can be asked without being loaded; operators may see all of it (P9)."""
    asked = (*IN_PROCESS, "server")
    plugins = services.world.catalog.plugins.values()
    await services.loader.ready([PluginRequest(plugin=p.name) for p in plugins if p.kind in asked], wait=SERVER_WAIT)


def owner_of(access: CompiledPermissions, name: str) -> str | None:
    """Return the plugin, not seen yet, to which a tool of this name would belong."""
    bare = split_kind(name)[1]
    for mark in ("/", "__"):
        plugin = access.world.catalog.plugins.get(bare.partition(mark)[0])
        if plugin is not None and not plugin.tools and access.grants_unseen(plugin):
            return plugin.name
    return None


def _loaded(access: CompiledPermissions, state: State) -> list[PluginRequest]:
    """Return what is loaded and not known yet, under the overrides with which it is loaded."""
    requests = [*_at_start(access)]
    for lease in state.leases:
        requests += _of_subject(access, lease.subject)
    plugins = access.world.catalog.plugins
    return [request for request in requests if may_bring(access, state, plugins[request.plugin])]


@once_per_permissions
def _at_start(access: CompiledPermissions) -> tuple[PluginRequest, ...]:
    initial = (access.toolkits.get(name, ()) for name in access.agent.initial_toolkits)
    entries = (entry for group in (access.essential, access.static, *initial) for entry in group)
    found = [*_of_entries(access, entries)]
    for plugin in access.world.catalog.plugins.values():
        loadout, switch = access.loadout, access.switches.plugins.get(plugin.name)
        switched = switch is not None and switch.on
        active = loadout is not None and loadout.includes(plugin.name, plugin.category) is not None
        if not plugin.tools and (switched or active) and access.grants_unseen(plugin):
            found.append(PluginRequest(plugin=plugin.name))
    return tuple(found)


@once_per_permissions
def _of_subject(access: CompiledPermissions, subject: Ref) -> tuple[PluginRequest, ...]:
    return tuple(_of_entries(access, tools_of_subject(access, subject).entries))


def _of_entries(access: CompiledPermissions, entries: Iterable[Entry]) -> Iterator[PluginRequest]:
    for entry in entries:
        plugin = access.world.catalog.plugins[entry.plugin]
        variant = plugin.variant(entry.key)
        if variant.known or variant.unavailable:
            continue
        if entry.tools or access.grants_unseen(plugin):
            yield PluginRequest(plugin=entry.plugin, overrides=entry.overrides)


def _named(access: CompiledPermissions, command: Load) -> Iterator[PluginRequest]:
    """Yield what the names stand for; a server may have a tool whose bare name is written."""
    for name in command.names:
        ref = lookup(access, name)
        if ref is None:
            owner = owner_of(access, name)
            if owner is not None:
                yield PluginRequest(plugin=owner)
            continue
        for entry in tools_of_subject(access, ref).entries:
            if not access.scope_only(access.world.catalog.plugins[entry.plugin]):
                yield PluginRequest(plugin=entry.plugin, overrides=entry.overrides)


def _unseen(access: CompiledPermissions, *, in_process: bool) -> tuple[PluginRequest, ...]:
    return _unseen_in_process(access) if in_process else _unseen_servers(access)


@once_per_permissions
def _unseen_in_process(access: CompiledPermissions) -> tuple[PluginRequest, ...]:
    return tuple(_worth_asking(access, IN_PROCESS))


@once_per_permissions
def _unseen_servers(access: CompiledPermissions) -> tuple[PluginRequest, ...]:
    return tuple(_worth_asking(access, frozenset({"server"})))


def _worth_asking(access: CompiledPermissions, kinds: frozenset[str]) -> Iterator[PluginRequest]:
    """Yield the plugins without known tools that may have something for the agent."""

    def may_have(plugin: Plugin) -> bool:
        return access.unresolved or access.grants_unseen(plugin)

    for plugin in access.world.catalog.plugins.values():
        if plugin.kind in kinds and not plugin.tools and may_have(plugin):
            yield PluginRequest(plugin=plugin.name)
