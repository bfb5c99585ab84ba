"""Approvals that must not let a call run: ``python -m benchmarks approvals [--each 2000] [--json]``.

Altered, replayed, expired and raced ones, and those that are allowed without the right to, ``--each`` of every kind,
over a SQLite store that two boards share. Without the right are operators who may only look or are of another agent,
programs without a token, and clients that answer themselves where an operator has to. A call
that runs writes a line into a file: in the end the file has one line for each call that was approved and made as it
was approved, and no other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import httpx2

from pegboard import Approval, CallAnswer, Pegboard, Session
from pegboard.board.calls.approvals import Approvals
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess

TOOLS = '''
from pathlib import Path

RAN = Path(__file__).with_name("ran")


def wipe(path: str, times: int = 1) -> str:
    """Wipe something."""
    with RAN.open("a") as file:
        file.write(f"{path}\\n")
    return f"wiped {path}"
'''
CONFIG = """
store: sqlite:///state.db
plugins: {disk: {python: disk_tools, approve: {wipe: {when: always, by: operator}}}}
agents: {clerk: {tools: [disk]}, other: {tools: [disk]}}
tokens:
  looks: {token: looks-token, agents: ["*"], console: [see]}
  switches: {token: switches-token, agents: ["*"], console: [switch, configure]}
  elsewhere: {token: elsewhere-token, agents: [other], console: true}
  nobody: {token: nobody-token, agents: ["*"]}
"""
STRANGERS = ("looks", "switches", "elsewhere", "nobody", "guessed")
KINDS = ("altered", "replayed", "expired", "raced", "without right")
RACERS = 8


class Attempts:
    """Calls over two boards on one store, counted by what is wrong with their approvals."""

    def __init__(self, board: Pegboard, there: Pegboard, console: httpx2.AsyncClient) -> None:
        self._boards = board, there
        self._console = console
        self._number = 0
        self.counted: Counter[str] = Counter()

    async def session(self, *, board: int = 0, **key: str) -> Session:
        named = {"agent": "clerk", "session_id": f"thread-{self._number}", "principal": f"ada-{self._number}", **key}
        return await self._boards[board].session(**named)  # type: ignore[arg-type]

    async def approved(self) -> tuple[Session, Approval]:
        """Return a new session in which one call is allowed."""
        self._number += 1
        session = await self.session()
        approval = (await session.call("wipe", {"path": "a"})).approval
        assert approval is not None
        return session, await self._boards[self._number % 2].approvals.allow(approval.id, by="grace")

    async def must_not_run(self, kind: str, *calls: Awaitable[CallAnswer]) -> None:
        for answer in await asyncio.gather(*calls):
            assert answer.status != "ok", (kind, answer)
            self.counted[kind] += 1

    async def altered(self) -> None:
        session, approval = await self.approved()
        key, again = approval.id, {"path": "a"}
        await self.must_not_run(
            "altered",
            *(session.call("wipe", one) for one in ({"path": "b"}, {"path": "a", "times": 1}, {"path": "a "})),
            *[
                call
                for other in ({"agent": "other"}, {"principal": f"eve-{self._number}"}, {"session_id": "else"})
                for call in (
                    (await self.session(**other)).call("wipe", again),
                    (await self.session(**other)).resume(key),
                )
            ],
        )
        for part in ("definition", "arguments", "rules", "tool"):
            forged = replace(approval, binding=replace(approval.binding, **{part: "0" * 32}), asked="0" * 32)
            await self._stored(forged if part == "arguments" else replace(forged, asked=approval.asked))
            await self.must_not_run("altered", session.resume(key), session.call("wipe", again))

    async def replayed(self) -> None:
        session, approval = await self.approved()
        assert (await session.resume(approval.id)).status == "ok"
        self.counted["must run"] += 1
        there = await self.session(board=1)
        await self.must_not_run(
            "replayed",
            *(one.resume(approval.id) for one in (session, there)),
            *(one.call("wipe", {"path": "a"}) for one in (session, there)),
        )

    async def expired(self) -> None:
        session, approval = await self.approved()
        await self._stored(replace(approval, expires_at=time.time()))
        await self.must_not_run("expired", session.resume(approval.id), session.call("wipe", {"path": "a"}))

    async def raced(self) -> None:
        session, approval = await self.approved()
        both = session, await self.session(board=1)
        calls = [
            both[n % 2].resume(approval.id) if n % 4 < 2 else both[n % 2].call("wipe", {"path": "a"})
            for n in range(RACERS)
        ]
        ran = sum(answer.status == "ok" for answer in await asyncio.gather(*calls))
        assert ran == 1, ran
        self.counted["must run"] += 1
        self.counted["raced"] += RACERS - 1

    async def _stored(self, approval: Approval) -> None:
        assert await self._boards[0].services.store.change_approval(approval, expected="allowed")

    async def without_right(self) -> None:
        self._number += 1
        session, board = await self.session(), self._boards[self._number % 2]
        approval = (await session.call("wipe", {"path": "a"})).approval
        assert approval is not None
        address = f"/api/approvals/{approval.id}/allow"
        for name in STRANGERS:
            headers = {"Authorization": f"Bearer {name}-token"}
            answer = await self._console.post(address, json={"lasts": "always"}, headers=headers)
            assert answer.status_code in (401, 403, 404), answer.text
            await self.must_not_run("without right", session.call("wipe", {"path": "a"}))
        await Approvals(board.services, elicited=True).allow(approval.id, by="client")
        await self.must_not_run("without right", session.call("wipe", {"path": "a"}), session.resume(approval.id))


async def tried(folder: Path, *, each: int) -> dict[str, int]:
    """Return how often each kind was tried, how often a call had to run and how often one ran."""
    (folder / "disk_tools.py").write_text(TOOLS)
    config = folder / "pegboard.yaml"
    config.write_text(CONFIG)
    async with Pegboard.open(config) as board, Pegboard.open(config) as there:
        app = ConsoleApp(board, OperatorAccess(lambda: board.configuration.tokens))
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as console:
            attempts = Attempts(board, there, console)
            for kind in KINDS:
                while attempts.counted[kind] < each:
                    await getattr(attempts, kind.replace(" ", "_"))()
        await app.close()
    ran = folder / "ran"
    return {**attempts.counted, "ran": len(ran.read_text().splitlines()) if ran.exists() else 0}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks approvals", description=__doc__)
    parser.add_argument("--each", type=int, default=2000, help="how many of every kind")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        counted = asyncio.run(tried(Path(folder), each=options.each))
    seconds = time.perf_counter() - started
    tries = sum(counted[kind] for kind in KINDS)
    rate = round((tries + counted["must run"]) / seconds)
    counted = {**counted, "seconds": round(seconds, 1), "calls/s": rate}
    print(json.dumps(counted) if options.json else "\n".join(f"{kind:<14} {n}" for kind, n in counted.items()))
    return 0 if counted["ran"] == counted["must run"] else 1
