"""Logins that many processes share: ``python -m benchmarks logins [--expiries 10000] [--processes 8] [--calls 3000]``.

Each expiry ends every access token at once while all processes call; refresh tokens may be used once, and using one
twice ends the login. What is counted is what the authorization server has seen. Then one process is killed again and
again while it renews: only a kill after the server has answered and before that is stored may cost the login. Then,
alternating, calls with a login beside calls with the same token as a fixed header, and eight calls of half a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx2

from pegboard import Pegboard, Session

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from authorization.site import LoginSite, login_site  # noqa: E402
from logins.callers import callers, started  # noqa: E402

BLOCK = 100
"""Calls of one kind before the other is asked."""
PARALLEL = 8
SLOW = 0.5


def written(folder: Path, name: str, site: LoginSite, headers: str = "") -> Path:
    """Return a configuration of the server, in a folder of its own."""
    config = folder / name / "pegboard.yaml"
    config.parent.mkdir()
    config.write_text(
        f"servers: {{linear: {{url: '{site.url}'{headers}}}}}\nagents: {{default: {{tools: [linear]}}}}\n"
    )
    return config


async def log_in(config: Path) -> None:
    """Log `local` in."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id="t", principal="local")
        refused = await session.call("linear__whoami", {})
        if refused.login is None:
            raise SystemExit(f"no login is asked for: {refused.message}")
        async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            await browser.get(refused.login.url)


async def expiries(config: Path, site: LoginSite, *, count: int, processes: int) -> dict[str, float]:
    """Return what came of so many expiries under the calls of so many processes."""
    before, failed, began = site.counts, 0, time.perf_counter()
    async with callers(config, processes) as running:
        for done in range(count):
            site.expire()
            answers = await asyncio.gather(*(caller.call() for caller in running))
            failed += sum(answer != "ok" for answer in answers)
            if done % 500 == 499:
                print(f"{done + 1} expiries", file=sys.stderr)
    after = site.counts
    return {
        "expiries": count,
        "processes": processes,
        "refreshes": after.get("refreshes", 0) - before.get("refreshes", 0),
        "reuses": after.get("reuses", 0) - before.get("reuses", 0),
        "calls that did not succeed": failed,
        "seconds": time.perf_counter() - began,
    }


async def kills(config: Path, site: LoginSite, *, count: int) -> dict[str, float]:
    """Return what came of so many kills of a process that is to renew, each at another moment of it."""
    lost, rng = 0, random.Random(22)
    for _ in range(count):
        caller = await started(config)
        other = await started(config)
        await caller.call()
        site.expire()
        calling = asyncio.create_task(caller.call())
        await asyncio.sleep(rng.uniform(0, 0.03))
        await caller.kill()
        await calling
        if await other.call() != "ok":
            lost += 1
            await log_in(config)
        await other.kill()
    return {"kills": count, "logins lost": lost}


async def window(config: Path) -> float:
    """Return how long storing a renewed login takes, in milliseconds: the median of 300."""
    took: list[float] = []
    async with Pegboard.open(config) as board:
        store = board.services.store
        for _ in range(300):
            began = time.perf_counter()
            await store.seal("grant", "benchmark", "x" * 2_000, expected=None)
            took.append((time.perf_counter() - began) * 1000)
        await store.seal("grant", "benchmark", None, expected=None)
    return statistics.median(took)


async def block(session: Session) -> list[float]:
    """Return how long each of some calls took, in milliseconds."""
    took: list[float] = []
    for _ in range(BLOCK):
        began = time.perf_counter()
        await session.call("linear__whoami", {})
        took.append((time.perf_counter() - began) * 1000)
    return took


async def beside_a_header(folder: Path, site: LoginSite, config: Path, *, calls: int) -> dict[str, float]:
    """Return what a call costs with a login and with the same kind of token as a fixed header, alternating."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id="t", principal="local")
        await session.call("linear__whoami", {})
        token = next(one for one in reversed(site.secrets) if one.startswith("access-"))
        header = f", headers: {{Authorization: 'Bearer {token}'}}"
        async with Pegboard.open(written(folder, "header", site, header)) as fixed:
            plain = await fixed.session(agent="default", session_id="t", principal="local")
            took: dict[str, list[float]] = {"login": [], "header": []}
            for _ in range(max(1, calls // BLOCK)):
                took["login"] += await block(session)
                took["header"] += await block(plain)
        began = time.perf_counter()
        await asyncio.gather(*(session.call("linear__slow", {"seconds": SLOW}) for _ in range(PARALLEL)))
        parallel = time.perf_counter() - began
    login, fixed_header = (statistics.median(took[kind]) for kind in ("login", "header"))
    return {
        "p50 with a login, ms": login,
        "p50 with a header, ms": fixed_header,
        "a login costs more, ms": login - fixed_header,
        f"{PARALLEL} calls of {SLOW} s together, s": parallel,
    }


async def measured(options: argparse.Namespace) -> dict[str, float]:
    """Return all of it."""
    with login_site() as site, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = written(folder, "own", site)
        await log_in(config)
        found = await beside_a_header(folder, site, config, calls=options.calls)
        found["storing a renewed login, ms"] = await window(config)
        found |= await expiries(config, site, count=options.expiries, processes=options.processes)
        found |= await kills(config, site, count=options.kills)
        return found


def main(arguments: Sequence[str]) -> None:
    """Measure, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks logins", description=__doc__)
    parser.add_argument("--expiries", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--calls", type=int, default=3_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = asyncio.run(measured(options))
    if options.json:
        print(json.dumps(found))
        return
    for what, number in found.items():
        print(f"{what:40} {number:>12,.3f}" if isinstance(number, float) else f"{what:40} {number:>12,}")
