"""The first lists over HTTP, before the SDK is imported; what it would answer, and nothing that it is needed for.

Importing the SDK takes longer than everything else at the start (see :mod:`pegboard.gateway.fast.first_responses`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pegboard.gateway.fast.first_responses import FirstResponses
from pegboard.gateway.fast.headers import caller_of, headers_of, is_plain_json_post, replay_body
from pegboard.gateway.http.auth import Authenticator, OriginCheck
from pegboard.gateway.protocol.jsonrpc import dumped, parsed
from pegboard.gateway.protocol.request_identity import MODERN

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.http.app import App

PATIENCE: Final = 0.3
"""For how long a first request is awaited before the SDK is imported anyway, in seconds."""
QUIET: Final = 0.05
"""For how long no other request comes after a first list before the SDK is imported, in seconds."""
_METHODS: Final = frozenset({b"tools/list", b"server/discover"})


class LazyApp:
    """Be the app that serves everything, brought in as late as it can be; ``failed`` is set where it cannot.

    ``settled`` is called once it is in; turns end by ``clock``.
    """

    def __init__(
        self, door: Authenticator, settled: Callable[[], None], clock: Callable[[], float] = monotonic
    ) -> None:
        self._door = door
        self._settled = settled
        self._clock = clock
        self._guard = OriginCheck(_nowhere, host=door.host)
        self._app: App | None = None
        self.failed = asyncio.Event()
        self._stack = contextlib.AsyncExitStack()
        self._coming: asyncio.Task[App] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._app is None:
            found = await self._answered(scope, receive, send)
            if found is None:
                self._later(QUIET)
                return
            await (await self._whole())(scope, found, send)
            return
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; calls that are in flight may go on for ``grace`` seconds."""
        if self._timer is not None:
            self._timer.cancel()
        if self._app is not None:
            await self._app.gateway.close(grace=grace)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._later(PATIENCE)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._timer is not None:
            self._timer.cancel()
        if self._coming is not None:
            await asyncio.gather(self._coming, return_exceptions=True)
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    def _later(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._begin)

    def _begin(self) -> None:
        """Start to bring in what serves everything, once."""
        if self._coming is None:
            self._coming = asyncio.create_task(self._bring_in())

    async def _whole(self) -> App:
        """Bring in what serves everything, once: in the thread of the loop, for imports in two can break each other."""
        self._begin()
        assert self._coming is not None
        return await asyncio.shield(self._coming)

    async def _bring_in(self) -> App:
        if self._timer is not None:
            self._timer.cancel()
        try:
            from pegboard.gateway.http.app import App

            app = App(self._door, self._clock)
            await self._stack.enter_async_context(app.running())
        except Exception:
            self.failed.set()
            raise
        self._app = app
        self._settled()
        return app

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer a plain first request and return None, or return what receives it for the SDK."""
        headers = headers_of(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        if (
            headers is None
            or not is_plain_json_post(headers)
            or headers.get(b"mcp-protocol-version") != MODERN.encode()
        ):
            return receive
        method = headers.get(b"mcp-method")
        caller = caller_of(scope, headers, self._door, self._guard)
        if method not in _METHODS or b"mcp-name" in headers or caller is None or b"mcp-session-id" in headers:
            return receive
        first = await receive()
        message = None if first.get("more_body") else parsed(first.get("body", b""))
        if message is None or message.get("method") != method.decode():
            return replay_body(first, receive)
        answer = await FirstResponses(self._door.board, caller).answer(first["body"])
        if answer is None:
            return replay_body(first, receive)
        body = dumped(answer)
        sent: list[tuple[bytes, bytes]] = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", b"application/json"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": body, "more_body": False})
        return None


async def _nowhere(scope: Any, receive: Any, send: Any) -> None:
    """Be no app: the guard only judges here."""
