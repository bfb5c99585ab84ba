"""Mixed load on a gateway while faults are injected: ``python -m benchmarks soak --seconds 600``.

Afterwards nothing may be left: no process, connection, descriptor or lease; memory is flat; and every call
was answered, or failed with a message that says why.

With ``--replicas 3`` as many gateways serve one PostgreSQL behind a plain proxy: one is killed every ten seconds, the
database is restarted twice, and what was answered has to be there afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.gateways import processes
from benchmarks.gateways.clients import CallError, Client, Http
from benchmarks.soaking import CONFIG, PATIENCE, SERVERS, TIMEOUT, TOOLS, Report, Soak

WORKERS = 6
SLACK = 4
"""How many descriptors more than at the start may be open at the end."""
GROWTH = 8.0
"""By how many MiB the last third may lie above the middle one."""


async def run(seconds: float, seed: int = 1) -> Report:
    """Soak a gateway for so long and return what happened."""
    with tempfile.TemporaryDirectory(prefix="pegboard-soak-") as name:
        folder, report = Path(name), Report()
        (folder / "soak_tools.py").write_text(TOOLS)
        text = CONFIG.format(python=sys.executable, servers=SERVERS, timeout=TIMEOUT)
        (folder / "pegboard.yaml").write_text(text)
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(folder / "pegboard.yaml"), "--port", "0"]
        with (folder / "stderr.txt").open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command, "--host", "127.0.0.1", stderr=errors, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        try:
            url = await _address(lambda: (folder / "stderr.txt").read_text(), process)
            await _soaked(Soak(folder, process, url, report, random.Random(seed)), seconds)
            known = {pid: processes.command(pid) for pid in processes.tree(process.pid)}
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 10)
            if process.returncode != 0:
                report.problems.append(f"the gateway ended with {process.returncode}, not 0, after SIGTERM")
            if left := processes.alive(known, known):
                report.problems.append(f"left behind: {[known[pid] for pid in left]}"[:300])
            said = (folder / "stderr.txt").read_text(errors="replace")
            if "Traceback" in said:
                report.problems.append(f"a traceback on standard error: {said[said.index('Traceback') :][-700:]}")
        finally:
            processes.stop(process.pid, 0.5)
        return report


async def _address(written: Callable[[], str], process: asyncio.subprocess.Process) -> str:
    deadline = time.monotonic() + PATIENCE
    while True:
        for line in written().splitlines():
            if line.startswith("Pegboard serves MCP at "):
                return line.removeprefix("Pegboard serves MCP at ").strip()
        if process.returncode is not None or time.monotonic() > deadline:
            raise CallError(f"the gateway did not start: {written()[-500:]}")
        await asyncio.sleep(0.02)


async def _soaked(soak: Soak, seconds: float) -> None:
    report, pid = soak.report, soak.process.pid
    warm = Client(Http(f"{soak.url}?session=soak-warm"))
    await warm.connect(timeout=PATIENCE)
    await warm.call("load_tools", {"names": ["plain", "fast"]}, timeout=PATIENCE)
    for name in ("plain__echo", "fast__echo"):
        await warm.call("call_tool", {"name": name, "arguments": {"text": "warm"}}, timeout=PATIENCE)
    await warm.call("unload_tools", {"names": ["plain", "fast"]}, timeout=PATIENCE)
    await warm.close()
    await soak.settled("before", lambda: not _connections(soak.url), lambda: "a connection stays open")
    before = processes.descriptors(pid)
    tasks = [soak.work(number) for number in range(WORKERS)]
    running = asyncio.gather(soak.torment(), soak.watch(), *tasks)
    await asyncio.wait({asyncio.ensure_future(running)}, timeout=seconds)
    soak.over.set()
    await running
    await soak.settled("connections", lambda: not _connections(soak.url), lambda: f"{_connections(soak.url)} stay open")
    await soak.settled(
        "processes", lambda: len(soak.upstreams()) <= 2, lambda: f"{len(soak.upstreams())} upstreams for 2 servers"
    )
    await soak.settled(
        "descriptors",
        lambda: processes.descriptors(pid) <= before + SLACK,
        lambda: f"{processes.descriptors(pid)} are open, before there were {before}",
    )
    report.descriptors = (before, processes.descriptors(pid))
    await soak.leases()
    sizes = [size for _, size in report.memory]
    third = len(sizes) // 3
    if third >= 5:
        grown = statistics.median(sizes[-third:]) - statistics.median(sizes[third : 2 * third])
        if grown > GROWTH:
            report.problems.append(f"memory: {grown:.1f} MiB more in the last third than in the middle")
    if not report.calls["answered"]:
        report.problems.append("no call was answered at all")


def _connections(url: str) -> int:
    """Return how many connections the gateway's port has that are not over."""
    port = f":{urlsplit(url).port:04X}"
    over = {"06", "0A"}  # TIME_WAIT, LISTEN
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[1].endswith(port) and row[3] not in over for row in rows)


def main(arguments: Sequence[str]) -> int:
    """Soak, print what happened, and exit 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long")
    parser.add_argument("--seed", type=int, default=1, help="of the dice")
    parser.add_argument("--replicas", type=int, default=0, metavar="N", help="how many on one PostgreSQL; 0 is one")
    parser.add_argument("--principals", type=int, default=200, help="how many work with the replicas")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.replicas:
        from benchmarks.replicas.soak import on_a_server

        given = {"replicas": options.replicas, "principals": options.principals, "seed": options.seed}
        outcome = asyncio.run(on_a_server(options.seconds, **given))
        print(json.dumps(outcome.document(), indent=2, ensure_ascii=False))
        return 1 if outcome.problems else 0
    report = asyncio.run(run(options.seconds, options.seed))
    print(json.dumps(report.document(), indent=2, ensure_ascii=False))
    return 1 if report.problems else 0
