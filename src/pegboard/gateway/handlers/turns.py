"""When a turn ends in a gateway, which sees calls and never the user's message (G3)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from math import inf
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from pegboard.errors import StoreError, StoreUnavailableError
from pegboard.gateway.clients.handshake import connection_of
from pegboard.gateway.protocol.board_port import CALLER
from pegboard.gateway.protocol.request_identity import RequestIdentity, on_connection, request_of
from pegboard.ports import AuditFilter

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from pegboard.board import Session
    from pegboard.gateway.handlers.session_pool import SessionPool
    from pegboard.ports import SessionKey, Store

MOST_SESSIONS = 10_000
"""Of how many sessions the last call is remembered; that of another one is looked up in the audit trail."""


class SessionActivity:
    """The activity in a session: calls in flight, when the last one ended, the label of its turn.

    ``last`` is by the clock of the turns, ``ended_at`` the same in seconds since the epoch; they are as of the moment
    at which no call was in flight any longer.
    ``known`` says that what came before this process was looked up, ``over`` that the turn is to end as soon as that
    can be stored. While it is entered, as a context manager, a call is in flight.
    """

    __slots__ = ("_turns", "ended_at", "in_flight", "known", "label", "last", "lock", "over")

    def __init__(self, turns: SessionTurns) -> None:
        self._turns = turns
        self.in_flight = 0
        self.known = self.over = False
        self.last: float | None = None
        self.ended_at = 0.0
        self.label: str | None = None
        self.lock = asyncio.Lock()

    def __enter__(self) -> None:
        """Count a call as in flight."""
        turns = self._turns
        self.in_flight += 1
        turns.in_flight += 1
        if turns.in_flight == 1:
            turns.idle.clear()

    def __exit__(self, *_: object) -> None:
        """Count it no more."""
        turns = self._turns
        self.in_flight -= 1
        turns.in_flight -= 1
        if self.in_flight:  # no one asks since when it pauses
            return
        self.last, self.ended_at = turns.clock(), time()
        if not turns.in_flight:
            turns.idle.set()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Count the entered call as not in flight while the context lasts: it waits for a person (A3)."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


class SessionTurns:
    """The turns of all sessions: ended by a new label, on request, or after a pause without a call in flight.

    The pause counts only for clients that give no labels, and is noticed at their next request; one that began before
    this process did is known from ``store``, where every call has its time (S6). ``idle`` is set while no call at all
    is ``in_flight``.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self.clock = clock
        self.idle = asyncio.Event()
        self.idle.set()
        self.in_flight = 0
        self._seen: OrderedDict[tuple[str, str, str], SessionActivity] = OrderedDict()
        self._newest: tuple[SessionKey, SessionActivity] | None = None

    def under_way(self, key: SessionKey, label: str | None) -> SessionActivity | None:
        """Return the activity of a session in which other calls of the same turn are in flight; else None."""
        newest = self._newest
        activity = newest[1] if newest is not None and newest[0] is key else self._activity(key)
        return activity if activity.in_flight and activity.known and label == activity.label else None

    async def begin(self, session: Session, label: str | None) -> SessionActivity:
        """End the turn before a request is served, where it is over; return the activity of the session."""
        activity = self._activity(session.key)
        if label is None:
            if not activity.known:
                async with activity.lock:
                    await self._take_up(session, activity)
            if self._has_paused(session, activity):
                async with activity.lock:  # of several requests that come now one ends the turn
                    if self._has_paused(session, activity) and not await self._is_busy_elsewhere(session, activity):
                        activity.over = True
            if activity.over and not activity.in_flight:
                await self._end_turn(session, activity)
        elif label != activity.label:
            async with activity.lock:
                if label != activity.label:
                    with suppress(StoreUnavailableError):  # at the next request, then
                        await session.mark_turn(label)
                        activity.label = label
        return activity

    @staticmethod
    async def _end_turn(session: Session, activity: SessionActivity) -> None:
        """End the turn; where the store is lost that waits for it, and the request does not."""
        activity.over, activity.last = False, None
        try:
            await session.end_turn()
        except StoreUnavailableError:
            activity.over = True

    async def _take_up(self, session: Session, activity: SessionActivity) -> None:
        """Note when the last call of a stored session was, where that was before this process began.

        A store that cannot be read says so to the request itself.
        """
        if activity.known or activity.in_flight or activity.last is not None:
            activity.known = True
            return
        with suppress(StoreError):
            stored = await session.snapshot()
            if stored.version and stored.state.label is None:
                newest = await self._last_recorded(session)
                activity.last = -inf if newest is None else self.clock() - max(0.0, time() - newest.timestamp())
            activity.known = True

    async def _is_busy_elsewhere(self, session: Session, activity: SessionActivity) -> bool:
        """Return whether a session was used within the pause by way of another process; that counts here, too.

        What it has stored tells of a turn that it ended, and the trail of its calls.
        """
        used: list[float] = []
        with suppress(StoreError):
            stored = await self._store.load(session.key)
            recorded = await self._last_recorded(session)
            used = [0.0 if stored is None else stored.updated_at, 0.0 if recorded is None else recorded.timestamp()]
        newest = max(used, default=0.0)
        if newest <= activity.ended_at:
            return False
        activity.last = self.clock() - max(0.0, time() - newest)
        return not self._has_paused(session, activity)

    async def _last_recorded(self, session: Session) -> datetime | None:
        """Return when a session did something last, where that is within its ``turn_gap``."""
        key, now = session.key, datetime.now(UTC)
        since = now - timedelta(seconds=session.agent.turn_gap)
        whose = AuditFilter(principal=key.principal, agent=key.agent, session=key.session, since=since)
        newest = (await self._store.part(whose, limit=1)).records
        return newest[0].record.at if newest else None

    def _has_paused(self, session: Session, activity: SessionActivity) -> bool:
        if activity.label is not None or activity.in_flight or activity.last is None:
            return False
        return self.clock() - activity.last > session.agent.turn_gap

    def note_ended(self, key: SessionKey) -> None:
        """Note that the turn was ended on request."""
        activity = self._activity(key)
        activity.last, activity.known, activity.over = None, True, False

    def activity(self, session: Session) -> SessionActivity:
        """Return the activity of a session; a call of it is in flight while that is entered."""
        return self._activity(session.key)

    def _activity(self, key: SessionKey) -> SessionActivity:
        if self._newest is not None and self._newest[0] is key:
            return self._newest[1]
        names = key.principal, key.agent, key.session
        activity = self._seen.get(names)
        if activity is None:
            activity = self._seen[names] = SessionActivity(self)
        self._seen.move_to_end(names)
        while len(self._seen) > MOST_SESSIONS:
            oldest = next(iter(self._seen.values()))
            if oldest.in_flight:
                break
            self._seen.popitem(last=False)
        self._newest = key, activity
        return activity


async def begin_request(
    ctx: ServerRequestContext[Any, Any], sessions: SessionPool, turns: SessionTurns
) -> tuple[RequestIdentity, Session]:
    """Return what a request belongs to and its session, with the turn before it ended where it is over."""
    caller = on_connection(CALLER.get(), connection_of(ctx.session))
    request = request_of(caller, ctx.protocol_version, ctx.params)
    session = await sessions.get(request.caller, request.session, modern=request.modern)
    await turns.begin(session, request.turn)
    return request, session
