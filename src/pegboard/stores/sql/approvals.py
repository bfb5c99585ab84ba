"""Approvals: one row each, changed only where the status is still the one that was read (A2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Binding
from pegboard.core.model.tools import Frozen
from pegboard.ports import APPROVALS_KEPT, AuditRecord
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import ChangedMeanwhileError, Transaction, insert, where_clause
from pegboard.stores.sql.sessions import OF_SESSION, SESSION

_COLUMNS: Final = ("id", *SESSION, "tool", "asked", "status", "lasts", "asked_at", "expires_at", "text")
_CHANGE: Final = "UPDATE main.approval SET status = ?, lasts = ?, expires_at = ?, text = ? WHERE id = ? AND status = ?"
_OPEN: Final = "status IN ('waiting', 'allowed') AND (expires_at IS NULL OR expires_at > ?)"
_FOR_CALL: Final = (
    " WHERE principal = ? AND agent = ? AND tool = ? AND (lasts <> 'once' OR (session = ? AND asked = ?))"
)
_ENDS_WITH_SESSION: Final = "NOT (lasts = 'always' AND status = 'allowed')"


class StoredApprovals(StoreBase):
    """The part of the store that keeps approvals."""

    async def add_approval(self, approval: Approval, *, audit: Sequence[AuditRecord] = ()) -> None:
        """Store an approval that is asked for, and remove what expired long before it."""
        own = approval.binding
        row = (
            approval.id, own.principal, own.agent, own.session, own.tool, approval.asked, approval.status,
            approval.lasts, approval.asked_at, approval.expires_at, _approval_to_json(approval),
        )  # fmt: skip

        async def add(transaction: Transaction) -> None:
            oldest = approval.asked_at - APPROVALS_KEPT
            await transaction.run("DELETE FROM main.approval WHERE expires_at < ?", oldest)
            await transaction.run(insert("approval", _COLUMNS), *row)
            transaction.announce(others=True)

        await self._write(add, audit=audit)

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store an approval if the one under its id still has the expected status; return whether it is stored."""
        row = approval.status, approval.lasts, approval.expires_at, _approval_to_json(approval)

        async def change(transaction: Transaction) -> bool:
            if not await transaction.changed(_CHANGE, *row, approval.id, expected):
                raise ChangedMeanwhileError
            transaction.announce(others=True)
            return True

        return bool(await self._write_or_none(change, audit=audit))

    async def approval(self, approval_id: str) -> Approval | None:
        """Return one approval, or None."""
        return next(iter(await self._approvals(" WHERE id = ?", approval_id)), None)

    async def approvals(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        open_at: float | None = None,
    ) -> Sequence[Approval]:
        """Return approvals, the newest first."""
        wanted = {"principal = ?": principal, "agent = ?": agent, "session = ?": session, _OPEN: open_at}
        condition, values = where_clause(wanted)
        return await self._approvals(condition, *values)

    async def approvals_for(self, call: Binding) -> Sequence[Approval]:
        """Return what may count for a call: what lasts, and what was asked for the same arguments; the newest first."""
        given = call.principal, call.agent, call.tool, call.session, call.arguments
        return await self._approvals(_FOR_CALL, *given)

    async def remove_approvals(self, *, principal: str, agent: str, session: str) -> int:
        """Remove the approvals of a session, but for those that were allowed for always; return how many there were."""

        async def remove(transaction: Transaction) -> int:
            query = f"DELETE FROM main.approval WHERE {OF_SESSION} AND {_ENDS_WITH_SESSION}"  # noqa: S608 - constants
            transaction.announce(others=True)
            return await transaction.changed(query, principal, agent, session)

        return await self._write(remove)

    async def _approvals(self, condition: str, *values: Any) -> list[Approval]:
        query = f"SELECT text FROM main.approval{condition} ORDER BY asked_at DESC, number DESC"  # noqa: S608 - constants
        found = (_approval_from_json(text) for (text,) in await self._db.rows(query, *values))
        return [approval for approval in found if approval is not None]


def _approval_to_json(approval: Approval) -> str:
    document: dict[str, Any] = {part.name: getattr(approval, part.name) for part in fields(Approval)}
    document["binding"] = {part.name: getattr(approval.binding, part.name) for part in fields(Binding)}
    return json.dumps(document, separators=(",", ":"))


def _approval_from_json(text: str) -> Approval | None:
    """Return the approval that :func:`_to_json` was given, or None where it cannot be read: then it does not count."""
    try:
        document: dict[str, Any] = json.loads(text)
        known: dict[str, Any] = {part.name: document[part.name] for part in fields(Approval) if part.name in document}
        known["arguments"], known["fields"] = Frozen(known["arguments"]), Frozen(known["fields"])
        known["binding"] = Binding(**known["binding"])
        return Approval(**known)
    except (ValueError, TypeError, KeyError):
        return None
