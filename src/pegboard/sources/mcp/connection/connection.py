"""Long-lived connections to MCP servers: one per (server, scope), started once, started anew (G8, G9)."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.wire.faults import Fault, start_fault
from pegboard.sources.mcp.wire.timeouts import TimeLimits

if TYPE_CHECKING:
    from mcp import Client

    from pegboard.sources.mcp.wire.observed import ConnectionRecord

State = Literal["idle", "starting", "up", "down", "backing_off"]

_PATIENCE = 3  # failures in a row before starts are spaced out
_LONGEST_PAUSE = 30.0
_LISTEN_AGAIN = (1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(slots=True, kw_only=True)
class Settings:
    """Hold what all connections of one source share; times are in seconds.

    ``lanes``: calls go around the SDK where they can. ``asks``: servers may ask the clients of calls.
    """

    mask: Callable[[str], str]
    start_timeout: float = 30.0
    idle_after: float | None = None
    spawns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    monotonic: Callable[[], float] = time.monotonic
    lanes: bool = True
    asks: bool = True
    handshake_only: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class Live:
    """Hold a connection that answers."""

    client: Client
    link: ConnectionRecord


Work = Callable[[Live], Awaitable[Any]]
"""What is done over a connection that is up."""


class Connection:
    """Keep one server connected: start when needed, share one start, start anew after an end.

    The SDK's client is entered and left in one task of its own (its cancel scopes demand it); others
    only send requests through it. ``held`` counts those who want it to stay up; ``noticed`` takes the
    notifications that are not about tools, None where some may have been missed.
    """

    def __init__(self, spec: ServerSpec, fingerprint: str, settings: Settings, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.fingerprint = fingerprint
        self.in_flight = 0
        self.held = 0
        self.noticed: Callable[[ConnectionRecord, Any], None] | None = None
        self.used = settings.monotonic()
        self.one_at_a_time = False
        self.limits = TimeLimits()
        self._turn = asyncio.Lock()
        self._settings = settings
        self._changed = changed
        self._live: Live | None = None
        self._starting: asyncio.Task[Live | Fault] | None = None
        self._owners: dict[asyncio.Task[None], ConnectionRecord] = {}
        self._last: ConnectionRecord | None = None
        self._fault: Fault | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._started_at: float | None = None
        self._closing = False

    async def up(self) -> Live:
        """Return the connection, started if it is not up; callers at the same time share one start.

        Raises ``ToolUnavailableError`` where it cannot be started, or is not tried again yet.
        """
        if (live := self.at_hand) is not None:
            return live
        self._live = None
        if self._starting is None:
            if self._closing:
                raise ToolUnavailableError(f"Server {self.spec.name!r} is not started: Pegboard is closing.")
            pause = self._retry_at - self._settings.monotonic()
            if pause > 0 and self._fault is not None:
                raise self._fault.error(self.spec, again_in=pause)
            self._starting = asyncio.create_task(self._start(), context=contextvars.Context())
        outcome = await asyncio.shield(self._starting)
        if isinstance(outcome, Fault):
            raise outcome.error(self.spec)
        return outcome

    @property
    def at_hand(self) -> Live | None:
        """Return the connection if it stood when last heard of: an end unseen is found when it is written to."""
        live = self._live
        return live if live is not None and not live.link.closed.is_set() else None

    def mask(self, text: str) -> str:
        """Return a text about the server without secrets."""
        return self._settings.mask(text)

    def proved(self) -> None:
        """Note that the server answered: its next end is the first failure again."""
        self._failures = 0
        self._fault = None
        self._retry_at = 0.0

    @property
    def is_up(self) -> bool:
        """Return whether a request can be sent at once."""
        return self._live is not None and self._live.link.alive()

    @property
    def live(self) -> Live | None:
        """Return the connection if it is up."""
        return self._live if self.is_up else None

    @property
    def closing(self) -> bool:
        """Return whether it was stopped for good."""
        return self._closing

    async def _start(self) -> Live | Fault:
        try:
            async with self._settings.spawns:
                return await self._try_eras()
        finally:
            self._starting = None

    async def _try_eras(self) -> Live | Fault:
        known = self._settings.handshake_only
        outcome: Live | Fault = Fault(reason="it was stopped")
        for legacy in (True,) if self.fingerprint in known else (False, True):
            if self._closing:
                break
            outcome, link = await self._open(legacy=legacy)
            if isinstance(outcome, Live):
                if legacy:
                    known.add(self.fingerprint)
                self._live = outcome
                self._started_at = time.time()
                self._fault = None
                return outcome
            # Some servers of the handshake era leave when anything comes before `initialize`.
            if not (link.exit and not link.heard and not link.stray_count):
                break
        known.discard(self.fingerprint)
        self._fault = outcome
        self._count_failure()
        return outcome

    async def _open(self, *, legacy: bool) -> tuple[Live | Fault, ConnectionRecord]:
        """Start an owner and return what came of it, as soon as it is known."""
        from pegboard.sources.mcp.wire.observed import ConnectionRecord

        link = self._last = ConnectionRecord(self.spec.name)
        link.notice = partial(self._notice, link)
        ready: asyncio.Future[Live | Fault] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(link, ready, legacy=legacy))
        self._owners[owner] = link

        def done(task: asyncio.Task[None]) -> None:
            del self._owners[task]
            if not ready.done():  # it was cancelled
                ready.set_result(start_fault(link, "it was stopped", "", self._settings.mask))

        owner.add_done_callback(done)
        return await ready, link

    def _notice(self, link: ConnectionRecord, message: Any) -> None:
        if self.noticed is not None:
            self.noticed(link, message)

    def _count_failure(self) -> None:
        self._failures += 1
        if self._failures >= _PATIENCE:
            pause = min(2.0 ** (self._failures - _PATIENCE), _LONGEST_PAUSE)
            self._retry_at = self._settings.monotonic() + pause

    async def _own(self, link: ConnectionRecord, ready: asyncio.Future[Live | Fault], *, legacy: bool) -> None:
        """Open the connection, keep it until it ends or is closed, and leave nothing behind."""
        from pegboard.sources.mcp.connection.open_client import begin_talk, open_client, reason_of

        limit = self._settings.start_timeout
        fault: Fault | None = None
        try:
            async with AsyncExitStack() as stack:
                client = open_client(self.spec, link, legacy=legacy, on_changed=self._changed, asks=self._settings.asks)
                async with asyncio.timeout(limit):
                    await stack.enter_async_context(client)
                link.version = client.protocol_version
                link.up = True
                begin_talk(client, link, self._serialise)
                if link.lane is not None and self._settings.lanes:
                    link.lane.open()
                ready.set_result(Live(client, link))
                await self._keep(client, link)
        except TimeoutError:
            fault = start_fault(link, f"it did not answer within {limit:g} s", "", self._settings.mask)
        except Exception as error:
            fault = start_fault(link, *reason_of(error, self.spec), self._settings.mask)
        finally:
            link.close(fault.reason if fault else "it was stopped")
            link.talk.close()
            link.ended.set()
        if not link.stopped and fault is None:
            fault = start_fault(link, link.exit or link.reason, "", self._settings.mask)
        if not ready.done():
            ready.set_result(fault or Fault(reason="it was stopped"))
        elif link is self._last:
            self._fault = fault

    async def _keep(self, client: Client, link: ConnectionRecord) -> None:
        """Wait for the end of the connection, and listen for changes meanwhile."""
        listener = asyncio.create_task(self._listen(client, link))
        idle = self._settings.idle_after
        try:
            while not link.closed.is_set():
                rest = None if idle is None else max(idle - (self._settings.monotonic() - self.used), 0.01)
                try:
                    async with asyncio.timeout(rest):
                        await link.closed.wait()
                except TimeoutError:
                    unused = not self.in_flight and not self.held
                    if idle is not None and unused and self._settings.monotonic() - self.used >= idle:
                        link.stop("it was not used")
        finally:
            listener.cancel()
            await asyncio.wait({listener})

    async def _listen(self, client: Client, link: ConnectionRecord) -> None:
        """Pass on changes of the lists; in the handshake era they come by themselves."""
        try:
            kinds = ("tools", "prompts", "resources")
            held = ((kind, getattr(client.server_capabilities, kind)) for kind in kinds)
            changing = frozenset(kind for kind, has in held if has is not None and has.list_changed)
            if changing:
                await self._subscribe(client, link, changing)
        finally:
            link.subscribed.set()

    async def _subscribe(self, client: Client, link: ConnectionRecord, changing: frozenset[str]) -> None:
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, ToolsListChanged

        lost = 0
        while not link.closed.is_set():
            try:
                async with client.listen(
                    tools_list_changed="tools" in changing,
                    prompts_list_changed="prompts" in changing,
                    resources_list_changed="resources" in changing,
                ) as changes:
                    honored = changes.honored.model_dump()
                    link.told = frozenset(kind for kind in changing if honored[f"{kind}_list_changed"])
                    link.subscribed.set()
                    if lost:
                        self._changed()
                        link.notice(None)
                    lost = 0
                    async for change in changes:
                        if isinstance(change, ToolsListChanged):
                            self._changed()
                return
            except ListenNotSupportedError:
                return
            except SubscriptionLost:
                pass
            except MCPError as error:
                if not lost and not error.data:  # the server does not have it
                    return
            finally:
                link.told = frozenset()
            link.subscribed.set()
            await asyncio.sleep(_LISTEN_AGAIN[min(lost, len(_LISTEN_AGAIN) - 1)])
            lost += 1

    def _serialise(self) -> None:
        """Make one call at a time from now on: the server asks, and nothing says which call it asks for (G9)."""
        self.one_at_a_time = True

    @asynccontextmanager
    async def alone(self, live: Live) -> AsyncGenerator[None]:
        """Wait until no other call is under way, in the order in which calls came."""
        async with self._turn:
            while live.link.talk.calls and live.link.alive():
                live.link.talk.drained.clear()
                await live.link.talk.drained.wait()
            yield

    def unused(self) -> None:
        """Note the end of a request, which counts as use."""
        self.in_flight -= 1
        self.used = self._settings.monotonic()

    async def lost(self, live: Live, reason: str, *, dead: bool) -> str:
        """Note the end of a connection and return in words how it came."""
        link = live.link
        if dead or not link.alive():
            link.close(reason)
            if self._live is live:
                self._live = None
                self._count_failure()
            try:
                async with asyncio.timeout(1.0):
                    await link.ended.wait()
            except TimeoutError:
                pass
        fault = start_fault(link, link.exit or reason, "", self._settings.mask)
        if dead or link.closed.is_set():
            self._fault = fault
        return fault.text

    async def close(self) -> None:
        """Stop for good."""
        self._closing = True
        for owner, link in list(self._owners.items()):
            link.stop("it was stopped")
            if not link.up:
                owner.cancel()
        self._live = None
        if waiting := {*self._owners, *([self._starting] if self._starting else [])}:
            await asyncio.wait(waiting, timeout=10.0)

    def state(self, scope: str) -> dict[str, Any]:
        """Return what an operator wants to know."""
        link = self._last
        live = self._live is not None and self._live.link.alive()
        return {
            "name": self.spec.name,
            "scope": scope,
            "state": self._state(live=live),
            "era": link.version if link and live else "",
            "pid": link.pid if link and live else None,
            "in_flight": self.in_flight,
            "one_at_a_time": self.one_at_a_time,
            "last_error": self._fault.text if self._fault else "",
            "started_at": self._started_at if live else None,
            "dropped": {**link.dropped, **link.left_out} if link else {},
        }

    def _state(self, *, live: bool) -> State:
        if live:
            return "up"
        if self._starting is not None:
            return "starting"
        if self._fault is None:
            return "idle"
        return "backing_off" if self._retry_at > self._settings.monotonic() else "down"
