"""Principals that work through the proxy, and listeners that wait for changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from benchmarks.gateways.clients import ACCEPTED, CallError, Client, Http
from benchmarks.replicas.cluster import BEACONS, LOADED, OPERATOR, Cluster, kit, token
from benchmarks.replicas.ledger import UNKNOWN, Call, Ledger, Principal
from pegboard.errors import StoreError
from pegboard.ports import Store

PATIENCE = 45.0
"""How long any answer may take before it counts as none, in seconds."""
AROUND = 2.0
"""How long around a kill a change may take longer to a listener, in seconds."""
CHANGES_EVERY = 1.0
LONGEST_DELAY = 5.0
"""After how long a change that has not arrived is lost, in seconds."""
EARLY = 0.2
"""By how much a change may arrive before its answer does, in seconds."""
NO_ANSWER = ("HTTP 5", "the connection broke", "HTTP 0")
SESSION_GONE = ("HTTP 404", "Session not found")


class NoAnswerError(Exception):
    """Nothing is known of a request: a replica died with it, or the database was away."""


@dataclass
class Load:
    """What all principals share: where they work, what they were answered, and what went wrong."""

    url: str
    cluster: Cluster
    ledger: Ledger
    store: Store
    seed: int
    answers: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def problem(self, text: str) -> None:
        """Note what is wrong, once."""
        if text not in self.problems:
            self.problems.append(text)

    async def operator(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what the console's API answers an operator; raises ``NoAnswerError`` and ``CallError``."""
        wire = Http(self.url, {"authorization": f"Bearer {OPERATOR}"})
        data = b"" if body is None else json.dumps(body).encode()
        try:
            async with asyncio.timeout(PATIENCE):
                status, _, found = await wire.send(method, path, data, {"content-type": "application/json"})
        except (CallError, OSError, TimeoutError) as error:
            raise NoAnswerError(str(error)) from None
        finally:
            await wire.close()
        if status >= 500:
            raise NoAnswerError(f"HTTP {status}: {found[:200]!r}")
        if status >= 400:
            raise CallError(f"HTTP {status}: {found[:300].decode(errors='replace')}")
        return json.loads(found)


@dataclass
class Noting(Http):
    """A wire that notes when it sent its last request, and which replica answered it."""

    replica: int | None = None
    sent: float = 0.0

    async def send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], number: int | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        self.replica, self.sent = None, time.monotonic()
        answered = await super().send(method, path, body, headers, number)
        self.replica = int(answered[1].get("x-replica", -1))
        return answered


class Agent:
    """One principal at work, one request after the other, in a session that it names."""

    def __init__(self, load: Load, number: int, principal: Principal) -> None:
        self._load = load
        self._number = number
        self._mine = principal
        self._dice = random.Random(load.seed * 10_000 + number)
        self._modern = number % 2 == 0
        self._client = self._new_client()
        self._last = 0

    def _new_client(self) -> Client:
        headers = {"authorization": f"Bearer {token(self._number)}"}
        self._wire = Noting(f"{self._load.url}?session={self._mine.session}", headers)
        return Client(self._wire)

    async def work(self, pause: float) -> None:
        """Work until the run is over."""
        await self._tried("connect", self._connect)
        while not self._load.over.is_set():
            name, act = self._dice.choice(ACTS)
            await self._tried(name, lambda act=act: act(self))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._load.over.wait(), self._dice.uniform(0, 2 * pause))
        await self._client.close()

    async def _connect(self) -> None:
        await self._client.close()
        self._client = self._new_client()
        try:
            await self._client.connect(modern=self._modern, timeout=PATIENCE)
        except (CallError, OSError, TimeoutError) as error:
            raise NoAnswerError(str(error)) from None

    async def _tried(self, name: str, act: Callable[[], Awaitable[None]]) -> None:
        """Do something; what is not answered has to be near to where a replica or the database was away."""
        began = time.monotonic()
        try:
            if not self._client.era:
                await self._connect()
            await act()
        except NoAnswerError as error:
            self._load.answers["not answered"] += 1
            if not self._load.cluster.incomplete(began, time.monotonic(), 3.0):
                await asyncio.sleep(5)  # whether something is away just now is known only once it is back
                if not self._load.cluster.incomplete(began, time.monotonic(), 3.0):
                    self._load.problem(f"{name}: no answer though all was there: {error}")
        except CallError as error:
            self._load.answers["failed clearly"] += 1
            if "Traceback" in str(error) or "Pegboard failed here" in str(error) or not str(error).strip():
                self._load.problem(f"{name}: {error}")
        else:
            self._load.answers["answered"] += 1

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return a result; a transport session whose owner is gone is begun again, since nothing was done."""
        while True:
            try:
                return await self._client.request(method, params, timeout=PATIENCE)
            except (OSError, TimeoutError) as error:
                raise NoAnswerError(f"{type(error).__name__}: {error}") from None
            except CallError as error:
                if str(error).startswith(SESSION_GONE) and self._client.session:
                    self._load.answers["begun anew"] += 1
                    await self._connect()
                elif str(error).startswith(NO_ANSWER):
                    raise NoAnswerError(str(error)) from None
                else:
                    raise

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return text and structure of a result; raises ``CallError`` where the tool says that it failed."""
        result = await self._request("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(block.get("text", "") for block in result.get("content", ()))
        structured = result.get("structuredContent") or {}
        if result.get("isError") and "approval" not in structured:
            raise CallError(text[:300])
        return text, structured

    def _text(self) -> str:
        self._last += 1
        return f"{self._mine.name}-{self._last}"

    # -- what they do ------------------------------------------------------------------------------

    async def note(self) -> None:
        """Call a tool that may not run twice."""
        text = self._text()
        self._mine.ran[text] = False
        self._mine.tried += 1
        await self._call("note", {"text": text})
        self._ran(text)

    def _ran(self, text: str) -> None:
        """Note a call that was answered; one of the handshake era runs at the owner of its session."""
        replica = self._wire.replica if self._modern else None
        self._mine.calls.append(Call(self._wire.sent, time.monotonic(), replica))
        self._mine.ran[text] = True

    async def publish(self) -> None:
        """Call a tool that a person allows first: asked, allowed by its handle, called again."""
        text = self._text()
        self._mine.ran[text] = False
        _, structured = await self._call("publish", {"text": text})
        approval = structured["approval"]["id"]
        self._mine.approvals[approval] = "waiting"
        self._mine.approvals[approval] = UNKNOWN
        await self._load.operator("POST", f"/api/approvals/{approval}/allow", {"lasts": "once"})
        self._mine.approvals[approval] = "allowed"
        self._mine.tried += 1
        try:
            await self._call("publish", {"text": text})
        except (NoAnswerError, CallError):
            self._mine.approvals[approval] = UNKNOWN
            raise
        self._mine.approvals[approval] = "used"
        self._ran(text)

    async def load(self) -> None:
        """Load a plugin for the session."""
        plugin = self._dice.choice(LOADED)
        before, self._mine.leases[plugin] = self._mine.leases.get(plugin), UNKNOWN
        _, found = await self._call("load_tools", {"names": [plugin], "keep": "session"})
        self._mine.leases[plugin] = True
        self._mine.loads += before is False or before is None
        del found

    async def unload(self) -> None:
        """Unload a plugin."""
        plugin = self._dice.choice(LOADED)
        self._mine.leases[plugin] = UNKNOWN
        await self._call("unload_tools", {"names": [plugin]})
        self._mine.leases[plugin] = False

    async def listing(self) -> None:
        """List the tools: in the handshake era, what is loaded in the session is there."""
        names = {tool["name"] for tool in (await self._request("tools/list", {}))["tools"]}
        for plugin, known in self._mine.leases.items():
            if not self._modern and known is True and f"{plugin}_do" not in names:
                self._load.problem(f"list: {plugin} of {self._mine.name} is loaded, and not listed")

    async def search(self) -> None:
        """Search."""
        await self._call("search_tools", {"queries": ["do the work of alpha"]})

    async def switch(self) -> None:
        """Set the switch of a toolkit, as an operator."""
        value = self._dice.random() < 0.5
        self._mine.switch = UNKNOWN
        body = {"name": kit(self._number), "value": value}
        await self._load.operator("PUT", "/api/agents/switched/switches", body)
        self._mine.switch, self._mine.switched = value, self._mine.switched + 1

    async def seal(self) -> None:
        """Store a secret, as a login does."""
        mine, expected = self._mine, self._mine.sealed[0] if self._mine.sealed else 0
        text = f"token {self._text()}"
        mine.sealed = None
        try:
            version = await self._load.store.seal("grant", mine.name, text, expected=expected)
            if version is None:
                version = await self._load.store.seal("grant", mine.name, text, expected=None)
        except StoreError as error:
            raise NoAnswerError(str(error)) from None
        assert version is not None
        mine.sealed = version, text


ACTS: list[tuple[str, Callable[[Agent], Awaitable[None]]]] = [
    *[("note", Agent.note)] * 8,
    *[("load", Agent.load)] * 3,
    *[("list", Agent.listing)] * 2,
    *[("unload", Agent.unload)] * 2,
    *[("publish", Agent.publish)] * 2,
    ("switch", Agent.switch),
    ("search", Agent.search),
    ("seal", Agent.seal),
]


# -- changes, and who waits for them ---------------------------------------------------------------


@dataclass
class Listener:
    """One stream of changes: since when it is open, and when something arrived."""

    load: Load
    number: int
    opened: list[tuple[float, float]] = field(default_factory=list)
    """From when until when the stream was open."""
    since: float | None = None
    arrived: list[float] = field(default_factory=list)

    async def listen(self) -> None:
        """Keep a stream of changes open until the run is over."""
        over = asyncio.create_task(self.load.over.wait())
        while not over.done():
            stream = asyncio.create_task(self._once())
            await asyncio.wait({stream, over}, return_when=asyncio.FIRST_COMPLETED)
            stream.cancel()
            with contextlib.suppress(
                asyncio.CancelledError, OSError, CallError, TimeoutError, asyncio.IncompleteReadError, ValueError
            ):
                await stream
            if self.since is not None:
                self.opened.append((self.since, time.monotonic()))
                self.since = None
            await asyncio.wait({over}, timeout=0.05)

    async def _once(self) -> None:
        headers = {**ACCEPTED, "authorization": f"Bearer {token(self.number)}"}
        client = Client(Http(f"{self.load.url}?session=listener-{self.number}", dict(headers)))
        modern = self.number % 2 == 0
        await client.connect(modern=modern, timeout=10)
        await client.tools(timeout=10)
        if modern:
            method, body, more = "POST", _listen(), {"mcp-protocol-version": client.era, "mcp-method": LISTEN}
        else:
            method, body, more = (
                "GET",
                b"",
                {"mcp-protocol-version": client.era, "mcp-session-id": client.session or ""},
            )
        await client.close()
        port = int(self.load.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            lines = [f"{method} /mcp?session=listener-{self.number} HTTP/1.1", "host: 127.0.0.1"]
            lines += [
                f"content-length: {len(body)}",
                *(f"{name}: {value}" for name, value in {**headers, **more}.items()),
            ]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            status = await reader.readline()
            if status.split()[1:2] != [b"200"]:
                raise CallError(f"a listener was answered {status!r}")
            await reader.readuntil(b"\r\n\r\n")
            if modern:
                await reader.readuntil(b"acknowledged")
            self.since = time.monotonic()
            while line := await reader.readline():
                if b"tools/list_changed" in line:
                    self.arrived.append(time.monotonic())
        finally:
            writer.close()


LISTEN = "subscriptions/listen"


def _listen() -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
    }
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": LISTEN, "params": params}).encode()


async def change(load: Load) -> list[float]:
    """Switch one tool of every agent after the other at intervals; return when each change was answered.

    So no list is soon again what it was: of two changes that a replica sees at once, none takes the other back.
    """
    times: list[float] = []
    stored: dict[str, bool | None] = dict.fromkeys(BEACONS, True)
    for name in cycle(BEACONS):
        if load.over.is_set():
            break
        before, stored[name] = stored[name], None
        value = before is not True
        try:
            await load.operator("PUT", "/api/agents/default/switches", {"name": name, "value": value})
        except (NoAnswerError, CallError):
            continue  # it may be stored: then the next one changes nothing
        times += [time.monotonic()] if before is not None else []
        stored[name] = value
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(load.over.wait(), CHANGES_EVERY)
    return times


def delays(load: Load, listeners: list[Listener], changes: list[float]) -> tuple[list[float], list[str]]:
    """Return how long each change took to each listener that was listening, and which did not arrive, in words.

    A client that is told of a later change lists what the earlier one changed as well, so that counts. Excluded is what
    is within two seconds of a kill or of a database that was away.
    """
    found: list[float] = []
    lost: list[str] = []
    for at in changes:
        if load.cluster.disturbed(at, at, AROUND):
            continue
        for listener in listeners:
            if not any(since < at - AROUND and at + LONGEST_DELAY < end for since, end in listener.opened):
                continue
            arrived = next((one for one in listener.arrived if one >= at - EARLY), None)
            if arrived is not None and arrived < at + LONGEST_DELAY:
                found.append(max(0.0, arrived - at))
            else:
                kills = ", ".join(f"{at - kill:+.1f} s" for kill, _ in load.cluster.kills if abs(at - kill) < 20)
                lost.append(f"a change did not reach listener {listener.number} within 5 s; kills: {kills}")
    return found, lost


async def accept_pins(load: Load, write: Callable[[str], None]) -> None:
    """Let a server list another definition at intervals, and accept it as an operator."""
    number = 0
    principal = len(load.ledger.principals)
    headers = {"authorization": f"Bearer {token(principal)}"}
    while not load.over.is_set():
        number += 1
        write(f"Look around, for the {number}th time.")
        client = Client(Http(f"{load.url}?session=pins", headers))
        try:
            await client.connect(timeout=PATIENCE)
            await client.call("load_tools", {"names": ["listed"], "keep": "session"}, timeout=PATIENCE)
            await client.call("listed__announce", {}, timeout=PATIENCE)
            for _ in range(40):
                if await _accepted(load):
                    break
                await asyncio.sleep(0.1)
        except (NoAnswerError, CallError, OSError, TimeoutError):
            pass
        finally:
            await client.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(load.over.wait(), 3.0)


async def _accepted(load: Load) -> bool:
    """Accept what waits of the server at a replica that has seen it; return whether that was answered."""
    ledger = load.ledger
    rows = [row for row in await load.operator("GET", "/api/pins/listed") if row["tool"] == "look"]
    if not rows or not rows[0]["waits"]:
        return False
    before, ledger.pin = ledger.pin, ""
    try:
        await load.operator("POST", "/api/pins/listed/look/accept", {"seen": rows[0]["digest"]})
    except CallError:  # another replica, which had this request, has not seen it yet: nothing was accepted
        ledger.pin = before
        return False
    ledger.pin, ledger.pins = rows[0]["digest"], ledger.pins + 1
    return True
