"""The logins to the servers of a source: which server wants one, whose there are, how one is made (G11)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.logins import Login, LoginNeed, PendingLogin
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.errors import PegboardError, ToolUnavailableError
from pegboard.ports.logins import LoginState
from pegboard.sources.mcp.login import token_requests
from pegboard.sources.mcp.login.challenge import Challenge, logs_in_for_gateway, may_log_in
from pegboard.sources.mcp.login.connection_login import ConnectionLogin
from pegboard.sources.mcp.login.discovery import find_issuer, offers_login, resource_of
from pegboard.sources.mcp.login.grant import LoginGrant
from pegboard.sources.mcp.login.identity import configured_identity, forget
from pegboard.sources.mcp.login.keeper import FRESH, GrantKeeper, LoginGrantKey, grant_key_of
from pegboard.sources.mcp.login.pending import PendingLogins
from pegboard.sources.mcp.login.web import LoginWeb

if TYPE_CHECKING:
    from pegboard.ports.sealed import SealedStore

_AGAIN: Final = 60.0
"""Seconds after which a server that refused a request is asked again whether it has logins: it may have been away."""


class McpLogins:
    """The logins to MCP servers over HTTP; what is sealed in the store is read when it is first needed.

    ``learn`` is handed each secret of a login before that is used, behind what it is.
    """

    def __init__(self, store: SealedStore, learn: Callable[[str, str], None]) -> None:
        self._store = store
        self._keeper = GrantKeeper(store, self._renew_tokens, learn)
        self._pending = PendingLogins(store, self._keeper)
        self._metadata: dict[str, str] = {}  # by resource that is known to want a login: where it is, or ""
        self._challenges: dict[LoginGrantKey, Challenge] = {}  # the last by whose login was shown, or no one's
        self._without: dict[str, float] = {}  # until when a resource is taken for one that offers none
        self._looked_up: dict[str, float] = {}  # when it was last looked whether someone has a login

    async def wants_login(self, spec: ServerSpec) -> bool:
        """Return whether a server is known to want a login."""
        if not may_log_in(spec):
            return False
        if logs_in_for_gateway(spec):
            return True
        resource = resource_of(spec)
        now = time.monotonic()
        if resource not in self._metadata and now - self._looked_up.get(resource, -FRESH) >= FRESH:
            if await self._owners(resource):
                self._metadata.setdefault(resource, "")
            self._looked_up[resource] = now
        return resource in self._metadata

    def known_to_want(self, spec: ServerSpec) -> bool:
        """Return whether a server is known to want a login, without looking for one in the store."""
        return may_log_in(spec) and (logs_in_for_gateway(spec) or resource_of(spec) in self._metadata)

    async def _note_challenge(self, owner: LoginOwner, spec: ServerSpec, challenge: Challenge) -> bool:
        """Note what a server said when it refused a request of an owner; return whether it offers a login at all."""
        resource = resource_of(spec)
        if time.monotonic() < self._without.get(resource, 0.0) and not challenge.resource_metadata:
            return False
        async with LoginWeb(spec.url or "") as web:
            if not await offers_login(web, spec, challenge):
                self._without[resource] = time.monotonic() + _AGAIN
                return False
        self._metadata[resource] = challenge.resource_metadata or self._metadata.get(resource, "")
        self._challenges[LoginGrantKey(owner, resource)] = challenge
        return True

    def login_of_connection(self, spec: ServerSpec, owner: LoginOwner | None) -> ConnectionLogin | None:
        """Return what a connection of an owner shows; None for a server that cannot want a login."""
        if not may_log_in(spec):
            return None
        key = None if owner is None else LoginGrantKey(owner, resource_of(spec))
        note = partial(self._note_challenge, LoginOwner() if owner is None else owner)
        return ConnectionLogin(spec, owner, self._keeper, key, note)

    async def needed(self, spec: PluginSpec, owner: LoginOwner) -> LoginNeed | None:
        """Return what a login is needed for, as far as a server has said; None where none is."""
        if not isinstance(spec, ServerSpec) or not await self.wants_login(spec):
            return None
        if logs_in_for_gateway(spec):
            await self.has_login(spec, LoginOwner())
            return None
        if await self.has_login(spec, owner):
            return None
        return LoginNeed(plugin=spec.name, owner=owner, scopes=self.scopes_wanted(spec, owner))

    def scopes_wanted(self, spec: ServerSpec, owner: LoginOwner) -> tuple[str, ...]:
        """Return what a server that wants a login said that an owner's has to allow."""
        return self._challenge(LoginGrantKey(owner, resource_of(spec))).scopes

    def _challenge(self, key: LoginGrantKey) -> Challenge:
        """Return what was said last to an owner, else to whoever shows no login; never what was said to another."""
        nobodys = self._challenges.get(LoginGrantKey(LoginOwner(), key.resource), Challenge())
        said = self._challenges.get(key, nobodys)
        return replace(said, resource_metadata=self._metadata.get(key.resource, ""))

    async def has_login(self, spec: ServerSpec, owner: LoginOwner) -> bool:
        """Return whether an owner has a login that counts, or that can be renewed.

        Where the gateway logs in for itself, it does so now; raises ``ToolUnavailableError`` where it cannot.
        """
        key = LoginGrantKey(owner, resource_of(spec))
        if self._keeper.grant_if_at_hand(key) is not None:
            return True
        held = await self._keeper.read(key)
        if held is not None and held.is_alive():
            return True
        if logs_in_for_gateway(spec) and owner == LoginOwner():
            await self._keeper.obtain_grant(key, partial(self._granted_to_gateway, spec))
            return True
        return False

    async def login_id(self, spec: ServerSpec, owner: LoginOwner) -> str | None:
        """Return which login of an owner's counts, the same however often it is renewed; None without one."""
        key = LoginGrantKey(owner, resource_of(spec))
        held = self._keeper.grant_if_at_hand(key) or await self._keeper.read(key)
        return held.grant.login_id if held is not None and held.is_alive() else None

    async def _renew_tokens(self, grant: LoginGrant) -> LoginGrant:
        """Return a grant with new tokens; an issuer that does not know its client any more gets a new one next time."""
        try:
            async with LoginWeb(grant.resource) as web:
                return await token_requests.renew_tokens(web, grant)
        except token_requests.RefusedTokensError as error:
            if error.code == "invalid_client":
                await forget(self._store, grant.issuer, grant.client_id)
            raise

    async def _granted_to_gateway(self, spec: ServerSpec) -> LoginGrant:
        auth = spec.auth
        assert auth is not None
        try:
            async with LoginWeb(spec.url or "") as web:
                issuer = await find_issuer(web, spec, Challenge(), auth.scopes)
                identity = configured_identity(spec, issuer)
                if identity is None or auth.kind not in ("client_credentials", "private_key_jwt"):
                    raise ToolUnavailableError(
                        f"{spec.label} has `kind: {auth.kind}` in `auth` and no `client_id`.",
                        hint=f"Set `client_id` and `client_secret` in `{spec.section}`.",
                        location=spec.place,
                    )
                return await token_requests.granted_to_gateway(web, issuer, identity, auth.kind)
        except token_requests.RefusedTokensError as error:
            raise ToolUnavailableError(
                f"{spec.label} is not available: its issuer refuses `{auth.client_id}` of `auth` ({error}).",
                location=spec.place,
            ) from None

    async def any_owner(self, spec: ServerSpec) -> LoginOwner | None:
        """Return whose login a server may be listed with: the newest that counts, or None.

        Raises ``ToolUnavailableError`` where the gateway logs in for itself, and cannot.
        """
        if logs_in_for_gateway(spec):
            return LoginOwner() if await self.has_login(spec, LoginOwner()) else None
        return next(iter(await self._owners(resource_of(spec))), None)

    async def holders(self, spec: PluginSpec) -> Sequence[LoginOwner] | None:
        """Return who has a login to a server that counts, the newest first; None where it wants none."""
        if not isinstance(spec, ServerSpec) or not spec.url or not await self.wants_login(spec):
            return None
        return await self._owners(resource_of(spec))

    async def _owners(self, resource: str) -> Sequence[LoginOwner]:
        """Return who has a login to a server, the newest first."""
        found: list[tuple[float, LoginOwner]] = []
        for stored in await self._store.all_sealed("grant"):
            key = grant_key_of(stored.key)
            if key.resource != resource:
                continue
            held = await self._keeper.read(key)
            if held is not None and held.is_alive():
                found.append((held.grant.obtained_at, key.owner))
        return [owner for _, owner in sorted(found, reverse=True)]

    # -- the port ----------------------------------------------------------------------------------

    async def begin(
        self, spec: PluginSpec, need: LoginNeed, *, redirect: str | None = None, device: bool = False
    ) -> PendingLogin:
        """Begin a login, or return the one that is pending already for the same owner and ``redirect``."""
        server = cast("ServerSpec", spec)
        challenge = self._challenge(LoginGrantKey(need.owner, resource_of(server)))
        await self._require_use(server, need, challenge)
        return await self._pending.begin(server, need, challenge, redirect, device=device)

    async def _require_use(self, spec: ServerSpec, need: LoginNeed, challenge: Challenge) -> None:
        """Raise ``ToolUnavailableError`` where a login of a person is of no use.

        The gateway logs in for itself, or the server refuses the scopes that it asks for, fresh from a login.
        """
        if logs_in_for_gateway(spec):
            scopes = f"; it requires one that allows {' '.join(need.scopes)}" if need.scopes else ""
            raise ToolUnavailableError(
                f"{spec.label} is not available: it refuses the login of the gateway{scopes}.",
                hint=f"Correct `auth` in `{spec.section}`.",
                location=spec.place,
            )
        if challenge.error != "insufficient_scope" or not need.scopes:
            return
        held = await self._keeper.read(LoginGrantKey(need.owner, resource_of(spec)))
        if held is None or not held.counts() or held.grant.renewed or not set(need.scopes) <= set(held.grant.scopes):
            return
        raise ToolUnavailableError(
            f"{spec.label} is not available: it requires a login that allows {' '.join(need.scopes)}, "
            "and refuses one that does.",
            hint="Ask its operator which rights the account lacks.",
            location=spec.place,
        )

    async def pending(self, login_id: str) -> PendingLogin | None:
        """Return a login that is still to be completed, or None."""
        return await self._pending.pending(login_id)

    async def complete(self, answer: Mapping[str, str], *, owner: LoginOwner | None = None) -> PendingLogin:
        """Complete a pending login with what the browser was sent back with."""
        return await self._pending.complete(answer, owner)

    async def wait(self, pending: PendingLogin) -> LoginState:
        """Wait until a pending login is completed by any process, has failed or expired."""
        return await self._pending.wait(pending)

    async def logins(self) -> Sequence[Login]:
        """Return every login that is stored."""
        found: list[Login] = []
        for stored in await self._store.all_sealed("grant"):
            key = grant_key_of(stored.key)
            held = await self._keeper.read(key)
            found.append(_shown_login(key, None if held is None else held.grant))
        return found

    async def end(self, spec: PluginSpec, owner: LoginOwner) -> bool:
        """Forget a login, and tell its issuer; return whether there was one."""
        server = cast("ServerSpec", spec)
        key = LoginGrantKey(owner, resource_of(server))
        self._challenges.pop(key, None)
        grant = await self._keeper.forget(key)
        if grant is None:
            return False
        try:
            async with LoginWeb(server.url or "") as web:
                await token_requests.revoke(web, grant)
        except PegboardError:
            pass  # it is forgotten here; the issuer ends it with its time
        return True

    async def aclose(self) -> None:
        """Let renewals that are under way come to their end, and listen no more."""
        self._pending.close()
        await self._keeper.aclose()


def _shown_login(key: LoginGrantKey, grant: LoginGrant | None) -> Login:
    return Login(
        plugin="",
        resource=key.resource,
        owner=key.owner,
        issuer="" if grant is None else grant.issuer,
        scopes=() if grant is None else grant.scopes,
        expires_at=None if grant is None else grant.expires_at,
        renewable=grant is not None and grant.renewable,
        refused="it was sealed with another key" if grant is None else grant.refused,
    )
