"""The load and the faults of a soak."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.gateways import processes
from benchmarks.gateways.clients import ACCEPTED, CallError, Client, Http

SERVERS = Path(__file__).resolve().parent.parent / "tests" / "servers"
TIMEOUT = 2
"""What the servers' ``timeout`` is, in seconds."""
PATIENCE = 20.0
"""How long any answer may take before it counts as none, in seconds."""
EVERY = 1.5
"""How often a fault is injected, in seconds."""
TOOLS = '''
def remember(text: str) -> str:
    """Say what is to be kept."""
    return text
'''
CONFIG = """
store: sqlite:///state.db
servers:
  plain: {{command: "{python}", args: ["{servers}/plain_server.py"], timeout: {timeout}s}}
  fast: {{command: "{python}", args: ["{servers}/fast_server.py", stdio], timeout: {timeout}s}}
plugins:
  notes: {{python: soak_tools}}
agents:
  default: {{tools: [notes], discoverable: ["*"]}}
"""
EXTRA = '  extra: {{command: "{python}", args: ["{servers}/plain_server.py"], timeout: {timeout}s}}\n'
UNCLEAR = ("the connection broke", "HTTP 5", "Pegboard failed here", "Traceback")


@dataclass
class Report:
    """What happened, and what is wrong with it."""

    calls: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    descriptors: tuple[int, int] = (0, 0)

    def slope(self) -> float:
        """Return by how many MiB memory grows in a minute, in the last two thirds."""
        late = self.memory[len(self.memory) // 3 :]
        if len(late) < 3:
            return 0.0
        return statistics.linear_regression([at for at, _ in late], [size for _, size in late]).slope * 60

    def document(self) -> dict[str, Any]:
        """Return what scripts read."""
        sizes = [size for _, size in self.memory]
        return {
            "calls": dict(self.calls),
            "faults": dict(self.faults),
            "RSS MiB": {"first": round(sizes[0]), "last": round(sizes[-1]), "slope per minute": round(self.slope(), 2)},
            "descriptors": {"before": self.descriptors[0], "after": self.descriptors[1]},
            "problems": self.problems,
        }


@dataclass
class Soak:
    """One run: the gateway, its configuration, and a seeded dice."""

    folder: Path
    process: asyncio.subprocess.Process
    url: str
    report: Report
    dice: random.Random
    over: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: set[int] = field(default_factory=set)

    # -- load --------------------------------------------------------------------------------------

    async def work(self, number: int) -> None:
        """Call, load, list and search in a session of its own until the run is over."""
        modern = number % 3 != 2
        wire = Http(f"{self.url}?session=soak-{number}")
        client = Client(wire)
        await self._tried("connect", client.connect(modern=modern, timeout=PATIENCE))
        while not self.over.is_set():
            name, act = self.dice.choice(ACTS)
            await self._tried(name, act(self, client))
        names = ["plain", "fast", "notes"]
        await self._tried("unload", client.call("unload_tools", {"names": names}, timeout=PATIENCE))
        await _left(client)

    async def _tried(self, name: str, call: Awaitable[object]) -> None:
        try:
            await call
        except TimeoutError:
            self._unclear(f"{name}: no answer within {PATIENCE:.0f} s")
        except CallError as error:
            if not str(error).strip() or any(mark in str(error) for mark in UNCLEAR):
                self._unclear(f"{name}: {str(error) or 'an empty message'}")
            else:
                self.report.calls["failed clearly"] += 1
        except AssertionError as error:
            self._unclear(f"{name}: {error}")
        except OSError as error:
            self._unclear(f"{name}: {type(error).__name__}: {error}")
        else:
            self.report.calls["answered"] += 1

    def _unclear(self, text: str) -> None:
        self.report.calls["unclear"] += 1
        if text not in self.report.problems:
            self.report.problems.append(text)

    async def echo(self, client: Client) -> None:
        """Call a server's tool through ``call_tool`` and compare."""
        said = f"{self.dice.random()}"
        name = self.dice.choice(["plain__echo", "fast__echo", "extra__echo"])
        arguments = {"name": name, "arguments": {"text": said}}
        answer = await client.call("call_tool", arguments, timeout=PATIENCE)
        assert answer == said, f"{name} answered {answer[:80]!r} to {said!r}"

    async def remember(self, client: Client) -> None:
        """Call a tool of our own."""
        said = f"{self.dice.random()}"
        answer = await client.call("remember", {"text": said}, timeout=PATIENCE)
        assert answer == said, f"remember answered {answer[:80]!r} to {said!r}"

    async def load(self, client: Client) -> None:
        names = self.dice.sample(["plain", "fast__echo", "extra", "fast", "nothing"], 2)
        await client.call("load_tools", {"names": names}, timeout=PATIENCE)

    async def unload(self, client: Client) -> None:
        names = self.dice.sample(["plain", "fast__echo", "fast"], 1)
        await client.call("unload_tools", {"names": names}, timeout=PATIENCE)

    async def listing(self, client: Client) -> None:
        names = [tool["name"] for tool in await client.tools(timeout=PATIENCE)]
        assert "call_tool" in names, f"the list lacks call_tool: {names}"

    async def search(self, client: Client) -> None:
        await client.call("search_tools", {"queries": ["say it again"]}, timeout=PATIENCE)

    async def hang(self, client: Client) -> None:
        """Call what never answers: it has to fail after the server's timeout."""
        name = self.dice.choice(["plain__slow", "fast__slow"])
        await client.call("call_tool", {"name": name, "arguments": {}}, timeout=PATIENCE)

    # -- faults ------------------------------------------------------------------------------------

    async def torment(self) -> None:
        """Inject a fault every so often until the run is over, all kinds in turns."""
        waiting: list[tuple[str, Callable[[Soak], Awaitable[None]]]] = []
        while not self.over.is_set():
            waiting = waiting or self.dice.sample(FAULTS, len(FAULTS))
            name, fault = waiting.pop()
            self.report.faults[name] += 1
            await fault(self)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), EVERY)
        self.resume()
        self.edit(CONFIG)

    def upstreams(self) -> list[int]:
        return processes.matching(self.process.pid, str(SERVERS))

    async def kill(self) -> None:
        """Kill an upstream."""
        self._signal(signal.SIGKILL)

    async def freeze(self) -> None:
        """Stop an upstream, so that it hangs; the one before goes on."""
        self.resume()
        if pid := self._signal(signal.SIGSTOP):
            self.stopped.add(pid)

    def _signal(self, number: signal.Signals) -> int | None:
        found = self.upstreams()
        if not found:
            return None
        pid = self.dice.choice(found)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        return pid

    def resume(self) -> None:
        """Let every stopped upstream that is still ours go on."""
        for pid in self.stopped & set(self.upstreams()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()

    async def disconnect(self) -> None:
        """Leave in the middle of a call, of a stream of changes, and of a request."""
        call = {"name": "call_tool", "arguments": {"name": "plain__slow", "arguments": {}}}
        for method, params in (("tools/call", call), ("subscriptions/listen", {"filter": {"toolsListChanged": True}})):
            client = Client(Http(f"{self.url}?session=soak-gone"), era="2026-07-28")
            with contextlib.suppress(TimeoutError, CallError):
                await client.request(method, params, timeout=self.dice.uniform(0.01, 0.3))
            await client.close()
        await self._send(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 900\r\n\r\n{", wait=False)

    async def garbage(self) -> None:
        """Send what is no request."""
        host = urlsplit(self.url).netloc
        bodies = [b"{", b"[]", b"\xff\xfe\x00", b'{"jsonrpc":"2.0","id":1,"method":7}', b"null", b"[" * 20_000]
        body = self.dice.choice(bodies)
        lines = [f"host: {host}", f"content-length: {len(body)}", "connection: close"]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, *(f"{k}: {v}" for k, v in ACCEPTED.items())])
        answer = await self._send(head.encode() + b"\r\n\r\n" + body, wait=True)
        if not answer.startswith(b"HTTP/1.1 4"):
            self._unclear(f"garbage {body[:40]!r} was answered with {answer[:60]!r}")
        await self._send(self.dice.randbytes(300) + b"\r\n\r\n", wait=True)

    async def _send(self, data: bytes, *, wait: bool) -> bytes:
        where = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            writer.write(data)
            await writer.drain()
            return await asyncio.wait_for(reader.read(400), PATIENCE) if wait else b""
        except (TimeoutError, ConnectionError):
            return b""
        finally:
            writer.close()

    async def edit_configuration(self) -> None:
        """Add a server or take it away, or break the file for a moment."""
        if self.dice.random() < 0.3:
            self.edit(f"{CONFIG}  broken: [\n")
            await asyncio.sleep(0.3)
        self.edit(self.dice.choice([CONFIG, CONFIG.replace("plugins:", f"{EXTRA}plugins:")]))

    def edit(self, text: str) -> None:
        """Replace the configuration as editors do."""
        fresh = self.folder / "pegboard.yaml.new"
        fresh.write_text(text.format(python=sys.executable, servers=SERVERS, timeout=TIMEOUT))
        fresh.replace(self.folder / "pegboard.yaml")

    # -- afterwards --------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Note the gateway's memory twice a second."""
        begin = time.monotonic()
        while not self.over.is_set():
            self.report.memory.append((time.monotonic() - begin, processes.resident(self.process.pid)))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), 0.5)

    async def settled(self, name: str, condition: Callable[[], bool], text: Callable[[], str]) -> None:
        """Wait for a condition; one that does not come about is a problem."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                self.report.problems.append(f"{name}: {text()}")
                return
            await asyncio.sleep(0.05)

    async def leases(self) -> None:
        """Find sessions that still have something loaded after everything was unloaded."""
        program = [sys.executable, "-m", "pegboard", "session", "list", "--json"]
        asked = await asyncio.create_subprocess_exec(
            *program, "--config", str(self.folder / "pegboard.yaml"), stdout=asyncio.subprocess.PIPE
        )
        for session in json.loads((await asked.communicate())[0]):
            held = [lease for lease in session["leases"] if "extra" not in lease]
            if held and session["session"] != "soak-gone":
                self.report.problems.append(f"leases left in {session['session']}: {', '.join(held)[:200]}")


ACTS: list[tuple[str, Callable[[Soak, Client], Awaitable[None]]]] = [
    *[("echo", Soak.echo)] * 8,
    *[("remember", Soak.remember)] * 3,
    *[("list", Soak.listing)] * 3,
    *[("load", Soak.load)] * 3,
    ("unload", Soak.unload),
    ("search", Soak.search),
    ("hang", Soak.hang),
]
FAULTS: list[tuple[str, Callable[[Soak], Awaitable[None]]]] = [
    ("upstream killed", Soak.kill),
    ("upstream frozen", Soak.freeze),
    ("client gone", Soak.disconnect),
    ("garbage", Soak.garbage),
    ("configuration edited", Soak.edit_configuration),
]


async def _left(client: Client) -> None:
    """End a transport session of the handshake era as clients do, and close the connections."""
    wire = client.wire
    if isinstance(wire, Http) and client.session:
        headers = {"mcp-session-id": client.session, "mcp-protocol-version": client.era}
        with contextlib.suppress(CallError, TimeoutError, OSError):
            await asyncio.wait_for(wire.send("DELETE", urlsplit(wire.url).path, b"", headers), PATIENCE)
    await client.close()
