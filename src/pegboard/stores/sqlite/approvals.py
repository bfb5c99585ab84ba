"""Approvals in the database: one row each, changed only where the status is still the one that was read (A2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Binding
from pegboard.ports import APPROVALS_KEPT, AuditRecord
from pegboard.stores.rows.approval_text import from_json, to_json
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.session_states import SqliteStates

if TYPE_CHECKING:
    import sqlite3

_OPEN: Final = "status IN ('waiting', 'allowed') AND (expires_at IS NULL OR expires_at > ?)"
_MINE: Final = "principal = ? AND agent = ? AND session = ?"


class SqliteApprovals(SqliteStates):
    """The part of a store that keeps approvals."""

    async def add_approval(self, approval: Approval, *, audit: Sequence[AuditRecord] = ()) -> None:
        """Store an approval that somebody is asked for, and remove what expired long before it."""

        def add(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM approvals WHERE expires_at < ?", (approval.asked_at - APPROVALS_KEPT,))
            connection.execute("INSERT INTO approvals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(approval))
            self._queue.write(connection, audit)

        await self._write(add)

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store an approval if the one under its id still has the expected status; return whether it is stored."""

        def change(connection: sqlite3.Connection) -> bool:
            row = approval.status, approval.lasts, approval.expires_at, to_json(approval)
            query = "UPDATE approvals SET status = ?, lasts = ?, expires_at = ?, text = ? WHERE id = ? AND status = ?"
            if not connection.execute(query, (*row, to_column(approval.id), expected)).rowcount:
                return False
            self._queue.write(connection, audit)
            return True

        return await self._write(change)

    async def approval(self, approval_id: str) -> Approval | None:
        """Return one approval, or None."""
        return next(
            iter(await self._opened().read(lambda found: _select(found, "id = ?", to_column(approval_id)))), None
        )

    async def approvals(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        open_at: float | None = None,
    ) -> Sequence[Approval]:
        """Return approvals, the newest first."""
        wanted = {"principal": principal, "agent": agent, "session": session}
        given = {name: to_column(value) for name, value in wanted.items() if value is not None}
        where = " AND ".join([*(f"{name} = ?" for name in given), *([] if open_at is None else [_OPEN])]) or "1"
        values = (*given.values(), *(() if open_at is None else (open_at,)))
        return await self._opened().read(lambda connection: _select(connection, where, *values))

    async def approvals_for(self, call: Binding) -> Sequence[Approval]:
        """Return what may count for a call: what lasts, and what was asked for the same arguments; the newest first."""
        where = "principal = ? AND agent = ? AND tool = ? AND (lasts <> 'once' OR (session = ? AND asked = ?))"
        given = call.principal, call.agent, call.tool, call.session, call.arguments
        return await self._opened().read(lambda connection: _select(connection, where, *map(to_column, given)))

    async def remove_approvals(self, *, principal: str, agent: str, session: str) -> int:
        """Remove the approvals of a session, but for those that stand for always; return how many there were."""
        key = tuple(map(to_column, (principal, agent, session)))
        query = f"DELETE FROM approvals WHERE {_MINE} AND NOT (lasts = 'always' AND status = 'allowed')"  # noqa: S608
        return await self._write(lambda connection: connection.execute(query, key).rowcount)


def _row(approval: Approval) -> tuple[str | bytes | float | None, ...]:
    own = approval.binding
    named = approval.id, own.principal, own.agent, own.session, own.tool, approval.asked
    state = approval.status, approval.lasts, approval.asked_at, approval.expires_at, to_json(approval)
    return (*map(to_column, named), *state)


def _select(connection: sqlite3.Connection, where: str, *given: str | bytes | float) -> list[Approval]:
    query = f"SELECT text FROM approvals WHERE {where} ORDER BY asked_at DESC, rowid DESC"  # noqa: S608 - constants
    rows = connection.execute(query, given).fetchall()
    return [found for row in rows if (found := from_json(from_column(row[0]))) is not None]
