"""Which replica a request belongs to: where its transport session was begun (G14)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from pegboard.gateway.http.auth import FORWARDED, Authenticator, OriginCheck, Refusal
from pegboard.gateway.http.open_requests import OpenRequests, stopping, whole_body
from pegboard.gateway.replicas.credential import HEADER, CredentialError, Credentials
from pegboard.gateway.replicas.forwarding import MISDIRECTED, Forwarder, ForwardError, target_of
from pegboard.gateway.replicas.session_ids import owner_of_session
from pegboard.support.mcp_constants import INTERNAL_ERROR

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp

log = logging.getLogger("pegboard")

BODY_LIMIT: Final = 4 * 1024 * 1024
"""How large a request of the protocol may be, in bytes."""


class ReplicaRouting:
    """An ASGI app that sends what another replica owns on to it, and hands every other request on to ``app``."""

    def __init__(
        self, app: GatewayApp, own: str, credentials: Credentials, forwarder: Forwarder, door: Authenticator
    ) -> None:
        self._app = app
        self._own = own.encode() + b"-"
        self._credentials = credentials
        self._forwarder = forwarder
        self._door = door
        self._requests = OpenRequests()
        self._serve_elsewhere = OriginCheck(self._elsewhere, host=door.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "http":
            session = credential = None
            for name, value in scope["headers"]:
                if name == b"mcp-session-id":
                    session = value
                elif name == _HEADER:
                    credential = value
            if credential is not None:
                await self._from_another(credential, scope, receive, send)
                return
            if session is not None and not session.startswith(self._own) and owner_of_session(session) is not None:
                await self._serve_elsewhere(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await asyncio.gather(self._app.close(grace=grace), self._requests.close(grace=grace))

    async def _from_another(self, credential: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that another replica says it has sent; it is never sent on."""
        try:
            body = await _whole_body(scope, receive)
            if body is None:
                return
            proof = self._credentials.check(credential.decode("latin-1"), scope["method"], target_of(scope), body)
            if proof.owner.encode() + b"-" != self._own:
                text = "The replica that this request is for has ended."
                raise Refusal(MISDIRECTED, text, Pegboard_Replica="ended")
        except Refusal as refusal:
            await refusal(scope, receive, send)
        except CredentialError as error:
            log.warning("a request with the credential of a replica was refused: %s", error)
            text = f"This request says that a replica has sent it, which its {HEADER} header does not prove: {error}."
            await Refusal(403, text)(scope, receive, send)
        else:
            await self._requests.serve(self._app, {**scope, FORWARDED: proof.asker}, body, receive, send)

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a request of a transport session on to its owner; where that has ended, nobody knows the session."""
        headers = dict(reversed(scope["headers"]))  # of several the first
        owner = owner_of_session(headers[b"mcp-session-id"])
        try:
            if self._requests.closing:
                raise stopping()
            self._door.principal(headers.get(b"authorization", b"").decode("latin-1") or None)
            body = await _whole_body(scope, receive)
        except Refusal as refusal:
            await refusal(scope, receive, send)
            return
        if body is None or owner is None:
            return

        async def forwarded(scope: Scope, received: Receive, send: Send) -> None:
            try:
                if not await self._forwarder.forward(owner, scope, body, receive, send):
                    await self._app(scope, received, send)
            except ForwardError as error:
                refusal = Refusal(error.status, error.text, code=INTERNAL_ERROR, Retry_After="1")
                await refusal(scope, received, send)

        await self._requests.serve(forwarded, scope, body, receive, send)


_HEADER: Final = HEADER.encode()


async def _whole_body(scope: Scope, receive: Receive) -> bytes | None:
    too_large = Refusal(413, "A request here has at most 4 MiB.")
    return await whole_body(scope, receive, limit=BODY_LIMIT, too_large=too_large)
