"""Updates of resources: one subscription per connection and resource, renewed after a restart (G7, G8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pegboard.errors import PegboardError
from pegboard.sources.mcp import requests, wire
from pegboard.sources.mcp.connection.connection import Connection
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks, start_detached

if TYPE_CHECKING:
    from pegboard.sources.mcp.wire.open_connection import OpenConnection, Work

    Run = Callable[[Work], Awaitable[Any]]
log = logging.getLogger("pegboard.sources.mcp")

Updated = Callable[[str], None]


class Subscriptions:
    """The subscriptions over one connection, and whom updates are passed on to.

    ``run`` does work on the connection, started if it is not up, within the server's timeout.
    ``check_every`` is in seconds.
    """

    def __init__(self, connection: Connection, run: Run, *, check_every: float) -> None:
        self._connection = connection
        self._check_every = check_every
        self._run = run
        self._wanted: dict[str, list[Updated]] = {}
        self._subscribed: set[str] = set()
        self._live: OpenConnection | None = None
        self._stream: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._watcher: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()

    async def add(self, uri: str, updated: Updated) -> Callable[[], None] | None:
        """Subscribe; returns what ends that, or None where the server takes no subscriptions."""
        self._wanted.setdefault(uri, []).append(updated)
        taken = False
        try:
            async with self._lock:
                if not self._is_subscribed(uri):
                    await self._run(lambda live: self._subscribe(live, uri))
                taken = self._is_subscribed(uri)
        finally:
            if not taken and self._remove(uri, updated) and not self._wanted:
                self._end_stream()
        if not taken:
            return None
        if self._watcher is None or self._watcher.done():
            self._watcher = start_detached(self._watch(), name="watch subscriptions")
        return lambda: self._leave_resource(uri, updated)

    def pass_on_update(self, uri: str) -> None:
        """Pass on that a resource, or one beneath a subscribed one, was updated."""
        for wanted, callbacks in list(self._wanted.items()):
            if uri == wanted or uri.startswith(f"{wanted.rstrip('/')}/"):
                _call_all(callbacks, uri)

    def _is_subscribed(self, uri: str) -> bool:
        return uri in self._subscribed and self._live is not None and self._live.alive()

    def _remove(self, uri: str, updated: Updated) -> bool:
        """Forget who wanted updates; return whether no one is left."""
        callbacks = self._wanted.get(uri, [])
        if updated in callbacks:
            callbacks.remove(updated)
        if callbacks or uri not in self._wanted:
            return False
        del self._wanted[uri]
        return True

    def _leave_resource(self, uri: str, updated: Updated) -> None:
        if self._remove(uri, updated):
            self._tasks.start(self._unsubscribe())

    async def _unsubscribe(self) -> None:
        """Unsubscribe from what no one wants any longer, if the server still runs."""
        async with self._lock:
            live = self._connection.live
            if live is None or live is not self._live:
                return
            with suppress(PegboardError):
                await self._run(self._subscribe)
        if not self._wanted and self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None

    # -- one connection ----------------------------------------------------------------------------

    async def _subscribe(self, live: OpenConnection, strict: str | None = None) -> None:
        """Subscribe to what is wanted; only a refusal of ``strict`` is an error."""
        if live is not self._live:
            self._live, self._subscribed = live, set()
            self._end_stream()
        resources = live.client.server_capabilities.resources
        if resources is None or not resources.subscribe:
            return
        if live.modern:
            await self._listen(live)
        else:
            await self._update_one_by_one(live, strict)

    async def _update_one_by_one(self, live: OpenConnection, strict: str | None) -> None:
        """Subscribe and unsubscribe one by one, as the handshake era has it."""
        import mcp_types as types
        from mcp import MCPError

        for uri in [uri for uri in self._wanted if uri not in self._subscribed]:
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            try:
                await requests.send.request_result(live, request)
            except MCPError as error:
                if uri == strict:
                    raise
                log.warning("the subscription to %r was not renewed: %s", uri, error.message)
            else:
                self._subscribed.add(uri)
        for uri in [uri for uri in self._subscribed if uri not in self._wanted]:
            self._subscribed.discard(uri)
            request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
            with suppress(MCPError):
                await requests.send.request_result(live, request)

    async def _listen(self, live: OpenConnection) -> None:
        """Open a stream for what is wanted now, then end the one before, as the 2026 era has it."""
        before, self._stream = self._stream, None
        if self._wanted:
            ready: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
            self._stream = start_detached(_stream(live, sorted(self._wanted), ready), name="listen")
            self._subscribed = set(await ready)
        else:
            self._subscribed = set()
        if before is not None:
            before.cancel()

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    # -- restarts ----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Subscribe again wherever the connection or the stream ended, as long as someone wants updates."""
        backoff = Backoff(first=0.1, longest=30.0, factor=3.0)
        with self._connection.usage.keep_pinned():
            while self._wanted:
                await self._wait_until_ended()
                if not self._wanted or self._connection.closing:
                    return
                await backoff.wait()
                try:
                    async with self._lock:
                        await self._run(self._subscribe)
                except PegboardError as error:
                    log.debug("subscriptions were not renewed: %s", error)
                    continue
                backoff.reset()
                for uri, callbacks in list(self._wanted.items()):
                    _call_all(callbacks, uri)  # it may have been updated meanwhile

    async def _wait_until_ended(self) -> None:
        """Wait until the subscriptions have ended.

        A session of the handshake era over HTTP ends without a sign: it is checked now and then.
        """
        if self._live is None:
            return
        closed = asyncio.create_task(self._live.closed.wait())
        over_http = self._connection.spec.url is not None
        try:
            while not closed.done():
                stream = self._stream
                waited = {closed, stream} if stream else {closed}
                rest = self._check_every if over_http and stream is None else None
                done, _ = await asyncio.wait(waited, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
                async with self._lock:
                    if stream is not None and stream.done() and stream is self._stream:
                        self._subscribed.clear()
                        return
                if not done:
                    with suppress(PegboardError):
                        await self._run(_send_ping)
        finally:
            closed.cancel()


async def _send_ping(live: OpenConnection) -> None:
    import mcp_types as types

    await requests.send.request_result(live, types.PingRequest())


async def _stream(live: OpenConnection, uris: list[str], ready: asyncio.Future[frozenset[str]]) -> None:
    """Keep a stream of updates open; what comes over it is passed on where all notifications are."""
    from mcp import MCPError
    from mcp.client.subscriptions import SubscriptionLost

    try:
        async with live.client.listen(resource_subscriptions=uris) as changes:
            ready.set_result(frozenset(changes.honored.resource_subscriptions or ()))
            async for _ in changes:
                pass
    except (MCPError, SubscriptionLost, TimeoutError, RuntimeError) as error:
        if ready.done():
            return
        if not live.alive():
            ready.set_exception(
                wire.request_outcomes.ConnectionEndedError(live.reason, wire.request_outcomes.InFlight(), dead=True)
            )
        else:
            ready.set_exception(
                error if isinstance(error, MCPError) else wire.request_outcomes.InvalidAnswerError("its stream ended")
            )
    finally:
        if not ready.done():
            ready.cancel()


def _call_all(callbacks: Iterable[Updated], uri: str) -> None:
    for callback in list(callbacks):
        try:
            callback(uri)
        except Exception:
            log.exception("a callback for updates of %r failed", uri)
