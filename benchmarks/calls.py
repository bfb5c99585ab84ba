"""What a call and a start cost beside another checkout: ``python -m benchmarks calls --against TREE``.

A raw client and a raw server, no SDK on either side, with ``pegboard serve --stdio`` between them. Both gateways are
up at once and take turns by short bursts, and starts alternate with ``import mcp``: the speed of a machine drifts.
The processor time of the gateway is the steadiest figure where others use the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.gateways.processes import resident

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests" / "servers" / "fast_server.py"
IN_FLIGHT, WARMING = 32, 200
SETTLED = 6.0
"""Seconds by which a gateway that has nothing to do has imported all, and counted the tokens of what it was asked."""
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Burst:
    """Calls of one turn: how many went through in a second, and the milliseconds of each."""

    rate: float
    times: list[float]


@dataclass
class Figures:
    """All that was measured of one checkout."""

    rates: list[float] = field(default_factory=list)
    times: list[list[float]] = field(default_factory=list)
    """Milliseconds of each call, by burst."""
    processor: list[float] = field(default_factory=list)
    """Microseconds of the gateway's processor time for a call, by start."""
    started: list[float] = field(default_factory=list)
    """Resident MiB after the first list, by start."""
    called: list[float] = field(default_factory=list)
    """Resident MiB after the calls, by start."""
    starts: list[float] = field(default_factory=list)
    """Milliseconds from the start of the process to its first list."""
    start_processor: list[float] = field(default_factory=list)
    """Milliseconds of processor time until then."""
    settled: list[float] = field(default_factory=list)
    """Milliseconds of processor time until all is imported that the first calls need, by start."""

    def row(self, sdk: Sequence[float]) -> dict[str, float]:
        """Return the figures as one row; starts are shares of importing the SDK."""
        return {
            "calls/s": statistics.median(self.rates),
            "p50 ms": statistics.median(statistics.median(burst) for burst in self.times),
            "p99 ms": statistics.median(statistics.quantiles(burst, n=100)[98] for burst in self.times),
            "gateway CPU µs/call": statistics.median(self.processor),
            "RSS MiB, started": statistics.median(self.started),
            "RSS MiB, called": statistics.median(self.called),
            "first list, of import mcp": statistics.median(self.starts) / statistics.median(sdk),
            "first list, best of best": min(self.starts) / min(sdk),
            "CPU ms to first list": statistics.median(self.start_processor),
            "CPU ms, settled": statistics.median(self.settled),
        }


class Gateway:
    """A gateway of one checkout over stdio, and a client that keeps requests in flight."""

    def __init__(self, tree: Path, folder: Path, *, modern: bool) -> None:
        self.modern = modern
        alone = ["--alone"] if (tree / "src" / "pegboard" / "daemon").is_dir() else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pegboard", "serve", "--stdio", *alone, "--config", "pegboard.yaml"],
            cwd=folder, env=environment(tree, folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self.process.terminate()
        self.process.communicate()

    def greet(self) -> None:
        """Say hello, where the era has it, and wait for the first list with the tool."""
        if not self.modern:
            self._ask("initialize", HELLO)
            os.write(self._in, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        while b'"up__echo"' not in self._ask("tools/list", {}):
            time.sleep(0.1)  # the first start of all, before the server has said what it offers

    def burst(self, calls: int) -> Burst:
        """Call so often, with so many in flight, and check each answer."""
        sent: dict[int, float] = {}
        times: list[float] = []
        began = time.perf_counter()
        self._send(min(IN_FLIGHT, calls), sent)
        rest, left = b"", calls - len(sent)
        while sent:
            *lines, rest = (rest + os.read(self._out, 1 << 16)).split(b"\n")
            now = time.perf_counter()
            answers = [answer for line in lines if (answer := json.loads(line)).get("id") in sent]
            for answer in answers:
                assert answer["result"]["content"][0]["text"] == f"hello {answer['id']}", answer
                times.append((now - sent.pop(answer["id"])) * 1000)
            more = min(left, len(answers))
            self._send(more, sent)
            left -= more
        return Burst(calls / (time.perf_counter() - began), times)

    def processor(self) -> float:
        """Return the seconds of processor time that the gateway has used."""
        values = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(values[11]) + int(values[12])) / TICK

    def _ask(self, method: str, params: dict[str, Any]) -> bytes:
        self._last += 1
        os.write(self._in, self._request(self._last, method, params))
        mark = f'"id":{self._last},'.encode()
        data = b""
        while True:
            data += os.read(self._out, 1 << 16)
            if not data:
                raise EOFError("the gateway ended")
            for line in data.split(b"\n")[:-1]:
                if mark in line.replace(b" ", b""):
                    return line

    def _send(self, count: int, sent: dict[int, float]) -> None:
        lines: list[bytes] = []
        for _ in range(count):
            self._last += 1
            params = {"name": "up__echo", "arguments": {"text": f"hello {self._last}"}}
            lines.append(self._request(self._last, "tools/call", params))
            sent[self._last] = time.perf_counter()
        if lines:
            os.write(self._in, b"".join(lines))

    def _request(self, number: int, method: str, params: dict[str, Any]) -> bytes:
        if self.modern:
            params = {**params, "_meta": MODERN}
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def environment(tree: Path, folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(tree / "src"), "XDG_CACHE_HOME": str(folder / "cache")}


def prepare(tree: Path, folder: Path, *, modern: bool) -> None:
    """Write a configuration and start twice, so that all is kept that a start keeps."""
    folder.mkdir()
    server = {"command": sys.executable, "args": [str(SERVER), "stdio"]}
    text = {"store": "sqlite:///state.db", "servers": {"up": server}, "agents": {"default": {"tools": ["up"]}}}
    (folder / "pegboard.yaml").write_text(json.dumps(text), encoding="utf-8")
    for _ in range(2):
        with Gateway(tree, folder, modern=modern) as gateway:
            gateway.greet()
            gateway.burst(IN_FLIGHT)


def measure_calls(figures: dict[Path, Figures], folders: dict[Path, Path], options: argparse.Namespace) -> None:
    """Start each gateway once and give them turns until each has made its calls."""
    with ExitStack() as stack:
        gateways: dict[Path, Gateway] = {}
        for tree, figure in figures.items():
            gateway = stack.enter_context(Gateway(tree, folders[tree], modern=options.modern))
            gateway.greet()
            figure.started.append(resident(gateway.process.pid))
            gateway.burst(WARMING)
            gateways[tree] = gateway
        time.sleep(SETTLED)
        before = {tree: gateway.processor() for tree, gateway in gateways.items()}
        for tree, seconds in before.items():
            figures[tree].settled.append(seconds * 1000)
        order = list(gateways)
        for _ in range(options.calls // options.burst):
            order.reverse()
            for tree in order:
                done = gateways[tree].burst(options.burst)
                figures[tree].rates.append(done.rate)
                figures[tree].times.append(done.times)
        time.sleep(SETTLED)
        for tree, gateway in gateways.items():
            made = options.calls // options.burst * options.burst
            figures[tree].processor.append((gateway.processor() - before[tree]) / made * 1e6)
            figures[tree].called.append(resident(gateway.process.pid))


def measure_start(figures: dict[Path, Figures], folders: dict[Path, Path], *, modern: bool) -> float:
    """Add one start to the first list of each; returns the milliseconds that importing the SDK took beside them."""
    for tree, figure in figures.items():
        began = time.perf_counter()
        with Gateway(tree, folders[tree], modern=modern) as gateway:
            gateway.greet()
            figure.starts.append((time.perf_counter() - began) * 1000)
            figure.start_processor.append(gateway.processor() * 1000)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp"], check=True)
    return (time.perf_counter() - began) * 1000


def measure(trees: Sequence[Path], options: argparse.Namespace) -> list[dict[str, Any]]:
    figures = {tree: Figures() for tree in trees}
    sdk: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        folders = {tree: Path(home, str(number)) for number, tree in enumerate(trees)}
        for tree, folder in folders.items():
            prepare(tree, folder, modern=options.modern)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} …", file=sys.stderr)
            measure_calls(figures, folders, options)
            sdk += [measure_start(figures, folders, modern=options.modern) for _ in range(options.starts)]
    rows = {tree: figure.row(sdk) for tree, figure in figures.items()}
    return [
        {"checkout": tree.name, **{head: round(value, 3) for head, value in row.items()}} for tree, row in rows.items()
    ] + [ratios(trees[0], other, figures, rows) for other in trees[1:]]


def ratios(ours: Path, other: Path, figures: dict[Path, Figures], rows: dict[Path, dict[str, float]]) -> dict[str, Any]:
    """Return ours as shares of another's; rates and times by the median over the pairs of neighbouring bursts."""
    row: dict[str, Any] = {head: rows[ours][head] / rows[other][head] for head in rows[ours]}
    pairs = zip(figures[ours].rates, figures[other].rates, strict=True)
    row["calls/s"] = statistics.median(one / two for one, two in pairs)
    bursts = zip(figures[ours].times, figures[other].times, strict=True)
    row["p50 ms"] = statistics.median(statistics.median(one) / statistics.median(two) for one, two in bursts)
    return {"checkout": f"{ours.name} / {other.name}", **{head: round(value, 3) for head, value in row.items()}}


def main(arguments: Sequence[str]) -> int:
    """Measure this checkout, and those it is held against; print a table or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks calls", description=__doc__)
    parser.add_argument("--against", metavar="TREE", type=Path, action="append", default=[], help="another checkout")
    parser.add_argument("--rounds", type=int, default=5, help="how often the gateways are started for calls")
    parser.add_argument("--calls", type=int, default=10_000, help="calls of each in a round")
    parser.add_argument("--burst", type=int, default=250, help="calls of each in a turn")
    parser.add_argument("--starts", type=int, default=5, help="starts of each to the first list in a round")
    parser.add_argument("--modern", action="store_true", help="requests of the 2026-07-28 era; by default a handshake")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    rows = measure([ROOT, *(tree.resolve() for tree in options.against)], options)
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    heads = list(rows[0])
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(str(row[head]) for head in heads) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
