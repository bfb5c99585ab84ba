"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date

from pegboard.board.services import Services
from pegboard.board.views.operators import approval_overview
from pegboard.board.views.operators.audit import AuditLine, AuditPage, AuditQuery, audit, export
from pegboard.board.views.operators.bill import Bill, BillQuery, BillUnit, bill
from pegboard.board.views.operators.servers import ServerState, restart, server, server_log, servers
from pegboard.core.access.pool_scope import LOCAL
from pegboard.core.model.tools import JsonObject
from pegboard.ports import PrintedLine


def _every(_agent: str) -> bool:
    return True


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def bill(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        agent: str | None = None,
        agents: frozenset[str] | None = None,
        principal: str | None = None,
        session: str | None = None,
        by: BillUnit = "day",
        limit: int = 400,
    ) -> Bill:
        """Return what models were sent and did (F4).

        Args:
            since: the first day (UTC); None is the oldest that is kept.
            until: the last day; None is today.
            agent: only what this one came to.
            agents: nothing of others than these.
            principal: only what was done for this one.
            session: only what was done in this one.
            by: what a row stands for.
            limit: how many rows there are at most; the others are summed up.

        Raises:
            StoreError: it cannot be read.
        """
        query = BillQuery(
            by=by,
            since=since,
            until=until,
            principal=principal,
            agent=agent,
            agents=agents,
            session=session,
            limit=limit,
        )
        return await bill(self._services, query)

    async def audit(self, query: AuditQuery) -> AuditPage:
        """Return a page of the audit trail (X4).

        Args:
            query: which records, and which page of them.

        Raises:
            StoreError: it cannot be read.
        """
        return await audit(self._services, query)

    def export(self, query: AuditQuery) -> AsyncIterator[AuditLine]:
        """Return an iterator over all records that are wanted, newest first, in bounded memory.

        Args:
            query: which records; its ``limit`` and ``after`` do not count.
        """
        return export(self._services, query)

    async def servers(self) -> tuple[ServerState, ...]:
        """Return the state of every server and plugin of the configuration, in its order.

        Returns:
            Their states; nothing is started for them.

        Raises:
            StoreError: the stored switches cannot be read.
        """
        return await servers(self._services)

    async def server(self, name: str) -> ServerState:
        """Return the state of one server or plugin.

        Args:
            name: its name in the configuration.

        Returns:
            Its state; nothing is started for it.

        Raises:
            UsageError: there is none of this name.
            StoreError: the stored switches cannot be read.
        """
        return await server(self._services, name)

    def server_log(self, name: str) -> tuple[PrintedLine, ...]:
        """Return what a server printed, the newest last, also of its processes that have ended.

        Args:
            name: its name in the configuration.

        Returns:
            At most 200 lines and 64 KiB of each connection; none of a plugin that runs in this process.

        Raises:
            UsageError: there is none of this name.
        """
        return server_log(self._services, name)

    async def restart(self, name: str, *, by: str = LOCAL) -> ServerState:
        """Start a server anew and ask for its tools again; calls under way fail as where it dies.

        A plugin of this process is asked again where it cannot run.

        Args:
            name: its name in the configuration.
            by: who wants it, for the audit trail.

        Returns:
            Its state once that is known; a server that takes longer than 5 s is still starting.

        Raises:
            UsageError: there is none of this name, it runs in this process and works, or ``by`` is no short text.
            ToolUnavailableError: it cannot be started as it is configured.
            StoreError: it cannot be written down, and nothing was restarted.
        """
        return await restart(self._services, name, by)

    async def approvals(
        self, sees: approval_overview.Sees = _every, *, offset: int = 0, limit: int = 50
    ) -> approval_overview.OpenApprovals:
        """Return what waits for an answer, and what was allowed and still counts (A1–A3).

        Args:
            sees: whether somebody sees an agent; those of other agents are not there for them.
            offset: how many of those that wait come before.
            limit: how many of them at most.

        Raises:
            StoreError: it cannot be read.
        """
        return await approval_overview.open_approvals(self._services, sees, offset=offset, limit=limit)

    async def ended_approvals(
        self, sees: approval_overview.Sees = _every, *, offset: int = 0, limit: int = 50
    ) -> approval_overview.EndedApprovals:
        """Return what was refused, is used or has expired; kept for a day after it would have expired.

        Args:
            sees: whether somebody sees an agent.
            offset: how many come before.
            limit: how many at most.

        Raises:
            StoreError: it cannot be read.
        """
        return await approval_overview.ended_approvals(self._services, sees, offset=offset, limit=limit)

    async def approval(
        self, approval_id: str, sees: approval_overview.Sees = _every
    ) -> approval_overview.ApprovalOverview:
        """Return one approval.

        Args:
            approval_id: which one.
            sees: whether somebody sees an agent.

        Raises:
            UsageError: there is none, or none of an agent that they see.
            StoreError: it cannot be read.
        """
        return await approval_overview.approval_of(self._services, approval_id, sees)

    async def field_problems(
        self, approval_id: str, given: JsonObject, sees: approval_overview.Sees = _every
    ) -> tuple[approval_overview.FieldProblem, ...]:
        """Return what is wrong with what somebody filled in for an approval, by field.

        Args:
            approval_id: which one.
            given: the fields by name.
            sees: whether somebody sees an agent.

        Raises:
            UsageError: there is none, or none of an agent that they see.
            StoreError: it cannot be read.
        """
        return await approval_overview.field_problems(self._services, approval_id, sees, given)

    async def count_waiting(self, sees: approval_overview.Sees = _every) -> int:
        """Return how many calls wait for an answer.

        Args:
            sees: whether somebody sees an agent.

        Raises:
            StoreError: it cannot be read.
        """
        return await approval_overview.count_waiting(self._services, sees)
