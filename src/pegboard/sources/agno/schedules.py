"""The schedules that Agno's ``SchedulerTools`` stores: whose they are, and which of them are due."""

from __future__ import annotations

import importlib
import json
import time
from contextlib import suppress
from typing import Any, Final, cast
from uuid import uuid4

from pegboard.core.model.tools import CallResult, joined_text
from pegboard.ports import CallContext
from pegboard.ports.schedules import DueSchedule
from pegboard.sources.agno.databases import SharedDatabase

MODULE: Final = "agno.tools.scheduler"
"""Where Agno has the toolkit that stores schedules."""
CREATE: Final = "create_schedule"


class AgnoSchedules:
    """The schedules in a database of Agno; its methods block."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database
        self._worker = f"pegboard-{uuid4().hex[:12]}"

    def note_schedule(self, plugin: str, result: CallResult, context: CallContext) -> None:
        """Note whose a schedule is that was just made: the principal alone is not enough to run it as its owner."""
        with suppress(ValueError, TypeError, KeyError):
            made = json.loads(joined_text(result))["id"]
            owner = json.dumps([plugin, context.agent, context.principal])
            self._database.get().stamp_schedule_provenance(
                made, created_by_run_id=owner, created_by_session_id=context.session
            )

    def claim(self) -> DueSchedule | None:
        """Take one that is due; it is due again at its next time, whatever becomes of this one."""
        database = self._database.get()
        row: dict[str, Any] | None = database.claim_due_schedule(self._worker)
        if row is None:
            return None
        cron: Any = importlib.import_module("agno.scheduler.cron")
        then = cron.compute_next_run(row["cron_expr"], row["timezone"]) if row["cron_expr"] else None
        database.release_schedule(row["id"], next_run_at=then, worker_id=self._worker)
        plugin, agent, principal = _owner(row.get("created_by_run_id"))
        payload = row.get("payload")
        return DueSchedule(
            id=row["id"],
            name=row["name"],
            description=row.get("description") or "",
            payload=cast("dict[str, Any]", payload) if isinstance(payload, dict) else {},
            plugin=plugin,
            principal=principal,
            agent=agent,
            session=row.get("created_by_session_id") or "",
        )

    def note_run(self, due: DueSchedule, error: str) -> None:
        """Keep a run in the history that ``get_schedule_runs`` shows."""
        now = int(time.time())
        run = {"id": f"run-{uuid4().hex}", "schedule_id": due.id, "attempt": 1, "user_id": due.principal}
        became = {"status": "failed" if error else "success", "error": error or None}
        times = {"triggered_at": now, "completed_at": now, "created_at": now}
        self._database.get().create_schedule_run({**run, **became, **times})


def _owner(text: object) -> tuple[str, str, str]:
    """Return plugin, agent and principal as they were noted; nothing where someone else made the schedule."""
    with suppress(ValueError, TypeError):
        plugin, agent, principal = json.loads(cast("str", text))
        return str(plugin), str(agent), str(principal)
    return "", "", ""
