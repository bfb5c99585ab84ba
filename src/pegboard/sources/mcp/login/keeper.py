"""The logins of a source: held in memory, kept sealed, renewed by one process at a time (G11)."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pegboard.core.access.instances import LoginOwner
from pegboard.errors import PegboardError, ToolUnavailableError
from pegboard.ports import AuditRecord
from pegboard.sources.mcp.login.grant import LoginGrant, grant_from_json
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks

if TYPE_CHECKING:
    from pegboard.ports.sealed import SealedStore, SealedText
    from pegboard.sources.mcp.login.token_requests import RefusedTokensError

LEASE: Final = 10.0
"""Seconds after which the right of a refresher ends by itself, so that a dead one holds no one up."""
_LEASE_AGAIN: Final = 3.0
"""After how many seconds a refresher that is still at it takes its lease again."""
FRESH: Final = 5.0
"""For how many seconds a grant is used before it is read again: another process may have ended or replaced it."""
_FOR_GOOD: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""What an issuer answers that does not renew a grant any longer."""
_FOR_NOW: Final = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""What an issuer answers that may renew it the next time; what is in neither set counts once the token has ended."""
_PAUSE: Final = 1.0
"""For how many seconds an issuer that did not renew a grant is not asked again, where it does not say for how long."""
_AGAIN: Final = 60.0
"""Seconds after which a grant that only its server refuses is shown to it again."""
_OTHER_KEY: Final = (
    "It was sealed with another key: restore that key (PEGBOARD_KEY, the keyring, or the file "
    "beside the store whose name ends with .key), or log in again."
)

LoginEvent = Literal["login", "refresh", "step_up", "logout"]

log = logging.getLogger("pegboard.sources.mcp")


@dataclass(frozen=True, slots=True)
class HeldGrant:
    """A grant as this process has it: its version in the store, and when it is to be renewed.

    Its server refuses it though no one else does: until ``tried_again_at`` it is taken for one that does not count.
    """

    grant: LoginGrant
    version: int
    renew_at: float | None
    tried_again_at: float = 0.0

    def counts(self) -> bool:
        """Return whether its token may be used now."""
        ends = self.grant.expires_at
        return self._is_valid() and (ends is None or time.time() < ends)

    def is_alive(self) -> bool:
        """Return whether it counts, or may count again once it is renewed."""
        return self.counts() or (self.grant.renewable and self._is_valid())

    def _is_valid(self) -> bool:
        return not self.grant.refused and time.time() >= self.tried_again_at


class PausedIssuer(NamedTuple):
    """Until when an issuer is not asked to renew a grant, in seconds since the epoch, and why."""

    until: float
    why: str

    def error(self) -> ToolUnavailableError:
        """Return the error for anyone who needs the grant now."""
        seconds = max(1, round(self.until - time.time()))
        return ToolUnavailableError(
            f"its login could not be renewed for now: {self.why}; the login is kept, and renewed in {seconds} s at the "
            "earliest"
        )


class LoginGrantKey(NamedTuple):
    """Whose grant it is, and for the server at which address."""

    owner: LoginOwner
    resource: str

    @property
    def text(self) -> str:
        """Return the key under which it is stored."""
        return json.dumps([self.resource, *self.owner])


def grant_key_of(text: str) -> LoginGrantKey:
    """Return the key that was stored."""
    resource, principal, agent = json.loads(text)
    return LoginGrantKey(LoginOwner(principal, agent), resource)


class GrantKeeper:
    """The grants of every owner, read when they are first needed.

    ``renew`` asks an issuer for new tokens; it raises ``RefusedTokensError`` and ``PegboardError``. ``learn`` is
    handed each secret of a grant before that is used, behind what it is: a server may repeat what it was sent (X5).
    """

    def __init__(
        self,
        store: SealedStore,
        renew: Callable[[LoginGrant], Awaitable[LoginGrant]],
        learn: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._renew = renew
        self._learn = learn
        self._held: dict[LoginGrantKey, HeldGrant] = {}
        self._read_at: dict[LoginGrantKey, float] = {}  # by the monotonic clock
        self._renewing: dict[LoginGrantKey, asyncio.Task[HeldGrant | None]] = {}
        self._paused: dict[LoginGrantKey, PausedIssuer] = {}
        self._unreadable: dict[LoginGrantKey, int] = {}  # the versions that were sealed with another key
        self._tasks = BackgroundTasks()

    def grant_if_at_hand(self, key: LoginGrantKey) -> HeldGrant | None:
        """Return a grant that counts and was read a moment ago; one that is to be renewed soon is renewed meanwhile."""
        held = self._held.get(key)
        if held is None or time.monotonic() - self._read_at[key] > FRESH:
            return None
        return self._valid_grant(key, held)

    def _valid_grant(self, key: LoginGrantKey, held: HeldGrant) -> HeldGrant | None:
        """Return a grant if it counts; one that is to be renewed soon is renewed meanwhile."""
        if not held.counts():
            return None
        due = held.renew_at is not None and time.time() >= held.renew_at and held.grant.renewable
        if due and self._pause(key) is None:
            self._begin_renewal(key, held)
        return held

    async def current_grant(self, key: LoginGrantKey) -> HeldGrant | None:
        """Return a grant that counts now, renewed where it has ended; None where a login is needed.

        Raises ``ToolUnavailableError`` where its issuer does not renew it for now.
        """
        held = self.grant_if_at_hand(key)
        if held is not None:
            return held
        held = await self.read(key)
        if held is None or self._valid_grant(key, held):
            return held
        return await self._renew_grant(key, held) if held.is_alive() else None

    async def grant_after_refusal(self, key: LoginGrantKey, token: str) -> HeldGrant | None:
        """Return a grant that counts though a server refused this token: a newer one, or a renewed one; else None.

        Raises ``ToolUnavailableError`` where its issuer does not renew it for now.
        """
        held = await self.read(key)
        if held is None or held.grant.refused:
            return None
        if held.grant.access_token != token and held.counts():
            return held
        renewed = await self._renew_grant(key, held) if held.grant.renewable else None
        if renewed is None:
            self.reject_grant(key, token)
        return renewed

    def reject_grant(self, key: LoginGrantKey, token: str) -> None:
        """Take a grant for one that does not count, since its server refuses it and it is no longer renewed."""
        held = self._held.get(key)
        if held is not None and held.grant.access_token == token:
            self._held[key] = replace(held, tried_again_at=time.time() + _AGAIN)

    async def read(self, key: LoginGrantKey) -> HeldGrant | None:
        """Return a grant as it is stored now."""
        began = time.monotonic()
        return self._take_stored(key, await self._store.sealed("grant", key.text), began)

    def _take_stored(self, key: LoginGrantKey, stored: SealedText | None, read_at: float) -> HeldGrant | None:
        if stored is None:
            self._drop(key)
            self._unreadable.pop(key, None)
            return None
        held = self._held.get(key)
        if held is not None and held.version == stored.version:
            self._read_at[key] = read_at
            return held
        grant = None if stored.text is None else grant_from_json(stored.text)
        if grant is None:
            if self._unreadable.get(key) != stored.version:
                log.warning("The login to %s cannot be used. %s", key.resource, _OTHER_KEY)
            self._drop(key)
            self._unreadable[key] = stored.version
            return None
        return self._hold_grant(key, grant, stored.version, read_at)

    def _hold_grant(
        self, key: LoginGrantKey, grant: LoginGrant, version: int, read_at: float | None = None
    ) -> HeldGrant:
        self._unreadable.pop(key, None)
        for name, secret in grant.secrets.items():
            self._learn(f"{name} of {key.text}", secret)
        self._read_at[key] = time.monotonic() if read_at is None else read_at
        held = self._held[key] = HeldGrant(grant, version, grant.renew_at())
        return held

    def _drop(self, key: LoginGrantKey) -> None:
        self._held.pop(key, None)
        self._read_at.pop(key, None)

    def unreadable(self, key: LoginGrantKey) -> str:
        """Return why a grant that is stored cannot be used, and what to do, or nothing."""
        return _OTHER_KEY if key in self._unreadable else ""

    async def keep(self, key: LoginGrantKey, grant: LoginGrant, event: LoginEvent = "login") -> HeldGrant:
        """Store a grant in place of any other."""
        audit = _login_record(key, event, "ok")
        version = await self._store.seal("grant", key.text, grant.to_json(), expected=None, audit=audit)
        return self._hold_grant(key, grant, version or 0)

    async def obtain_grant(self, key: LoginGrantKey, make: Callable[[], Awaitable[LoginGrant]]) -> HeldGrant:
        """Return the grant that the gateway has for itself, made once over all processes where there is none.

        Raises what ``make`` raises.
        """
        backoff = Backoff(first=0.01, longest=0.1, jitter=0.5)
        while True:
            async with self._renewal_lease(key) as alone:
                if alone:
                    held = await self.read(key)
                    return held if held is not None and not held.grant.refused else await self.keep(key, await make())
            await backoff.wait()

    async def forget(self, key: LoginGrantKey) -> LoginGrant | None:
        """Remove a grant and return it, or None where there was none."""
        held = await self.read(key)
        audit = () if held is None else _login_record(key, "logout", "ok")
        await self._store.seal("grant", key.text, None, expected=None, audit=audit)
        self._drop(key)
        return None if held is None else held.grant

    # -- one refresher -----------------------------------------------------------------------------

    def _pause(self, key: LoginGrantKey) -> PausedIssuer | None:
        """Return why an issuer is not asked to renew a grant now, or None where it may be."""
        paused = self._paused.get(key)
        if paused is not None and time.time() >= paused.until:
            del self._paused[key]
            return None
        return paused

    async def _renew_grant(self, key: LoginGrantKey, held: HeldGrant) -> HeldGrant | None:
        """Return a grant renewed, by whoever is at it; raises ``ToolUnavailableError`` where it is not for now."""
        renewed = None if self._pause(key) else await asyncio.shield(self._begin_renewal(key, held))
        if renewed is None and (paused := self._pause(key)):
            raise paused.error()
        return renewed

    def _begin_renewal(self, key: LoginGrantKey, held: HeldGrant) -> asyncio.Task[HeldGrant | None]:
        """Return the renewal under way, or begin one: those who need it at once share it."""
        task = self._renewing.get(key)
        if task is None or task.done():
            task = self._renewing[key] = self._tasks.start(self._try_to_renew(key, held))
        return task

    async def _try_to_renew(self, key: LoginGrantKey, held: HeldGrant) -> HeldGrant | None:
        """Return a grant renewed, or None where it is not any longer, or is not for now, which is noted."""
        from pegboard.sources.mcp.login.token_requests import BusyIssuerError

        try:
            return await self._renew_under_lease(key, held)
        except PegboardError as error:
            log.warning("The login to %s could not be renewed: %s", key.resource, error)
            pause = error.pause if isinstance(error, BusyIssuerError) else None
            self._paused[key] = PausedIssuer(time.time() + (pause or _PAUSE), error.message.rstrip("."))
            return None
        finally:
            self._renewing.pop(key, None)

    async def _renew_under_lease(self, key: LoginGrantKey, held: HeldGrant) -> HeldGrant | None:
        """Renew a grant once over all processes: whoever has the lease does it, the others take what comes of it."""
        backoff = Backoff(first=0.01, longest=0.1, jitter=0.5)
        while True:
            async with self._renewal_lease(key) as alone:
                newest = await self.read(key)
                if newest is None or (alone and not newest.grant.renewable):
                    return None
                if newest.version != held.version and newest.counts():
                    return newest
                if alone:
                    return await self._ask_issuer(key, newest)
            held = newest
            await backoff.wait()

    @asynccontextmanager
    async def _renewal_lease(self, key: LoginGrantKey) -> AsyncGenerator[bool]:
        """Give whether the right to renew a grant is ours alone, also in this process, for as long as it takes."""
        name, holder = f"renew {key.text}", secrets.token_hex(8)
        if not await self._store.take_lease(name, holder, seconds=LEASE):
            yield False
            return
        extending = asyncio.create_task(self._extend_lease(name, holder))
        try:
            yield True
        finally:
            extending.cancel()
            await self._store.end_lease(name, holder)

    async def _extend_lease(self, name: str, holder: str) -> None:
        """Keep a lease from ending while a slow issuer answers, or a busy store takes what it gave."""
        while True:
            await asyncio.sleep(_LEASE_AGAIN)
            with suppress(PegboardError):  # what the store cannot do now it says to whoever renews
                await self._store.take_lease(name, holder, seconds=LEASE)

    async def _ask_issuer(self, key: LoginGrantKey, held: HeldGrant) -> HeldGrant | None:
        """Ask the issuer, and store what it gives before anyone uses it; a grant that is newer is never replaced."""
        from pegboard.sources.mcp.login.token_requests import RefusedTokensError

        try:
            grant = await self._renew(held.grant)
        except RefusedTokensError as error:
            newest = await self.read(key)
            if newest is not None and newest.version != held.version:
                return newest if newest.counts() else None
            if error.code in _FOR_NOW or (error.code not in _FOR_GOOD and held.counts()):
                raise ToolUnavailableError(f"{held.grant.issuer} answers: {error}.") from None
            await self._mark_refused(key, held, error)
            return None
        audit = _login_record(key, "refresh", "ok")
        version = await self._store.seal("grant", key.text, grant.to_json(), expected=held.version, audit=audit)
        if version is None:  # someone has logged in meanwhile
            return await self.read(key)
        return self._hold_grant(key, grant, version)

    async def _mark_refused(self, key: LoginGrantKey, held: HeldGrant, error: RefusedTokensError) -> None:
        """Keep a grant that is no longer renewed, so that it is known why a login is needed."""
        refused = held.grant.refused_for(str(error))
        audit = _login_record(key, "refresh", error.code)
        version = await self._store.seal("grant", key.text, refused.to_json(), expected=held.version, audit=audit)
        if version is not None:
            self._hold_grant(key, refused, version)

    async def aclose(self) -> None:
        """Let renewals that are under way come to their end: what an issuer has given must be stored."""
        await self._tasks.finish(LEASE)


def _login_record(key: LoginGrantKey, event: LoginEvent, outcome: str) -> tuple[AuditRecord]:
    """Return the record of what became of a grant (X4)."""
    return (
        AuditRecord(
            at=datetime.now(UTC),
            kind="login",
            principal=key.owner.principal,
            agent=key.owner.agent,
            session="",
            turn=0,
            subject=key.resource,
            decision=event,
            outcome=outcome,
        ),
    )
