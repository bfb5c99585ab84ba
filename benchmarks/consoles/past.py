"""A past of calls, as it is counted by time: some calls are frequent, most are rare, and nights are quiet."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pegboard.ports.usage import LATENCY_LIMITS

from pegboard.ports import BillCounts, BillRecord, UsageCounts, UsageRecord
from pegboard.stores.sql import SqliteStore

STEP = 900
"""After how many seconds what was counted is put into the store: in the past a gateway did so every five."""
OUTCOMES = ("ok",) * 90 + ("error",) * 5 + ("refused",) * 4 + ("waits",)


async def filled(
    path: Path, tools: Sequence[tuple[str, str]], agents: Sequence[str], *, calls: int, days: int
) -> dict[str, object]:
    """Count so many calls of tools, which are plugin and wire name; return by how much the store has grown."""
    dice = random.Random(11)
    store = SqliteStore(path)
    await store.open()
    before, began = await _bytes(store), time.perf_counter()
    of_tools = [*itertools.accumulate(1 / (rank + 20) for rank in range(len(tools)))]
    of_agents = [*itertools.accumulate(1 / (rank + 3) for rank in range(len(agents)))]
    now = int(time.time())
    starts = range(now - days * 86_400, now, STEP)
    busy = [1.2 - math.cos(start % 86_400 / 86_400 * math.tau) for start in starts]
    counted, whole = 0, sum(busy)
    for at, (start, reached) in enumerate(zip(starts, itertools.accumulate(busy), strict=True)):
        wanted = round(calls * reached / whole) - counted
        counted += wanted
        chosen = zip(
            dice.choices(agents, cum_weights=of_agents, k=wanted),
            dice.choices(tools, cum_weights=of_tools, k=wanted),
            dice.choices(OUTCOMES, k=wanted),
            strict=True,
        )
        sent = [UsageRecord(start, agent, "", "", "listed", UsageCounts(5, 9_000, 60_000)) for agent in agents]
        store.usage_later(
            *(
                UsageRecord(start, agent, plugin, tool, outcome, _took(dice, outcome, times))
                for (agent, (plugin, tool), outcome), times in Counter(chosen).items()
            ),
            *sent,
        )
        store.bill_later(*_billed(start, agents, at))
        await store.record()  # writes what waits
        if at % 1000 == 999:
            await _bytes(store)
    grown = (await _bytes(store) - before) / 2**20
    await store.aclose()
    return {
        "calls": counted, "days": days, "store grew MiB": round(grown, 1), "bar MiB": 30,
        "taken s": round(time.perf_counter() - began),
    }  # fmt: skip


def _billed(start: int, agents: Sequence[str], at: int) -> list[BillRecord]:
    """Return what the sessions of a quarter of an hour came to: of each agent another one, so that a day has many."""
    day = datetime.fromtimestamp(start, UTC).date().isoformat()
    counts = BillCounts(requests=5, tokens=9_000, saved=60_000, calls=4, arguments=160, results=1_600)
    return [
        BillRecord(day, f"person-{(at + number) % 40}", agent, f"{day}-{at % 4}", counts)
        for number, agent in enumerate(agents)
    ]


def _took(dice: random.Random, outcome: str, times: int) -> UsageCounts:
    places = [0] * (len(LATENCY_LIMITS) + 1)
    if outcome in ("ok", "error"):
        for _ in range(times):
            places[min(int(dice.lognormvariate(1.2, 0.5)), len(places) - 1)] += 1
    return UsageCounts(times, 0, 0, 0, *places, arguments=40 * times, results=400 * times)


async def _bytes(store: SqliteStore) -> int:
    """Return how large the file is once its log is written into it."""
    await store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return store.path.stat().st_size
