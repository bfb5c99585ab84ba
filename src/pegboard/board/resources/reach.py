"""The servers that a session reaches, and what may be asked of each (G9, P9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.instances import LoginOwner, login_owner, pool_scope
from pegboard.core.access.listed_items import CAPABILITY, ListKind, plugins_with_lists
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject, Plugin
from pegboard.ports import CallContext, HasResources, ResourceSource, SessionKey

ServerKey = tuple[str, str, str, LoginOwner]
"""A server, its fingerprint, the scope of a connection, and whose login is shown on it."""
ListKey = tuple[str, str, str, LoginOwner, ListKind]
"""A ``ServerKey``, and which list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedServer:
    """One server as a session reaches it; ``fingerprint`` changes with its specification.

    ``owner`` is whose login counts, where what the server gives may depend on one; else no one's (G11).
    """

    plugin: Plugin
    spec: PluginSpec
    source: ResourceSource
    scope: str
    owner: LoginOwner
    fingerprint: str

    @property
    def server_key(self) -> ServerKey:
        """Return the key of its connection."""
        return self.plugin.name, self.fingerprint, self.scope, self.owner

    def key(self, kind: ListKind) -> ListKey:
        """Return the key of one of its lists."""
        return (*self.server_key, kind)

    async def kept_as(self) -> str | None:
        """Return under which name its lists are kept, or None where they are not."""
        return await self.source.kept_as(self.spec, self.scope, self.owner)

    @property
    def may_keep(self) -> bool:
        """Return whether what it lists now may be kept."""
        return self.source.may_keep(self.spec, self.scope, self.owner)

    def cached(self, kind: ListKind) -> Sequence[JsonObject] | None:
        """Return a list that was read already and cannot have changed since, or None."""
        return self.source.cached(self.spec, self.scope, kind, self.owner)

    async def offers(self, kind: ListKind) -> Sequence[JsonObject]:
        """Return a list as it stands on the wire; raises as ``ResourceSource.offers`` does."""
        return await self.source.offers(self.spec, self.scope, kind, self.owner)

    async def subscribe(self, uri: str, updated: Callable[[str], None]) -> Callable[[], None] | None:
        """Call back when a resource is updated; returns as ``ResourceSource.subscribe`` does."""
        return await self.source.subscribe(self.spec, uri, self.scope, updated, self.owner)

    @property
    def is_up(self) -> bool:
        """Return whether its connection stands."""
        return self.source.is_up(self.spec, self.scope, self.owner)

    def may_have(self, kind: ListKind) -> bool:
        """Return whether it is to be asked: no server is started that is known to have nothing."""
        known = self.plugin.offers
        return known is None or CAPABILITY[kind] in known or self.is_up

    async def ask(self, key: SessionKey, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of a request, unchanged (G7); raises as ``ResourceSource.ask`` does."""
        scoped = context._replace(
            principal=key.principal,
            agent=key.agent,
            session=key.session,
            scope=self.scope,
            owner=self.owner,
        )
        return await self.source.ask(self.spec, method, params, scoped)


def reached_servers(services: Services, snapshot: Snapshot) -> dict[str, ReachedServer]:
    """Return the servers that the agent sees and that can be asked, by name, in order."""
    found = (_server_of(services, snapshot, plugin) for plugin in plugins_with_lists(snapshot.permissions))
    return {server.plugin.name: server for server in found if server is not None}


def server_of(services: Services, spec: PluginSpec, scope: str, owner: LoginOwner) -> ReachedServer | None:
    """Return a server over one of its connections, or None where it is no longer in the configuration."""
    plugin, source = services.loader.catalog.plugins.get(spec.name), services.loader.source_of(spec)
    if plugin is None or services.loader.specs.get(spec.name) != spec or not isinstance(source, HasResources):
        return None
    return ReachedServer(
        plugin=plugin,
        spec=spec,
        source=source.offering,
        scope=scope,
        owner=owner,
        fingerprint=source.fingerprint(spec),
    )


def _server_of(services: Services, snapshot: Snapshot, plugin: Plugin) -> ReachedServer | None:
    spec = services.loader.specs.get(plugin.name)
    source = services.loader.source_of(spec) if spec is not None else None
    if spec is None or getattr(spec, "unavailable", "") or not isinstance(source, HasResources):
        return None
    permissions, user = snapshot.permissions, snapshot.info.pool_user
    owner = login_owner(permissions, user) if source.offering.by_login(spec) else LoginOwner()
    return server_of(services, spec, pool_scope(permissions, spec, user), owner)
