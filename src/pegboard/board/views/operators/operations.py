"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date

from pegboard.board.services import Services
from pegboard.board.views.operators.approval_overview import OperatorApprovals
from pegboard.board.views.operators.audit import AuditLine, AuditPage, AuditQuery, audit, export
from pegboard.board.views.operators.bill import Bill, BillQuery, BillUnit, bill
from pegboard.board.views.operators.finding import SearchAnswer, find
from pegboard.board.views.operators.servers import (
    ServerState,
    ServerTool,
    restart,
    server,
    server_log,
    server_tools,
    servers,
)
from pegboard.board.views.operators.tool_explanations import OperatorExplanation, explain
from pegboard.board.views.operators.whole_catalog import WholeCatalog
from pegboard.core.access.pool_scope import LOCAL
from pegboard.ports import PrintedLine


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._whole = WholeCatalog(services)
        self.approvals = OperatorApprovals(services)

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

    def server_tools(self, name: str, *, offset: int = 0, limit: int = 50) -> tuple[ServerTool, ...]:
        """Return some of the tools of a server or plugin, with what each costs.

        Args:
            name: its name in the configuration.
            offset: how many come before.
            limit: how many there are at most.

        Raises:
            UsageError: there is none of this name.
        """
        return server_tools(self._services, name, offset, limit)

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

    async def search(
        self, agent: str, query: str, *, principal: str = "local", session: str = "", limit: int = 20
    ) -> SearchAnswer:
        """Return what answers a text while somebody types: what the agent's model would find, and what else there is.

        It leaves no trace: nothing is remembered, recorded, loaded, started or asked.

        Args:
            agent: the agent's name.
            query: what was typed: a need in words, or a name.
            principal: whose session it is.
            session: its id; nothing is a new one.
            limit: how many hits there are at most, up to 100.

        Raises:
            UsageError: the query is no text, or the limit is below one.
            UnknownAgentError: there is no such agent.
            StoreError: the stored state cannot be read.
        """
        return await find(self._services, self._whole, agent, query, principal=principal, session=session, limit=limit)

    async def explain(
        self, agent: str, name: str, *, principal: str = "local", session: str = "", sub_app: str | None = None
    ) -> OperatorExplanation:
        """Return the four predicates for a name, the chain of reasons, and what would make it callable (F5).

        Where the name is not known, whatever can be asked is asked first.

        Args:
            agent: the agent's name.
            name: a tool or plugin; one that does not exist is explained, too.
            principal: whose session it is.
            session: its id; nothing is a new one.
            sub_app: what the session was opened with.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored state cannot be read.
        """
        return await explain(self._services, agent, name, principal=principal, session=session, sub_app=sub_app)
