"""Logins to remote servers as operators see them: whose there are, how one is begun, completed and ended (G11)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from pegboard.board.catalog.loader import SERVER_WAIT, PluginRequest
from pegboard.board.services import Services
from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.logins import Login, PendingLogin
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError, UsageError
from pegboard.operators.login_standing import LoginNeeded, may_be_used, standings
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.servers import named_plugin
from pegboard.ports import HasLogins
from pegboard.ports.logins import LoginState, ServerLogins


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginView:
    """A login to a remote server, without anything secret in it.

    Attributes:
        server: the name of the server, empty where none of this configuration is at that address.
        resource: the address that it is for.
        principal: whose it is; empty where it is the gateway's own.
        agent: the one agent that it is for, empty where it is for all.
        issuer: who issued it.
        scopes: what it allows.
        expires_at: when its token ends, in seconds since the epoch; None where no one said.
        renewable: whether it is renewed by itself.
        refused: why it no longer counts, or empty.
    """

    server: Name
    resource: str
    principal: Name
    agent: Name
    issuer: str
    scopes: tuple[str, ...]
    expires_at: float | None
    renewable: bool
    refused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLogin:
    """A server that wants a login, as an operator sees it.

    Attributes:
        server: its name.
        login: ``needed``, that no one has; ``held`` by someone; the gateway's ``own``. Of an operator who sees some
            agents only, it is theirs alone that is spoken of.
        mine: whether the operator has one that counts.
        principals: who has one; no one for an operator who sees some agents only.
    """

    server: Name
    login: LoginNeeded
    mine: bool
    principals: tuple[Name, ...]


class OperatorLogins:
    """The logins to the servers of a board."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def listed(self, *, principal: str | None = None) -> Sequence[LoginView]:
        """Return the logins that are stored, by server and principal."""
        found = [self._view(login) for logins in self._sources_of_logins() for login in await logins.logins()]
        wanted = [view for view in found if principal is None or view.principal == principal]
        names = await shown_names(self._services)
        return [mask_value(view, names) for view in sorted(wanted, key=lambda view: (view.server, view.principal))]

    async def logins_wanted(self, name: str, *, agents: Collection[str] | None = None) -> Sequence[WantedLogin]:
        """Return the servers that want a login, of those that an operator's agents may use, by name.

        Args:
            agents: the agents that they see; None is every one.
        """
        found: list[WantedLogin] = []
        for server, one in (await standings(self._services)).items():
            mine = name in one.holders
            if may_be_used(self._services, server, agents):
                held: LoginNeeded = "held" if mine else "needed"
                found.append(
                    WantedLogin(
                        server=server,
                        login=one.login if agents is None or one.login == "own" else held,
                        mine=mine,
                        principals=one.holders if agents is None else (),
                    )
                )
        names = await shown_names(self._services)
        return [mask_value(view, names) for view in sorted(found, key=lambda view: view.server)]

    def require_used(self, server: str, agents: Collection[str] | None) -> None:
        """Raise ``UsageError`` where none of these agents may use a server, as where there is none of this name."""
        known = self._services.loader.specs
        if server in known and may_be_used(self._services, server, agents):
            return
        usable = [name for name in known if may_be_used(self._services, name, agents)]
        shown = one_line(server, limit=100)
        raise UsageError(
            f"There is no server or plugin '{shown}'.", code="unknown_name", hint=did_you_mean(server, usable)
        )

    async def begin(
        self, server: str, owner: LoginOwner, *, redirect: str | None = None, device: bool = False
    ) -> PendingLogin | None:
        """Begin a login, or return the one that is pending; None where the server wants none, or has one that counts.

        Args:
            redirect: where the browser is sent back to; None is a loopback address of this process.

        Raises:
            UsageError: there is no such server.
            ToolUnavailableError: it does not answer, or no login can be made.
        """
        _, spec = named_plugin(self._services, server)
        logins = self._logins_of(spec.name)
        need = await logins.needed(spec, owner)
        if need is None:
            await self._services.loader.fetch(PluginRequest(plugin=spec.name))
            need = await logins.needed(spec, owner)
        if need is None:
            plugin = self._services.world.catalog.plugins[spec.name]
            if not plugin.tools and (fault := plugin.variant("").unavailable):
                raise ToolUnavailableError(fault, location=spec.place)
            return None
        return await logins.begin(spec, need, redirect=redirect, device=device)

    async def complete(self, server: str, address: str, owner: LoginOwner | None = None) -> None:
        """Complete a pending login with the address that the browser was sent back to.

        Raises:
            UsageError: it is no such address, or its login is no longer pending.
        """
        answer = dict(parse_qsl(urlsplit(address.strip()).query, keep_blank_values=True))
        if "state" not in answer:
            raise UsageError(
                "This is not the address that a browser is sent back to after a login.",
                hint="It begins with http:// and contains `state=`. Copy all of it.",
            )
        await self._logins_of(server).complete(answer, owner=owner)

    async def pending(self, login_id: str) -> PendingLogin | None:
        """Return a login that is still to be completed, by its id or the ``state`` of an answer; else None."""
        for logins in self._sources_of_logins():
            if (found := await logins.pending(login_id)) is not None:
                return found
        return None

    async def finish(self, answer: Mapping[str, str], owner: LoginOwner) -> PendingLogin:
        """Complete a login of this owner with what the browser was sent back with, and ask its server for its tools.

        Raises:
            UsageError: it was completed, has expired, is another's, or did not work; says which.
        """
        pending = await self.pending(answer.get("state", ""))
        if pending is None or pending.owner != owner:
            raise UsageError(
                "No login is pending under this address: it was completed, has expired, or belongs to another person.",
                code="login_failed",
                hint="Start the login again.",
            )
        done = await self._logins_of(pending.plugin).complete(answer, owner=owner)
        await asyncio.wait({self._services.loader.fetch(PluginRequest(plugin=done.plugin))}, timeout=SERVER_WAIT)
        return done

    async def wait(self, pending: PendingLogin) -> LoginState:
        """Wait until a login is no longer pending; where it was completed, its server is asked for its tools."""
        state = await self._logins_of(pending.plugin).wait(pending)
        if state == "completed":
            await self._services.loader.fetch(PluginRequest(plugin=pending.plugin))
        return state

    async def end(self, server: str, owner: LoginOwner) -> bool:
        """Forget a login and tell its issuer; return whether there was one.

        Raises:
            UsageError: there is no such server.
        """
        _, spec = named_plugin(self._services, server)
        return await self._logins_of(spec.name).end(spec, owner)

    def _sources_of_logins(self) -> Iterator[ServerLogins]:
        return (source.logins for source in self._services.loader.sources if isinstance(source, HasLogins))

    def _logins_of(self, server: str) -> ServerLogins:
        spec = self._services.loader.specs[server]
        source = self._services.loader.source_of(spec)
        if not isinstance(source, HasLogins) or not (isinstance(spec, ServerSpec) and spec.url):
            raise UsageError(f"'{server}' has no login: it is not a remote server.")
        return source.logins

    def _view(self, login: Login) -> LoginView:
        specs = self._services.loader.specs.values()
        urls = {spec.url: spec.name for spec in specs if isinstance(spec, ServerSpec) and spec.url}
        return LoginView(
            server=urls.get(login.resource, ""),
            resource=login.resource,
            principal=login.owner.principal,
            agent=login.owner.agent,
            issuer=login.issuer,
            scopes=login.scopes,
            expires_at=login.expires_at,
            renewable=login.renewable,
            refused=login.refused,
        )
