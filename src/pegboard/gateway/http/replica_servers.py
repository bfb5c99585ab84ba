"""Where other replicas ask the servers that this one runs: nobody else gets there (G9, G14)."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pegboard.gateway.http.auth import FORWARDED
from pegboard.gateway.replicas.server_messages import PATH, question_from_json, written

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp
    from pegboard.gateway.replicas.owners import Owners


class ReplicaServers:
    """An ASGI app that answers other replicas, and hands every other request on to ``app``."""

    def __init__(self, app: GatewayApp, owners: Owners) -> None:
        self._app = app
        self._owners = owners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "http" and FORWARDED in scope and scope["path"] == PATH:
            await self._answer(receive, send)
        else:
            await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await self._app.close(grace=grace)

    async def _answer(self, receive: Receive, send: Send) -> None:
        try:
            question = question_from_json(json.loads((await receive())["body"]))
        except (ValueError, KeyError):
            await _done(send, 400)  # another version asks
            return
        if question.what == "changed":
            self._owners.source.tools_changed(question.server.name)
            await _done(send, 204)
            return
        served = self._owners.served
        if question.what == "answer":
            served.answer(question.given)
            await _done(send, 204)
            return
        spec = served.has(question)
        if spec is None:
            await _done(send, 409)
            return
        async with aclosing(served.lines(spec, question)) as lines:
            await _stream(lines, receive, send)


async def _done(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _stream(lines: Any, receive: Receive, send: Send) -> None:
    """Send lines as they come; where nobody reads them any more, nothing is waited for."""
    headers = [(b"content-type", b"application/x-ndjson")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending: asyncio.Task[Any] = asyncio.create_task(_sent(lines, send))
    gone: asyncio.Task[Any] = asyncio.create_task(_received(receive))
    try:
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
            await send({"type": "http.response.body", "body": b""})
    finally:
        for task in (sending, gone):
            task.cancel()
        await asyncio.wait({sending, gone})


async def _received(receive: Receive) -> Any:
    return await receive()


async def _sent(lines: Any, send: Send) -> None:
    async for line in lines:
        await send({"type": "http.response.body", "body": written(line), "more_body": True})
