"""The board, its sessions and its permissions for code without an event loop.

Each class has the methods of the plain one, made blocking by :func:`blocking`; what is not awaited is written out.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from pegboard.board.board import Board
from pegboard.board.calls.approvals import Approvals
from pegboard.board.catalog.registries import Loadouts, Toolkits
from pegboard.board.permissions import Permissions
from pegboard.board.pins import Pins
from pegboard.board.session import Session
from pegboard.core.access.grants import GrantChange
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.agents import Agent
from pegboard.core.model.delivery import Host
from pegboard.errors import UsageError, board_closed
from pegboard.ports import SessionKey
from pegboard.ports.schedules import DueSchedule
from pegboard.problems import Problem

__all__ = ["SyncApprovals", "SyncPegboard", "SyncPermissions", "SyncPins", "SyncSession"]

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_OPEN = "Pegboard.open_sync"


class OwnLoop:
    """The event loop of a blocking board: it runs in a thread of its own, in the process that opened the board."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._process = os.getpid()
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = False

    def wait(self, start: Callable[[], Awaitable[T]]) -> T:
        """Return what an awaitable gives that is started in the loop; an interrupt cancels it."""
        self._check()

        async def run_coroutine() -> T:
            if self._ended:
                raise board_closed(_OPEN)
            task = cast("asyncio.Task[Any]", asyncio.current_task())
            self._running.add(task)
            try:
                return await start()
            finally:
                self._running.discard(task)

        future = asyncio.run_coroutine_threadsafe(run_coroutine(), self._loop)
        try:
            return future.result()
        except CancelledError:
            raise board_closed(_OPEN) from None
        except BaseException:
            future.cancel()
            raise

    def run(self, call: Callable[[], T]) -> T:
        """Return what a plain function returns that is called in the loop."""

        async def call_function() -> T:
            return call()

        return self.wait(call_function)

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


class Blocking(Generic[S]):
    """An object that works in the event loop of its board, as other threads use it."""

    def __init__(self, plain: S, loop: OwnLoop) -> None:
        self._plain = plain
        self._loop = loop

    def wait(self, use: Callable[[S], Awaitable[T]]) -> T:
        """Return what comes of using the object itself in the event loop of its board; for adapters.

        Args:
            use: takes the object that does not block.
        """
        return self._loop.wait(lambda: use(self._plain))


class BlockingMethod(Protocol[P, T_co]):
    """A function in a class, as type checkers bind it: to an object, without its ``self``."""

    def __get__(self, instance: object, owner: type | None = None, /) -> Callable[P, T_co]:
        """Return the method of an object."""
        ...


def as_blocking(method: Callable[Concatenate[S, P], Awaitable[T]]) -> BlockingMethod[P, T]:
    """Return the method that waits for this one: the same arguments, and what comes of awaiting it."""

    @wraps(method)
    def wait(self: Blocking[S], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.wait(lambda plain: method(plain, *args, **kwargs))

    return cast("BlockingMethod[P, T]", wait)


def as_blocking_session(
    method: Callable[Concatenate[S, P], Awaitable[Session]],
) -> BlockingMethod[P, SyncSession]:
    """Return the method that waits for this one and returns its session as a blocking one."""

    @wraps(method)
    def wait(self: Blocking[S], *args: P.args, **kwargs: P.kwargs) -> SyncSession:
        session = self.wait(lambda plain: method(plain, *args, **kwargs))
        return SyncSession(session, self._loop)

    vars(wait)["__signature__"] = inspect.signature(method).replace(return_annotation="SyncSession")
    return cast("BlockingMethod[P, SyncSession]", wait)


class SyncApprovals(Blocking[Approvals]):
    """The calls that wait for a person, blocking: as ``Approvals``, method by method."""

    list = as_blocking(Approvals.list)
    allow = as_blocking(Approvals.allow)
    refuse = as_blocking(Approvals.refuse)


class SyncPermissions(Blocking[Permissions]):
    """The switches that are set at run time, blocking: as ``Permissions``, method by method."""

    set = as_blocking(Permissions.set)
    accept_claims = as_blocking(Permissions.accept_claims)
    panel = as_blocking(Permissions.panel)
    show = as_blocking(Permissions.show)


class SyncPins(Blocking[Pins]):
    """The definitions of servers' tools that count, blocking: as ``Pins``, method by method."""

    list = as_blocking(Pins.list)
    show = as_blocking(Pins.show)
    accept = as_blocking(Pins.accept)


class SyncSession(Blocking[Session]):
    """One conversation, blocking: as ``Session``, method by method."""

    def __init__(self, session: Session, loop: OwnLoop) -> None:
        super().__init__(session, loop)
        self.approvals = SyncApprovals(session.approvals, loop)

    @property
    def key(self) -> SessionKey:
        """Return principal, agent and session id; see ``Session.key``."""
        return self._plain.key

    @property
    def agent(self) -> Agent:
        """Return the agent's profile as it is configured now; see ``Session.agent``."""
        return self._plain.agent

    @property
    def host(self) -> Host:
        """Return what the host can do with a change of tools; see ``Session.host``."""
        return self._plain.host

    @host.setter
    def host(self, host: Host) -> None:
        self._plain.host = host

    surface = as_blocking(Session.surface)
    changes = as_blocking(Session.changes)
    wire = as_blocking(Session.wire)
    instructions = as_blocking(Session.instructions)
    load = as_blocking(Session.load)
    unload = as_blocking(Session.unload)
    fallback = as_blocking(Session.fallback)
    use_loadout = as_blocking(Session.use_loadout)
    child = as_blocking_session(Session.child)
    end_turn = as_blocking(Session.end_turn)
    mark_turn = as_blocking(Session.mark_turn)
    search = as_blocking(Session.search)
    run_cost = as_blocking(Session.run_cost)
    explain = as_blocking(Session.explain)
    call = as_blocking(Session.call)
    decide = as_blocking(Session.decide)
    resume = as_blocking(Session.resume)


SyncRunChild = Callable[[SyncSession, str], str]
"""A function that runs a task in a child session and returns its answer."""
SyncRunScheduled = Callable[[SyncSession, DueSchedule], object]
"""A function that does in a session what was planned there."""


class SyncPegboard(Blocking[Board]):
    """Agents over one configuration, blocking: as ``Pegboard``, method by method.

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
        super().__init__(board, loop)
        self._reload = reload
        self._accept = accept
        self._waiting = waiting
        self._run_child: SyncRunChild | None = None
        self._run_scheduled: SyncRunScheduled | None = None
        self.permissions = SyncPermissions(board.permissions, loop)
        self.approvals = SyncApprovals(board.approvals, loop)
        self.pins = SyncPins(board.pins, loop)
        self.toolkits = Toolkits(
            lambda: board.world.toolkits, lambda toolkit: loop.run(lambda: board.toolkits.register(toolkit))
        )
        self.loadouts = Loadouts(
            lambda: board.world.loadouts, lambda loadout: loop.run(lambda: board.loadouts.register(loadout))
        )

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

        self._plain.on_delegate = run_child if run is not None else None

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

        self._loop.run(lambda: setattr(self._plain, "on_schedule", run_scheduled if run is not None else None))

    session = as_blocking_session(Board.session)
    ready = as_blocking(Board.ready)
    plugins = as_blocking(Board.plugins)
    tools = as_blocking(Board.tools)
    forget = as_blocking(Board.forget)

    def agent(self, name: str | None) -> Agent:
        """Return an agent's profile; see ``Pegboard.agent``."""
        return self._plain.agent(name)

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
        return self._plain.on(event, callback)

    def metrics(self) -> list[dict[str, Any]]:
        """Return what every session did since the board was opened; see ``Pegboard.metrics``."""
        return self._plain.metrics()
