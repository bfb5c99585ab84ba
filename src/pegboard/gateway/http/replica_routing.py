"""Which replica a request belongs to: that which began its transport session, or has the call that it goes on with."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from pegboard.gateway.http.auth import FORWARDED, Authenticator, HttpRefusal, OriginCheck
from pegboard.gateway.http.open_requests import OpenRequests, replay_body, too_late, whole_body
from pegboard.gateway.protocol.jsonrpc import parse_message
from pegboard.gateway.replicas.credential import HEADER, CredentialError
from pegboard.gateway.replicas.forwarding import MISDIRECTED, ForwardError, target_of
from pegboard.gateway.replicas.session_ids import owner_of_session
from pegboard.support.mcp_constants import INTERNAL_ERROR

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp
    from pegboard.gateway.replicas.peers import ReplicaPeers

log = logging.getLogger("pegboard")

BODY_LIMIT: Final = 4 * 1024 * 1024
"""How large a request of the protocol may be, in bytes."""
_HEADER: Final = HEADER.encode()
_STATE: Final = b'"requestState"'


class SessionRouting:
    """An ASGI app that sends on what belongs to a transport session of another replica, and hands on all else.

    What another replica has sent on is handed on, too, once it has proved that.
    """

    def __init__(self, app: GatewayApp, peers: ReplicaPeers, authenticator: Authenticator) -> None:
        self._app = app
        self._own = peers.own.encode() + b"-"
        self._credentials = peers.credentials
        self._elsewhere = ForwardedRequests(app, peers, authenticator, principals=True)
        self._arrived = OpenRequests()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "http":
            session = credential = None
            for name, value in scope["headers"]:
                if name == b"mcp-session-id":
                    session = session or value
                elif name == _HEADER:
                    credential = value
            if credential is not None:
                await self._serve_another(credential, scope, receive, send)
                return
            if session is not None and not session.startswith(self._own):
                owner = owner_of_session(session)
                if owner is not None:
                    await self._elsewhere.serve(owner, scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        parts = self._app, self._elsewhere, self._arrived
        await asyncio.gather(*(part.close(grace=grace) for part in parts))

    async def _serve_another(self, credential: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that another replica says it has sent; it is never sent on."""
        try:
            body = await _body(scope, receive)
            if body is None:
                return
            proof = self._credentials.check(credential.decode("latin-1"), scope["method"], target_of(scope), body)
            if proof.owner.encode() + b"-" != self._own:
                text = "The replica that this request is for has ended."
                raise HttpRefusal(MISDIRECTED, text, Pegboard_Replica="ended")
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
        except CredentialError as error:
            log.warning("a request with the credential of a replica was refused: %s", error)
            text = f"This request says that a replica has sent it, which its {HEADER} header does not prove: {error}."
            await HttpRefusal(403, text)(scope, receive, send)
        else:
            await self._arrived.serve(self._app, {**scope, FORWARDED: proof.asker}, body, receive, send)


class StateRouting:
    """An ASGI app that sends on what goes on with a call of another replica, and hands on all else.

    Such a request has a ``requestState`` in its body (2026-07-28 era); nothing is lost where it is not found.
    """

    def __init__(self, app: ASGIApp, peers: ReplicaPeers, authenticator: Authenticator) -> None:
        self._app = app
        self._seal = peers.seal
        self._elsewhere = ForwardedRequests(app, peers, authenticator, principals=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or FORWARDED in scope:
            await self._app(scope, receive, send)
            return
        try:
            body = await _body(scope, receive)
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
            return
        if body is None:
            return
        owner, receive = self._owner(body), replay_body(body, receive)
        if owner is None:
            await self._app(scope, receive, send)
        else:
            await self._elsewhere.serve(owner, scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End what is in flight within ``grace`` seconds."""
        await self._elsewhere.close(grace=grace)

    def _owner(self, body: bytes) -> str | None:
        """Return the other replica that has the call which a request goes on with, if it does so."""
        if _STATE not in body:
            return None
        message: Any = parse_message(body)
        match message:
            case {"params": {"requestState": str() as text}}:
                state = self._seal.open(text)
                return None if state is None or state.owner == self._seal.own else state.owner
            case _:
                return None


class ForwardedRequests:
    """The requests that are sent on from here; what belongs to a replica that has ended is handed on to ``app``.

    ``principals``: only those of principals who are known here are.
    """

    def __init__(
        self, app: ASGIApp, peers: ReplicaPeers, authenticator: Authenticator, *, principals: bool = False
    ) -> None:
        self._app = app
        self._principals = principals
        self._forwarder = peers.forwarder
        self._authenticator = authenticator
        self._origins = OriginCheck(app, host=authenticator.host)
        self._requests = OpenRequests()

    async def serve(self, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a request on to its owner, and the response back."""
        try:
            if self._requests.closing:
                raise too_late()
            if (refusal := self._origins.refusal_of(scope)) is not None:
                raise refusal
            if self._principals:
                authorization = next((value for name, value in scope["headers"] if name == b"authorization"), None)
                self._authenticator.principal(None if authorization is None else authorization.decode("latin-1"))
            body = await _body(scope, receive)
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
            return
        if body is None:
            return

        async def serve_forwarded(scope: Scope, received: Receive, send: Send) -> None:
            try:
                if not await self._forwarder.forward(owner, scope, body, receive, send):
                    await self._app(scope, received, send)
            except ForwardError as error:
                refusal = HttpRefusal(error.status, error.text, code=INTERNAL_ERROR, Retry_After="1")
                await refusal(scope, received, send)

        await self._requests.serve(serve_forwarded, scope, body, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await self._requests.close(grace=grace)


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    too_large = HttpRefusal(413, "A request here has at most 4 MiB.")
    return await whole_body(scope, receive, limit=BODY_LIMIT, too_large=too_large)
