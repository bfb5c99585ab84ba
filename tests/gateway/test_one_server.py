"""A server with ``instance: store``: one over all gateways on one store (G9, G14)."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from losable_store import losable
from pegboard.assembly import Pegboard
from pegboard.errors import StoreUnavailableError
from pegboard.gateway.replicas import server_leases
from pegboard.gateway.replicas.heartbeat import Heartbeat
from pegboard.gateway.replicas.server_leases import ServerLeases, lease_name
from pegboard.ports import Replica
from pegboard.ports.owned_servers import OwnedServer
from pegboard.testing import MemoryStore
from sdk_servers import sdk_command

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, Connected, connected, until
from .question_helpers import BRANCH, FORM, Person, call, client, configure, upstream
from .replica_helpers import NOBODY, Pair, Served, announced, bearer, mortal, pair, served

PLAIN = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
ASKED: dict[str, dict[str, Any]] = {
    "odd": {},
    "large": {"size": 300_000},
    "none": {},
    "promise": {},
    "echo": {"text": "☃"},
}
TOKENS = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def one(tmp_path: Path, log: Path) -> Path:
    """Return a configuration with a server of which there is one."""
    path = tmp_path / "pegboard.yaml"
    server = {"command": sys.executable, "args": [str(PLAIN), "--log", str(log)], "prefix": "", "instance": "store"}
    text = {"store": "sqlite:///state.db", "servers": {"one": server}, "agents": {"default": {"tools": ["one"]}}}
    path.write_text(json.dumps(text))
    return path


def changed(path: Path, **parts: Any) -> Path:
    """Return a configuration of which some parts are others."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))
    return path


def lines(log: Path) -> str:
    return log.read_text()


def processes(log: Path) -> set[str]:
    """Return the processes of the server that were started."""
    return {line.rpartition(" ")[2] for line in lines(log).splitlines()}


@asynccontextmanager
async def both(two: Pair, era: str, *tokens: str) -> AsyncIterator[list[Connected]]:
    """Connect a client to each of two gateways."""
    async with AsyncExitStack() as stack:
        targets = zip((two.first.url, two.second.url), tokens or (None, None), strict=True)
        yield [await stack.enter_async_context(connected(url, era, token=token)) for url, token in targets]


@pytest.mark.parametrize("era", ERAS)
async def test_clients_of_two_gateways_and_two_users_have_one_server(one: Path, log: Path, era: str) -> None:
    """G9: it begins where it is first needed, and is reached there."""
    async with pair(changed(one, tokens=TOKENS)) as two, both(two, era, ADA, BOB) as (ada, bob):
        assert len({await who.text("pid") for who in (ada, bob, ada, bob)}) == 1
        assert running(two.first) + running(two.second) == 1

        async def audited() -> bool:
            trail = await two.first.board.services.store.entries(kind="call")
            return sorted(record.principal for record in trail) == ["ada", "ada", "bob", "bob"]

        await until(audited)
    assert len(processes(log)) == 1


async def test_an_agent_that_works_apart_for_each_user_has_one_for_each_over_all_gateways(one: Path, log: Path) -> None:
    """G9: `worker_scope` narrows it; each has an owner of its own."""
    agents = {"default": {"tools": ["one"], "worker_scope": "user"}}
    async with pair(changed(one, tokens=TOKENS, agents=agents)) as two:
        pids = dict[str, set[str]]()
        for name, token in (("ada", ADA), ("bob", BOB)):
            async with both(two, MODERN, token, token) as clients:
                pids[name] = {await each.text("pid") for each in clients}
        assert [len(found) for found in pids.values()] == [1, 1]
        assert pids["ada"] != pids["bob"]
    assert len(processes(log)) in (2, 3)  # one more where it was first asked for its tools by the other gateway


async def test_what_it_gives_is_the_same_through_any_gateway(one: Path) -> None:
    """G7: results, errors, progress, and what the client says of the request."""
    async with pair(one) as two, both(two, MODERN) as clients:
        asked: dict[str, dict[str, Any]] = {
            "odd": {},
            "large": {"size": 300_000},
            "none": {},
            "promise": {},
            "echo": {"text": "☃"},
        }
        for name, arguments in asked.items():
            answers = [await answered(each, name, **arguments) for each in clients]
            assert answers[0] == answers[1], name
        for each in clients:
            steps: list[Any] = []

            async def note(progress: float, total: float | None, message: str | None, seen: list[Any] = steps) -> None:
                seen.append((progress, total, message))

            await each.client.call_tool("progress", {}, progress_callback=note)
            assert steps == [(number, 3, f"step {number}") for number in (1, 2, 3)]
            refusal = await each.call("refuse")
            assert refusal.is_error
            assert "not on a Sunday" in str(refusal.content)


async def answered(each: Connected, name: str, **arguments: Any) -> Any:
    try:
        return (await each.call(name, **arguments)).model_dump()
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("handshake", [False, True])
async def test_it_asks_the_client_that_has_called_through_another_gateway(tmp_path: Path, *, handshake: bool) -> None:
    """G7: and whoever has no answers refuses."""
    person, refused = Person(), list[Any]()
    with upstream("stdio", handshake=handshake) as up:
        async with pair(configure(tmp_path, {**up, "instance": "store"})) as two:
            for url in (two.first.url, two.second.url):
                async with client(url, HANDSHAKE, person) as asked:
                    assert await call(asked, "up__ask", requests=[FORM]) == [BRANCH]
                async with client(url, HANDSHAKE, None) as asked:
                    refused.append(await call(asked, "up__ask", requests=[FORM]))
            assert running(two.first) + running(two.second) == 1
    assert len(person.asked) == 2
    assert refused[0] == refused[1]


def running(gateway: Served) -> int:
    return sum(state["state"] == "up" for state in gateway.board.upstream_states())


def in_flight(gateway: Served) -> int:
    return sum(state["in_flight"] for state in gateway.board.upstream_states())


async def test_a_client_that_leaves_a_call_ends_it_where_the_server_runs(one: Path) -> None:
    """G7: nothing of it goes on."""
    async with pair(one) as two:
        async with connected(two.first.url, MODERN) as client_of_first:
            await client_of_first.text("pid")
        owner, other = (two.first, two.second) if running(two.first) else (two.second, two.first)
        async with connected(other.url, MODERN) as pegboard:
            await pegboard.names()
            calling = asyncio.create_task(pegboard.call("slow"))
            await until(lambda: in_flight(owner) == 1)
            calling.cancel()
            await until(lambda: in_flight(owner) == 0)
        assert running(other) == 0


async def test_new_tools_of_it_come_to_the_clients_of_every_gateway(one: Path) -> None:
    """G8, G14."""
    async with pair(one) as two, both(two, HANDSHAKE) as clients:
        for each in clients:
            assert "grown" not in await each.names()
        await clients[0].text("grow")
        for each in clients:

            async def grown(each: Connected = each) -> bool:
                return "grown" in await each.names()

            await until(grown)


async def test_its_resources_are_read_through_any_gateway(tmp_path: Path) -> None:
    """G7."""
    command, *args = sdk_command("resource_server.py", "stdio")
    path = tmp_path / "pegboard.yaml"
    server = {"command": command, "args": args, "instance": "store"}
    text = {"store": "sqlite:///state.db", "servers": {"up": server}, "agents": {"default": {"tools": ["up"]}}}
    path.write_text(json.dumps(text))
    async with pair(path) as two, both(two, MODERN) as clients:
        listed = []
        for each in clients:
            await each.names()
            found = (await each.client.list_resources()).resources
            listed.append([resource.uri for resource in found])
            contents = (await each.client.read_resource(found[0].uri)).contents
            assert contents
        assert listed[0] == listed[1] != []
        assert running(two.first) + running(two.second) == 1


async def test_another_gateway_takes_it_when_its_owner_stops(one: Path, log: Path) -> None:
    """G14: at once, and when the old process has ended."""
    async with served(one) as second, connected(second.url, MODERN) as client_of_second:
        async with served(one) as first, connected(first.url, MODERN) as client_of_first:
            old = await client_of_first.text("pid")
            assert await client_of_second.text("pid") == old
        assert await client_of_second.text("pid") != old
    assert len(processes(log)) == 2


async def test_another_gateway_takes_it_when_its_owner_was_killed(one: Path, log: Path) -> None:
    """G14: as soon as it is sure that no one is there; not when the lease ends."""
    async with served(one) as second, connected(second.url, MODERN) as client_of_second, mortal(one) as first:
        async with connected(first.url, MODERN) as client_of_first:
            old = await client_of_first.text("pid")
            assert await client_of_second.text("pid") == old
            await first.end(signal.SIGKILL)
        began = asyncio.get_running_loop().time()
        assert await client_of_second.text("pid") != old
        assert asyncio.get_running_loop().time() - began < server_leases.LASTS / 2
    assert len(processes(log)) == 2


async def held_by(gateway: Served, holder: str, *, seconds: float) -> None:
    """Let the server of a gateway be another replica's, which never has it."""
    board = gateway.board
    source, store = board.services.loader.source_of(board.services.loader.specs["one"]), board.services.store
    lease = lease_name(OwnedServer("one", source.fingerprint(board.services.loader.specs["one"]), "shared"))
    assert await store.take_lease(lease, holder, seconds=seconds)


async def test_a_gateway_waits_until_the_lease_of_one_ends_that_nobody_hears_of(one: Path) -> None:
    """G14: it may run the server still, where it is cut off."""
    async with served(one) as only, connected(only.url, MODERN) as pegboard:
        await held_by(only, "gone", seconds=1.5)
        began = asyncio.get_running_loop().time()
        await pegboard.text("pid")
        assert asyncio.get_running_loop().time() - began > 1


async def test_a_gateway_that_lives_and_cannot_be_reached_is_named_until_it_has_ended(
    one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input: an --address at which no one is."""
    monkeypatch.setattr(server_leases, "STOPS_WITHIN", 0.2)
    async with served(one) as known, connected(known.url, MODERN) as pegboard:
        await pegboard.text("pid")
    async with served(one) as only, connected(only.url, MODERN) as pegboard:
        await held_by(only, "nowhere", seconds=20)
        async with announced(only.board, Replica("nowhere", "http://127.0.0.1:9", "0")):
            answer = await pegboard.text("pid")
            assert "runs in replica nowhere at http://127.0.0.1:9: it runs, but cannot be reached there." in answer
        await pegboard.text("pid")


async def test_an_owner_that_cannot_keep_its_lease_stops_the_server_before_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G14: then another replica may start it. As long as the lease lasts, the store may be lost."""
    for name, seconds in (("LASTS", 0.5), ("MARGIN", 0.2), ("EVERY", 0.02)):
        monkeypatch.setattr(server_leases, name, seconds)
    double, store = losable(MemoryStore())
    server, stopped = OwnedServer("one", "", "shared"), asyncio.Event()

    class Running:
        def runs(self, server: OwnedServer, /) -> bool:
            return True

        async def stop_owned(self, server: OwnedServer, /) -> None:
            assert await double.real.lease_holder(lease_name(server)) == "own"
            stopped.set()

    leases = ServerLeases(store, Heartbeat(store, Replica("own", "http://127.0.0.1:9", "0")), Running())
    leases.start()
    assert await leases.owner(server) is None
    double.lose()
    assert await leases.owner(server) is None
    await asyncio.wait_for(stopped.wait(), 10)
    assert not leases.may_run(server)
    with pytest.raises(StoreUnavailableError):
        await leases.owner(server)
    double.find()
    assert await leases.owner(server) is None
    await leases.close()


async def test_a_server_that_nobody_uses_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """G14: its lease is given back, and the next one who needs it has it."""
    for name, seconds in (("LASTS", 0.3), ("MARGIN", 0.1), ("EVERY", 0.02)):
        monkeypatch.setattr(server_leases, name, seconds)
    store, server = MemoryStore(), OwnedServer("one", "", "shared")

    class Idle:
        def runs(self, server: OwnedServer, /) -> bool:
            return False

        async def stop_owned(self, server: OwnedServer, /) -> None:
            pass

    leases = ServerLeases(store, Heartbeat(store, Replica("own", "http://127.0.0.1:9", "0")), Idle())
    leases.start()
    assert await leases.owner(server) is None
    assert await store.lease_holder(lease_name(server)) == "own"
    await until(lambda: not leases.is_running("one"))
    assert await store.lease_holder(lease_name(server)) is None
    await leases.close()


async def test_nobody_else_gets_to_the_servers_of_a_gateway(one: Path) -> None:
    """G14: without the credential of a replica there is no such address."""
    async with served(one) as only, httpx2.AsyncClient() as http:
        body = {"server": ["one", "", "shared"], "what": "call", "given": {}, "context": {}}
        assert (await http.post(f"{only.base}/replicas/servers", json=body)).status_code == 404
        for header in ("pegboard-replica", "pegboard-replica-asks"):
            forged = {header: f"1 abc def 1.000 {'0' * 32} {'0' * 64}"}
            assert (await http.post(f"{only.base}/replicas/servers", json=body, headers=forged)).status_code == 403


async def test_a_request_of_a_client_that_is_sent_on_never_becomes_a_question_of_a_replica(
    one: Path, log: Path
) -> None:
    """G14: it comes with the credential of a replica, and is the client's all the same."""
    async with pair(changed(one, tokens=TOKENS)) as two, httpx2.AsyncClient() as http:
        async with connected(two.first.url, MODERN, token=ADA) as ada:
            await ada.text("pid")
        board = two.first.board
        spec = board.services.loader.specs["one"]
        server = ["one", board.services.loader.source_of(spec).fingerprint(spec), "shared"]
        given = {"tool": {"name": "echo", "annotations": {}}, "arguments": {"text": "x"}}
        whose = {"whose": ["bob", "default", "s"], "owner": ["bob", ""], "meta": {}, "progress": False, "client": None}
        body = {"server": server, "what": "call", "given": given, "context": whose}
        for base, owner in ((two.second.base, two.first), (two.first.base, two.second)):
            headers = bearer(ADA) | {"mcp-session-id": f"{await owner.id()}-{NOBODY}"}
            assert (await http.post(f"{base}/replicas/servers", json=body, headers=headers)).status_code == 404
    assert "call:echo" not in lines(log)


async def test_with_a_store_of_its_own_a_process_has_a_server_of_its_own(one: Path, log: Path) -> None:
    """G9: as with `instance: all`; so have the library and commands, which are no replicas."""
    async with pair(changed(one, store="memory:")) as two, both(two, MODERN) as clients:
        assert len({await each.text("pid") for each in clients}) == 2
    async with Pegboard.open(changed(one, store="sqlite:///state.db")) as board:
        assert (await (await board.session()).call("pid")).status == "ok"
    assert len(processes(log)) == 3
