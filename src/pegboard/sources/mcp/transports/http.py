"""HTTP as a transport of the SDK, with a way for calls around it. Imports the SDK: import late."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.wire.http_client import WatchedClient
from pegboard.sources.mcp.wire.open_connection import OpenConnection

if TYPE_CHECKING:
    from pegboard.sources.mcp.fast.http_calls import HttpFastPath


class HttpTransport:
    """A server at a URL; with ``use_fast_path`` there is a way for calls around the SDK."""

    def __init__(self, spec: ServerSpec, live: OpenConnection, *, use_fast_path: bool) -> None:
        self.fast_path: HttpFastPath | None = None
        self._spec = spec
        self._live = live
        self._use_fast_path = use_fast_path
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> tuple[Any, Any]:
        url = self._spec.url or ""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(WatchedClient(self._spec, self._live))
            limit = self._live.message_limit
            streams = streamable_http_client(url, http_client=client, max_sse_event_size=limit)
            read, write = await stack.enter_async_context(streams)
            if self._use_fast_path:
                read = await self._open_fast_path(stack, client, url, read)
            else:
                self._watch_without_calls(stack, client, url)
            self._stack = stack.pop_all()
        return read, write

    def _watch_without_calls(self, stack: AsyncExitStack, client: WatchedClient, url: str) -> None:
        """Notice the end of the server by a connection of that way, once its list has let calls run (A4)."""

        def watch() -> None:
            from pegboard.sources.mcp.fast.http_calls import HttpFastPath

            way = HttpFastPath(self._live, client, url, lambda _: None)
            stack.callback(way.close)
            self._live.watch_server()

        self._live.watch_server = watch

    async def _open_fast_path(self, stack: AsyncExitStack, client: WatchedClient, url: str, read: Any) -> Any:
        """Return the stream that the session reads: what the SDK reads, and what calls around it bring besides."""
        from pegboard.sources.mcp.fast.http_calls import HttpFastPath

        group = await stack.enter_async_context(anyio.create_task_group())
        send, joined = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

        async def join() -> None:
            with send:
                async for item in read:
                    send.send_nowait(item)

        def inject(message: SessionMessage) -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                send.send_nowait(message)

        group.start_soon(join)
        stack.callback(group.cancel_scope.cancel)
        self.fast_path = HttpFastPath(self._live, client, url, inject)
        stack.callback(self.fast_path.close)
        return joined

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)
