"""What a text costs, and what models were sent in sum: the bill (F4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from heapq import nsmallest
from typing import Final, Literal, NamedTuple, Protocol

BILL_DAYS: Final = 400
"""For how many days the bill is kept."""


class TokenCounter(Protocol):
    """A counter of tokens, with a real tokenizer (F4)."""

    def count(self, text: str) -> int:
        """Return what a text costs.

        Args:
            text: Any text.

        Returns:
            How many tokens it takes.
        """
        ...


class BillCounts(NamedTuple):
    """What was sent and done, in numbers that add up.

    ``requests`` are the tool lists that a model was sent. In the library those are the surfaces or wire lists of its
    steps. A gateway does not see the requests of its clients' models: there they are the calls that came while no other
    of the session ran, each of which a model had asked for; the request that a model answers with text alone is not
    among them. ``tokens`` are those of their tools and texts, ``saved`` what listing everything that the agent may use
    would have cost more, which is not known of ``unknown`` of the requests. ``meta_calls`` are calls of meta-tools,
    each a model call that discovery costs.

    ``texts`` are those of the tokens of lists that are no tool: hints, what is loaded, policies. ``written`` and
    ``cached`` are how many of ``tokens`` a host with a prompt cache has written into it and read from it,
    ``saved_written`` and ``saved_cached`` how many more those would have been with everything listed. ``arguments``
    are the tokens that models wrote to call, ``results`` those of the answers; ``estimated`` of both were not counted.
    """

    requests: int = 0
    tokens: int = 0
    saved: int = 0
    unknown: int = 0
    loads: int = 0
    unloads: int = 0
    searches: int = 0
    calls: int = 0
    meta_calls: int = 0
    denials: int = 0
    texts: int = 0
    written: int = 0
    cached: int = 0
    saved_written: int = 0
    saved_cached: int = 0
    arguments: int = 0
    results: int = 0
    estimated: int = 0

    @property
    def all_tokens(self) -> int:
        """Return the tokens of lists, arguments and results."""
        return self.tokens + self.arguments + self.results

    def plus(self, other: BillCounts) -> BillCounts:
        """Return the sums.

        Args:
            other: What is added.
        """
        return BillCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class BillRecord(NamedTuple):
    """What one session came to on one day (UTC), which is ISO text."""

    day: str
    principal: str
    agent: str
    session: str
    counts: BillCounts


MOST_GREATEST: Final = 5_000
"""How many of the greatest sums are given at most: each has up to four names in one statement."""
BillName = Literal["day", "principal", "agent", "session"]
"""What a bill can be told apart by."""


class BillSums(NamedTuple):
    """Sums of the bill; ``damaged`` records do not count, ``more`` sums are not among them.

    Names that they are not told apart by are empty.
    """

    records: Sequence[BillRecord]
    damaged: int = 0
    more: int = 0


class BillPage(NamedTuple):
    """A part of the bill, the oldest day first.

    ``next`` is where the rest begins, None at the end; ``damaged`` counts the records here that cannot be read.
    """

    records: Sequence[BillRecord]
    next: Hashable = None
    damaged: int = 0


def summed(
    by: Sequence[BillName], records: Iterable[BillRecord], agents: Collection[str] | None = None
) -> list[BillRecord]:
    """Return the sums of records.

    Args:
        by: What they are told apart by.
        records: What is summed.
        agents: Only what these did; None is everything.
    """
    sums: dict[BillRecord, BillCounts] = {}
    for record in records:
        if agents is None or record.agent in agents:
            key = _NOTHING._replace(**{name: getattr(record, name) for name in by})
            sums[key] = sums[key].plus(record.counts) if key in sums else record.counts
    return [key._replace(counts=counts) for key, counts in sums.items()]


def greatest_of(sums: Sequence[BillRecord], most: int | None, damaged: int = 0) -> BillSums:
    """Return the sums of the most tokens.

    Args:
        sums: All of them.
        most: How many there may be; None is all.
        damaged: How many records could not be read.
    """
    if most is None:
        return BillSums(sums, damaged)
    found = nsmallest(min(most, MOST_GREATEST), sums, key=lambda one: (-one.counts.all_tokens, one[:4]))
    return BillSums(found, damaged, len(sums) - len(found))


_NOTHING: Final = BillRecord("", "", "", "", BillCounts())


class BillStore(Protocol):
    """The bill: a record for every session and day; what several processes count adds up."""

    @property
    def lasts(self) -> bool:
        """Return whether what is stored outlives the process."""
        ...

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:
        """Have what was counted handed over with each batch of records, so that a killed process has lost no more.

        Args:
            hand_over: Hands it over, at once.

        Returns:
            Whether it is called; where it is not, a killed process loses what it held back.
        """
        ...

    def bill_later(self, *records: BillRecord) -> None:
        """Add to what is stored, within 50 ms, in a batch; what is older than ``BILL_DAYS`` is removed.

        Args:
            records: What has come since; each is added once or, where the process is killed before, never.
        """
        ...

    async def bill(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        after: Hashable = None,
        limit: int = 2000,
    ) -> BillPage:
        """Return a part of what is stored, so that any amount can be read in bounded memory.

        Args:
            since: The first day, as ISO text; None is the oldest.
            until: The last day; None is the newest.
            principal: Only what was done for this one.
            agent: Only what was done for this one.
            session: Only what was done in this one.
            after: Where the part before ended; None is the beginning.
            limit: How many records at most.

        Returns:
            The records, and where the next part begins.

        Raises:
            StoreError: It cannot be read.
        """
        ...

    async def bill_sums(
        self,
        *,
        by: Sequence[BillName],
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        agents: Collection[str] | None = None,
        greatest: int | None = None,
    ) -> BillSums:
        """Return sums of the bill.

        Args:
            by: What the sums are told apart by; one for each combination that there is.
            since: The first day, as ISO text; None is the oldest.
            until: The last day; None is the newest.
            principal: Only what was done for this one.
            agent: Only what was done for this one.
            session: Only what was done in this one.
            agents: Only what these did; None is everything.
            greatest: Only so many, and at most ``MOST_GREATEST``, those of the most tokens, the greatest first; None
                is all, in no order.

        Returns:
            The sums.

        Raises:
            StoreError: It cannot be read.
        """
        ...
