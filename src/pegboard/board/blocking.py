"""The board, its sessions and its permissions for code without an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar, cast

from pegboard.board.board import Board
from pegboard.board.calls.approvals import Approvals
from pegboard.board.catalog.registries import Loadouts, Toolkits
from pegboard.board.permissions import Permissions
from pegboard.board.pins import Pins
from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Lasting
from pegboard.core.access.grants import GrantChange
from pegboard.core.access.permissions import LOCAL
from pegboard.core.access.pins import PinnedTool
from pegboard.core.model.agents import Agent, WorkerScope
from pegboard.core.model.delivery import Host
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer, CallDecision
from pegboard.core.state.commands import Outcome
from pegboard.core.surface.explanations import Explanation
from pegboard.core.surface.run_cost import RunCost
from pegboard.core.surface.surface_changes import SurfaceChanges
from pegboard.core.surface.surfaces import Surface
from pegboard.dialects.names import Found
from pegboard.errors import UsageError, board_closed
from pegboard.ports import UNCHECKED, Client, Progress, SessionKey, Unchecked
from pegboard.ports.schedules import DueSchedule
from pegboard.problems import Problem

__all__ = ["SyncApprovals", "SyncPegboard", "SyncPermissions", "SyncPins", "SyncSession"]

T = TypeVar("T")
_OPEN = "Pegboard.open_sync"


class OwnLoop:
    """The event loop of a blocking board: it runs in a thread of its own, in the process that opened the board."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._process = os.getpid()
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = False

    def wait(self, start: Callable[[], Awaitable[T]]) -> T:
        """Return what comes of it in the loop; whoever is interrupted cancels it, once."""
        self._check()

        async def run() -> T:
            if self._ended:
                raise board_closed(_OPEN)
            task = cast("asyncio.Task[Any]", asyncio.current_task())
            self._running.add(task)
            try:
                return await start()
            finally:
                self._running.discard(task)

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            return future.result()
        except CancelledError:
            raise board_closed(_OPEN) from None
        except BaseException:
            future.cancel()
            raise

    def run(self, call: Callable[[], T]) -> T:
        """Return what a function returns that does not wait, called in the loop."""

        async def called() -> T:
            return call()

        return self.wait(called)

    async def end(self) -> None:
        """Cancel what other threads still wait for, before the board is closed."""
        self._ended = True
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _check(self) -> None:
        """Raise ``UsageError`` where the loop would never answer."""
        if self._loop.is_closed():
            raise board_closed(_OPEN)
        if os.getpid() != self._process:
            raise UsageError("The board was opened in another process.", hint="Open it in each process, after a fork.")
        if self._is_here():
            raise UsageError("A callback of the board waits for the board itself.", hint="Let another thread do it.")

    def _is_here(self) -> bool:
        """Return whether the loop runs in this thread."""
        with suppress(RuntimeError):
            return asyncio.get_running_loop() is self._loop
        return False


class SyncSession:
    """One conversation, blocking: the twin of ``Session``, method by method."""

    def __init__(self, session: Session, loop: OwnLoop) -> None:
        self._session = session
        self._loop = loop

    def wait(self, use: Callable[[Session], Awaitable[T]]) -> T:
        """Return what comes of using the session itself, in the board's event loop; for adapters.

        Args:
            use: takes the session that this one is the twin of.
        """
        return self._loop.wait(lambda: use(self._session))

    @property
    def key(self) -> SessionKey:
        """Return principal, agent and session id; see ``Session.key``."""
        return self._session.key

    @property
    def agent(self) -> Agent:
        """Return the agent's profile as it is configured now; see ``Session.agent``."""
        return self._session.agent

    @property
    def approvals(self) -> SyncApprovals:
        """Return the calls that wait for a person; see ``Session.approvals``."""
        return SyncApprovals(self._session.approvals, self._loop)

    @property
    def host(self) -> Host:
        """Return what the host can do with a change of tools; see ``Session.host``."""
        return self._session.host

    @host.setter
    def host(self, host: Host) -> None:
        self._session.host = host

    def surface(self, *, message: str | None = None, loaded: bool = True) -> Surface:
        """Return what goes to the model at this step; see ``Session.surface``."""
        return self._loop.wait(lambda: self._session.surface(message=message, loaded=loaded))

    def changes(self) -> SurfaceChanges:
        """Return what joined and left since the newest surface; see ``Session.changes``."""
        return self._loop.wait(self._session.changes)

    def wire(self, *, revealed: Iterable[str] = ()) -> tuple[Tool, ...]:
        """Return the tool list for the next request; see ``Session.wire``."""
        return self._loop.wait(lambda: self._session.wire(revealed=revealed))

    def instructions(self) -> str:
        """Return what a client is to read once; see ``Session.instructions``."""
        return self._loop.wait(self._session.instructions)

    def load(self, *names: str, keep: str | None = None) -> Outcome:
        """Load toolkits, plugins or tools; see ``Session.load``."""
        return self._loop.wait(lambda: self._session.load(*names, keep=keep))

    def unload(self, *names: str) -> Outcome:
        """Unload toolkits, plugins or tools; see ``Session.unload``."""
        return self._loop.wait(lambda: self._session.unload(*names))

    def fallback(self) -> Outcome:
        """Load everything permitted for this turn; see ``Session.fallback``."""
        return self._loop.wait(self._session.fallback)

    def use_loadout(self, name: str | None) -> Outcome:
        """Narrow the session to a loadout at once; see ``Session.use_loadout``."""
        return self._loop.wait(lambda: self._session.use_loadout(name))

    def child(self, kind: str, *, agent: str | None = None) -> SyncSession:
        """Return a session for a subagent; see ``Session.child``."""
        return SyncSession(self._loop.wait(lambda: self._session.child(kind, agent=agent)), self._loop)

    def end_turn(self, *, turn: int | None = None) -> Outcome:
        """End the turn; see ``Session.end_turn``."""
        return self._loop.wait(lambda: self._session.end_turn(turn=turn))

    def mark_turn(self, label: str) -> Outcome:
        """End the turn where the label is another one than before; see ``Session.mark_turn``."""
        return self._loop.wait(lambda: self._session.mark_turn(label))

    def search(self, *queries: str, limit: int = 5, context: Sequence[str] | None = None) -> Found:
        """Return the permitted tools that answer these needs best; see ``Session.search``."""
        return self._loop.wait(lambda: self._session.search(*queries, limit=limit, context=context))

    def run_cost(self, *, read: int | None = None, of: int | None = None) -> RunCost:
        """Return what the tools of the newest run came to; see ``Session.run_cost``."""
        return self._loop.wait(lambda: self._session.run_cost(read=read, of=of))

    def explain(self, name: str) -> Explanation:
        """Return the four predicates for a tool or plugin; see ``Session.explain``."""
        return self._loop.wait(lambda: self._session.explain(name))

    def call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        progress: Progress | None = None,
        request_meta: JsonObject | None = None,
        client: Client | None = None,
        arrived: float | None = None,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
        call_id: str | None = None,
    ) -> CallAnswer:
        """Call a tool or a meta-tool as the model does; see ``Session.call``."""
        return self._loop.wait(
            lambda: self._session.call(
                name,
                arguments,
                progress=progress,
                request_meta=request_meta,
                client=client,
                arrived=arrived,
                waiting=waiting,
                call_id=call_id,
            ),
        )

    def decide(self, name: str, arguments: JsonObject | None = None, *, ask: bool = False) -> CallDecision:
        """Return what a call would come to, without making it; see ``Session.decide``."""
        return self._loop.wait(lambda: self._session.decide(name, arguments, ask=ask))

    def resume(self, approval_id: str, *, result: object = None, call_id: str | None = None) -> CallAnswer:
        """Go on with a call that waits for a person; see ``Session.resume``."""
        return self._loop.wait(lambda: self._session.resume(approval_id, result=result, call_id=call_id))


SyncRunChild = Callable[[SyncSession, str], str]
"""A function that runs a task in a child session and returns its answer."""
SyncRunScheduled = Callable[[SyncSession, DueSchedule], object]
"""A function that does in a session what was planned there."""


class SyncPermissions:
    """The switches that are set at run time, blocking: the twin of ``Permissions``, method by method."""

    def __init__(self, permissions: Permissions, loop: OwnLoop) -> None:
        self._permissions = permissions
        self._loop = loop

    def set(
        self,
        agent: str,
        name: str,
        value: bool | None,
        *,
        by: str = LOCAL,
        expected: bool | Unchecked | None = UNCHECKED,
        principal: str | None = None,
        may_grant: bool | None = None,
    ) -> None:
        """Store a switch for an agent; see ``Permissions.set``."""
        self._loop.wait(
            lambda: self._permissions.set(
                agent, name, value, by=by, expected=expected, principal=principal, may_grant=may_grant
            )
        )

    def accept_claims(self, *, by: str = LOCAL, tools: Collection[str] | None = None) -> tuple[Tool, ...]:
        """Let tools count as read-only of which a trusted server reports so; see ``Permissions.accept_claims``."""
        return self._loop.wait(lambda: self._permissions.accept_claims(by=by, tools=tools))

    def panel(self, agent: str, principal: str | None = None) -> tuple[JsonObject, ...]:
        """Return the toolkits of an agent as people switch them; see ``Permissions.panel``."""
        return self._loop.wait(lambda: self._permissions.panel(agent, principal))

    def show(self, principal: str | None = None) -> dict[str, dict[str, bool]]:
        """Return the effective booleans of every agent by its name; see ``Permissions.show``."""
        return self._loop.wait(lambda: self._permissions.show(principal))


class SyncApprovals:
    """The calls that wait for a person, blocking: the twin of ``Approvals``, method by method."""

    def __init__(self, approvals: Approvals, loop: OwnLoop) -> None:
        self._approvals = approvals
        self._loop = loop

    def list(self, *, agent: str | None = None, ended: bool = False) -> tuple[Approval, ...]:
        """Return the approvals that something may still come of; see ``Approvals.list``."""
        return self._loop.wait(lambda: self._approvals.list(agent=agent, ended=ended))

    def allow(
        self,
        approval_id: str,
        *,
        by: str,
        lasts: Lasting = "once",
        fields: JsonObject | None = None,
        expected: ApprovalStatus | None = None,
    ) -> Approval:
        """Allow a call that waits; see ``Approvals.allow``."""
        return self._loop.wait(
            lambda: self._approvals.allow(approval_id, by=by, lasts=lasts, fields=fields, expected=expected)
        )

    def refuse(
        self, approval_id: str, *, by: str, reason: str = "", expected: ApprovalStatus | None = None
    ) -> Approval:
        """Refuse a call that waits, or take back what was allowed; see ``Approvals.refuse``."""
        return self._loop.wait(lambda: self._approvals.refuse(approval_id, by=by, reason=reason, expected=expected))


class SyncPins:
    """The definitions of servers' tools that count, blocking: the twin of ``Pins``, method by method."""

    def __init__(self, pins: Pins, loop: OwnLoop) -> None:
        self._pins = pins
        self._loop = loop

    def list(self, *names: str, waiting: bool = False) -> tuple[PinnedTool, ...]:
        """Return the tools of servers as they are pinned and listed; see ``Pins.list``."""
        return self._loop.wait(lambda: self._pins.list(*names, waiting=waiting))

    def show(self, *names: str, waiting: bool = False) -> tuple[PinnedTool, ...]:
        """Return the same with the definitions; see ``Pins.show``."""
        return self._loop.wait(lambda: self._pins.show(*names, waiting=waiting))

    def accept(self, *names: str, by: str = LOCAL, shown: Iterable[PinnedTool] | None = None) -> tuple[PinnedTool, ...]:
        """Let the definitions of now count; see ``Pins.accept``."""
        return self._loop.wait(lambda: self._pins.accept(*names, by=by, shown=shown))


class SyncToolkits:
    """The toolkits in use, blocking: the twin of ``Toolkits``, method by method."""

    def __init__(self, toolkits: Toolkits, loop: OwnLoop) -> None:
        self._toolkits = toolkits
        self._loop = loop

    def register(self, toolkit: Mapping[str, Any]) -> None:
        """Add a toolkit; see ``Toolkits.register``."""
        self._loop.run(lambda: self._toolkits.register(toolkit))

    def get(self, name: str) -> Toolkit | None:
        """Return the toolkit of this name, or None; see ``Toolkits.get``."""
        return self._toolkits.get(name)

    def all(self) -> tuple[Toolkit, ...]:
        """Return every toolkit; see ``Toolkits.all``."""
        return self._toolkits.all()


class SyncPegboard:
    """Agents over one configuration, blocking: the twin of ``Pegboard``, method by method.

    ``Pegboard.open_sync`` makes it. Callbacks of events run in the thread of its event loop.
    """

    def __init__(
        self,
        board: Board,
        reload: Callable[[], Awaitable[list[Problem]]],
        accept: Callable[..., Awaitable[tuple[GrantChange, ...]]],
        waiting: Callable[[], tuple[GrantChange, ...]],
        loop: OwnLoop,
    ) -> None:
        self._board = board
        self._reload = reload
        self._accept = accept
        self._waiting = waiting
        self._loop = loop
        self._permissions = SyncPermissions(board.permissions, loop)
        self._toolkits = SyncToolkits(board.toolkits, loop)
        self._loadouts = Loadouts(
            lambda: board.world.loadouts, lambda loadout: loop.run(lambda: board.loadouts.register(loadout))
        )
        self._approvals = SyncApprovals(board.approvals, loop)
        self._pins = SyncPins(board.pins, loop)
        self._run_child: SyncRunChild | None = None
        self._run_scheduled: SyncRunScheduled | None = None

    @property
    def permissions(self) -> SyncPermissions:
        """Return the switches that are set at run time; see ``Pegboard.permissions``."""
        return self._permissions

    @property
    def approvals(self) -> SyncApprovals:
        """Return the calls that wait for a person; see ``Pegboard.approvals``."""
        return self._approvals

    @property
    def pins(self) -> SyncPins:
        """Return the definitions of servers' tools that count; see ``Pegboard.pins``."""
        return self._pins

    @property
    def toolkits(self) -> SyncToolkits:
        """Return the toolkits in use; see ``Pegboard.toolkits``."""
        return self._toolkits

    @property
    def loadouts(self) -> Loadouts:
        """Return the loadouts in use; see ``Pegboard.loadouts``."""
        return self._loadouts

    @property
    def on_delegate(self) -> SyncRunChild | None:
        """Return what runs a task that an agent delegates, in a thread of its own; see ``Pegboard.on_delegate``."""
        return self._run_child

    @on_delegate.setter
    def on_delegate(self, run: SyncRunChild | None) -> None:
        self._run_child = run

        async def run_child(child: Session, task: str) -> str:
            assert run is not None
            return await asyncio.to_thread(run, SyncSession(child, self._loop), task)

        self._board.on_delegate = run_child if run is not None else None

    @property
    def on_schedule(self) -> SyncRunScheduled | None:
        """Return what runs a schedule that is due, in a thread of its own; see ``Pegboard.on_schedule``."""
        return self._run_scheduled

    @on_schedule.setter
    def on_schedule(self, run: SyncRunScheduled | None) -> None:
        self._run_scheduled = run

        async def run_scheduled(session: Session, due: DueSchedule) -> object:
            assert run is not None
            return await asyncio.to_thread(run, SyncSession(session, self._loop), due)

        self._loop.run(lambda: setattr(self._board, "on_schedule", run_scheduled if run is not None else None))

    def session(
        self,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        principal: str = "local",
        host: Host | None = None,
        sub_app: str | None = None,
        worker_scope: WorkerScope | None = None,
        client: str = "",
    ) -> SyncSession:
        """Return a session; see ``Pegboard.session``."""
        session = self._loop.wait(
            lambda: self._board.session(
                agent=agent,
                session_id=session_id,
                principal=principal,
                host=host,
                sub_app=sub_app,
                worker_scope=worker_scope,
                client=client,
            ),
        )
        return SyncSession(session, self._loop)

    def agent(self, name: str | None) -> Agent:
        """Return an agent's profile; see ``Pegboard.agent``."""
        return self._board.agent(name)

    def ready(self, *plugins: str) -> None:
        """Start or construct plugins; see ``Pegboard.ready``."""
        self._loop.wait(lambda: self._board.ready(*plugins))

    def forget(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Forget what was called after which need; see ``Pegboard.forget``."""
        return self._loop.wait(lambda: self._board.forget(principal=principal, agent=agent))

    def reload(self) -> list[Problem]:
        """Take an edit up; see ``Pegboard.reload``."""
        return self._loop.wait(self._reload)

    def accept(self, shown: Sequence[GrantChange] | None = None, *, by: str = LOCAL) -> tuple[GrantChange, ...]:
        """Accept changes of the configuration that wait; see ``Pegboard.accept``."""
        return self._loop.wait(lambda: self._accept(shown, by=by))

    @property
    def waiting(self) -> tuple[GrantChange, ...]:
        """Return what waits for a person; see ``Pegboard.waiting``."""
        return self._waiting()

    def on(self, event: str, callback: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call back at every such event; see ``Pegboard.on``."""
        return self._board.on(event, callback)

    def metrics(self) -> list[dict[str, Any]]:
        """Return what every session did since the board was opened; see ``Pegboard.metrics``."""
        return self._board.metrics()
