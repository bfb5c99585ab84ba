"""Calls that wait for a person, on several gateways of one store: any of them goes on, and none runs twice."""

import asyncio
import base64
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from pegboard.gateway.replicas.request_state import LONGEST, StateSeal
from pegboard.ports import Replica, Store

from .clients import ADA, BOB, ERAS, MODERN, edit, until
from .question_helpers import BRANCH, FORM, SAMPLE, Person, call, client, configure, modern, of_token, resumed, upstream
from .replica_helpers import Mortal, announced, mortal, pair, served
from .round_robin import round_robin
from .test_approvals_over_the_wire import CONFIG, TOOLS, Decider, ran, text
from .test_logins_over_the_wire import Person as User

pytestmark = pytest.mark.cover(1)

__all__ = ["running_site", "site"]

DELETE: dict[str, Any] = {"path": "a.txt"}
STORES = pytest.mark.parametrize("config", ["sqlite", "postgres"], indirect=True)
YES = {"action": "accept", "content": {}}
NOT_THERE = "This requestState stands for no call of yours that is under way"
TOKENS = f"""
tokens:
  ada: {{token: {ADA}, agents: ["*"], console: true}}
  bob: {{token: {BOB}, agents: ["*"]}}
"""


@pytest.fixture
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a configuration with tools that a person approves; over a database where a test asks for that."""
    (tmp_path / "files_tools.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    if getattr(request, "param", "sqlite") == "postgres":
        edit(path, "sqlite:///state.db", request.getfixturevalue("postgres").address())
    return path


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Path]:
    """Return a configuration with a server that asks."""
    with upstream("stdio", handshake=False) as up:
        yield configure(tmp_path, up)


@asynccontextmanager
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=60) as found:
        yield found


def answers_of(first: Any, answer: Any = YES) -> dict[str, Any]:
    """Return this answer to everything that is asked."""
    return dict.fromkeys(first["result"]["inputRequests"], answer)


def said(answer: Any) -> str:
    """Return the text of a result or of an error."""
    return answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"]


async def asks(web: httpx2.AsyncClient, url: str, name: str = "delete_file", given: Any = DELETE, **more: Any) -> Any:
    first = await modern(web, url, name, given, **more)
    assert first["result"]["resultType"] == "input_required", first
    return first


# -- the replica that has the call lives ---------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_asks_works_through_a_proxy_that_knows_nothing_of_sessions(asking: Path, era: str) -> None:
    """G14, G7: what a running server asks is answered to it, whichever replica the answer comes to."""
    person = Person()
    async with pair(asking) as two:
        async with client(two.url, era, person) as asked:
            assert await call(asked, "up__ask", requests=[FORM], rounds=3) == [BRANCH]
        assert {base for base, _ in two.proxy.served} == {two.first.base, two.second.base}
    assert len(person.asked) == 3


@pytest.mark.both_paths
async def test_an_approval_through_another_replica_runs_the_call_once(config: Path) -> None:
    """G14, A3: where it was made; the same state counts nowhere a second time."""
    async with pair(config) as two, http() as web:
        first = await asks(web, two.first.url)
        assert said(await resumed(web, two.second.url, "delete_file", DELETE, first, answers_of(first))) == (
            "deleted a.txt"
        )
        for url in (two.first.url, two.second.url):
            again = await resumed(web, url, "delete_file", DELETE, first, answers_of(first))
            assert said(again).startswith(NOT_THERE)
    assert ran(config) == ["deleted a.txt"]


@STORES
async def test_an_operator_at_another_replica_lets_a_waiting_call_go_on_at_once(config: Path) -> None:
    """G14, A3: it is seen there, and no one waits for the user of the client any longer."""
    person = Decider(hold=True)
    async with pair(config) as two, client(two.first.url, MODERN, person) as connected:
        calling = asyncio.ensure_future(connected.call_tool("delete_file", DELETE))
        await until(lambda: bool(person.asked))
        (approval,) = await two.second.board.approvals.list()
        await two.second.board.approvals.allow(approval.id, by="grace")
        await until(lambda: ran(config) == ["deleted a.txt"])
        person.go.set()  # the client hears of it with its next request
        assert text(await calling) == "deleted a.txt"
        person.go.set()
    assert ran(config) == ["deleted a.txt"]


async def test_a_refusal_at_another_replica_ends_a_waiting_call_at_once(config: Path) -> None:
    """G14, A3: with the words of who refused."""
    person = Decider(hold=False)
    async with pair(config) as two, client(two.first.url, MODERN, person) as connected:

        async def refuse() -> None:
            await until(lambda: bool(person.asked))
            (approval,) = await two.second.board.approvals.list()
            await two.second.board.approvals.refuse(approval.id, by="grace", reason="Not today.")

        person.hold = True
        refusing = asyncio.ensure_future(refuse())
        calling = asyncio.ensure_future(connected.call_tool("delete_file", DELETE))
        await refusing
        person.go.set()
        assert text(await calling) == "'delete_file' was not called. grace refused it: Not today."
    assert ran(config) == []


@STORES
async def test_a_call_that_was_allowed_elsewhere_runs_once_however_often_it_is_made(config: Path) -> None:
    """G14, A2: made again at both replicas at the same moment."""
    async with pair(config) as two, http() as web:
        can: dict[str, Any] = {"can": {}}
        asked = await modern(web, two.first.url, "delete_file", DELETE, **can)
        approval = asked["result"]["structuredContent"]["approval"]["id"]
        await two.second.board.approvals.allow(approval, by="grace")
        urls = [two.first.url, two.second.url] * 3
        came = await asyncio.gather(*(modern(web, url, "delete_file", DELETE, **can) for url in urls))
        assert sum(said(one) == "deleted a.txt" for one in came) == 1
    assert ran(config) == ["deleted a.txt"]


@STORES
async def test_a_handle_is_resumed_at_another_replica_once(config: Path) -> None:
    """G14, A2: by the library, from what the store has."""
    async with pair(config) as two:
        sessions = [await one.board.session(session_id="s", principal="local") for one in (two.first, two.second)]
        asked = await sessions[0].call("delete_file", DELETE)
        assert asked.approval is not None
        handle = asked.approval.id
        assert (await sessions[1].resume(handle)).status == "needs_approval"
        await two.second.board.approvals.allow(handle, by="grace")
        came = await asyncio.gather(*(session.resume(handle) for session in (*sessions, *sessions)))
        assert sorted(one.status for one in came) == ["ok", "refused", "refused", "refused"]
    assert ran(config) == ["deleted a.txt"]


@pytest.mark.parametrize("ahead", [7_200.0, -7_200.0])
@pytest.mark.parametrize("config", ["postgres"], indirect=True)
async def test_a_replica_whose_clock_is_off_goes_by_approvals_as_the_others_do(config: Path, ahead: float) -> None:
    """G14, A2: they expire by the clock of the store: neither early, so that none is lost, nor late."""
    can: dict[str, Any] = {"can": {}}
    async with mortal(config, ahead=ahead) as off, served(config) as right, http() as web:
        store = right.board.services.store
        asked = [await modern(web, url, "delete_file", DELETE, **can) for url in (right.url, off.url)]
        first, second = (one["result"]["structuredContent"]["approval"]["id"] for one in asked)
        assert first == second
        await right.board.approvals.allow(first, by="grace")
        assert said(await modern(web, off.url, "delete_file", DELETE, **can)) == "deleted a.txt"
        again = await modern(web, off.url, "delete_file", DELETE, **can)
        there = await store.approval(again["result"]["structuredContent"]["approval"]["id"])
        assert there is not None
        assert abs(there.asked_at - await store.now()) < 60
        await right.board.approvals.allow(there.id, by="grace")
        await expire(store, there.id)
        assert "approval" in (await modern(web, off.url, "delete_file", DELETE, **can))["result"]["structuredContent"]
    assert ran(config) == ["deleted a.txt"]


async def expire(store: Store, approval_id: str) -> None:
    """Let an approval have expired a minute ago."""
    known = await store.approval(approval_id)
    assert known is not None
    over = replace(known, expires_at=await store.now() - 60)
    assert await store.change_approval(over, expected=known.status)


async def test_a_state_opens_no_call_of_somebody_else(config: Path) -> None:
    """G2, G14: nor of another session, tool or argument, at neither replica."""
    config.write_text(CONFIG + TOKENS + "approvals: {by: client}\n")  # noqa: ASYNC240
    async with pair(config) as two, http() as web:
        first = await asks(web, two.first.url, token=ADA)
        yes = answers_of(first)
        for url in (two.first.url, two.second.url):
            wrong = [
                await resumed(web, url, "delete_file", DELETE, first, yes, token=BOB),
                await resumed(web, f"{url}?session=other", "delete_file", DELETE, first, yes, token=ADA),
                await resumed(web, url, "delete_file", {"path": "b.txt"}, first, yes, token=ADA),
                await resumed(web, url, "echo", {"text": "x"}, first, yes, token=ADA),
            ]
            assert [said(one)[: len(NOT_THERE)] for one in wrong] == [NOT_THERE] * 4
        answer = await web.post(two.second.url, json={}, headers={"mcp-protocol-version": MODERN} | of_token("guess"))
        assert answer.status_code == 401
        assert said(await resumed(web, two.second.url, "delete_file", DELETE, first, yes, token=ADA)) == "deleted a.txt"
    assert ran(config) == ["deleted a.txt"]


async def test_a_state_that_is_none_is_one_clear_error(config: Path) -> None:
    """G14: altered, of another store, of the past, or anything else."""
    async with pair(config) as two, http() as web:
        first = await asks(web, two.first.url)
        state = first["result"]["requestState"]
        sealed = bytearray(base64.urlsafe_b64decode(state + "=" * (-len(state) % 4)))
        sealed[-3] ^= 1
        key = await two.first.board.services.store.replica_key()
        late = StateSeal(key, await two.first.id(), lambda: 0.0).seal("x", 600, {})[1]
        foreign = StateSeal(b"other" * 8, await two.first.id()).seal("x", 600, {})[1]
        altered = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
        for wrong in (altered, late, foreign, "", "x", "é", "=" * 40, state[:-2], "A" * (LONGEST + 1)):
            for url in (two.first.url, two.second.url):
                answer = await modern(
                    web, url, "delete_file", DELETE, requestState=wrong, inputResponses=answers_of(first)
                )
                assert said(answer).startswith(NOT_THERE), wrong
    assert ran(config) == []


async def test_a_replica_that_has_a_call_and_is_not_reached_keeps_it(config: Path) -> None:
    """G14: no one takes it over; the error says what is wrong."""
    async with (
        served(config) as running,
        http() as web,
        announced(running.board, Replica("faraway", "http://127.0.0.1:9", "1")),
    ):
        store = running.board.services.store
        seal = StateSeal(await store.replica_key(), "faraway")
        _, state = seal.seal("x", 600, {"ask_1": "approval 1"})
        answer = await modern(web, running.url, "delete_file", DELETE, requestState=state, inputResponses={})
        assert answer["error"]["message"].startswith("Replica faraway serves this, and cannot be reached")


# -- the replica that had the call has ended -----------------------------------------------------------


async def kill(owner: Mortal) -> None:
    await owner.end(signal.SIGKILL)


@STORES
async def test_an_approval_is_given_where_the_replica_that_asked_was_killed(config: Path) -> None:
    """G14: the call goes on at another one with the answer, once, however often it is asked for."""
    async with mortal(config) as owner, pair(config) as two, http() as web:
        first = await asks(web, owner.url)
        await kill(owner)
        urls = [two.first.url, two.second.url, two.first.url]
        came = await asyncio.gather(
            *(resumed(web, url, "delete_file", DELETE, first, answers_of(first)) for url in urls)
        )
        told = sorted(said(one) for one in came)
        assert told[-1] == "deleted a.txt"
        assert [one[: len(NOT_THERE)] for one in told[:-1]] == [NOT_THERE] * 2
        again = await resumed(web, two.second.url, "delete_file", DELETE, first, answers_of(first))
        assert said(again).startswith(NOT_THERE)
    assert ran(config) == ["deleted a.txt"]


@STORES
async def test_fields_are_filled_in_where_the_replica_that_asked_was_stopped(config: Path) -> None:
    """G14, T13: what the user of the client types goes with the call; an answer that fits nothing runs nothing."""
    async with mortal(config) as owner, served(config) as other, http() as web:
        given = {"amount": 3}
        asked = [await asks(web, owner.url, "pay", {"amount": amount}) for amount in (3, 4)]
        await owner.end(signal.SIGTERM)
        filled = {"action": "accept", "content": {"code": "1234"}}
        answer = await resumed(web, other.url, "pay", given, asked[0], answers_of(asked[0], filled))
        assert said(answer) == "paid 3 with 1234"
        answer = await resumed(web, other.url, "pay", {"amount": 4}, asked[1], answers_of(asked[1]))
        assert "The fields of 'pay' do not fit" in said(answer)
    assert ran(config) == ["paid 3 with 1234"]


async def test_a_refusal_counts_where_the_replica_that_asked_was_killed(config: Path) -> None:
    """G14: and what was not answered is asked again."""
    async with mortal(config) as owner, served(config) as other, http() as web:
        first = await asks(web, owner.url)
        unanswered = await asks(web, owner.url, given={"path": "b.txt"})
        await kill(owner)
        no = answers_of(first, {"action": "decline"})
        answer = await resumed(web, other.url, "delete_file", DELETE, first, no)
        assert "Refused by the user of the client" in said(answer)
        asked = await resumed(web, other.url, "delete_file", {"path": "b.txt"}, unanswered, {})
        assert asked["result"]["resultType"] == "input_required"
        answer = await resumed(web, other.url, "delete_file", {"path": "b.txt"}, asked, answers_of(asked))
        assert said(answer) == "deleted b.txt"
    assert ran(config) == ["deleted b.txt"]


async def test_what_a_server_asked_that_ended_with_its_replica_is_one_clear_error(asking: Path) -> None:
    """G14: the call has begun, and no one knows how far it went: it is not made again by itself."""
    async with mortal(asking) as owner, served(asking) as other, http() as web:
        given = {"requests": [SAMPLE]}
        first = await asks(web, owner.url, "up__ask", given)
        await kill(owner)
        for _ in range(2):
            answer = await resumed(web, other.url, "up__ask", given, first, answers_of(first, BRANCH))
            assert said(answer) == (
                "The replica of Pegboard that made this call has ended, and what its server asked has ended with it. "
                "Call the tool again without this requestState."
            )
        assert (await asks(web, other.url, "up__ask", given))["result"]["requestState"]


async def test_an_official_client_goes_on_at_another_replica(config: Path) -> None:
    """G14: it sees an answer to its question, and nothing of what happened meanwhile."""
    async with mortal(config) as owner, served(config) as other:
        person = Decider(hold=True)
        async with (
            round_robin(owner.url.removesuffix("/mcp")) as (base, proxy),
            client(f"{base}/mcp", MODERN, person) as connected,
        ):
            calling = asyncio.ensure_future(connected.call_tool("delete_file", DELETE))
            await until(lambda: bool(person.asked))
            await kill(owner)
            proxy.bases = [other.base]
            person.go.set()
            assert text(await calling) == "deleted a.txt"
    assert (len(person.asked), ran(config)) == (1, ["deleted a.txt"])


async def test_a_login_is_made_where_the_replica_that_asked_was_killed(site: LoginSite, tmp_path: Path) -> None:
    """G14, G11: whoever has logged in meanwhile has the answer of the call they made."""
    config = tmp_path / "pegboard.yaml"
    config.write_text(
        f"store: sqlite:///state.db\nservers: {{linear: {{url: '{site.url}'}}}}\n"
        "agents: {default: {discoverable: ['*'], dialect: pegboard}}\n"
    )
    whoami = {"name": "linear__whoami", "arguments": {}}
    async with mortal(config) as owner, served(config) as other, http() as web:
        first = await asks(web, owner.url, "call_tool", whoami)
        (asked,) = first["result"]["inputRequests"].values()
        await User().log_in(asked["params"]["url"])
        await kill(owner)
        answer = await resumed(web, other.url, "call_tool", whoami, first, answers_of(first, {"action": "accept"}))
        assert '"account": "ada"' in said(answer)
        assert said(await resumed(web, other.url, "call_tool", whoami, first, answers_of(first))).startswith(NOT_THERE)
    assert site.counts["calls"] == 1
