"""Run what agents planned once it is due, as their owners may then, where the host can (P1, X4)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import one_line
from pegboard.errors import PegboardError
from pegboard.ports import CallDetails, SessionKey
from pegboard.ports.schedules import DueSchedule, ScheduleSource

log = logging.getLogger(__name__)

RunDue = Callable[[DueSchedule], Awaitable[object]]
EVERY: Final = 15.0
"""How often it is looked what is due, in seconds."""
MOST: Final = 10
"""How many schedules run at once."""


class ScheduledRuns:
    """What runs due schedules, of one board; nothing is looked at as long as the host runs none."""

    def __init__(
        self, services: Services, permissions: Callable[[DueSchedule], Awaitable[CompiledPermissions]]
    ) -> None:
        self._services = services
        self._permissions = permissions
        self._room = asyncio.Semaphore(MOST)
        self._looking: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()

    def set_run(self, run: RunDue | None) -> None:
        """Look for what is due from now on, or no more; what runs goes on."""
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.get_running_loop().create_task(self._watch_schedules(run)) if run is not None else None

    async def aclose(self) -> None:
        """Stop looking, and what runs."""
        tasks = [*self._running, *filter(None, [self._looking])]
        self._looking = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch_schedules(self, run: RunDue) -> None:
        while True:
            for spec in tuple(self._services.loader.specs.values()):
                source = self._services.loader.source_of(spec)
                try:
                    while isinstance(source, ScheduleSource) and (due := await source.claim_due(spec)) is not None:
                        await self._room.acquire()
                        task = asyncio.create_task(self._run_schedule(run, source, due))
                        self._running.add(task)
                        task.add_done_callback(self._finish_task)
                except Exception as error:  # a plugin's own code may raise anything
                    text = self._services.masker.text(f"{type(error).__name__}: {error}")
                    log.warning("the schedules of %s cannot be read: %s", spec.name, text)
            await asyncio.sleep(EVERY)

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._room.release()

    async def _run_schedule(self, run: RunDue, source: ScheduleSource, due: DueSchedule) -> None:
        """Run a schedule, if its agent may still plan; keep and audit what came of it."""
        started, outcome, error = time.perf_counter(), "ok", ""
        try:
            if fault := await self._fault(due):
                outcome, error = "refused", fault
            else:
                await run(due)
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as raised:  # the host's own code may raise anything
            outcome = "error"
            error = raised.message if isinstance(raised, PegboardError) else f"{type(raised).__name__}: {raised}"
        finally:
            error = self._services.masker.text(one_line(error, limit=300))
            duration = round((time.perf_counter() - started) * 1000, 3)
            self._record_run(due, outcome, error, duration)
        with suppress(Exception):  # its history is not what is run
            await source.note_run(due, error)

    async def _fault(self, due: DueSchedule) -> str:
        """Return why a schedule is not run, or nothing: its owner's permissions are those of now."""
        if not (due.agent and due.principal):
            return "The agent that created it is unknown: let that agent create it again."
        if due.agent not in self._services.world.agents:
            return f"Agent '{one_line(due.agent, limit=100)}' no longer exists."
        permissions = await self._permissions(due)
        plugin = permissions.world.catalog.plugins.get(due.plugin)
        if plugin is None or not permissions.may_have_tools_of(plugin):
            return f"Agent '{due.agent}' may no longer use plugin '{one_line(due.plugin, limit=100)}'."
        return ""

    def _record_run(self, due: DueSchedule, outcome: str, error: str, duration: float) -> None:
        key = SessionKey(principal=due.principal, agent=due.agent, session=due.session)
        decision = "refused" if outcome == "refused" else "allowed"
        recorder = self._services.recorder
        entry = recorder.entry(key, 0, "schedule", due.name, decision, reason=error, duration=duration, outcome=outcome)
        agent = self._services.world.agents.get(due.agent)
        recorder.note_later(entry, details=None if agent is None else CallDetails(days=agent.record.days))
