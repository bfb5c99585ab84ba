"""What happened: one record of each call and each decision (X4), and the counts that come with them (F4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from pegboard.core.model.recording import KEPT_DAYS
from pegboard.ports.counts import EVERYTHING_COUNTED, CountFilter, CountName, CountRecord, CountSums, CountUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which records of the trail are wanted; None is any.

    ``text`` is in the subject, the reason or who did it, upper and lower case being equal. ``since`` counts, ``until``
    does not. With ``agents`` records of others, and those that are about no agent, are not among them.
    """

    principal: str | None = None
    agent: str | None = None
    agents: frozenset[str] | None = None
    session: str | None = None
    kind: str | None = None
    decision: str | None = None
    outcome: str | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """The name of one session's state (S1)."""

    principal: str
    agent: str
    session: str


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
MOST_DETAILS: Final = 256 * 1024 * 1024
"""How many characters of details a store keeps about; those whose days end first go first."""
MOST_UNWRITTEN: Final = 64 * 1024 * 1024
"""How many characters of details wait at most to be written; of calls that come then, the record alone is kept."""


class AuditRecord(NamedTuple):
    """One record of the audit trail (X4); ``arguments`` is a keyed digest, never the arguments.

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


class CallNumbers(NamedTuple):
    """What was measured of a call beside its duration; None is what was not.

    ``queued``, ``waited`` and ``upstream`` are in milliseconds: from its arrival until it ran or was refused, without
    the next; for a person who was asked through the client; in the plugin that answered it. ``sent`` is how many
    characters its arguments have as JSON, ``received`` how many its answer has for the model.
    """

    queued: float | None = None
    waited: float | None = None
    upstream: float | None = None
    sent: int | None = None
    received: int | None = None


NOT_MEASURED: Final = CallNumbers()


class CallDetails(NamedTuple):
    """What a record has of a call beside its line: numbers and a text.

    A call is kept for ``days``, from its record on; of a decision its text goes then, and its line stays.
    """

    numbers: CallNumbers = NOT_MEASURED
    text: str = ""
    days: int = KEPT_DAYS


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


def is_mentioned(text: str, *cells: str) -> bool:
    """Return whether a text, which is casefolded, is in one of these."""
    return any(text in cell.casefold() for cell in cells)


class RequestStore(Protocol):
    """Keeps the records: decisions at once, calls within 50 ms (S2); and counts, which add up over processes.

    Reading writes before what still waits. Every method raises ``StoreError`` where the store cannot be read or
    written.
    """

    @property
    def lasts(self) -> bool:
        """Return whether what is stored outlives the process."""
        ...

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store decisions, in order, before returning; ``details`` are those of the last one, a call that was refused.

        About so many of the newest decisions are kept as the store was told, however old they are.
        """
        ...

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, in a batch; it is kept for the days of its details, or else ``KEPT_DAYS``."""
        ...

    def count_later(self, *records: CountRecord) -> None:
        """Add to the counts of every unit within 50 ms, in a batch; what is too old is removed.

        Each is added once or, where the process is killed before, never.
        """
        ...

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:
        """Have what was counted handed over with each batch of records, so that a killed process has lost no more.

        Args:
            hand_over: hands it over, at once.

        Returns:
            Whether it is called; where it is not, a killed process loses what it held back.
        """
        ...

    async def sums(
        self,
        unit: CountUnit,
        *,
        since: int,
        until: int,
        by: Sequence[CountName],
        of: CountFilter = EVERYTHING_COUNTED,
        greatest: int | None = None,
    ) -> CountSums:
        """Return sums of the rows of a unit.

        Args:
            unit: which rows, which says how far back they go.
            since: the first start that counts, in seconds since the epoch.
            until: the first start that does not count.
            by: what the sums are told apart by; one for each combination that there is.
            of: what they are of.
            greatest: only so many, and at most ``MOST_GREATEST``: those of the most tokens, the greatest first; None
                is all, in no order.
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
        """Return the newest records first, only those of the names that are given."""
        ...

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next ``PART`` records: bounded work, however long the trail is.

        Args:
            wanted: which records.
            before: only those with a smaller number, newest first; None begins with the newest.
            after: only those with a greater number, oldest first, instead.
            limit: how many records at most.
        """
        ...

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number, None where there is none, or one that cannot be read."""
        ...

    async def call_details(self, number: int) -> CallDetails | None:
        """Return what the record of a call has beside its line, but its days; no text where those are over."""
        ...

    async def session_trail(
        self,
        key: SessionKey,
        *,
        before: int | None = None,
        after: int | None = None,
        kinds: Collection[str] = (),
        limit: int = 100,
    ) -> Sequence[NumberedRecord]:
        """Return records of one session, found by an index.

        Args:
            key: whose session it is.
            before: only those with a smaller number, newest first; None begins with the newest.
            after: only those with a greater number, oldest first, instead.
            kinds: only records of these kinds; none is all.
            limit: how many at most.
        """
        ...

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested: made once, kept in the store."""
        ...
