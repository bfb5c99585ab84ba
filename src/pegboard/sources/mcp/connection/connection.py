"""Long-lived connections to MCP servers: one per (server, scope), started once, started anew (G8, G9)."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.connection.failures import Failures
from pegboard.sources.mcp.connection.history import History
from pegboard.sources.mcp.connection.live import Live, SourceSettings
from pegboard.sources.mcp.connection.usage import Usage
from pegboard.sources.mcp.wire.faults import Fault, fault_of
from pegboard.sources.mcp.wire.timeouts import TimeLimits

if TYPE_CHECKING:
    from pegboard.ports import ConnectionPhase, ConnectionState, Excluded
    from pegboard.sources.mcp.wire.record import ConnectionRecord

_STOPPED_WITHIN = 10.0


class Connection:
    """The connection to one server: started when needed, by one start for all, and anew after an end.

    The SDK's client is entered and left in one task of its own (its cancel scopes demand it); others
    only send requests through it. ``notified`` takes the notifications that are not about tools, None
    where some may have been missed. ``one_at_a_time``: the server asks, and nothing says which call it
    asks for (G9).
    """

    def __init__(
        self, spec: ServerSpec, fingerprint: str, settings: SourceSettings, changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint
        self.notified: Callable[[ConnectionRecord, Any], None] | None = None
        self.one_at_a_time = False
        self.limits = TimeLimits()
        self.closing = False
        self.failures = Failures(settings.monotonic)
        self.history = History(settings.mask)
        self._settings = settings
        self._changed = changed
        self._turn = asyncio.Lock()
        self._live: Live | None = None
        self._starting: asyncio.Task[Live | Fault] | None = None
        self._owners: dict[asyncio.Task[None], ConnectionRecord] = {}
        self._last: ConnectionRecord | None = None
        self._started_at: float | None = None
        self.usage = Usage(settings.monotonic, self._stop_unused)

    # -- up and down -------------------------------------------------------------------------------

    @property
    def live(self) -> Live | None:
        """Return the connection if it stood when last heard of: an end unseen is found when it is written to."""
        live = self._live
        return live if live is not None and not live.record.closed.is_set() else None

    async def up(self) -> Live:
        """Return the connection, started if it is not up; callers at the same time share one start.

        Raises ``ToolUnavailableError`` where it cannot be started, or is not tried again yet.
        """
        if (live := self.live) is not None:
            return live
        self._live = None
        if self._starting is None:
            if self.closing:
                raise ToolUnavailableError(f"Server {self.spec.name!r} is not started: Pegboard is closing.")
            pause, fault = self.failures.pause, self.failures.fault
            if pause and fault is not None:
                raise fault.error(self.spec, again_in=pause)
            self._begin()
        while True:
            starting = self._starting
            assert starting is not None
            outcome = await asyncio.shield(starting)
            if not isinstance(outcome, Fault):
                return outcome
            if self._starting is None or self._starting is starting:
                raise outcome.error(self.spec)

    def _begin(self, after: Collection[asyncio.Task[Any]] = ()) -> None:
        """Begin to start, once these tasks have ended."""
        self.history.changed()
        self._starting = asyncio.create_task(self._start(after), context=contextvars.Context())

    async def _start(self, after: Collection[asyncio.Task[Any]]) -> Live | Fault:
        try:
            if after:
                await asyncio.wait(after, timeout=_STOPPED_WITHIN)
                self.failures.clear()
            async with self._settings.spawns:
                return await self._try_eras()
        finally:
            if self._starting is asyncio.current_task():
                self._starting = None

    def restart(self) -> None:
        """Stop it, and start it anew without any pause; one that is idle stays so, and one that begins goes on."""
        running = [record for record in self._owners.values() if not record.closed.is_set()]
        if self._starting is not None and not running:
            return
        if running or self.failures.fault is not None:
            self._stop("an operator restarted it")
            self.failures.clear()
            self._begin({*self._owners, *([self._starting] if self._starting is not None else [])})

    async def _try_eras(self) -> Live | Fault:
        known = self._settings.handshake_only
        outcome: Live | Fault = Fault(reason="it was stopped")
        for legacy in (True,) if self.fingerprint in known else (False, True):
            if self.closing:
                break
            outcome, record = await self._open(legacy=legacy)
            if isinstance(outcome, Live):
                if legacy:
                    known.add(self.fingerprint)
                self._take_up(outcome)
                return outcome
            # Some servers of the handshake era leave when anything comes before `initialize`.
            seen = record.diagnostics
            if not (seen.exit and not seen.any_message and not seen.invalid_count):
                break
        known.discard(self.fingerprint)
        self._failed(outcome, self._last)
        self.failures.add()
        self.history.changed()
        return outcome

    def _failed(self, fault: Fault, record: ConnectionRecord | None) -> None:
        self.failures.fault = fault
        if record is not None and not record.stopped:
            self.history.failed(record, fault.text, fault.reason, record.pid)

    def _take_up(self, live: Live) -> None:
        self._live = live
        self._started_at = time.time()
        self.history.started(live.record.pid)
        self.failures.fault = None
        self.usage.note_up(True)

    async def _open(self, *, legacy: bool) -> tuple[Live | Fault, ConnectionRecord]:
        """Start an owner and return what came of it, as soon as it is known."""
        from pegboard.sources.mcp.wire.record import ConnectionRecord

        reported = self.spec.name in self._settings.reported
        record = self._last = ConnectionRecord(
            self.spec, self.history.printed.add, None if reported else self._report_invalid
        )
        record.notify = partial(self._notify, record)
        ready: asyncio.Future[Live | Fault] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(record, ready, legacy=legacy))
        self._owners[owner] = record

        def done(task: asyncio.Task[None]) -> None:
            del self._owners[task]
            if not ready.done():  # it was cancelled
                ready.set_result(fault_of(record, record.reason or "it was stopped", "", self.mask))

        owner.add_done_callback(done)
        return await ready, record

    async def _own(self, record: ConnectionRecord, ready: asyncio.Future[Live | Fault], *, legacy: bool) -> None:
        """Open the connection, keep it until it ends or is closed, and leave nothing behind."""
        from pegboard.sources.mcp.connection.open_client import limit_hint, open_client, reason_of

        fault: Fault | None = None
        try:
            async with AsyncExitStack() as stack:
                live = await open_client(
                    stack, self.spec, record, self._settings, legacy=legacy, on_changed=self._changed
                )
                live.record.server_requests.ambiguous = self._serialise
                ready.set_result(live)
                await self._keep(live)
        except TimeoutError:
            text = f"it did not answer within {self._settings.start_timeout:g} s"
            fault = fault_of(record, text, "", self.mask)
        except Exception as error:
            reason, hint = reason_of(error, self.spec)
            if record.oversized:
                reason, hint = record.reason, limit_hint(self.spec)
            fault = fault_of(record, reason, hint, self.mask)
        finally:
            record.close(fault.reason if fault else "it was stopped")
            record.server_requests.close()
            record.ended.set()
        if not record.stopped and fault is None:
            fault = fault_of(record, record.diagnostics.exit or record.reason, "", self.mask)
        if not ready.done():
            ready.set_result(fault or Fault(reason="it was stopped"))
        elif record is self._last:
            self.usage.note_up(False)
            self.failures.fault = None
            if fault is not None:
                self._failed(fault, record)

    async def _keep(self, live: Live) -> None:
        """Wait for the end of the connection, and listen for changes meanwhile."""
        from pegboard.sources.mcp.connection.list_changes import listen

        listener = asyncio.create_task(listen(live.client, live.record, self._changed))
        try:
            await live.record.closed.wait()
            if live.record is self._last:
                self.history.changed()
        finally:
            listener.cancel()
            await asyncio.wait({listener})

    async def lost(self, live: Live, reason: str, *, dead: bool) -> str:
        """Note the end of a connection and return in words how it came."""
        record = live.record
        if dead or not record.alive():
            record.close(reason)
            if self._live is live:
                self._live = None
                self.failures.add()
            try:
                async with asyncio.timeout(1.0):
                    await record.ended.wait()
            except TimeoutError:
                pass
        reason = record.reason if record.stopped else record.diagnostics.exit or reason
        fault = fault_of(record, reason, "", self.mask)
        if not record.stopped and (dead or record.closed.is_set()):
            self._failed(fault, record)
        return fault.text

    async def close(self) -> None:
        """Stop for good."""
        self.closing = True
        self._stop("it was stopped")
        if waiting := {*self._owners, *([self._starting] if self._starting else [])}:
            await asyncio.wait(waiting, timeout=_STOPPED_WITHIN)

    def _stop(self, reason: str) -> None:
        """Begin to stop what runs or is about to."""
        self.usage.note_up(False)
        for owner, record in list(self._owners.items()):
            record.stop(reason)
            if not record.up:
                owner.cancel()
        self._live = None

    # -- use ---------------------------------------------------------------------------------------

    def _stop_unused(self) -> None:
        if self._live is not None:
            self._live.record.stop("it was not used")
            self._live = None

    @asynccontextmanager
    async def alone(self, live: Live) -> AsyncGenerator[None]:
        """Wait until no other call is under way, in the order in which calls came."""
        requests = live.record.server_requests
        async with self._turn:
            while requests.calls and live.record.alive():
                requests.drained.clear()
                await requests.drained.wait()
            yield

    def unreached(self, error: str) -> None:
        """Note that a request did not reach a server that has no connection to lose: each request makes its own."""
        if self.failures.fault is None:
            self.history.changed()
            self.history.failed(object(), error, error, None)
        self.failures.fault = Fault(reason=error)

    def _serialise(self) -> None:
        self.one_at_a_time = True

    # -- what is reported --------------------------------------------------------------------------

    def mask(self, text: str) -> str:
        """Return a text about the server without secrets."""
        return self._settings.mask(text)

    def _notify(self, record: ConnectionRecord, message: Any) -> None:
        if self.notified is not None:
            self.notified(record, message)

    def _report_invalid(self, line: str) -> None:
        """Report once for each server that it prints what is no message."""
        from pegboard.sources.mcp.wire.diagnostics import log

        if self.spec.name not in self._settings.reported:
            self._settings.reported.add(self.spec.name)
            printed = self.mask(line)
            log.warning("server %r prints lines that are not messages of the protocol: %r", self.spec.name, printed)

    def state(self, scope: str) -> dict[str, Any]:
        """Return the state of the connection for an operator."""
        record, live = self._last, self.live is not None
        seen = record.diagnostics if record else None
        fault = self.failures.fault
        return {
            "name": self.spec.name,
            "scope": scope,
            "state": self._state(live=live),
            "era": record.version if record and live else "",
            "pid": record.pid if record and live else None,
            "in_flight": self.usage.in_flight,
            "one_at_a_time": self.one_at_a_time,
            "last_error": fault.text if fault else "",
            "started_at": self._started_at if live else None,
            "dropped": {**seen.dropped, **seen.excluded} if seen else {},
        }

    def seen(self, scope: str) -> ConnectionState:
        """Return the state of the connection with what became of it, for an operator."""
        from pegboard.ports import ConnectionState  # every start would pay for it

        record, live, history = self._last, self.live is not None, self.history
        diagnostics = record.diagnostics if record else None
        return ConnectionState(
            scope=scope,
            state="down" if live and self.failures.fault is not None else self._state(live=live),
            since=history.since,
            started_at=self._started_at if live else None,
            era=record.version if record and live else "",
            pid=record.pid if record and live else None,
            in_flight=self.usage.in_flight,
            one_at_a_time=self.one_at_a_time,
            starts=history.starts,
            error=history.error,
            failed_at=history.failed_at,
            dropped=_excluded(diagnostics.dropped) if diagnostics else (),
            excluded=_excluded(diagnostics.excluded) if diagnostics else (),
        )

    def _state(self, *, live: bool) -> ConnectionPhase:
        if live:
            return "up"
        if self._starting is not None:
            return "starting"
        if self.failures.fault is None:
            return "idle"
        return "backing_off" if self.failures.pause else "down"


def _excluded(reasons: Mapping[str, str]) -> tuple[Excluded, ...]:
    from pegboard.ports import Excluded  # every start would pay for it

    return tuple(Excluded(name=name, reason=reason) for name, reason in reasons.items())
