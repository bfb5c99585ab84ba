"""A PostgreSQL server that is stopped and started under two gateways (S2, P4, G14)."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from pegboard import Pegboard
from pegboard.errors import StoreUnavailableError
from postgres_server import PostgresServer

from .clients import ADA, BOB, HANDSHAKE, MODERN, Connected, connected, until
from .conftest import ECHO, MODULE
from .replica_helpers import Pair, pair

PLAIN = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
pytestmark = pytest.mark.postgres
TOKENS = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Return a server of this module alone: it is stopped now and then."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def database(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration on the server."""
    monkeypatch.setenv("PEGBOARD_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    (tmp_path / "notes_tools.py").write_text(MODULE)
    (tmp_path / "talk_tools.py").write_text(ECHO)
    path = tmp_path / "pegboard.yaml"
    plugins = {"talk": {"python": "talk_tools"}, "notes": {"python": "notes_tools"}}
    text = {"plugins": plugins, "agents": {"default": {"tools": ["talk"], "discoverable": ["*"]}}, "tokens": TOKENS}
    path.write_text(json.dumps({**text, "store": {"url": server.address(), "grace": "12s"}}))
    return path


def with_one_server(database: Path) -> Path:
    """Return a configuration with a server of which there is one over all gateways."""
    one = {"command": sys.executable, "args": [str(PLAIN)], "prefix": "", "instance": "store"}
    agents = {"default": {"tools": ["one"]}}
    database.write_text(json.dumps({**json.loads(database.read_text()), "servers": {"one": one}, "agents": agents}))
    return database


@asynccontextmanager
async def users(two: Pair) -> AsyncIterator[tuple[Connected, Connected]]:
    """Connect ada to one gateway and bob to the other, in different eras."""
    async with AsyncExitStack() as stack:
        ada = await stack.enter_async_context(connected(f"{two.first.url}?session=s", MODERN, token=ADA))
        bob = await stack.enter_async_context(connected(f"{two.second.url}?session=s", HANDSHAKE, token=BOB))
        yield ada, bob


def reachable(two: Pair) -> list[bool]:
    return [one.board.services.store_health.reachable for one in (two.first, two.second)]


async def test_a_restart_of_the_database_stops_no_call_and_loses_nothing(
    server: PostgresServer, database: Path
) -> None:
    """S2: calls of two users go on at two gateways; what they leave is there afterwards, once."""
    async with pair(database) as two, users(two) as (ada, bob):
        for who in (ada, bob):
            await who.load("notes")
            await who.text("note_add", text="before")
        await asyncio.to_thread(server.down)
        try:
            for number in range(10):
                for who in (ada, bob):
                    assert await who.text("note_add", text=str(number)) == f"added {number}"
            assert reachable(two) == [False, False]
            for who in (ada, bob):
                with pytest.raises(MCPError) as caught:
                    await who.call("unload_tools", names=["notes"])
                assert caught.value.error.data == {"code": "store_unavailable"}
        finally:
            await asyncio.to_thread(server.up)
        await until(lambda: reachable(two) == [True, True])
        for who in (ada, bob):
            assert await who.text("note_add", text="after") == "added after"
            assert (await who.load("notes"))["status"] == "ok"
        await two.first.board.permissions.set("default", "notes", value=False)

        async def counted() -> bool:
            trail = await two.second.board.services.store.entries(kind="call", limit=1000)
            calls = [record.principal for record in trail if record.subject == "notes/note_add"]
            return (calls.count("ada"), calls.count("bob")) == (12, 12)

        await until(counted)
        with pytest.raises(MCPError):
            await ada.call("note_add", text="denied")


async def test_a_server_of_which_there_is_one_runs_on_for_both_gateways(server: PostgresServer, database: Path) -> None:
    """G9, G14: who runs it is known without the store."""
    async with pair(with_one_server(database)) as two, users(two) as (ada, bob):
        running = {await who.text("pid") for who in (ada, bob)}
        await asyncio.to_thread(server.down)
        try:
            assert {await who.text("pid") for who in (ada, bob, ada, bob)} == running
            assert reachable(two) == [False, False]
        finally:
            await asyncio.to_thread(server.up)
        await until(lambda: reachable(two) == [True, True])
        assert {await who.text("pid") for who in (ada, bob)} == running
    assert len(running) == 1


def processes_of(server: PostgresServer) -> list[int]:
    """Return the numbers of a server's processes, its own first."""
    first = int((server.folder / "postmaster.pid").read_text().split("\n", 1)[0])
    parents = {
        int(path.parent.name): int(path.read_text().rpartition(")")[2].split()[1])
        for path in Path("/proc").glob("[0-9]*/stat")
    }
    return [first, *(pid for pid, parent in parents.items() if parent == first)]


def with_grace(database: Path, server: PostgresServer, seconds: int) -> Path:
    """Return a configuration with another grace."""
    text = json.loads(database.read_text())
    database.write_text(json.dumps({**text, "store": {"url": server.address(), "grace": f"{seconds}s"}}))
    return database


@pytest.mark.parametrize("grace", [4, 12])
async def test_calls_go_on_no_longer_than_the_grace_where_the_database_is_frozen(
    server: PostgresServer, database: Path, grace: int
) -> None:
    """S2: it is silent on connections that stand, as behind a firewall that forgets them; a call may wait 2 s more."""
    async with Pegboard.open(with_grace(database, server, grace)) as board:
        session = await board.session(session_id="s", principal="ada")
        assert (await session.call("echo", {"text": "x"})).status == "ok"
        frozen = processes_of(server)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        began = last = time.monotonic()
        try:
            while last - began < grace + 20:
                try:
                    assert (await session.call("echo", {"text": "x"})).status == "ok"
                except StoreUnavailableError:
                    break
                last = time.monotonic()
                await asyncio.sleep(0.05)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        assert last - began <= grace + 1
        assert grace < 5 or last - began >= grace / 2
        await until(lambda: board.services.store_health.reachable)
        assert (await session.call("echo", {"text": "x"})).status == "ok"
