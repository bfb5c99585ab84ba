"""What was answered to whom, and whether the store has it afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from pegboard.core.access.pins import PinName
from pegboard.ports import AuditFilter, Store
from pegboard.ports.counts import SESSION_DAY

BATCH: Final = 0.25
"""For how long before a kill the record of an answered call, and its count, may have waited, in seconds (S2: 50 ms)."""
BUSY_BATCH: Final = 5.0
"""The same on a machine that others work on, too: what is due in 50 ms is written when there is a processor for it."""
FOUND_AGAIN: Final = 1.0
"""How long after it is back a database may not have been found again, in seconds."""
UNKNOWN: Final = "unknown"
"""What is known of something whose request was not answered: it may have been done."""


class Call(NamedTuple):
    """An answered call of a tool: when it was sent, when the answer was read, and by which replica it was answered.

    The replica is None where another may have run it. The answer may be older than its reading: a replica can be killed
    between them.
    """

    sent: float
    at: float
    replica: int | None

    def ran_at(self, replica: int) -> bool:
        """Return whether a replica may have run it."""
        return self.replica in (None, replica)


@dataclass
class Principal:
    """What one principal was answered.

    ``leases`` are by plugin and ``switch`` is that of its own toolkit: the value, or that it is not known. ``ran`` are
    the calls that may run once, by the text that they write: whether they were answered.
    """

    name: str
    session: str
    leases: dict[str, bool | str] = field(default_factory=dict)
    loads: int = 0
    switch: bool | str | None = None
    switched: int = 0
    ran: dict[str, bool] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    tried: int = 0
    """How many calls there were, answered or not."""
    approvals: dict[str, str] = field(default_factory=dict)
    """What became of each approval, as it was answered last."""
    sealed: tuple[int, str] | None = None


@dataclass
class Ledger:
    """What all of them were answered."""

    principals: list[Principal]
    pin: str = ""
    """The digest of the definition that was accepted last, empty where that is not known."""
    pins: int = 0

    def expected(self) -> Counter[str]:
        """Return how much there is to be found again."""
        return Counter(
            leases=sum(known is True for one in self.principals for known in one.leases.values()),
            loads=sum(one.loads for one in self.principals),
            switches=sum(one.switched for one in self.principals),
            approvals=sum(len(one.approvals) for one in self.principals),
            used=sum(value == "used" for one in self.principals for value in one.approvals.values()),
            pins=self.pins,
            grants=sum(one.sealed is not None for one in self.principals),
            calls=sum(len(one.calls) for one in self.principals),
        )


async def missing(ledger: Ledger, store: Store, sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was answered and is not there, in words; ``sessions`` are those of ``pegboard session list --json``.

    Leases, switches, approvals, pins and grants are looked for here; calls and their records by the caller.
    """
    return [
        *_leases(ledger, sessions),
        *_switches(ledger, (await store.stored_permissions()).switches),
        *await _approvals(ledger, store),
        *await _pins(ledger, store),
        *await _grants(ledger, store),
    ]


def _leases(ledger: Ledger, sessions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    held = {(one["principal"], one["session"]): {name.partition(":")[2] for name in one["leases"]} for one in sessions}
    for one in ledger.principals:
        there = held.get((one.name, one.session), set())
        for plugin, known in one.leases.items():
            if known is True and plugin not in there:
                yield f"lease: {plugin} of {one.name} was loaded, and is not there any more"
            elif known is False and plugin in there:
                yield f"lease: {plugin} of {one.name} was unloaded, and is there again"


def _switches(ledger: Ledger, stored: Mapping[str, Mapping[str, bool]]) -> Iterator[str]:
    own = stored.get("switched", {})
    for number, one in enumerate(ledger.principals):
        if isinstance(one.switch, bool) and own.get(f"kit{number}") is not one.switch:
            yield f"switch: kit{number} was set to {one.switch}, and is {own.get(f'kit{number}')}"


async def _approvals(ledger: Ledger, store: Store) -> list[str]:
    problems: list[str] = []
    for one in ledger.principals:
        stored = {found.id: found.status for found in await store.approvals(principal=one.name)}
        for approval, status in one.approvals.items():
            found = stored.get(approval)
            if found is None or (status not in (found, UNKNOWN) and not (status == "allowed" and found == "used")):
                problems.append(f"approval: {approval} of {one.name} was {status}, and is {found}")
    return problems


async def _pins(ledger: Ledger, store: Store) -> list[str]:
    if not ledger.pin:
        return []
    pins = (await store.pins())["listed"].pins
    look = pins.get(PinName("tool", "look"))
    found = look.digest if look is not None else ""
    return [] if found == ledger.pin else [f"pin: {ledger.pin} was accepted, and {found} counts"]


async def _grants(ledger: Ledger, store: Store) -> list[str]:
    stored = {one.key: one for one in await store.all_sealed("grant")}
    problems: list[str] = []
    for one in ledger.principals:
        if one.sealed is not None:
            found = stored.get(one.name)
            if found is None or (found.version, found.text) != one.sealed:
                problems.append(f"grant: that of {one.name} was stored as {one.sealed[0]}, and is {found}")
    return problems


def ran_wrong(ledger: Ledger, written: Path) -> list[str]:
    """Return which calls ran twice, and which were answered and did not run."""
    times = Counter(written.read_text().splitlines() if written.exists() else ())
    problems = [f"call: {text} ran {count} times" for text, count in times.items() if count > 1]
    answered = (text for one in ledger.principals for text, done in one.ran.items() if done)
    return problems + [f"call: {text} was answered and did not run" for text in answered if not times[text]]


@dataclass(frozen=True)
class Recorded:
    """How many of the answered calls have their record, how many are counted, and how many may lack both."""

    answered: int
    recorded: int
    counted: int
    may_lack: int
    problems: list[str]


async def recorded(
    ledger: Ledger,
    store: Store,
    kills: Sequence[tuple[float, int]],
    outages: Sequence[tuple[float, float]],
    *,
    batch: float,
) -> Recorded:
    """Compare answered calls and loads with the audit trail and the bill.

    ``kills`` are those of replicas, ``outages`` those of the database: what a process holds back goes with the process.
    ``batch`` is for how many seconds it holds the record of a call back, and its count.
    """
    found: Counter[tuple[str, str]] = Counter()
    after: int | None = 0
    while after is not None:
        page = await store.part(AuditFilter(), after=after, limit=5000)
        found.update((one.record.principal, one.record.kind) for one in page.records if _counts(one.record))
        after = page.next
    sums = await store.sums(SESSION_DAY, since=0, until=2**40, by=("principal",))
    billed = {one.principal: one.counts.calls for one in sums.records}
    problems: list[str] = []
    may_lack = 0
    for one in ledger.principals:
        answered, calls, counted = len(one.calls), found[one.name, "call"], billed.get(one.name, 0)
        held_back = _lost(one.calls, kills, outages, batch)
        may_lack += held_back
        for what, there in (("audit", calls), ("counts", counted)):
            if not answered - held_back <= there <= one.tried:
                problems.append(
                    f"{what}: {one.name} was answered {answered} calls ({held_back} may lack it), {there} are there"
                    f"{_nearest_kills(one.calls, kills)}"
                )
        if found[one.name, "load"] < one.loads:
            problems.append(f"audit: {one.name} was answered {one.loads} loads, {found[one.name, 'load']} are there")
    return Recorded(
        answered=sum(len(one.calls) for one in ledger.principals),
        recorded=sum(found[one.name, "call"] for one in ledger.principals),
        counted=sum(billed.get(one.name, 0) for one in ledger.principals),
        may_lack=may_lack,
        problems=problems,
    )


def _lost(
    calls: Sequence[Call],
    kills: Sequence[tuple[float, int]],
    outages: Sequence[tuple[float, float]],
    seconds: float,
) -> int:
    """Return how many calls a replica may still have held back, for so many seconds, when it was killed."""

    def held_until(call: Call) -> float:
        back = [back + FOUND_AGAIN for away, back in outages if away - seconds <= call.at <= back + FOUND_AGAIN]
        return max([call.at, *back]) + seconds

    return sum(
        any(call.sent <= kill <= held_until(call) and call.ran_at(replica) for kill, replica in kills) for call in calls
    )


def _nearest_kills(calls: Sequence[Call], kills: Sequence[tuple[float, int]]) -> str:
    """Return how long after calls were sent their replicas were killed, in words, the shortest three."""
    after = sorted(kill - one.sent for one in calls for kill, own in kills if kill >= one.sent and one.ran_at(own))
    return f"; killed {', '.join(f'{seconds:.2f}' for seconds in after[:3])} s after some were sent" if after else ""


def _counts(record: Any) -> bool:
    ran = record.kind == "call" and record.subject.rpartition("/")[2] in ("note", "publish") and record.outcome == "ok"
    return record.kind == "load" or ran
