"""The run: replicas, load, kills, restarts of the database, and what is left of it (G14)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.replicas.agents import Agent, Listener, Load, accept_pins, change, delays
from benchmarks.replicas.cluster import BEACONS, LOADED, SMALL, TOOLS, Cluster, configuration
from benchmarks.replicas.ledger import (
    BATCH,
    BUSY_BATCH,
    Ledger,
    Principal,
    Recorded,
    missing,
    ran_wrong,
    recorded,
)
from benchmarks.replicas.proxy import Proxy
from pegboard.stores.sql import PostgresStore

KILL_EVERY = 10.0
PAUSE = 2.0
"""For how long a principal rests between two requests, on average, in seconds."""
MOST_DELAY = 0.25
"""Within how many seconds 99 in 100 changes are at every listener."""
LISTENERS = 10
TOOLS_OF_TESTS = Path(__file__).resolve().parents[2] / "tools"
"""Where what starts a PostgreSQL is."""


@dataclass
class Outcome:
    """What happened, and what is wrong with it."""

    principals: int = 0
    problems: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    expected: dict[str, int] = field(default_factory=dict)
    recorded: Recorded | None = None
    kills: int = 0
    restarts: int = 0
    delays: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return what scripts read."""
        kept = self.recorded
        return {
            "load": f"{self.principals} principals, each asks something every {PAUSE:g} s on average",
            "answers": self.answers,
            "faults": {"replica killed": self.kills, "database restarted": self.restarts},
            "answered and looked for": self.expected,
            "calls": None
            if kept is None
            else {
                "answered": kept.answered,
                "recorded": kept.recorded,
                "counted": kept.counted,
                "by a replica that was killed before they were due": kept.may_lack,
            },
            "changes at listeners, ms": _percentiles(self.delays),
            "changes that did not arrive": len(self.lost),
            "problems": self.problems,
        }


async def on_a_server(
    seconds: float, *, replicas: int = 3, principals: int = 200, seed: int = 1, quiet: bool = True
) -> Outcome:
    """Start a PostgreSQL, and let principals work on it for so long.

    ``quiet`` is whether nothing else works on the machine, so that what takes too long is a problem.
    """
    sys.path.insert(0, str(TOOLS_OF_TESTS))
    from postgres_server import PostgresServer

    server = PostgresServer(durable=True)

    async def restart() -> None:
        await asyncio.to_thread(server.down)
        await asyncio.to_thread(server.up)

    try:
        outcome = await run(
            seconds,
            store_url=server.address(),
            restart=restart,
            replicas=replicas,
            principals=principals,
            seed=seed,
            batch=BATCH if quiet else BUSY_BATCH,
        )
        if quiet and len(outcome.delays) > 1 and (p99 := statistics.quantiles(outcome.delays, n=100)[98]) > MOST_DELAY:
            outcome.problems.append(f"changes are at every listener within {p99 * 1000:.0f} ms p99, not 250")
        return outcome
    finally:
        server.stop()


async def run(
    seconds: float,
    *,
    store_url: str,
    restart: Callable[[], Awaitable[None]],
    replicas: int,
    principals: int,
    seed: int = 1,
    batch: float = BATCH,
) -> Outcome:
    """Let principals work for so long, and return what became of what they were answered.

    ``restart`` restarts the database, which is done twice; ``batch`` is for how long a record may be held back.
    """
    outcome = Outcome(principals)
    with tempfile.TemporaryDirectory(prefix="pegboard-replicas-") as name:
        folder = Path(name)
        write_project(folder, store_url, principals + LISTENERS + 1)
        key = base64.b64encode(random.Random(seed).randbytes(32)).decode()
        os.environ["PEGBOARD_KEY"] = key
        cluster, store = Cluster(folder), PostgresStore(store_url)
        await store.open()
        try:
            await cluster.start(replicas)
            async with Proxy([one.port for one in cluster.replicas]) as proxy:
                ledger = Ledger([Principal(f"p{number}", f"soak-{number}") for number in range(principals)])
                load = Load(f"http://127.0.0.1:{proxy.port}/mcp", cluster, ledger, store, seed)
                await _worked(load, outcome, seconds, restart)
            outcome.problems += await cluster.stop()
            await _judged(load, outcome, folder, batch)
        finally:
            await cluster.stop()
            await store.aclose()
    return outcome


def write_project(folder: Path, store_url: str, principals: int) -> None:
    """Write what the replicas serve."""
    (folder / "soak_tools.py").write_text(TOOLS)
    for name in (*BEACONS, *LOADED):
        (folder / f"{name}.py").write_text(SMALL.format(name=name))
    write_listed(folder, "Look around.")
    (folder / "pegboard.yaml").write_text(configuration(store_url, principals, folder / "list.json"))


def write_listed(folder: Path, description: str) -> None:
    """Let the server list a tool with this description, as editors replace files."""
    part = folder / "list.json.part"
    part.write_text(json.dumps({"announce": True, "look": {"description": description}}))
    part.replace(folder / "list.json")


async def _worked(load: Load, outcome: Outcome, seconds: float, restart: Callable[[], Awaitable[None]]) -> None:
    count = len(load.ledger.principals)
    agents = [Agent(load, number, one) for number, one in enumerate(load.ledger.principals)]
    listeners = [Listener(load, count + 1 + number) for number in range(LISTENERS)]
    async with asyncio.TaskGroup() as tasks:
        changes = tasks.create_task(change(load))
        for listener in listeners:
            tasks.create_task(listener.listen())
        for agent in agents:
            tasks.create_task(agent.work(PAUSE))
        tasks.create_task(accept_pins(load, lambda text: write_listed(load.cluster.folder, text)))
        tasks.create_task(_torment(load, outcome, seconds, restart))
    outcome.answers = dict(load.answers)
    outcome.problems += load.problems
    outcome.kills = len(load.cluster.kills)
    outcome.delays, outcome.lost = delays(load, listeners, changes.result())


async def _torment(load: Load, outcome: Outcome, seconds: float, restart: Callable[[], Awaitable[None]]) -> None:
    """Kill a replica every ten seconds, and restart the database twice between two kills; then end the run."""
    try:
        began = time.monotonic()
        rounds = int(seconds // KILL_EVERY)
        restarts = {rounds // 3, 2 * rounds // 3}
        for number in range(rounds):
            await _until(began + number * KILL_EVERY + KILL_EVERY / 2)
            await load.cluster.kill(load.cluster.replicas[number % len(load.cluster.replicas)])
            if number in restarts:
                away = time.monotonic()
                await restart()
                load.cluster.outages.append((away, time.monotonic()))
                outcome.restarts += 1
        await _until(began + seconds)
    finally:
        load.over.set()


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def _judged(load: Load, outcome: Outcome, folder: Path, batch: float) -> None:
    """Look for everything that was answered, in the store that the replicas have left."""
    listing = [sys.executable, "-m", "pegboard", "session", "list", "--json"]
    asked = await asyncio.create_subprocess_exec(
        *listing, "--config", str(folder / "pegboard.yaml"), stdout=asyncio.subprocess.PIPE
    )
    sessions = json.loads((await asked.communicate())[0])
    outcome.expected = dict(load.ledger.expected())
    outcome.problems += await missing(load.ledger, load.store, sessions)
    outcome.problems += ran_wrong(load.ledger, folder / "ran.txt")
    outcome.recorded = await recorded(load.ledger, load.store, load.cluster.kills, load.cluster.outages, batch=batch)
    outcome.problems += outcome.recorded.problems
    if not load.answers["answered"]:
        outcome.problems.append("nothing was answered at all")
    outcome.problems += outcome.lost


def _percentiles(values: list[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    cuts = statistics.quantiles(values, n=100)
    return {
        "changes": len(values),
        "p50": round(cuts[49] * 1000, 1),
        "p99": round(cuts[98] * 1000, 1),
        "longest": round(max(values) * 1000, 1),
    }
