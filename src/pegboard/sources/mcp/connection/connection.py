"""Long-lived connections to MCP servers: one per (server, scope), started once, started again (G8, G9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pegboard import ports
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import connection as own
from pegboard.sources.mcp import wire
from pegboard.sources.mcp.connection.history import ConnectionHistory, Fault, fault_of
from pegboard.sources.mcp.connection.server_values import ServerValues
from pegboard.sources.mcp.connection.source_settings import SourceSettings
from pegboard.sources.mcp.connection.usage import ConnectionUsage
from pegboard.sources.mcp.connection.ways import UNASKED, ConnectionWay, WaysToTry
from pegboard.support.tasks import BackgroundTasks, start_detached

if TYPE_CHECKING:
    from pegboard.ports import ConnectionPhase, ConnectionState, Excluded, RefusedAccess
    from pegboard.ports.calls import Progress
    from pegboard.sources.mcp.wire.only_client import ProcessClient
    from pegboard.sources.mcp.wire.open_connection import OpenConnection, ShownLogin
    from pegboard.sources.mcp.wire.upstream_call import Call

log = logging.getLogger("pegboard.sources.mcp")

_STOPPED_WITHIN = 10.0
_REPORTED_EVERY = 5.0
"""Seconds between two reports of a start that goes on, and that a request waits at least for one."""
_TURN = 10.0
"""Seconds after which a start that goes on lets the next server start: it waits for a network then."""


class Connection:
    """The connection to one server: started when needed, by one start for all, and again after an end.

    The SDK's client is entered and left in one task of its own (its cancel scopes demand it); others
    only send requests through it. What is known of one start is in its ``OpenConnection``, what is known over
    all of them in ``history``. ``notified`` takes the notifications that are not about tools, None where some may
    have been missed. ``one_at_a_time``: the server asks, and nothing says which call it asks for (G9).
    ``login`` is what its requests show, where the server may want a login (G11). ``reads`` reads the list of the tools
    and has it compared with the pins, where that is to be done before calls (A4). ``came_up`` is called each time that
    it has been started. ``only_client`` is whom its server means outside of calls, where it is one client alone.
    ``shares_process``: boards that start an equal server may share its process (G12).
    """

    def __init__(
        self, spec: ServerSpec, fingerprint: str, settings: SourceSettings, changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint
        self.mask = settings.mask
        self.notified: Callable[[OpenConnection, Any], None] | None = None
        self.one_at_a_time = False
        self.login: ShownLogin | None = None
        self.reads: Callable[[Connection, ServerSpec], Coroutine[Any, Any, None]] | None = None
        self.reading: asyncio.Task[None] | None = None
        self.came_up: Callable[[], None] | None = None
        self.closing = False
        self.shares_process = False
        self.only_client = settings.client_of("")
        self.history = ConnectionHistory(spec, settings.mask, settings.monotonic)
        self._settings = settings
        self._changed = changed
        self._live: OpenConnection | None = None
        self._starting: asyncio.Task[OpenConnection | Fault] | None = None
        self._began_at = 0.0
        self._turn_began_at: float | None = None
        self._overdue = False
        self._late_fault: Fault | None = None
        self._installed_anew = False
        self._owners: dict[asyncio.Task[None], OpenConnection] = {}
        self._last: OpenConnection | None = None
        self._values = ServerValues(spec, settings) if spec.references else None
        self._retiring = BackgroundTasks()
        self.usage = ConnectionUsage(settings.monotonic, self._stop_unused)

    def take_client(self, client: ProcessClient | None) -> None:
        """Let the server mean this client outside of calls, where it is that of one client alone."""
        self.only_client = client
        if self._last is not None:
            self._last.server_requests.take_client(client)

    # -- up and down -------------------------------------------------------------------------------

    @property
    def live(self) -> OpenConnection | None:
        """Return the connection if it stood when last heard of: an end unseen is found when it is written to."""
        live = self._live
        return live if live is not None and live.is_open else None

    @property
    def starting(self) -> bool:
        """Return whether it is being started."""
        return self._starting is not None

    async def ensure_up(self, made: Call | None = None) -> OpenConnection:
        """Return the connection, started if it is not up; callers at the same time share one start.

        The call that was ``made``, if it is one, is told how long the start takes, and has it begin before those that
        no call waits for. Raises ``ToolUnavailableError`` where it cannot be started, is not
        tried again yet, or takes longer than a request waits; then the start goes on, and who asked is told of its end.
        """
        if (live := self.live) is not None:
            return live
        self._live = None
        if (failed := self._late_fault) is not None:
            self._late_fault = None
            raise failed.error(self.spec)
        if self._starting is None:
            if self.closing:
                raise ToolUnavailableError(f"{self.spec.label} is not started: Pegboard is closing.")
            pause, fault = self.history.pause, self.history.fault
            if pause and fault is not None:
                raise fault.error(self.spec, again_in=pause)
            self._begin_start()
        if made is not None and self._turn_began_at is None:
            self._settings.needed.add(self.spec.name)
        while True:
            starting = self._starting
            assert starting is not None
            await self._wait_for_start(starting, made.progress if made is not None else None)
            outcome = await asyncio.shield(starting)
            if not isinstance(outcome, Fault):
                return outcome
            if self._starting is None or self._starting is starting:
                raise outcome.error(self.spec)

    async def _wait_for_start(self, starting: asyncio.Task[Any], report: Progress | None) -> None:
        """Wait for the end of a start; raises ``ToolUnavailableError`` where it takes longer than a request waits."""
        now = asyncio.get_running_loop().time
        limit = self._settings.start_limit(self.spec)
        patience = self._settings.patience
        every = min(_REPORTED_EVERY, patience / 3)
        until = max(self._began_at + patience, now() + every)
        while not starting.done():
            if now() >= until:
                self._overdue = True
                goes_on = f"It goes on, for {limit:g} s in all (`start` in `{self.spec.section}`)"
                raise ToolUnavailableError(
                    f"{self.spec.label} is not available: {self._still_starting_text()}.",
                    hint=f"{'It will start' if self._turn_began_at is None else goes_on}: call again later.",
                    location=self.spec.place,
                )
            await asyncio.wait([starting], timeout=min(until - now(), every))
            if report is not None and not starting.done():
                await report(self._start_took(), limit, f"{self.spec.label}: {self._still_starting_text()}")

    def _still_starting_text(self) -> str:
        """Return in words that the start goes on, for how long, and what was printed last."""
        if self._turn_began_at is None:
            return "it is queued to start, after other servers"
        what, took = "installing" if self.spec.fetched else "starting", self._start_took()
        lines = list(self._last.stderr) if self._last is not None else []
        said = f"; its last line on standard error: {lines[-1]}" if lines else ""
        return self.mask(f"it is still {what}, for {took:.0f} s so far{said}")

    def _start_took(self) -> float:
        """Return for how many seconds the start goes on, without what it has waited for its turn."""
        return 0.0 if self._turn_began_at is None else asyncio.get_running_loop().time() - self._turn_began_at

    def _begin_start(self, after: Collection[asyncio.Task[Any]] = ()) -> None:
        """Begin to start, once these tasks have ended."""
        self.history.changed()
        self._began_at = asyncio.get_running_loop().time()
        self._turn_began_at = None
        self._overdue = False
        self._starting = start_detached(self._start(after))

    async def _start(self, after: Collection[asyncio.Task[Any]]) -> OpenConnection | Fault:
        try:
            if after:
                await asyncio.wait(after, timeout=_STOPPED_WITHIN)
                self.history.forget_failures()
            async with self._settings.turns.wait_for_turn(self.spec.name, min(_TURN, self._settings.patience)):
                self._settings.needed.discard(self.spec.name)
                self._turn_began_at = asyncio.get_running_loop().time()
                outcome = await self._try_eras()
        finally:
            if self._starting is asyncio.current_task():
                self._starting = None
        if self._overdue:  # who asked for it has been told that it is still being started
            self._late_fault = outcome if isinstance(outcome, Fault) else None
            self._changed()
        return outcome

    def restart(self) -> None:
        """Stop it, and start it again without any pause; one that is idle stays so, and one that begins goes on."""
        running = [live for live in self._owners.values() if live.is_open]
        if self._starting is not None and not running:
            return
        if running or self.history.fault is not None:
            for live in running:
                live.ends_process = True
            self._stop("an operator restarted it")
            self.history.forget_failures()
            self._begin_start({*self._owners, *([self._starting] if self._starting is not None else [])})

    async def _try_eras(self) -> OpenConnection | Fault:
        fault = Fault(reason="it was stopped")
        spec = self.spec
        if self._values is not None:
            try:
                spec = await self._values.of_start()
            except ToolUnavailableError as error:
                fault = Fault(reason=self.mask(error.message), hint=self.mask(error.hint))
                self.history.not_begun(fault)
                return self._failed_start(fault)
        ways = WaysToTry(spec, self._settings.ways.pop(self.fingerprint, ConnectionWay()))
        for way in ways:
            if self.closing:
                break
            live, failed = await self._open(spec, way, ways.limit(way, self._settings.start_limit(spec)))
            if failed is None:
                self._settings.ways[self.fingerprint] = ConnectionWay.from_manifest(live.reached_by)
                self._take_connection(live)
                return live
            if not way.sse or failed.scopes is not None:  # that the older transport is not there either says less
                fault = failed
            ways.note_failure(way, failed, left=bool(live.exit) and not live.any_message and not live.invalid_count)
            if failed.timed_out and live.era_question is not None:  # the question took the time: not at the next start
                self._settings.ways[self.fingerprint] = replace(way, handshake_only=UNASKED)
        if not self._installed_anew and self._last is not None and self._last.exit and self._remove_broken(spec):
            self._installed_anew = True
            return await self._try_eras()
        self.history.note_failure(fault, self._last)
        return self._failed_start(fault)

    def _remove_broken(self, spec: ServerSpec) -> bool:
        """Remove an installed package of which parts are missing, as its last lines say; return whether it was one."""
        if not spec.fetched or self._last is None:
            return False
        from pegboard.sources.mcp.transports.npx_cache import remove_broken
        from pegboard.sources.mcp.transports.server_process import environment

        return remove_broken(spec.command, spec.args, environment(spec), self._last.stderr)

    def _failed_start(self, fault: Fault) -> Fault:
        if fault.scopes is None:  # once someone has logged in, nothing is to be waited for
            self.history.count_failure()
        self.history.changed()
        return fault

    def _take_connection(self, live: OpenConnection) -> None:
        self._live = live
        self.history.note_started(live.pid)
        self.usage.note_up(True)
        if self.came_up is not None:
            self.came_up()

    async def _open(self, spec: ServerSpec, way: ConnectionWay, limit: float) -> tuple[OpenConnection, Fault | None]:
        """Start an owner and return what it opens as soon as it is up, or why it is not; ``spec`` has the values."""
        reported = self.spec.name in self._settings.reported
        live = self._last = wire.open_connection.OpenConnection(
            self.spec, self.history.printed.add, None if reported else self._report_invalid
        )
        live.notify = partial(self._notify, live)
        live.server_requests.ambiguous = self._serialise
        live.server_requests.only_client = self.only_client
        live.note_refused = partial(self._note_refused, live)
        live.login = self.login
        live.shares_process = self.shares_process
        ready: asyncio.Future[Fault | None] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own_connection(spec, live, ready, way, limit))
        self._owners[owner] = live

        def forget_owner(task: asyncio.Task[None]) -> None:
            del self._owners[task]
            if not ready.done():  # it was cancelled
                ready.set_result(fault_of(live, live.reason or "it was stopped", "", self.mask))

        owner.add_done_callback(forget_owner)
        return live, await ready

    async def _own_connection(
        self,
        spec: ServerSpec,
        live: OpenConnection,
        ready: asyncio.Future[Fault | None],
        way: ConnectionWay,
        limit: float,
    ) -> None:
        """Open the connection, keep it until it ends or is closed, and leave nothing behind."""
        fault: Fault | None = None
        try:
            async with AsyncExitStack() as stack:
                await own.open_client.open_client(
                    stack, spec, live, self._settings, way, limit=limit, on_changed=self._changed
                )
                ready.set_result(None)
                await self._watch_connection(live)
        except TimeoutError:
            text = f"it did not answer within {limit:g} s"
            hint = f"Raise `start` in `{self.spec.section}` if it needs longer." if live.stderr or spec.fetched else ""
            fault = replace(fault_of(live, text, hint, self.mask), timed_out=True)
        except Exception as error:
            reason, hint = own.failure_reasons.reason_of(error, self.spec)
            if live.oversized:
                reason, hint = live.reason, self.spec.limit_hint
            scopes, status = own.failure_reasons.wanted_scopes(error), own.failure_reasons.refused_status(error)
            fault = replace(fault_of(live, reason, hint, self.mask), scopes=scopes, status=status)
        finally:
            live.close(fault.reason if fault else "it was stopped")
            live.server_requests.close()
            live.ended.set()
        if not live.stopped and fault is None:
            fault = fault_of(live, live.exit or live.reason, "", self.mask)
        if not ready.done():
            ready.set_result(fault or Fault(reason="it was stopped"))
        elif live is self._last:
            self.usage.note_up(False)
            self.history.fault = None
            if fault is not None:
                self.history.note_failure(fault, live)

    async def _watch_connection(self, live: OpenConnection) -> None:
        """Wait for the end of the connection, and listen for changes meanwhile."""
        listener = asyncio.create_task(own.open_client.listen(live, self._changed))
        try:
            await live.closed.wait()
            if live is self._last:
                self.history.changed()
        finally:
            listener.cancel()
            await asyncio.wait({listener})

    async def note_lost(self, live: OpenConnection, reason: str, *, dead: bool) -> str:
        """Note the end of a connection and return in words how it came."""
        if dead or not live.alive():
            live.close(reason)
            if self._live is live:
                self._live = None
                self.history.count_failure()
            try:
                async with asyncio.timeout(1.0):
                    await live.ended.wait()
            except TimeoutError:
                pass
        reason = live.reason if live.stopped else live.exit or reason
        fault = fault_of(live, reason, "", self.mask)
        if not live.stopped and (dead or not live.is_open):
            self.history.note_failure(fault, live)
        return fault.text

    async def renew(self, live: OpenConnection) -> bool:
        """Read the values again with which a server refused a request, and return whether others are in use now.

        What runs over the old connection goes on to its end there.
        """
        if self._values is None or self.closing:
            return False
        if live is not self._live:  # someone else has renewed them, or it has ended
            return True
        if not await self._values.changed():
            return False
        if live is self._live:
            self._live = None
            self._retiring.start(self._retire_connection(live))
        return True

    async def _retire_connection(self, live: OpenConnection) -> None:
        while live.server_requests.calls and live.is_open:
            live.server_requests.drained.clear()
            await live.server_requests.drained.wait()
        live.stop("its credentials were renewed")

    async def close(self) -> None:
        """Stop for good."""
        self.closing = True
        self._retiring.cancel()
        if self.reading is not None:
            self.reading.cancel()
        self._stop("it was stopped")
        if waiting := {*self._owners, *([self._starting] if self._starting else [])}:
            await asyncio.wait(waiting, timeout=_STOPPED_WITHIN)

    def _stop(self, reason: str) -> None:
        """Begin to stop what runs or is about to."""
        self.usage.note_up(False)
        for owner, live in list(self._owners.items()):
            live.stop(reason)
            if not live.up:
                owner.cancel()
        self._live = None

    async def read_list(self, spec: ServerSpec) -> None:
        """Read the list of the tools, and have it compared with the pins; callers at the same time share it."""
        if self.reading is None:
            assert self.reads is not None
            self.reading = start_detached(self.reads(self, spec), done=self._have_read)
        await asyncio.shield(self.reading)

    def _have_read(self, reading: asyncio.Task[None]) -> None:
        self.reading = None
        if not reading.cancelled():
            reading.exception()  # whoever waited has raised it

    # -- use ---------------------------------------------------------------------------------------

    def _stop_unused(self) -> None:
        if self._live is not None:
            self._live.stop("it was not used")
            self._live = None

    def _serialise(self) -> None:
        self.one_at_a_time = True

    # -- what is reported --------------------------------------------------------------------------

    def _notify(self, live: OpenConnection, message: Any) -> None:
        if self.notified is not None:
            self.notified(live, message)

    def read_refusals(self, text: str) -> tuple[RefusedAccess, ...]:
        """Note and return what the text of an error says was refused to the process, where that is confined."""
        if self._last is None or self._last.refusals is None:
            return ()
        return tuple(one for one in self._last.read_refusals(self.mask(text)) if self._has_no_secret(one))

    def _has_no_secret(self, refused: RefusedAccess) -> bool:
        """Return whether what was refused may be shown: a path may come from a setting with a secret in it."""
        return self.mask(refused.text) == refused.text

    def _note_refused(self, live: OpenConnection, found: Iterable[RefusedAccess]) -> None:
        found = tuple(one for one in found if self._has_no_secret(one))
        self.history.note_refused(found, live.pid)
        for one in found:
            if self.spec.confine is not None:
                name = getattr(self.spec, "plugin", self.spec.name)
                self._settings.launches.refusals.note(name, self.spec.confine, one, self.mask)

    def _report_invalid(self, line: str) -> None:
        """Report once for each server that it prints what is no message."""
        if self.spec.name not in self._settings.reported:
            self._settings.reported.add(self.spec.name)
            printed = self.mask(line)
            log.warning("server %r prints lines that are not messages of the protocol: %r", self.spec.name, printed)

    def state(self, scope: str) -> ConnectionState:
        """Return the state of the connection with what became of it, for an operator."""
        last, live, history = self._last, self.live, self.history
        return ports.ConnectionState(
            scope=scope,
            state="down" if live is not None and history.failing else self._phase(),
            since=history.since,
            started_at=history.started_at if live is not None else None,
            era=live.version if live is not None else "",
            pid=live.pid if live is not None else None,
            in_flight=self.usage.in_flight,
            one_at_a_time=self.one_at_a_time,
            starts=history.starts,
            failures=history.failures,
            error=self._still_starting_text() if self._is_slow else history.error,
            failed_at=history.failed_at,
            dropped=_excluded_tools(last.dropped) if last is not None else (),
            excluded=_excluded_tools(last.excluded) if last is not None else (),
            refused=tuple(history.refused.values()),
        )

    @property
    def _is_slow(self) -> bool:
        """Return whether it is being started, and that takes longer than a request waits."""
        took = asyncio.get_running_loop().time() - self._began_at
        return self._starting is not None and took >= self._settings.patience

    def _phase(self) -> ConnectionPhase:
        if self.live is not None:
            return "up"
        if self._starting is not None:
            return "starting"
        if not self.history.failing:
            return "idle"
        return "backing_off" if self.history.pause else "down"


def _excluded_tools(reasons: Mapping[str, str]) -> tuple[Excluded, ...]:
    return tuple(ports.Excluded(name=name, reason=reason) for name, reason in reasons.items())
