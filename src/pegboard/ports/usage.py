"""How often what was called and how that went, by time: the numbers behind the console's curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import add
from typing import Final, Literal, NamedTuple, Protocol

UsageOutcome = Literal["ok", "error", "refused", "waits", "listed"]
"""What became of a call; ``listed`` are the tool lists that models were sent."""
UsageName = Literal["start", "agent", "server", "tool", "outcome"]
"""What counts can be told apart by."""
LATENCY_LIMITS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
"""The milliseconds up to which each latency of ``UsageCounts`` goes; the last one has no limit."""
OTHER: Final = "*"
"""The name under which what is too rare for a row of its own is summed; no agent, server or tool has it."""
Names = tuple[str, str, str, str]
"""Agent, server, tool, outcome."""


class UsageUnit(NamedTuple):
    """A stretch of time that counts are kept by.

    It is ``seconds`` long and begins at a multiple of that since the epoch, so that hours and days are UTC's. Its rows
    are ``kept`` for so many seconds, ``most`` of them; what is more is summed as ``OTHER``.
    """

    seconds: int
    kept: int
    most: int


STEP: Final = UsageUnit(300, 2 * 3_600, 200)
HOUR: Final = UsageUnit(3_600, 8 * 86_400, 200)
DAY: Final = UsageUnit(86_400, 400 * 86_400, 1_000)
UNITS: Final = (STEP, HOUR, DAY)


class UsageCounts(NamedTuple):
    """Numbers that add up.

    ``calls`` is how many there were. ``tokens``, ``saved`` and ``unknown`` are those of the bill, of lists. The
    ``within_…`` are how many calls took up to so many milliseconds; what was refused or waits took none. The others are
    those of the bill; of meta-tools they stand in what was ``listed``.
    """

    calls: int = 0
    tokens: int = 0
    saved: int = 0
    unknown: int = 0
    within_1: int = 0
    within_3: int = 0
    within_10: int = 0
    within_30: int = 0
    within_100: int = 0
    within_300: int = 0
    within_1000: int = 0
    within_3000: int = 0
    within_10000: int = 0
    within_30000: int = 0
    longer: int = 0
    texts: int = 0
    written: int = 0
    cached: int = 0
    saved_written: int = 0
    saved_cached: int = 0
    arguments: int = 0
    results: int = 0
    estimated: int = 0

    def plus(self, other: UsageCounts) -> UsageCounts:
        """Return the sums.

        Args:
            other: What is added.
        """
        return UsageCounts(*map(add, self, other))

    @property
    def latencies(self) -> tuple[int, ...]:
        """Return how many calls took up to each of ``LATENCY_LIMITS``, and how many longer."""
        return self[4:15]


class UsageRecord(NamedTuple):
    """What came of one agent, server, tool and outcome in a stretch of time that begins at ``start``.

    ``start`` is in seconds since the epoch. ``server`` is the name of a server or plugin. A name is empty where there
    is none, ``OTHER`` where it was too rare. In sums a name that they are not told apart by is empty too.
    """

    start: int
    agent: str
    server: str
    tool: str
    outcome: str
    counts: UsageCounts


class UsageSums(NamedTuple):
    """What was asked for, in no order; ``damaged`` rows cannot be read and do not count."""

    records: Sequence[UsageRecord]
    damaged: int = 0


class UsageStore(Protocol):
    """Counts of calls by time; what several processes count adds up."""

    def usage_later(self, *records: UsageRecord) -> None:
        """Add to what is stored of every unit, within 50 ms, in a batch; what is too old is removed.

        Args:
            records: What has come since; each is added once or, where the process is killed before, never.
        """
        ...

    async def usage(
        self, unit: UsageUnit, *, since: int, until: int, by: Sequence[UsageName], agents: Collection[str] | None = None
    ) -> UsageSums:
        """Return sums over a time.

        Args:
            unit: By what it is kept, which says how far back it goes.
            since: The first start that counts, in seconds since the epoch.
            until: The first start that does not count any more.
            by: What the sums are told apart by; one for each combination that there is.
            agents: Only what these did; None is everything.

        Returns:
            The sums.

        Raises:
            StoreError: It cannot be read.
        """
        ...


def start_of(unit: UsageUnit, at: float) -> int:
    """Return where the stretch begins that a moment is in.

    Args:
        unit: Of which kind.
        at: The moment, in seconds since the epoch.
    """
    return int(at // unit.seconds) * unit.seconds


def folded(rows: Mapping[Names, UsageCounts], most: int) -> dict[Names, UsageCounts]:
    """Return the rows of a stretch of time without those that are too many: they are summed, the smallest first.

    First the tools of a server are summed, then those of an agent, then agents; so that there is room for more.

    Args:
        rows: All rows of one stretch.
        most: How many there may be.
    """
    left = dict(rows)
    enough = most if len(left) <= most else most - most // 10
    for kept in (2, 1, 0):
        for names in sorted(left, key=lambda one: (left[one].calls, one)):
            if len(left) <= enough:
                return left
            whole = _summed(names, kept)
            if whole != names:
                left[whole] = left.pop(names).plus(left.get(whole, UsageCounts()))
    return left


def _summed(names: Names, kept: int) -> Names:
    """Return the names of the row that another one is summed in, of which so many names are kept."""
    agent, server, tool, outcome = names
    if not tool:
        return names if kept else (OTHER, server, tool, outcome)
    return agent if kept else OTHER, server if kept > 1 else OTHER, OTHER, outcome
