"""Count the requests to its model that a host's surfaces, wire lists and calls stand for (F4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pegboard.board.observability.conversations import Request
from pegboard.board.observability.metrics import SentList, SentTexts
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.surface import sent, sent_at_start
from pegboard.core.model.delivery import COMMAND
from pegboard.core.model.tools import Tool
from pegboard.core.surface.surfaces import Surface

if TYPE_CHECKING:
    from pegboard.board.views.run_record import RunRecord
    from pegboard.core.state.call_plans import CallAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What a host has asked for since its model called something: a surface, and then perhaps a wire list.

    ``again`` is the message with which it asks for the surface once more, whose focus the wire list took away.
    """

    sent: SentList
    wired: bool
    again: str | None


class RequestCounter:
    """The requests to the model of one session object's host, each counted once, with what was sent."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._run: RunRecord | None = None
        self._listed: SentTexts | None = None
        self._step: _Step | None = None

    @property
    def run(self) -> RunRecord:
        """Return what the requests of the newest run were sent; no start of a gateway needs it."""
        if self._run is None:
            from pegboard.board.views.run_record import RunRecord

            self._run = RunRecord(self._services)
        return self._run

    def end_run(self) -> None:
        """Note that the run is over, where there is one."""
        if self._run is not None:
            self._run.ended()

    def note_answer(self, answer: CallAnswer, *, meta: bool) -> None:
        """Note what came of a call of the run, where there is one; see :meth:`RunRecord.called`."""
        if self._run is not None:
            self._run.called(answer, meta=meta)

    def count_surface(self, snapshot: Snapshot, shown: Surface, tools: tuple[Tool, ...], message: str | None) -> None:
        """Count the request that a surface with these tools is for; a client's own are counted when it calls."""
        host, step = snapshot.info.host, self._step
        if host.calls_through:
            self._listed = sent(shown)
        elif step is not None and step.wired and message is not None and step.again == message:
            self._step = None
        elif host is not COMMAND:
            counted = self._services.metrics.requested(
                snapshot.info.key, snapshot.permissions, cached=host.cache is not None
            )
            self.run.requested(snapshot, shown, tools)
            again = message if shown.focus is not None else None
            self._step = _Step(sent=counted, wired=False, again=again)

    def count_wire_list(self, snapshot: Snapshot, shown: Surface, wire_list: tuple[Tool, ...]) -> None:
        """Count the request that a wire list is for; the surface that it follows was for the same."""
        step, metrics, again = self._step, self._services.metrics, None
        if step is None or step.wired:
            self.run.requested(snapshot, shown, wire_list)
        else:
            self.run.requested_instead(snapshot, shown, wire_list)
            again = step.again
            if not metrics.withdraw(snapshot.info.key, step.sent):
                self._step = replace(step, wired=True)
                return
        info = snapshot.info
        listed = wire_list, sent(shown)[1]
        counted = metrics.requested(info.key, snapshot.permissions, listed, cached=info.host.cache is not None)
        self._step = _Step(sent=counted, wired=True, again=again)

    def count_call(self, snapshot: Snapshot, request: Request) -> None:
        """Count the request that a client's model made before it called; those that come together came of one."""
        self._step = None
        info = snapshot.info
        if not info.host.calls_through or not request.is_alone:
            return
        listed = self._listed if "array" in info.host.delivery else None
        if listed is None:
            listed = sent_at_start(snapshot.permissions, self._services, info.host, info.stable)
        cached = info.host.cache is not None
        self._services.metrics.requested(info.key, snapshot.permissions, listed, cached=cached)
