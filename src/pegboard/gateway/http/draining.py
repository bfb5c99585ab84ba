"""A gateway that is about to stop: whoever distributes requests is told first, then clients, then it ends (G14)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pegboard.errors import StoreError
from pegboard.gateway.http.auth import Authenticator

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp

STORE_WITHIN: Final = 2.0
"""How long the store may take to say what it is at, in seconds."""
_COMES_AGAIN: Final = "1"
_CLOSE: Final = (b"connection", b"close")


class Drain:
    """Whether a gateway is about to stop: what runs goes on, and nothing that lasts is begun any longer."""

    def __init__(self) -> None:
        self.begun = False


class DrainingApp:
    """An ASGI app that hands every request on to ``app``; while it drains, connections end with their responses.

    So a client or proxy that keeps a connection comes to another replica with its next request.
    """

    def __init__(self, app: GatewayApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if self._drain.begun and scope["type"] == "http":
            send = _send_and_close(send)
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await self._app.close(grace=grace)


def _send_and_close(send: Send) -> Send:
    async def send_and_close(message: Any) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message["headers"] if pair[0].lower() != b"connection"]
            message = {**message, "headers": [*others, _CLOSE]}
        await send(message)

    return send_and_close


class ReadinessEndpoint:
    """The endpoint that says whether requests are to be sent here; it needs no token, and names nothing."""

    def __init__(self, authenticator: Authenticator, drain: Drain) -> None:
        self._authenticator = authenticator
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 200, or 503 with why not."""
        from starlette.responses import JSONResponse

        problem = "stopping" if self._drain.begun else await self._problem()
        if not problem:
            await JSONResponse({"status": "ready"})(scope, receive, send)
            return
        answer = {"status": "not_ready", "problem": problem}
        await JSONResponse(answer, status_code=503, headers={"Retry-After": _COMES_AGAIN})(scope, receive, send)

    async def _problem(self) -> str:
        """Return the code of what stands against serving, or nothing."""
        try:
            async with asyncio.timeout(STORE_WITHIN):
                await self._authenticator.board.services.store.change_token()
        except StoreError as error:
            return error.code
        except TimeoutError:
            return "store_slow"
        return ""
