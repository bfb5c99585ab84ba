"""Replicas as processes of their own on one database, which are killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.gateways import processes
from benchmarks.gateways.clients import CallError

READY = 30.0
"""How long a replica may take until it takes requests, in seconds."""
OPERATOR = "operator-operator-operator"
TOOLS = '''
import os
from pathlib import Path

from pegboard import tool

RAN = Path(__file__).with_name("ran.txt")


def _ran(text: str) -> str:
    with RAN.open("a") as file:
        file.write(text + chr(10))
    return text


def note(text: str) -> str:
    """Write a text down; it may not run twice."""
    return _ran(text)


@tool(requires_confirmation=True)
def publish(text: str) -> str:
    """Publish a text; a person allows it first, and it may not run twice."""
    return _ran(text)


__all__ = ["note", "publish"]
'''
SMALL = '''
def {name}_do(text: str) -> str:
    """Do the work of {name}."""
    return text
'''
LISTED = Path(__file__).resolve().parents[2] / "tests" / "servers" / "listed_server.py"
LOADED = ("alpha", "beta", "gamma")
"""The plugins that agents load and unload."""
BEACONS = ("beacon_a", "beacon_b", "beacon_c", "beacon_d")
"""The plugins whose switches change what listeners list."""


def configuration(store: str, principals: int, listed: Path) -> str:
    """Return what the replicas serve, as JSON, which is YAML; ``listed`` is the file of what a server lists."""
    tokens = {f"p{number}": {"token": token(number), "agents": ["default"]} for number in range(principals)}
    operator = {"token": OPERATOR, "agents": ["*"], "console": ["see", "approve", "switch", "configure"]}
    toolkits = {kit(number): {"description": "A kit", "tools": ["alpha"]} for number in range(principals)}
    document = {
        "store": store,
        "tokens": {**tokens, "operator": operator},
        "plugins": {name: {"python": name} for name in ("soak_tools", *BEACONS, *LOADED)},
        "servers": {"listed": {"command": sys.executable, "args": [str(LISTED), str(listed)]}},
        "toolkits": toolkits,
        "agents": {
            "default": {"tools": ["soak_tools", *BEACONS], "discoverable": [*LOADED, "listed"]},
            "switched": {"allowed_toolkits": list(toolkits)},
        },
    }
    return json.dumps(document)


def kit(number: int) -> str:
    """Return the toolkit that one principal alone switches."""
    return f"kit{number}"


def token(number: int) -> str:
    """Return the token of a principal."""
    return f"principal-{number:04}-principal-{number:04}"


def free_port() -> int:
    """Return a port of the loopback that no one has now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@dataclass
class Process:
    """One replica: where it listens, and the process that does so now."""

    port: int
    errors: IO[bytes]
    process: asyncio.subprocess.Process | None = None


@dataclass
class Cluster:
    """The replicas, and when one of them, or the database, was away."""

    folder: Path
    replicas: list[Process] = field(default_factory=list)
    kills: list[tuple[float, int]] = field(default_factory=list)
    """When each replica was killed, by its number."""
    away: list[tuple[float, float]] = field(default_factory=list)
    """From when until when a replica did not serve."""
    outages: list[tuple[float, float]] = field(default_factory=list)
    """From when until when the database did not answer."""
    known: dict[int, str] = field(default_factory=dict)
    """Every process that was started, for the end."""

    async def start(self, count: int) -> None:
        """Start the replicas, each until it is ready."""
        for number in range(count):
            errors = (self.folder / f"stderr-{number}.txt").open("ab")
            self.replicas.append(Process(free_port(), errors))
        for replica in self.replicas:
            await self._start(replica)

    async def _start(self, replica: Process) -> None:
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(self.folder / "pegboard.yaml")]
        command += ["--port", str(replica.port), "--host", "127.0.0.1"]
        replica.process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=replica.errors,
            start_new_session=True,
        )
        deadline = time.monotonic() + READY
        while not await ready(replica.port):
            if replica.process.returncode is not None or time.monotonic() > deadline:
                raise CallError(f"a replica did not start: {self.said()[-800:]}")
            await asyncio.sleep(0.05)
        self.known |= {pid: processes.command(pid) for pid in processes.tree(replica.process.pid)}

    async def kill(self, replica: Process) -> None:
        """Kill a replica as a machine dies, and start it again."""
        assert replica.process is not None
        self.known |= {pid: processes.command(pid) for pid in processes.tree(replica.process.pid)}
        os.killpg(replica.process.pid, signal.SIGKILL)
        began = time.monotonic()
        self.kills.append((began, self.replicas.index(replica)))
        await replica.process.wait()
        await self._start(replica)
        self.away.append((began, time.monotonic()))

    async def stop(self) -> list[str]:
        """Ask every replica to end; return what is wrong with how they did."""
        problems: list[str] = []
        for replica in self.replicas:
            if replica.process is not None and replica.process.returncode is None:
                self.known |= {pid: processes.command(pid) for pid in processes.tree(replica.process.pid)}
                replica.process.send_signal(signal.SIGTERM)
        for number, replica in enumerate(self.replicas):
            if replica.process is None:
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(replica.process.wait(), 20)
            if replica.process.returncode != 0:
                problems.append(f"replica {number} ended with {replica.process.returncode}, not 0, after SIGTERM")
            processes.stop(replica.process.pid, 0.5)
            replica.errors.close()
        if left := processes.alive(self.known, self.known):
            problems.append(f"left behind: {[self.known[pid] for pid in left]}"[:300])
        said = self.said()
        if "Traceback" in said:
            problems.append(f"a traceback on standard error: {said[said.index('Traceback') :][:1500]}")
        return problems

    def said(self) -> str:
        """Return what all replicas wrote to standard error."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("stderr-*.txt")))

    def disturbed(self, began: float, ended: float, around: float) -> bool:
        """Return whether a replica was killed, or the database away, in a time or so many seconds around it."""
        return _overlap([*((at, at) for at, _ in self.kills), *self.outages], began, ended, around)

    def incomplete(self, began: float, ended: float, around: float) -> bool:
        """Return whether a replica did not serve, or the database was away, in a time or so many seconds around it."""
        return _overlap([*self.away, *self.outages], began, ended, around) or self.disturbed(began, ended, around)


def _overlap(times: Sequence[tuple[float, float]], began: float, ended: float, around: float) -> bool:
    return any(first - around <= ended and began <= last + around for first, last in times)


async def ready(port: int) -> bool:
    """Return whether a replica says that it takes requests."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        async with asyncio.timeout(5):
            line = await reader.readline()
        return line.split()[1:2] == [b"200"]
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()
