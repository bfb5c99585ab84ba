"""The first lists over HTTP, before the SDK is imported; what it would answer, and nothing that it is needed for.

Importing the SDK takes longer than everything else at the start (see :mod:`pegboard.gateway.fast.first_responses`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from pegboard.core.access.listed_items import METHODS
from pegboard.gateway.fast.first_responses import MOST_ANSWERS, FirstResponses
from pegboard.gateway.fast.headers import Headers, Identify, headers_of, is_plain_json_post, replay_body
from pegboard.gateway.protocol.jsonrpc import dump_message, parse_message
from pegboard.support.mcp_constants import MODERN
from pegboard.support.tasks import call_later_detached, start_detached

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.protocol.board_port import BoardPort
    from pegboard.gateway.protocol.early_answers import EarlyList

PATIENCE: Final = 0.3
"""For how long a first request is awaited before the SDK is imported anyway, in seconds."""
QUIET: Final = 0.05
"""For how long no other request comes after a first list before the SDK is imported, in seconds."""
_METHODS: Final = frozenset(method.encode() for method in ("tools/list", "server/discover", *METHODS.values()))


class WholeApp(Protocol):
    """The app that serves everything, between its start and its close."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ...

    def running(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Serve while the context lasts."""
        ...

    def take_early_list(self, early: EarlyList) -> None:
        """Take over what a client was listed before this app was there."""
        ...

    async def close(self, *, grace: float) -> None:
        """End every stream; calls that are in flight may go on for ``grace`` seconds."""
        ...


class LazyApp:
    """An ASGI app that answers first lists itself, and loads the whole app as late as it can.

    ``load`` imports and builds the whole app; ``settled`` is called once that runs, and ``failed`` set where
    it cannot.
    """

    def __init__(
        self,
        board: BoardPort,
        identify: Identify,
        load: Callable[[], WholeApp],
        settled: Callable[[], None],
        failed: asyncio.Event,
    ) -> None:
        self._board = board
        self._identify = identify
        self._load = load
        self._settled = settled
        self._failed = failed
        self._app: WholeApp | None = None
        self._listed: list[EarlyList] = []
        self._answers = 0
        self._stack = contextlib.AsyncExitStack()
        self._loading: asyncio.Task[WholeApp] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._app is None:
            rest = await self._answer_first_request(scope, receive, send)
            if rest is None:
                self._answers += 1
                self._load_after(QUIET if self._answers < MOST_ANSWERS else 0.0)
                return
            await (await self._whole_app())(scope, rest, send)
            return
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; calls that are in flight may go on for ``grace`` seconds."""
        if self._timer is not None:
            self._timer.cancel()
        if self._app is not None:
            await self._app.close(grace=grace)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._load_after(PATIENCE)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._timer is not None:
            self._timer.cancel()
        if self._loading is not None:
            await asyncio.gather(self._loading, return_exceptions=True)
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    # -- loading -----------------------------------------------------------------------------------

    def _load_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = call_later_detached(seconds, self._begin_loading)

    def _begin_loading(self) -> asyncio.Task[WholeApp]:
        if self._loading is None:
            self._loading = start_detached(self._load_app())
        return self._loading

    async def _whole_app(self) -> WholeApp:
        """Return the whole app, loaded once: in the thread of the loop, for imports in two can break each other."""
        return await asyncio.shield(self._begin_loading())

    async def _load_app(self) -> WholeApp:
        if self._timer is not None:
            self._timer.cancel()
        try:
            app = self._load()
            await self._stack.enter_async_context(app.running())
        except Exception:
            self._failed.set()
            raise
        for early in self._listed:
            app.take_early_list(early)
        self._app = app
        self._settled()
        return app

    # -- first lists -------------------------------------------------------------------------------

    async def _answer_first_request(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer a plain first request and return None, or return what receives it for the SDK."""
        headers = headers_of(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        if headers is None or not _is_first_list(headers):
            return receive
        caller = self._identify(scope, headers)
        if caller is None:
            return receive
        first = await receive()
        message = None if first.get("more_body") else parse_message(first.get("body", b""))
        if message is None or message.get("method") != headers[b"mcp-method"].decode():
            return replay_body(first, receive)
        responses = FirstResponses(self._board, caller)
        answer = await responses.answer(first["body"])
        if answer is None:
            return replay_body(first, receive)
        self._listed += responses.early.listed.values()
        body = dump_message(answer)
        length, kind = (b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")
        await send({"type": "http.response.start", "status": 200, "headers": [length, kind]})
        await send({"type": "http.response.body", "body": body, "more_body": False})
        return None


def _is_first_list(headers: Headers) -> bool:
    """Return whether a request is a plain one of the 2026 era for what can be answered early."""
    if headers.get(b"mcp-protocol-version") != MODERN.encode() or headers.get(b"mcp-method") not in _METHODS:
        return False
    return is_plain_json_post(headers) and b"mcp-name" not in headers and b"mcp-session-id" not in headers
