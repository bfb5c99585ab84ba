"""Where other replicas ask the servers that this one runs: no one else gets there (G9, G14)."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from pegboard.gateway.http.auth import HttpRefusal
from pegboard.gateway.http.open_requests import OpenRequests, whole_body
from pegboard.gateway.http.replica_routing import BODY_LIMIT
from pegboard.gateway.replicas.credential import ASKS, CredentialError
from pegboard.gateway.replicas.forwarding import MISDIRECTED, target_of
from pegboard.gateway.replicas.server_messages import PATH, document_line, question_from_json

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp
    from pegboard.gateway.replicas.owners import ReplicaOwners


log = logging.getLogger("pegboard")

_ASKS: Final = ASKS.encode()
_TOO_LARGE: Final = HttpRefusal(413, "A request here has at most 4 MiB.")


class ReplicaServers:
    """An ASGI app that answers other replicas, and hands every other request on to ``app``."""

    def __init__(self, app: GatewayApp, owners: ReplicaOwners, own: str) -> None:
        self._app = app
        self._owners = owners
        self._own = own
        self._requests = OpenRequests()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        credential = _credential(scope) if scope["type"] == "http" and scope["path"] == PATH else None
        if credential is None:
            await self._app(scope, receive, send)
            return
        status, body = await self._answer_question(credential, scope, receive)
        if body is None:
            await _respond_empty(send, status)
        else:
            await self._requests.serve(self._answer_replica, scope, body, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await asyncio.gather(self._app.close(grace=grace), self._requests.close(grace=grace))

    async def _answer_question(self, credential: bytes, scope: Scope, receive: Receive) -> tuple[int, bytes | None]:
        """Return the body of what a replica has asked, or the status of what is not answered."""
        if self._requests.closing:
            return 503, None
        try:
            body = await whole_body(scope, receive, limit=BODY_LIMIT, too_large=_TOO_LARGE)
            given = credential.decode("latin-1"), scope["method"], target_of(scope), body or b""
            proof = self._owners.credentials.check(*given)
        except HttpRefusal:
            return 413, None
        except CredentialError as error:
            log.warning("a question with the credential of a replica was refused: %s", error)
            return 403, None
        return (200, body) if proof.owner == self._own else (MISDIRECTED, None)

    async def _answer_replica(self, _: Scope, receive: Receive, send: Send) -> None:
        try:
            question = question_from_json(json.loads((await receive())["body"]))
        except (ValueError, KeyError):
            await _respond_empty(send, 400)  # another version asks
            return
        if question.what == "changed":
            self._owners.source.tools_changed(question.server.name)
            await _respond_empty(send, 204)
            return
        served = self._owners.served_servers
        if question.what == "answer":
            served.answer(question.given)
            await _respond_empty(send, 204)
            return
        spec = served.spec_if_running(question)
        if spec is None:
            await _respond_empty(send, 409)
            return
        async with aclosing(served.lines(spec, question)) as lines:
            await _stream(lines, receive, send)


def _credential(scope: Scope) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == _ASKS), None)


async def _respond_empty(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _stream(lines: Any, receive: Receive, send: Send) -> None:
    """Send lines as they come; where no one reads them any longer, nothing is waited for."""
    headers = [(b"content-type", b"application/x-ndjson")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending: asyncio.Task[Any] = asyncio.create_task(_send_lines(lines, send))
    gone: asyncio.Task[Any] = asyncio.create_task(_receive_body(receive))
    try:
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
            await send({"type": "http.response.body", "body": b""})
    finally:
        for task in (sending, gone):
            task.cancel()
        await asyncio.wait({sending, gone})


async def _receive_body(receive: Receive) -> Any:
    return await receive()


async def _send_lines(lines: Any, send: Send) -> None:
    async for line in lines:
        await send({"type": "http.response.body", "body": document_line(line), "more_body": True})
