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

from pegboard.ports import CountRecord, Counts
from pegboard.ports.counts import bucket_of
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
        store.count_later(
            *(
                CountRecord(start, *_session(start, agent, at), plugin, tool, outcome, *_took(dice, outcome, times))
                for (agent, (plugin, tool), outcome), times in Counter(chosen).items()
            ),
            *_sent(start, agents, at),
        )
        await store.record()  # writes what waits
        if at % 1000 == 999:
            await _bytes(store)
    grown = (await _bytes(store) - before) / 2**20
    await store.aclose()
    return {
        "calls": counted, "days": days, "store grew MiB": round(grown, 1), "bar MiB": 30,
        "taken s": round(time.perf_counter() - began),
    }  # fmt: skip


def _session(start: int, agent: str, at: int) -> tuple[str, str, str]:
    """Return whose session it is: of each agent another one every quarter of an hour, so that a day has many."""
    day = datetime.fromtimestamp(start, UTC).date().isoformat()
    return f"person-{(at + len(agent)) % 40}", agent, f"{day}-{at % 4}"


def _sent(start: int, agents: Sequence[str], at: int) -> list[CountRecord]:
    """Return what the models of a quarter of an hour were sent."""
    counts = Counts(requests=5, tokens=9_000, saved=60_000)
    return [CountRecord(start, *_session(start, agent, at), outcome="listed", counts=counts) for agent in agents]


def _took(dice: random.Random, outcome: str, times: int) -> tuple[Counts, Counter[int]]:
    counts = Counts(arguments=40 * times, results=400 * times)
    match outcome:
        case "refused":
            return counts._replace(denials=times), Counter()
        case "waits":
            return counts._replace(waits=times), Counter()
        case _:
            took = (dice.lognormvariate(3.5, 1.5) for _ in range(times))
            return counts._replace(calls=times), Counter(map(bucket_of, took))


async def _bytes(store: SqliteStore) -> int:
    """Return how large the file is once its log is written into it."""
    await store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return store.path.stat().st_size
