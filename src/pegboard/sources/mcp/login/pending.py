"""Logins that a person has still to complete: each once, within ten minutes, by whichever process hears of it (G11)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.logins import LoginNeed, PendingLogin
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError, ToolUnavailableError, UsageError
from pegboard.ports.logins import LoginState
from pegboard.sources.mcp.login.callback import PATH, CallbackServer
from pegboard.sources.mcp.login.challenge import Challenge
from pegboard.sources.mcp.login.device import DeviceLogin, device_login, wait_for_grant
from pegboard.sources.mcp.login.discovery import Issuer, IssuerMetadata, find_issuer, resource_of
from pegboard.sources.mcp.login.grant import LoginGrant
from pegboard.sources.mcp.login.identity import Identity, configured_identity, forget, register, registered_identity
from pegboard.sources.mcp.login.keeper import GrantKeeper, LoginGrantKey
from pegboard.sources.mcp.login.token_requests import RefusedTokensError, exchange_code
from pegboard.sources.mcp.login.web import LoginWeb, place_of, require_safe
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks, call_later_detached

if TYPE_CHECKING:
    from pegboard.ports.sealed import SealedStore

log = logging.getLogger("pegboard.sources.mcp")

LASTS: Final = 600.0
"""For how many seconds a login may be completed."""
_STAYS: Final = 30.0
"""For how many seconds the address stays after the last login, so that a page that is loaded again says what is."""
_SOON: Final = 120.0
"""Seconds before its end at which a pending login is not given out again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    """What a person was asked for, as it is kept until they answer; it is a secret."""

    pending: PendingLogin
    server: str
    issuer: str
    metadata: IssuerMetadata
    asked_for: str
    scopes: tuple[str, ...]
    identity: Identity
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect: str
    taken: bool = False

    @property
    def key(self) -> LoginGrantKey:
        """Return under which key its grant is kept."""
        return LoginGrantKey(self.pending.owner, self.pending.resource)

    @property
    def named(self) -> Issuer:
        """Return who was asked."""
        return Issuer(name=self.issuer, metadata=self.metadata, resource=self.asked_for, scopes=self.scopes)


_ASKED: Final = TypeAdapter(LoginRequest)


class PendingLogins:
    """The logins that are pending, of one process: it listens for those that it began."""

    def __init__(self, store: SealedStore, keeper: GrantKeeper) -> None:
        self._store = store
        self._keeper = keeper
        self._callback = CallbackServer(self._complete_answer)
        self._begun: dict[
            tuple[LoginGrantKey, str | None], PendingLogin
        ] = {}  # by where the browser comes back to, too
        self._beginning: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by resource
        self._tasks = BackgroundTasks()
        self._changed: dict[str, asyncio.Event] = {}

    async def begin(
        self, spec: ServerSpec, need: LoginNeed, challenge: Challenge, redirect: str | None, *, device: bool
    ) -> PendingLogin:
        """Return a login that may be completed at its address: a new one, or the one that is pending for its owner."""
        key = LoginGrantKey(need.owner, resource_of(spec)), redirect
        async with self._beginning.setdefault(key[0].resource, asyncio.Lock()):  # a slow server holds up no other
            known = self._begun.get(key)
            if known is not None and (known.code or not device) and await self._is_still_open(known, need):
                return known
            pending = self._begun[key] = await self._begin_login(spec, need, challenge, redirect, device=device)
            call_later_detached(LASTS, self._finish_login, pending)
            return pending

    async def _is_still_open(self, known: PendingLogin, need: LoginNeed) -> bool:
        stored = await self._store.sealed("login", known.id)
        asked = None if stored is None else _read_request(stored.text)
        enough = asked is not None and set(need.scopes) <= set(asked.scopes)
        return enough and known.expires_at - time.time() > _SOON

    async def _begin_login(
        self, spec: ServerSpec, need: LoginNeed, challenge: Challenge, redirect: str | None, *, device: bool
    ) -> PendingLogin:
        held = await self._keeper.read(LoginGrantKey(need.owner, resource_of(spec)))
        before = held.grant.scopes if held is not None and need.scopes else ()
        wanted = tuple(dict.fromkeys((*(spec.auth.scopes if spec.auth else ()), *before, *need.scopes)))
        async with LoginWeb(spec.url or "") as web:
            issuer = await find_issuer(web, spec, challenge, wanted)
            for endpoint in (issuer.metadata.authorization_endpoint, issuer.metadata.token_endpoint):
                require_safe(str(endpoint), spec.url or "")
            identity, redirect = await self._identity(web, spec, issuer, redirect)
            typed = await device_login(web, issuer, identity, spec.url or "") if device else None
        verifier, number = secrets.token_urlsafe(64), secrets.token_hex(6)
        state = f"{number}.{secrets.token_urlsafe(32)}"
        pending = PendingLogin(
            id=number,
            plugin=spec.name,
            resource=resource_of(spec),
            owner=need.owner,
            url=_address(issuer, identity, redirect, state, verifier),
            expires_at=time.time() + LASTS,
            code=typed.code if typed else "",
            code_url=typed.url if typed else "",
            why=self._keeper.unreadable(LoginGrantKey(need.owner, resource_of(spec))),
        )
        asked = LoginRequest(
            pending=pending,
            server=spec.url or "",
            issuer=issuer.name,
            metadata=issuer.metadata,
            asked_for=issuer.resource,
            scopes=issuer.scopes,
            identity=identity,
            state=state,
            verifier=verifier,
            redirect=redirect,
        )
        text = to_json(asked).decode()
        await self._store.seal("login", number, text, expected=0, expires_at=pending.expires_at)
        if typed is not None:
            self._tasks.start(self._watch_device(asked, typed))
        return pending

    async def _watch_device(self, asked: LoginRequest, typed: DeviceLogin) -> None:
        """Complete a login once its code was typed elsewhere, unless another way is quicker."""
        try:
            grant = await wait_for_grant(
                asked.named, asked.identity, asked.server, typed, until=asked.pending.expires_at
            )
            if grant is None or asked.pending not in self._begun.values():
                return
            await self._take_request(asked.state, None)
            await self._keep_grant(asked, grant)
            await self._store.seal("login", asked.pending.id, None, expected=None)
            self._finish_login(asked.pending)
            await self._end_others(asked.key)
        except PegboardError as error:
            log.warning("The login to '%s' by a code did not work: %s", asked.pending.plugin, error)

    async def _identity(
        self, web: LoginWeb, spec: ServerSpec, issuer: Issuer, redirect: str | None
    ) -> tuple[Identity, str]:
        """Return as whom to ask, and where the browser comes back to, which an issuer may know by its port."""
        known = configured_identity(spec, issuer) or await registered_identity(self._store, issuer)
        if redirect is None:
            before = urlsplit(known.redirect if known is not None else "")
            port = await self._callback.open((before.port or 0) if before.path == PATH else 0)
            redirect = f"http://127.0.0.1:{port}{PATH}"
        if known is None or (known.redirect and known.redirect != redirect):
            known = await register(web, self._store, spec, issuer, redirect, known)
        elif known.redirect and not set(issuer.scopes) <= set(known.scopes):
            with suppress(ToolUnavailableError):  # few issuers mind: as it is, it may do
                known = await register(web, self._store, spec, issuer, redirect, known)
        return known, redirect

    async def complete(self, answer: Mapping[str, str], owner: LoginOwner | None) -> PendingLogin:
        """Store the grant of a pending login, which counts no more; raises ``UsageError``."""
        asked = await self._take_request(answer.get("state", ""), owner)
        try:
            if answer.get("error"):
                text = one_line(answer.get("error_description", ""), limit=200)
                why = f"{one_line(answer['error'], limit=60)}{f' ({text})' if text else ''}"
                raise _login_error(f"{place_of(asked.issuer)} answered: {why}.")
            _require_issuer(asked, answer.get("iss"))
            await self._exchange(asked, answer.get("code", ""))
        finally:
            await self._store.seal("login", asked.pending.id, None, expected=None)
            self._finish_login(asked.pending)
        await self._end_others(asked.key)
        return asked.pending

    async def _end_others(self, key: LoginGrantKey) -> None:
        """End what else was begun for a login that stands now: no one need complete it."""
        for other in [pending for (known, _), pending in self._begun.items() if known == key]:
            await self._store.seal("login", other.id, None, expected=None)
            self._finish_login(other)

    async def pending(self, login_id: str) -> PendingLogin | None:
        """Return a login that is still to be completed, by its id or the ``state`` of an answer; else None."""
        number, _, secret = login_id.partition(".")
        stored = await self._store.sealed("login", number)
        asked = None if stored is None else _read_request(stored.text)
        if asked is None or asked.taken or asked.pending.expires_at <= time.time():
            return None
        fits = not secret or secrets.compare_digest(asked.state.encode(), login_id.encode())
        return asked.pending if fits else None

    async def _take_request(self, state: str, owner: LoginOwner | None) -> LoginRequest:
        """Return what was asked for, marked in the same breath as taken: no one else completes it."""
        number = state.partition(".")[0]
        stored = await self._store.sealed("login", number)
        asked = None if stored is None else _read_request(stored.text)
        known = asked is not None and secrets.compare_digest(asked.state.encode(), state.encode())
        if stored is None or asked is None or not known or owner not in (None, asked.pending.owner):
            raise _login_error(
                "No login is pending under this address: it was completed, has expired, or belongs to another person."
            )
        text = to_json(replace(asked, taken=True)).decode()
        expires_at = asked.pending.expires_at
        version = await self._store.seal("login", number, text, expected=stored.version, expires_at=expires_at)
        if asked.taken or version is None:
            raise _login_error("This login is being completed already.")
        return asked

    async def _exchange(self, asked: LoginRequest, code: str) -> None:
        try:
            async with LoginWeb(asked.server) as web:
                grant = await exchange_code(
                    web, asked.named, asked.identity, code=code, verifier=asked.verifier, redirect=asked.redirect
                )
        except RefusedTokensError as error:
            if error.code == "invalid_client":
                await forget(self._store, asked.issuer, asked.identity.client_id)
            raise _login_error(f"{place_of(asked.issuer)} gave no tokens: {error}.") from None
        except ToolUnavailableError as error:
            raise _login_error(error.message) from None
        await self._keep_grant(asked, grant)

    async def _keep_grant(self, asked: LoginRequest, grant: LoginGrant) -> None:
        before = await self._keeper.read(asked.key)
        wider = before is not None and not before.grant.refused and set(grant.scopes) > set(before.grant.scopes)
        await self._keeper.keep(asked.key, grant, "step_up" if wider else "login")

    async def _complete_answer(self, answer: Mapping[str, str]) -> str:
        try:
            await self.complete(answer, None)
        except PegboardError as error:
            return error.text
        return ""

    async def wait(self, pending: PendingLogin) -> LoginState:
        """Wait until a login is no longer pending, whichever process completes it."""
        changed = self._changed.setdefault(pending.id, asyncio.Event())
        backoff = Backoff(first=0.1, longest=1.0)
        try:
            while await self._store.sealed("login", pending.id) is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(backoff.next()):
                        await changed.wait()
                    changed.clear()
        finally:
            self._changed.pop(pending.id, None)
        held = await self._keeper.read(LoginGrantKey(pending.owner, pending.resource))
        began = pending.expires_at - LASTS
        return "completed" if held is not None and held.counts() and held.grant.obtained_at >= began else "failed"

    def _finish_login(self, pending: PendingLogin) -> None:
        self._begun = {key: known for key, known in self._begun.items() if known != pending}
        if (changed := self._changed.pop(pending.id, None)) is not None:
            changed.set()
        call_later_detached(_STAYS, self._close_unused)

    def _close_unused(self) -> None:
        if not self._begun:
            self._callback.close()

    def close(self) -> None:
        """Listen no more, and ask no issuer any longer."""
        self._tasks.cancel()
        self._callback.close()


def _address(issuer: Issuer, identity: Identity, redirect: str, state: str, verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": identity.client_id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": issuer.resource,
        **({"scope": " ".join(issuer.scopes)} if issuer.scopes else {}),
        **({"prompt": "consent"} if "offline_access" in issuer.scopes else {}),
    }
    endpoint = str(issuer.metadata.authorization_endpoint)
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"


def _require_issuer(asked: LoginRequest, said: str | None) -> None:
    """Raise where an answer comes from someone else than was asked (RFC 9207): compared as they stand."""
    expected = str(asked.metadata.issuer)
    demanded = asked.metadata.authorization_response_iss_parameter_supported
    if (said is None and not demanded) or said == expected:
        return
    raise _login_error(f"The answer does not come from {place_of(expected)}, which was asked.")


def _login_error(why: str) -> UsageError:
    return UsageError(why, code="login_failed", hint="Start the login again.")


def _read_request(text: str | None) -> LoginRequest | None:
    try:
        return None if text is None else _ASKED.validate_json(text)
    except ValidationError:
        return None
