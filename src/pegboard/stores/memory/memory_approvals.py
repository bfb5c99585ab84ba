"""Approvals in memory."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Binding
from pegboard.ports import APPROVALS_KEPT, AuditRecord
from pegboard.stores.memory.memory_trail import MemoryTrail


class MemoryApprovals(MemoryTrail):
    """The part of a store that keeps approvals."""

    __slots__ = ("_approvals",)

    def __init__(self, *, audit_keep: int) -> None:
        super().__init__(audit_keep=audit_keep)
        self._approvals: dict[str, Approval] = {}

    async def add_approval(self, approval: Approval, *, audit: Sequence[AuditRecord] = ()) -> None:
        """Store an approval that somebody is asked for, and remove what expired long before it."""
        oldest = approval.asked_at - APPROVALS_KEPT
        for known in tuple(self._approvals.values()):
            if known.expires_at is not None and known.expires_at < oldest:
                del self._approvals[known.id]
        self._approvals[approval.id] = approval
        self._append(audit)

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store an approval if the one under its id still has the expected status; return whether it is stored."""
        known = self._approvals.get(approval.id)
        if known is None or known.status != expected:
            return False
        self._approvals[approval.id] = approval
        self._append(audit)
        return True

    async def approval(self, approval_id: str) -> Approval | None:
        """Return one approval, or None."""
        return self._approvals.get(approval_id)

    async def approvals(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        open_at: float | None = None,
    ) -> Sequence[Approval]:
        """Return approvals, the newest first."""
        return [
            found
            for found in self._newest()
            if principal in (None, found.binding.principal)
            and agent in (None, found.binding.agent)
            and session in (None, found.binding.session)
            and (open_at is None or found.as_of(open_at).open)
        ]

    async def approvals_for(self, call: Binding) -> Sequence[Approval]:
        """Return what may count for a call: what lasts, and what was asked for the same arguments; the newest first."""
        return [
            found
            for found in self._newest()
            if (found.binding.principal, found.binding.agent, found.binding.tool)
            == (call.principal, call.agent, call.tool)
            and (found.lasts != "once" or (found.binding.session, found.asked) == (call.session, call.arguments))
        ]

    async def remove_approvals(self, *, principal: str, agent: str, session: str) -> int:
        """Remove the approvals of a session, but for those that stand for always; return how many there were."""
        found = await self.approvals(principal=principal, agent=agent, session=session)
        gone = [one.id for one in found if (one.lasts, one.status) != ("always", "allowed")]
        for approval_id in gone:
            del self._approvals[approval_id]
        return len(gone)

    def _newest(self) -> list[Approval]:
        return sorted(self._approvals.values(), key=lambda found: found.asked_at, reverse=True)
