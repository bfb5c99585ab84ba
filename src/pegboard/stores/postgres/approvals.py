"""Approvals in the database: one row each, changed only where the status is still the one that was read (A2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Binding
from pegboard.ports import APPROVALS_KEPT, AuditRecord
from pegboard.stores.postgres.states import PostgresStates
from pegboard.stores.postgres.texts import from_column, key_of, to_column
from pegboard.stores.rows.approval_text import from_json, to_json

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Transaction

_NAMES: Final = "id, call, principal, agent, session, tool, asked, status, lasts, asked_at, expires_at, text"
_OPEN: Final = "status IN ('waiting', 'allowed') AND (expires_at IS NULL OR expires_at > %s)"
_CHANGE: Final = (
    "UPDATE {s}.approvals SET status = %s, lasts = %s, expires_at = %s, text = %s WHERE id = %s AND status = %s"
    " RETURNING 1"
)
_REMOVE: Final = (
    "DELETE FROM {s}.approvals WHERE principal = %s AND agent = %s AND session = %s"
    " AND NOT (lasts = 'always' AND status = 'allowed') RETURNING 1"
)


class PostgresApprovals(PostgresStates):
    """The part of a store that keeps approvals."""

    async def add_approval(self, approval: Approval, *, audit: Sequence[AuditRecord] = ()) -> None:
        """Store an approval that somebody is asked for, and remove what expired long before it."""
        own = approval.binding
        named = own.principal, own.agent, own.session, own.tool, approval.asked, approval.status, approval.lasts
        row = to_column(approval.id), _call(own), *map(to_column, named), approval.asked_at, approval.expires_at
        query = f"INSERT INTO {{s}}.approvals ({_NAMES}) VALUES ({', '.join(['%s'] * 12)})"  # noqa: S608 - constants

        async def add(transaction: Transaction) -> None:
            oldest = approval.asked_at - APPROVALS_KEPT
            await transaction.run("DELETE FROM {s}.approvals WHERE expires_at < %s", (oldest,))
            await transaction.run(query, (*row, to_column(to_json(approval))))

        await self._write(add, audit=audit, others=True)

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store an approval if the one under its id still has the expected status; return whether it is stored."""
        row = approval.status, approval.lasts, approval.expires_at, to_column(to_json(approval))

        async def change(transaction: Transaction) -> None:
            await transaction.require(_CHANGE, (*row, to_column(approval.id), expected))

        return await self._write_or_not(change, audit=audit, others=True)

    async def approval(self, approval_id: str) -> Approval | None:
        """Return one approval, or None."""
        return next(iter(await self._approvals("id = %s", to_column(approval_id))), None)

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
        conditions = [*(f"{name} = %s" for name in given), *([] if open_at is None else [_OPEN])]
        return await self._approvals(
            " AND ".join(conditions) or "true", *given.values(), *([] if open_at is None else [open_at])
        )

    async def approvals_for(self, call: Binding) -> Sequence[Approval]:
        """Return what may count for a call: what lasts, and what was asked for the same arguments; the newest first."""
        where = "call = %s AND (lasts <> 'once' OR (session = %s AND asked = %s))"
        return await self._approvals(where, _call(call), to_column(call.session), to_column(call.arguments))

    async def _approvals(self, where: str, *given: object) -> list[Approval]:
        query = f"SELECT text FROM {{s}}.approvals WHERE {where} ORDER BY asked_at DESC, number DESC"  # noqa: S608
        rows = await self._rows(query, given)
        return [found for row in rows if (found := from_json(from_column(row[0]))) is not None]

    async def remove_approvals(self, *, principal: str, agent: str, session: str) -> int:
        """Remove the approvals of a session, but for those that stand for always; return how many there were."""
        key = tuple(map(to_column, (principal, agent, session)))

        async def remove(transaction: Transaction) -> int:
            return len(await transaction.run(_REMOVE, key))

        return await self._write(remove, others=True)


def _call(binding: Binding) -> bytes:
    return key_of(binding.principal, binding.agent, binding.tool)
