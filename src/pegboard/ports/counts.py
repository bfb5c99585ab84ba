"""What was sent and done, in numbers that add up: what the bill, the curves and what was busiest are read from (F4)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from operator import add
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

CountName = Literal["start", "principal", "agent", "session", "server", "tool", "outcome"]
"""What sums can be told apart by."""
UsageOutcome = Literal["ok", "error", "refused", "waits", "listed"]
"""What became of a call; ``listed`` are the tool lists that models were sent."""
OTHER: Final = "*"
"""The name under which what is too rare for a row of its own is summed; no agent, server or tool has it."""
MOST_GREATEST: Final = 5_000
"""How many of the greatest sums are given at most."""
BUCKET_RATIO: Final = 1.1
"""How many times as long the longest duration of a bucket is as the shortest: its middle is within 5% of each."""


class Counts(NamedTuple):
    """Numbers that add up.

    ``requests`` are the tool lists that a model was sent. In the library those are the surfaces or wire lists of its
    steps. A gateway does not see the requests of its clients' models: there they are the calls that came while no other
    of the session ran, each of which a model had asked for; the request that a model answers with text alone is not
    among them. ``tokens`` are those of their tools and texts, ``saved`` what listing everything that the agent may use
    would have cost more, which is not known of ``unknown`` of the requests. ``meta_calls`` are calls of meta-tools,
    each a model call that discovery costs; ``waits`` is how often a person was asked.

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
    waits: int = 0

    @property
    def all_tokens(self) -> int:
        """Return the tokens of lists, arguments and results."""
        return self.tokens + self.arguments + self.results

    @property
    def times(self) -> int:
        """Return how often something came: requests, calls, refusals, questions to a person."""
        return self.requests + self.calls + self.denials + self.waits

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*map(add, self, other))

    def minus(self, other: Counts) -> Counts:
        """Return what is left without some of them."""
        return Counts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


Durations = Mapping[int, int]
"""How many calls took as long as each bucket says; see :func:`bucket_of`."""
NO_COUNTS: Final = Counts()
NO_DURATIONS: Final[Durations] = MappingProxyType({})


class CountRecord(NamedTuple):
    """What came of one agent, server, tool and outcome, in one session, in a stretch of time that begins at ``start``.

    ``start`` is in seconds since the epoch. ``server`` is the name of a server or plugin. A name is empty where there
    is none, ``OTHER`` where it was too rare; in sums also where they are not told apart by it.
    """

    start: int = 0
    principal: str = ""
    agent: str = ""
    session: str = ""
    server: str = ""
    tool: str = ""
    outcome: str = ""
    counts: Counts = NO_COUNTS
    durations: Durations = NO_DURATIONS

    @property
    def names(self) -> CountNames:
        """Return what it is of."""
        return self[1:7]

    def plus(self, other: CountRecord) -> CountRecord:
        """Return the sums under the names of this one."""
        durations = self.durations
        if other.durations:
            durations = {**durations}
            for bucket, calls in other.durations.items():
                durations[bucket] = durations.get(bucket, 0) + calls
        return self._replace(counts=self.counts.plus(other.counts), durations=durations)


def added_up(records: Sequence[CountRecord]) -> CountRecord:
    """Return what records come to together, under no names."""
    durations: dict[int, int] = {}
    for one in records:
        for bucket, calls in one.durations.items():
            durations[bucket] = durations.get(bucket, 0) + calls
    counts = [sum(column) for column in zip(*[one.counts for one in records], strict=True)]
    return CountRecord(counts=Counts(*counts), durations=durations)


CountNames = tuple[str, str, str, str, str, str]
"""Principal, agent, session, server, tool, outcome."""


class CountUnit(NamedTuple):
    """A kind of row: what came of some names in a stretch of time.

    A stretch is ``seconds`` long and begins at a multiple of that since the epoch, so that hours and days are UTC's.
    Its rows are ``kept`` for so many seconds, ``most`` of them; what is more is summed as ``OTHER`` (0: any number).
    ``number`` tells the unit from others in a store.
    """

    number: int
    seconds: int
    kept: int
    most: int
    names: Sequence[CountName]


_OF_TOOLS: Final[Sequence[CountName]] = ("agent", "server", "tool", "outcome")
STEP: Final = CountUnit(1, 300, 2 * 3_600, 200, _OF_TOOLS)
HOUR: Final = CountUnit(2, 3_600, 8 * 86_400, 200, _OF_TOOLS)
DAY: Final = CountUnit(3, 86_400, 400 * 86_400, 1_000, _OF_TOOLS)
SESSION_DAY: Final = CountUnit(4, 86_400, 400 * 86_400, 0, ("principal", "agent", "session"))
"""What the bill is read from."""
UNITS: Final = (STEP, HOUR, DAY, SESSION_DAY)


class CountSums(NamedTuple):
    """Sums; ``damaged`` rows cannot be read and do not count, ``more`` sums are not among them."""

    records: Sequence[CountRecord]
    damaged: int = 0
    more: int = 0


class CountFilter(NamedTuple):
    """Of what sums are; None is any."""

    principal: str | None = None
    agent: str | None = None
    session: str | None = None
    agents: Collection[str] | None = None


EVERYTHING_COUNTED: Final = CountFilter()


def start_of(unit: CountUnit, at: float) -> int:
    """Return where the stretch begins that a moment is in, which is in seconds since the epoch."""
    return int(at // unit.seconds) * unit.seconds


def rows_of(unit: CountUnit, records: Collection[CountRecord]) -> dict[tuple[int, CountNames], CountRecord]:
    """Return the rows of a unit that records add to, with what is added.

    What has no outcome is in no row of tools: loads, unloads and searches are no calls.
    """
    found: dict[tuple[int, CountNames], CountRecord] = {}
    of_tools = "outcome" in unit.names
    for record in records:
        start = start_of(unit, record.start)
        if not of_tools:
            row = record._replace(start=start, server="", tool="", outcome="", durations=NO_DURATIONS)
        elif record.outcome:
            row = record._replace(start=start, principal="", session="")
        else:
            continue
        key = start, row.names
        found[key] = found[key].plus(row) if key in found else row
    return found


def bucket_of(milliseconds: float) -> int:
    """Return the bucket of a duration.

    >>> bucket_of(0.0), bucket_of(0.001), bucket_of(1.0), bucket_of(60_000.0)
    (0, 0, 73, 188)
    """
    microseconds = milliseconds * 1_000
    return math.ceil(math.log(microseconds) / _LOG) if microseconds > 1 else 0


def milliseconds_of(bucket: int) -> float:
    """Return the duration in the middle of a bucket: none in it is more than 5% longer or shorter.

    >>> milliseconds_of(bucket_of(1_000.0))
    957.73
    """
    return round(BUCKET_RATIO ** (bucket - 0.5) / 1_000, 3)


_LOG: Final = math.log(BUCKET_RATIO)


def fold_names(rows: Mapping[CountNames, int], most: int) -> dict[CountNames, CountNames]:
    """Return the names under which rows are summed that are too many, by the names that each has now.

    First the tools of a server are summed, then those of an agent, then agents, the rarest first; so that there is
    room for more.

    Args:
        rows: how often each row of one stretch of time came, of tools.
        most: how many there may be.
    """
    left, names_of = dict(rows), {names: names for names in rows}
    enough = most if len(left) <= most else most - most // 10
    for kept in (2, 1, 0):
        for names in sorted(left, key=lambda one: (left[one], one)):
            if len(left) <= enough:
                return _final_targets(rows, names_of)
            whole = _sum_row_names(names, kept)
            if whole != names:
                left[whole] = left.get(whole, 0) + left.pop(names)
                names_of[names], names_of[whole] = whole, whole
    return _final_targets(rows, names_of)


def _final_targets(
    rows: Collection[CountNames], names_of: Mapping[CountNames, CountNames]
) -> dict[CountNames, CountNames]:
    """Return where rows go in the end, of those that go anywhere."""
    found: dict[CountNames, CountNames] = {}
    for names in rows:
        whole = names_of[names]
        while names_of[whole] != whole:  # what was summed may be summed once more
            whole = names_of[whole]
        if whole != names:
            found[names] = whole
    return found


def _sum_row_names(names: CountNames, kept: int) -> CountNames:
    """Return the names of the row that another one is summed in, of which so many names are kept."""
    _, agent, _, server, tool, outcome = names
    if not tool:
        return names if kept else ("", OTHER, "", server, tool, outcome)
    return "", agent if kept else OTHER, "", server if kept > 1 else OTHER, OTHER, outcome
