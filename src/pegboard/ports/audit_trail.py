"""What happened: the audit trail (X4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pegboard.ports.audit_filter import AuditFilter
    from pegboard.ports.call_details import CallDetails

AuditKind = Literal[
    "load",
    "unload",
    "evict",
    "loadout",
    "deny",
    "call",
    "search",
    "read",
    "prompt",
    "permission",
    "edit",
    "approval",
    "pin",
    "server",
    "login",
    "schedule",
    "forget",
]
"""What an audit record is about."""
PART: Final = 5_000
"""How many records one part of the trail looks at: some milliseconds."""


class AuditRecord(NamedTuple):
    """One line of the audit trail (X4); ``arguments`` is a keyed digest, never the arguments.

    ``kind`` is one of ``AuditKind``; ``duration`` is in milliseconds; ``by`` is who decided it from outside of a
    session, such as the operator who set a switch, else nothing.
    """

    at: datetime
    kind: str
    principal: str
    agent: str
    session: str
    turn: int
    subject: str
    decision: str
    reason: str = ""
    duration: float | None = None
    outcome: str = ""
    arguments: str = ""
    by: str = ""


class TrailPage(NamedTuple):
    """A part of the audit trail, oldest first.

    ``next`` is where the rest begins, None at the end; ``damaged`` counts the records here that cannot be read.
    """

    entries: Sequence[AuditRecord]
    next: int | None
    damaged: int = 0


def mentions(text: str, *cells: str) -> bool:
    """Return whether a text, which is casefolded, is in one of these.

    Args:
        text: What is looked for.
        cells: Where.
    """
    return any(text in cell.casefold() for cell in cells)


class NumberedRecord(NamedTuple):
    """A record with its number, which only grows and is never used twice."""

    number: int
    record: AuditRecord


class AuditPart(NamedTuple):
    """What is wanted of a part of the trail, in the direction in which it is read.

    ``next`` is where the rest begins, None where nothing is left now; ``newest`` is the newest number that there is;
    ``damaged`` counts the wanted records here that cannot be read.
    """

    records: Sequence[NumberedRecord]
    next: int | None
    newest: int
    damaged: int = 0


class AuditLog(Protocol):
    """The audit trail: decisions at once, calls within 50 ms (S2)."""

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store decisions, in order, before returning.

        Args:
            entries: What was decided.
            details: What is kept of the last one, which is a call, beside its record.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, in a batch.

        Args:
            entry: What was called.
            details: What is kept of it beside its record.
        """
        ...

    async def entries(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """Return a part of the trail, newest first.

        Args:
            principal: Only what was done for this one.
            agent: Only what was done for this one.
            session: Only what was done in this one.
            kind: Only records of this kind.
            limit: How many at most.

        Returns:
            The records.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first, so that one of any length can be read in bounded memory.

        Args:
            after: Where the part before ended; 0 is the beginning.
            agent: Only what was done for this one.
            limit: How many records are looked at, at most.

        Returns:
            The records, and where the next part begins. What was removed in between is missing, nothing comes twice.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next ``PART`` records: bounded work, however long the trail is.

        Args:
            wanted: Which records.
            before: Only those with a smaller number, newest first; None begins with the newest.
            after: Only those with a greater number, oldest first, instead.
            limit: How many records at most.

        Returns:
            The records, and where the next part begins.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested.

        Returns:
            The key: made once, kept in the store.

        Raises:
            StoreError: It cannot be read or made.
        """
        ...
