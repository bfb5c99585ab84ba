"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date

from pegboard.board.services import Services
from pegboard.board.views.operators.audit import AuditLine, AuditPage, AuditQuery, audit, export
from pegboard.board.views.operators.bill import Bill, BillQuery, BillUnit, bill


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
            principal: only what was done for this one.
            session: only what was done in this one.
            by: what a row stands for.
            limit: how many rows there are at most; the others are summed up.

        Raises:
            StoreError: it cannot be read.
        """
        query = BillQuery(
            by=by, since=since, until=until, principal=principal, agent=agent, session=session, limit=limit
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
