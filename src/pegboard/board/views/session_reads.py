"""How a session object reads what its requests work on: once, and what is loaded has been seen (S2, P4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pegboard.board.discover import discover_loaded
from pegboard.board.meta_tools import meta_tools_by_name
from pegboard.board.observability.conversations import Request
from pegboard.board.observability.metrics import SentList, SentTexts
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Snapshot, read, read_start
from pegboard.board.views.shown_to_model import Shown
from pegboard.board.views.surface import sent, sent_at_start
from pegboard.board.views.wire_list import everything_pays
from pegboard.core.model.delivery import COMMAND
from pegboard.core.model.tools import Tool
from pegboard.core.state.call_plans import find_called
from pegboard.core.surface.surfaces import Surface
from pegboard.errors import board_closed

OPEN = "Pegboard.open"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What a host has asked for since its model called something: a surface, and then perhaps a wire list.

    ``again`` is the message with which it asks for the surface once more, whose focus the wire list took away.
    """

    sent: SentList
    wired: bool
    again: str | None


class SessionReads:
    """The reading of one session object: its newest snapshot, what its model was shown, whether everything pays."""

    def __init__(self, services: Services, info: SessionInfo) -> None:
        self._services = services
        self._info = info
        self._known: Snapshot | None = None
        self._planned = False
        self._shown = Shown()
        self._listed: SentTexts | None = None
        self._step: _Step | None = None

    async def snapshot(self) -> Snapshot:
        """Return the session as it is stored now: what it may, its leases and turn; for adapters and diagnostics.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is not configured any more.
        """
        return await self._read()

    def known_tool(self, name: str) -> Tool | None:
        """Return the permitted tool or meta-tool that a call of this name means as of the last request, or None.

        Nothing is waited for or read (P9).

        Args:
            name: the wire name that the model wrote.
        """
        services, info, known = self._services, self._info, self._known
        if known is None and info.parent is not None:
            return None
        permissions = services.compiler.permissions(info, known.narrowed_above if known is not None else ())
        state = known.stored if known is not None else info.start
        return meta_tools_by_name(services, info, permissions, state).get(name) or find_called(permissions, name)

    async def _read(self, since: float | None = None, *, start: bool = False) -> Snapshot:
        """Return the session as of ``since``, or of now; the one that is known where nothing has changed.

        With ``start`` it is as if nothing had been stored of it.
        """
        if self._services.loader.closed:
            raise board_closed(OPEN)
        if start:
            return await read_start(self._services, self._info)
        self._known = snapshot = await read(self._services, self._info, since, known=self._known)
        return snapshot

    async def _prepared(self, *, start: bool = False) -> Snapshot:
        """Return the session once what is loaded has been seen; with ``start`` as if nothing had been stored."""
        snapshot = await self._read(start=start)
        seen = await discover_loaded(self._services, snapshot)
        if seen is not snapshot:
            seen = await self._read(start=start)
        return await self._planned_for(seen, start=start)

    async def _planned_for(self, snapshot: Snapshot, *, start: bool = False) -> Snapshot:
        """Return the session with everything loaded from the start where that is cheapest; decided once (F4)."""
        if snapshot.info.host.cache is None or self._planned:
            return snapshot
        self._planned = True
        if not everything_pays(self._services, await discover_loaded(self._services, snapshot)):
            return snapshot
        self._info = replace(self._info, constraints=replace(self._info.constraints, everything=True))
        return await self._read(start=start)

    def _count_surface(self, snapshot: Snapshot, shown: Surface, message: str | None) -> None:
        """Count the request that a surface is for; a client's own requests are counted when it calls."""
        host, step = self._info.host, self._step
        if host.calls_through:
            self._listed = sent(shown)
        elif step is not None and step.wired and message is not None and step.again == message:
            self._step = None
        elif host is not COMMAND:
            counted = self._services.metrics.requested(self._info.key, snapshot.permissions)
            again = message if shown.focus is not None else None
            self._step = _Step(sent=counted, wired=False, again=again)

    def _count_wire_list(self, snapshot: Snapshot, shown: Surface) -> None:
        """Count the request that a wire list is for; the surface that it follows was for the same."""
        step, metrics, again = self._step, self._services.metrics, None
        if step is not None and not step.wired:
            again = step.again
            if not metrics.withdraw(step.sent):
                self._step = replace(step, wired=True)
                return
        counted = metrics.requested(self._info.key, snapshot.permissions, (self._shown.wire_list, sent(shown)[1]))
        self._step = _Step(sent=counted, wired=True, again=again)

    def _count_call(self, snapshot: Snapshot, request: Request) -> None:
        """Count the request that a client's model made before it called; those that come together came of one."""
        host = self._info.host
        if not request.is_alone:
            return
        listed = self._listed if "array" in host.delivery else None
        if listed is None:
            listed = sent_at_start(snapshot.permissions, self._services, host, self._info.stable)
        self._services.metrics.requested(self._info.key, snapshot.permissions, listed)

    def _note_shown(self, snapshot: Snapshot, request: Request) -> None:
        """Note what no list of tools keeps after a request, and what its answer has (D1, D3)."""
        if snapshot.unloaded or (request.brought and "result" in self._info.host.delivery):
            self._shown = self._shown.after(snapshot, request)
