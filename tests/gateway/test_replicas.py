"""Several gateways on one store, behind a proxy that knows nothing of sessions."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.errors import UsageError
from pegboard.gateway import serving
from pegboard.gateway.http import replica_routing
from pegboard.gateway.replicas import forwarding
from pegboard.gateway.replicas.credential import HEADER, Credentials
from pegboard.ports import Replica

from .clients import ADA, BOB, ERAS, HANDSHAKE, connected, edit, modern_request, process, until
from .replica_helpers import NOBODY, PING, Pair, announced, bearer, begun, error_of, mortal, pair, served
from .test_lost_store import losing

pytestmark = pytest.mark.cover(1)

NOWHERE = "http://127.0.0.1:9"
"""Where no one listens."""


# -- what works through such a proxy ---------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_works_through_a_proxy_that_knows_nothing_of_sessions(config: Path, era: str) -> None:
    """G14: in both eras, whichever replica a request comes to."""
    async with pair(config) as two, connected(two.url, era) as pegboard:
        await pegboard.load("notes")
        for number in range(4):
            assert await pegboard.text("note_add", text=str(number)) == f"added {number}"
        if era == HANDSHAKE:
            assert "note_add" in await pegboard.names()
        assert {base for base, _ in two.proxy.served} == {two.first.base, two.second.base}


async def test_a_stream_through_another_replica_brings_what_its_owner_sends(config: Path) -> None:
    """G14, G5: at once, not when the stream ends."""
    async with pair(config) as two, connected(two.url, HANDSHAKE) as pegboard:
        await pegboard.names()
        await asyncio.wait_for(pegboard.hears.wait(), 10)
        for one in (two.first, two.second):
            await one.board.permissions.set("default", "talk", False, by="operator")
        await until(lambda: pegboard.changes() >= 1)
        assert "echo" not in await pegboard.names()


async def test_a_client_that_ends_its_session_ends_it_at_the_owner(config: Path) -> None:
    """G14: DELETE goes there, too."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        headers = await begun(http, two.first.url)
        assert (await http.post(two.second.url, json=PING, headers=headers)).status_code == 200
        assert (await http.delete(two.second.url, headers=headers)).status_code == 200
        assert (await http.post(two.first.url, json=PING, headers=headers)).status_code == 404


async def test_a_stream_whose_client_leaves_ends_at_the_owner(config: Path) -> None:
    """G14: it may be opened again at once; the owner takes one for each session."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        headers = await begun(http, two.first.url)
        async with http.stream("GET", two.second.url, headers=headers) as stream:
            assert stream.status_code == 200
            assert (await http.get(two.first.url, headers=headers)).status_code == 409

        async def opens() -> bool:
            async with http.stream("GET", two.second.url, headers=headers) as again:
                return again.status_code == 200

        await until(opens)


async def test_the_session_of_a_request_is_named_as_with_one_gateway(config: Path) -> None:
    """G1, G14: by the URL, and else by the transport, wherever a request comes in."""
    async with pair(config) as two:
        async with connected(f"{two.url}?session=named", HANDSHAKE) as pegboard:
            await pegboard.load("notes")
        async with connected(f"{two.url}?session=named", HANDSHAKE) as pegboard:
            assert "note_add" in await pegboard.names()
            assert "note_add" in await pegboard.names()
        async with connected(two.url, HANDSHAKE) as pegboard:
            assert "note_add" not in await pegboard.names()
            await pegboard.load("notes")
            assert "note_add" in await pegboard.names()


# -- whose sessions they are -----------------------------------------------------------------------


@pytest.mark.both_paths
async def test_another_replica_opens_a_session_to_nobody_but_its_owner(config_with_tokens: Path) -> None:
    """G2, G14: the replica that has it authenticates the client itself; the other takes no one's word for it."""
    async with pair(config_with_tokens) as two, httpx2.AsyncClient() as http:
        bob = await begun(http, two.first.url, BOB)
        session = {"mcp-session-id": bob["mcp-session-id"]}
        for url in (two.first.url, two.second.url):
            assert (await http.post(url, json=PING, headers=bob)).status_code == 200
            assert (await http.post(url, json=PING, headers=bearer(ADA) | session)).status_code == 404
            assert (await http.post(f"{url}/other", json=PING, headers=bob)).status_code == 404
            assert (await http.post(url, json=PING, headers=bearer(None) | session)).status_code == 401
            assert (await http.post(url, json=PING, headers=bearer("guess") | session)).status_code == 401


async def test_a_foreign_host_or_origin_is_refused_before_anything_is_sent_on(config: Path) -> None:
    """G2, G14."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        headers = await begun(http, two.first.url)
        for foreign, status in (({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)):
            assert (await http.post(two.second.url, json=PING, headers=headers | foreign)).status_code == status


async def test_a_request_that_is_too_large_is_refused_where_it_comes_in(config: Path) -> None:
    """G2, G14."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        headers = await begun(http, two.first.url)
        body = json.dumps(PING | {"params": {"x": "y" * replica_routing.BODY_LIMIT}})
        answer = await http.post(two.second.url, content=body, headers=headers | {"content-type": "application/json"})
        assert (answer.status_code, error_of(answer)) == (413, "A request here has at most 4 MiB.")


# -- an owner that has ended, or is not reached ----------------------------------------------------


@pytest.mark.parametrize("way", ["stopped", "killed"])
async def test_where_the_owner_has_ended_the_client_begins_anew_with_its_leases(config: Path, way: str) -> None:
    """G14: 404, whether it withdrew or was killed; a session that is named has what it had."""
    async with served(config) as other, mortal(config) as owner, httpx2.AsyncClient(timeout=30) as http:
        async with connected(f"{owner.url}?session=named", HANDSHAKE) as pegboard:
            await pegboard.load("notes")
        headers = await begun(http, owner.url)
        assert (await http.post(other.url, json=PING, headers=headers)).status_code == 200
        await owner.end(signal.SIGKILL if way == "killed" else signal.SIGTERM)
        answer = await http.post(other.url, json=PING, headers=headers)
        assert (answer.status_code, error_of(answer)) == (404, "Session not found")
        async with connected(f"{other.url}?session=named", HANDSHAKE) as pegboard:
            assert "note_add" in await pegboard.names()


async def test_sessions_of_nobody_are_not_found(config: Path) -> None:
    """G14: whatever their ids are made of."""
    ids = [
        f"gone-{NOBODY}", NOBODY, "", "-", f"-{NOBODY}", f"../../x-{NOBODY}", f"GONE-{NOBODY}", f"{'a' * 17}-{NOBODY}",
        f"{'a' * 5000}-{NOBODY}", f"a\u00e9-{NOBODY}", f"a-{NOBODY}-{NOBODY}", "http://127.0.0.1:9-x",
    ]  # fmt: skip
    async with served(config) as running, httpx2.AsyncClient() as http:
        own = await running.id()
        for session in [*ids, f"{own}-{NOBODY}", f"{own}-"]:
            headers = [*bearer(None).items(), ("mcp-session-id", session.encode())]
            answer = await http.post(running.url, json=PING, headers=headers)  # type: ignore[arg-type]
            assert answer.status_code in (400, 404), session
            assert "error" in answer.json()


async def test_an_owner_that_lives_and_is_not_reached_is_one_clear_error(config: Path) -> None:
    """G14: a network that is split is no reason to begin again; the session is there when it is one again."""
    replica = Replica("faraway", NOWHERE, "1")
    async with served(config) as running, httpx2.AsyncClient(timeout=30) as http, announced(running.board, replica):
        headers = bearer(None) | {"mcp-session-id": f"faraway-{NOBODY}"}
        answer = await http.post(running.url, json=PING, headers=headers)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert error_of(answer) == (
            f"Replica faraway serves this, and cannot be reached at {NOWHERE} now. Try again; if it stays so, "
            "check its --address."
        )


async def test_a_replica_that_has_lost_its_store_still_sends_on_to_those_it_knows(config: Path) -> None:
    """G14, S2: of a session that it knows nothing of it says why, and takes no one for ended."""
    async with served(config) as owner, losing(config) as running, httpx2.AsyncClient(timeout=30) as http:
        headers = await begun(http, owner.url)
        assert (await http.post(running.url, json=PING, headers=headers)).status_code == 200
        running.double.lose()
        assert (await http.post(running.url, json=PING, headers=headers)).status_code == 200
        unknown = await http.post(running.url, json=PING, headers=headers | {"mcp-session-id": f"who-{NOBODY}"})
        assert unknown.status_code == 503
        assert error_of(unknown).startswith("The replica that serves this is unknown: ")
        running.double.find()

        async def known_again() -> bool:
            answer = await http.post(running.url, json=PING, headers=headers | {"mcp-session-id": f"who-{NOBODY}"})
            return answer.status_code == 404

        await until(known_again)


async def test_an_owner_that_is_silent_and_not_reached_has_ended(config: Path) -> None:
    """G14: what it announced counts for half a minute, and is not waited for twice."""
    async with served(config) as running, httpx2.AsyncClient(timeout=30) as http:
        await running.board.services.store.announce(Replica("faraway", NOWHERE, "1"), seconds=30)
        headers = bearer(None) | {"mcp-session-id": f"faraway-{NOBODY}"}
        answers = await asyncio.gather(*(http.post(running.url, json=PING, headers=headers) for _ in range(3)))
        assert {answer.status_code for answer in answers} == {404}
        again = asyncio.get_running_loop().time()
        assert (await http.post(running.url, json=PING, headers=headers)).status_code == 404
        assert asyncio.get_running_loop().time() - again < 1


async def test_another_process_at_the_address_of_the_owner_is_not_taken_for_it(config: Path) -> None:
    """G14: neither by a third one nor by itself."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        await two.first.board.services.store.announce(Replica("before", two.second.base, "1"), seconds=30)
        headers = bearer(None) | {"mcp-session-id": f"before-{NOBODY}"}
        for url in (two.first.url, two.second.url):
            answer = await http.post(url, json=PING, headers=headers)
            assert (answer.status_code, error_of(answer)) == (404, "Session not found")


async def test_replicas_that_announce_one_address_are_told_to_say_their_own(config: Path) -> None:
    """G14: those on two machines that both serve their own loopback; no one's session is taken for ended."""
    async with served(config, address="http://127.0.0.1:8321") as here, served(config) as there:
        there_too = Replica("faraway", "http://127.0.0.1:8321", "1")
        async with announced(there.board, there_too), httpx2.AsyncClient(timeout=30) as http:
            headers = bearer(None) | {"mcp-session-id": f"faraway-{NOBODY}"}
            answer = await http.post(here.url, json=PING, headers=headers)
            assert answer.status_code == 503
            assert error_of(answer).endswith("Try again; if it stays so, check its --address.")


async def test_a_call_whose_owner_dies_is_answered_with_an_error(config: Path) -> None:
    """G14: not with silence; no one knows whether it ran."""
    async with served(config) as other, mortal(config) as owner, httpx2.AsyncClient(timeout=30) as http:
        headers = await begun(http, owner.url)
        load = {"name": "load_tools", "arguments": {"names": ["up"]}}
        await http.post(other.url, json=PING | {"method": "tools/call", "params": load}, headers=headers)
        slow = PING | {"id": 7, "method": "tools/call", "params": {"name": "up__slow", "arguments": {}}}
        async with http.stream("POST", other.url, json=slow, headers=headers) as stream:
            assert stream.status_code == 200
            await owner.end(signal.SIGKILL)
            text = (await stream.aread()).decode()
        error = json.loads(text.rpartition("data: ")[2])
        assert (error["id"], error["error"]["code"]) == (7, -32603)
        assert "the tool may have run" in error["error"]["message"]


# -- credentials -----------------------------------------------------------------------------------


async def credentials(two: Pair, *, ahead: float = 0.0) -> Credentials:
    """Return the credentials of the first replica, as its clock would make them."""
    store = two.first.board.services.store
    now = await store.now() + ahead
    return Credentials(await store.replica_key(), await two.first.id(), lambda: now)


@pytest.mark.both_paths
async def test_nobody_can_pose_as_a_replica(config: Path) -> None:
    """G14: a credential is of one request, for one replica, for half a minute, and counts once."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        headers = await begun(http, two.second.url)
        owner, body, path = await two.second.id(), json.dumps(PING).encode(), b"/mcp"
        issued, late = await credentials(two), await credentials(two, ahead=-3600)
        good = issued.issue(owner, "POST", path, body)
        fake = Credentials(b"guess" * 8, await two.first.id(), lambda: 0.0).issue(owner, "POST", path, body)
        wrong = {
            "forged": fake,
            "garbage": "let me in",
            "cut": good[:-1],
            "of another body": issued.issue(owner, "POST", path, b"{}"),
            "of another path": issued.issue(owner, "POST", b"/mcp/other", body),
            "of another method": issued.issue(owner, "GET", path, body),
            "expired": late.issue(owner, "POST", path, body),
            "of the future": (await credentials(two, ahead=3600)).issue(owner, "POST", path, body),
            "with another owner": good.replace(owner, "another", 1),
        }

        async def post(credential: str) -> httpx2.Response:
            own = headers | {HEADER: credential, "content-type": "application/json"}
            return await http.post(two.second.url, content=body, headers=own)

        for how, credential in wrong.items():
            answer = await post(credential)
            assert answer.status_code == 403, how
            assert "does not prove" in error_of(answer), how
        assert (await post(good)).status_code == 200
        assert "it was used before" in error_of(await post(good))
        assert (await http.post(two.second.url, json=PING, headers=headers)).status_code == 200


async def test_what_was_sent_on_is_never_sent_on_again(config: Path) -> None:
    """G14: two replicas that take each other for the owner do not play with a request."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        headers = await begun(http, two.first.url)
        credential = (await credentials(two)).issue(await two.second.id(), "POST", b"/mcp", json.dumps(PING).encode())
        own = headers | {HEADER: credential, "content-type": "application/json"}
        answer = await http.post(two.second.url, content=json.dumps(PING), headers=own)
        assert (answer.status_code, error_of(answer)) == (404, "Session not found")
        assert (await http.post(two.second.url, json=PING, headers=headers)).status_code == 200


async def test_what_was_sent_on_still_needs_the_token_of_its_principal(config_with_tokens: Path) -> None:
    """G2, G14: a replica is no principal."""
    async with pair(config_with_tokens) as two, httpx2.AsyncClient() as http:
        body, own = modern_request("tools/list")
        text = json.dumps(body).encode()
        credential = (await credentials(two)).issue(await two.second.id(), "POST", b"/mcp", text)
        answer = await http.post(two.second.url, content=text, headers=own | {HEADER: credential})
        assert answer.status_code == 401


async def test_a_credential_for_a_replica_that_has_ended_says_so(config: Path) -> None:
    """G14: the process that listens at its address now serves nothing in its place."""
    async with pair(config) as two, httpx2.AsyncClient() as http:
        body, own = modern_request("tools/list")
        text = json.dumps(body).encode()
        credential = (await credentials(two)).issue("before", "POST", b"/mcp", text)
        answer = await http.post(two.second.url, content=text, headers=own | {HEADER: credential})
        assert (answer.status_code, answer.headers[HEADER]) == (forwarding.MISDIRECTED, "ended")


# -- what a process announces ----------------------------------------------------------------------


async def test_a_process_announces_itself_while_it_serves(config: Path) -> None:
    """G14: at the address where it is bound, or at the one that it is given."""
    async with served(config) as first:
        async with served(config, address="http://10.1.2.3:80/") as second:
            found = {replica.address: replica.id for replica in await first.replicas()}
            assert set(found) == {first.base, "http://10.1.2.3:80"}
            assert len(set(found.values())) == 2
            assert await second.replicas() == await first.replicas()
        assert [replica.address for replica in await first.replicas()] == [first.base]


async def test_a_process_with_a_store_of_its_own_announces_nothing(config: Path) -> None:
    """G14: there is no one to whom; its sessions are named as the SDK does."""
    edit(config, "sqlite:///state.db", "'memory:'")
    async with served(config) as running, httpx2.AsyncClient() as http:
        assert await running.replicas() == []
        headers = await begun(http, running.url)
        assert "-" not in headers["mcp-session-id"]
        answer = await http.post(running.url, json=PING, headers=headers | {"mcp-session-id": f"a-{NOBODY}"})
        assert answer.status_code == 404


@pytest.mark.parametrize(
    "address",
    ["", "10.0.0.5:8321", "ftp://10.0.0.5", "http://", "http://:80", "http://a:99999", "http://u:p@a", "http://a/?x=1",
     "http://a b", "http://\u00e9", "http://a\n", f"http://{'a' * 600}"],
)  # fmt: skip
async def test_an_address_that_is_none_is_one_clear_error(config: Path, address: str) -> None:
    """G14: and nothing is served."""
    async with Pegboard.open(config) as board:
        with pytest.raises(UsageError, match="is no URL of http or https"):
            async with serving(board, port=0, address=address):
                pass
        assert await board.services.store.replicas() == []


async def test_the_address_is_given_by_the_command_or_the_environment(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G14: the command counts first."""
    monkeypatch.setenv("PEGBOARD_ADDRESS", "http://pod-1:8321")
    async with process(config), process(config, "--address", "http://pod-2:8321"), served(config) as running:
        found = {replica.address for replica in await running.replicas()}
        assert found == {"http://pod-1:8321", "http://pod-2:8321", running.base}


async def test_a_call_that_comes_where_it_belongs_is_sent_nowhere(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G14: nothing is asked of the store or of another replica for it."""
    asked: list[str] = []

    async def find(_: Any, replica_id: str) -> None:
        asked.append(replica_id)

    monkeypatch.setattr("pegboard.gateway.replicas.heartbeat.Heartbeat.find", find)
    async with pair(config) as two:
        async with connected(two.first.url, HANDSHAKE) as pegboard:
            assert await pegboard.text("echo", text="here") == "here"
        async with connected(two.url, ERAS[0]) as pegboard:
            assert await pegboard.text("echo", text="there") == "there"
    assert asked == []
