"""What people have said to calls that were asked about, and what hooks of a plugin say before a call (A1–A3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pegboard.core.access.approvals.approval import Approval, ApprovalStatus, Binding
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.ports.calls import CallContext
from pegboard.ports.requests import AuditRecord

APPROVALS_KEPT: Final = 24 * 3600.0
"""For how many seconds an approval is kept after it has expired."""


class ApprovalStore(Protocol):
    """The approvals of calls; writers compare and swap (A2)."""

    async def add_approval(self, approval: Approval, *, audit: Sequence[AuditRecord] = ()) -> None:
        """Store an approval that is asked for, under a new id; what expired ``APPROVALS_KEPT`` before it is removed."""
        ...

    async def change_approval(
        self, approval: Approval, *, expected: ApprovalStatus, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store an approval in place of the one under its id, if that still has the expected status; return whether.

        If another writer was first, nothing is stored, no record either. It survives kill -9 once this returns.
        """
        ...

    async def approval(self, approval_id: str) -> Approval | None:
        """Return the approval with an id, or None."""
        ...

    async def approvals(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        open_at: float | None = None,
    ) -> Sequence[Approval]:
        """Return approvals, the newest first.

        Args:
            principal: Only those of calls of this one.
            agent: Only those of calls of this one.
            session: Only those of calls in this one.
            open_at: Only those of which something may still come at this time, in seconds since the epoch.
        """
        ...

    async def approvals_for(self, call: Binding) -> Sequence[Approval]:
        """Return what may count for a call: what lasts, and what was asked for the same arguments; the newest first."""
        ...

    async def remove_approvals(self, *, principal: str, agent: str, session: str) -> int:
        """Remove the approvals of a session, but for what was allowed for always; return how many there were."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What the hooks of a plugin say to a call: why it is refused, why a person approves it first, or nothing."""

    refused: str = ""
    approval: str = ""


@runtime_checkable
class HasHooks(Protocol):
    """A source whose plugins may judge a call before anything runs (T10, A1)."""

    async def ask_hooks(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> HookAnswer:
        """Return what the hooks of a tool say to a call.

        Args:
            spec: The plugin.
            overrides: Those of the variant that is called.
            tool: The tool, by its own name.
            arguments: Valid already under its schema.
            context: On whose behalf, and the ways back.

        Returns:
            The answer; a hook that fails demands an approval.

        Raises:
            ToolUnavailableError: The plugin cannot run now.
        """
        ...
