"""How long calls take and how many go through: all gateways at once, each beside a direct connection.

The speed of a machine drifts within minutes, so what is measured one after the other cannot be compared.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gateways import processes
from benchmarks.gateways.adapter import Adapter
from benchmarks.gateways.clients import CallError, Client
from benchmarks.gateways.direct import Direct
from benchmarks.gateways.measuring import Running, Scale, Trial, echo, running, said

FLIGHTS = (1, 8, 32)
KILLS = 5
"""How often an upstream is killed behind a gateway that starts it again."""
TRIES = 3
"""How many calls a gateway gets to start it again."""
SLOW = 1.0
"""How long a call may take in a race, in seconds."""
KILLED, OWN = "killed upstream → next call", "start and call without a gateway"


@dataclass
class Runner:
    """One gateway in the race, and what was measured of it, in milliseconds and calls a second."""

    trial: Trial
    gateway: Running
    through: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)
    straight: list[float] = field(default_factory=list)
    rates: dict[int, list[float]] = field(default_factory=lambda: {flights: [] for flights in FLIGHTS})
    failed: int = 0
    first_failure: str = ""

    def note_failure(self, text: str | None) -> None:
        """Count a call that failed, if it did."""
        if text:
            self.failed += 1
            self.first_failure = self.first_failure or text

    @property
    def client(self) -> Client:
        return self.gateway.client

    async def latency(self, plain: Client, pairs: int) -> None:
        """Call through and straight, in turns; a gateway whose calls take long makes fewer."""
        wanted = time.perf_counter() + 3
        for number in range(pairs):
            times: dict[bool, float] = {}
            failed: str | None = None
            for through in (True, False) if number % 2 else (False, True):
                start = time.perf_counter()
                failed = failed or await said(
                    echo(self.client, self.trial.adapter) if through else echo(plain, Direct())
                )
                times[through] = (time.perf_counter() - start) * 1000
            self.note_failure(failed)
            if not failed:
                self.through.append(times[True])
                self.straight.append(times[False])
                self.added.append(times[True] - times[False])
            if time.perf_counter() > wanted:
                break

    async def throughput(self, flights: int, seconds: float) -> None:
        """Keep so many calls in flight."""
        self.rates[flights].append(await _rate(self.client, self.trial.adapter, flights, seconds, self))

    def row(self, direct: Runner | None) -> dict[str, Any]:
        """Return what was measured, as columns."""
        if len(self.added) < 2:
            return {}
        found: dict[str, Any] = {
            "call p50 ms": round(statistics.median(self.through), 2),
            "call p95 ms": round(_p95(self.through), 2),
            "direct p50 ms": round(statistics.median(self.straight), 2),
            "added p50 ms": round(statistics.median(self.added), 2),
            "added p95 ms": round(_p95(self.added), 2),
        }
        for flights, rates in self.rates.items():
            if not rates:
                continue
            found[f"calls/s {flights}"] = round(statistics.median(rates))
            if direct is not None and direct.rates[flights]:
                shares = [a / b for a, b in zip(rates, direct.rates[flights], strict=False) if b]
                found[f"of direct {flights}"] = f"{100 * statistics.median(shares or [0]):.0f} %"
        if self.failed:
            found["failed"] = f"{self.failed} calls in the race: {self.first_failure};"
        return found


async def _rate(client: Client, adapter: Adapter, flights: int, seconds: float, runner: Runner) -> float:
    done = 0
    ending = time.perf_counter() + seconds

    async def calls() -> None:
        nonlocal done
        while time.perf_counter() < ending:
            try:
                await echo(client, adapter)
                done += 1
            except (CallError, TimeoutError, OSError) as error:
                runner.note_failure(f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.01)

    start = time.perf_counter()
    await asyncio.gather(*(calls() for _ in range(flights)))
    return done / (time.perf_counter() - start)


async def race(rows: dict[str, dict[str, Any]], trials: Sequence[Trial], scale: Scale) -> None:
    """Add to the rows, by the titles of the trials, what calls came to; all gateways run at once, over one transport.

    What was measured until then is in the rows even where the race is broken off.
    """
    async with AsyncExitStack() as stack:
        runners: list[Runner] = []
        for trial in trials:
            entered = await said(_enter(stack, trial))
            if isinstance(entered, Runner):
                runners.append(entered)
            else:
                rows[trial.title]["failed"] = f"race: {entered};"
        first = trials[0]
        beside = Trial(Direct(), first.transport, first.servers, first.folder, scale).setup("beside")
        plain = (await stack.enter_async_context(running(Direct(), beside, scale.patience))).client
        await echo(plain, Direct(), timeout=scale.patience)
        direct = next((runner for runner in runners if isinstance(runner.trial.adapter, Direct)), None)
        try:
            await _rounds(runners, plain, scale)
        finally:
            for runner in runners:
                marks = [server.mark for server in runner.trial.servers]
                rows[runner.trial.title] |= runner.row(direct)
                rows[runner.trial.title]["RSS MiB"] = round(processes.memory(runner.gateway.roots[0], marks))
        for runner in runners:
            if runner is not direct:
                rows[runner.trial.title] |= await _killed(runner)
    for runner in runners:
        rows[runner.trial.title]["left behind"] = len(runner.gateway.left_behind)


async def _rounds(runners: Sequence[Runner], plain: Client, scale: Scale) -> None:
    for number in range(scale.rounds):
        _progress(number + 1, scale.rounds)
        turn = number % max(len(runners), 1)
        order = [*runners[turn:], *runners[:turn]]
        for runner in order:
            await runner.latency(plain, scale.pairs)
        for flights in FLIGHTS:
            for runner in order:
                await runner.throughput(flights, scale.seconds)


async def _enter(stack: AsyncExitStack, trial: Trial) -> Runner:
    """Start a gateway and warm it up; raises ``CallError`` where its calls are too slow for the others to wait."""
    async with AsyncExitStack() as inside:
        gateway = await inside.enter_async_context(running(trial.adapter, trial.setup("race"), trial.scale.patience))
        await trial.adapter.prepare(gateway.client)
        await echo(gateway.client, trial.adapter, timeout=trial.scale.patience)
        start = time.perf_counter()
        for _ in range(3):
            await echo(gateway.client, trial.adapter)
        took = (time.perf_counter() - start) / 3
        if took > SLOW:
            raise CallError(f"a call takes {took:.1f} s")
        for _ in range(20):
            await echo(gateway.client, trial.adapter)
        stack.push_async_exit(inside.pop_all())
        return Runner(trial, gateway)


def _progress(number: int, of: int) -> None:
    print(f"  round {number} of {of} …", file=sys.stderr)


async def _killed(runner: Runner) -> dict[str, Any]:
    """Kill the upstream and return what the next calls do, and what a start and a call take without a gateway."""
    trial = runner.trial
    mark = next(server.mark for server in trial.servers if server.name == "everything")
    times: list[float] = []
    own: list[float] = []
    for _ in range(KILLS):
        own.append(await _own_start(trial))
        below = {pid for root in runner.gateway.roots for pid in processes.tree(root) if mark in processes.command(pid)}
        if not below:
            return {KILLED: "no upstream process found"}
        for pid in below:
            os.kill(pid, signal.SIGKILL)
        first = ""
        for number in range(1, TRIES + 1):
            start = time.perf_counter()
            failed = await said(echo(runner.client, trial.adapter, timeout=trial.scale.patience))
            took = (time.perf_counter() - start) * 1000
            if not failed and number > 1:
                return {KILLED: f"call {number} in {took:.0f} ms; call 1: {first}"}
            if not failed:
                times.append(took)
                break
            first = first or failed
        else:
            return {KILLED: f"never in {TRIES} calls: {first}"}
    return {KILLED: f"{statistics.median(times):.0f} ms", OWN: f"{statistics.median(own):.0f} ms"}


async def _own_start(trial: Trial) -> float:
    """Return how long a client takes to start the server itself and call it, in milliseconds."""
    setup = Trial(Direct(), "stdio", trial.servers, trial.folder, trial.scale).setup("own")
    async with running(Direct(), setup, trial.scale.patience) as alone:
        await echo(alone.client, Direct())
        return alone.since() * 1000


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[18]
