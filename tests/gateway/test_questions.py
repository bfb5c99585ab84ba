"""What an upstream asks during a call reaches the client of that call, in both eras on both sides."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.gateway.clients import handshake, pending_calls

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, gateway, until
from .question_helpers import (
    ANSWERS,
    BRANCH,
    CAN,
    FORM,
    ROOTS,
    SAMPLE,
    URL,
    Person,
    altered,
    call,
    client,
    configure,
    direct,
    modern,
    of_token,
    other_way_in,
    resumed,
    upstream,
)
from .test_differential import HANDSHAKE_VERSION, hello, ready

pytestmark = pytest.mark.cover(1)

TOKENS = f"""
tokens:
  ada: {{token: {ADA}, agents: ["*"]}}
  bob: {{token: {BOB}, agents: ["*"]}}
"""

# Of the transport of a server, its era and the era of a client, every two meet.
PAIRS = [
    (("stdio", False), MODERN),
    (("stdio", True), HANDSHAKE),
    (("http", False), HANDSHAKE),
    (("http", True), MODERN),
]


@pytest.fixture(params=[("stdio", False), ("stdio", True), ("http", False), ("http", True)],
                ids=["stdio-2026", "stdio-handshake", "http-2026", "http-handshake"])  # fmt: skip
def up(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    kind, handshake = request.param
    with upstream(kind, handshake=handshake) as server:
        yield server


@pytest.fixture
def old() -> Iterator[dict[str, Any]]:
    """A server of the handshake era over stdio: nothing says whose a question is."""
    with upstream("stdio", handshake=True) as server:
        yield server


async def asks_of_all_kinds(target: Any, era: str, name: str) -> Any:
    """Return what the client gets, what it was asked and what it heard meanwhile."""
    person = Person()
    async with client(target, era, person) as connected:
        got = await call(connected, name, requests=[FORM, URL, SAMPLE, ROOTS])
        again = await call(connected, name, requests=[SAMPLE], rounds=3)
    urls = [asked for asked in person.asked if isinstance(asked, dict)]
    for asked in urls:  # there is none in the 2026-07-28 era
        asked.pop("elicitationId", None)
    at_once = sorted(json.dumps(asked, sort_keys=True) for asked in person.asked[:4])
    return got, again, at_once, person.asked[4:], person.logged


@pytest.mark.parametrize(("up", "era"), PAIRS, indirect=["up"])
async def test_a_client_is_asked_the_same_as_without_the_gateway(up: dict[str, Any], tmp_path: Path, era: str) -> None:
    """G7, G9: forms, URLs, sampling and roots, several at once and one after the other."""
    async with other_way_in(up, configure(tmp_path, up)) as target:
        through = await asks_of_all_kinds(target, era, "up__ask")
    assert through[0] == ANSWERS
    assert through[1] == ANSWERS[2:3]
    assert through == await asks_of_all_kinds(direct(up), HANDSHAKE, "ask")


@pytest.mark.both_paths
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_through_is_asked_too(old: dict[str, Any], tmp_path: Path, era: str) -> None:
    """G7, G6: `call_tool` asks as the tool itself does."""
    async with gateway(configure(tmp_path, old)) as running, client(running.url, era, Person()) as connected:
        got = await call(connected, "call_tool", name="up__ask", arguments={"requests": [FORM, ROOTS]})
    assert got == [ANSWERS[0], ANSWERS[3]]


@pytest.mark.parametrize(("up", "era"), PAIRS, indirect=["up"])
async def test_a_client_that_takes_no_questions_is_asked_none(up: dict[str, Any], tmp_path: Path, era: str) -> None:
    """G9: the upstream hears why."""
    async with gateway(configure(tmp_path, up)) as running, client(running.url, era, None) as connected:
        got = await connected.call_tool("up__ask", {"requests": [SAMPLE]})
    assert isinstance(got.content[0], types.TextContent)
    assert "The client of this call does not take sampling" in got.content[0].text


async def test_only_what_the_client_declares_is_asked(old: dict[str, Any], tmp_path: Path) -> None:
    """G9: forms are not URLs, and sampling is not sampling with tools."""
    tools = altered(SAMPLE, tools=[])
    arguments = {"requests": [FORM, URL, tools, ROOTS]}
    can = {"elicitation": {}, "sampling": {}}
    async with gateway(configure(tmp_path, old)) as running, httpx2.AsyncClient(timeout=60) as http:
        first = await modern(http, running.url, "up__ask", arguments, can=can)
        asked = first["result"]["inputRequests"]
        assert list(asked.values()) == [FORM]
        answers = dict.fromkeys(asked, BRANCH)
        last = await resumed(http, running.url, "up__ask", arguments, first, answers, can=can)
    got = json.loads(last["result"]["content"][0]["text"])
    assert got[0] == BRANCH
    assert [refused["message"] for refused in got[1:]] == [
        f"The client of this call does not take {what}."
        for what in ("elicitation by URL", "sampling with tools", "roots")
    ]


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let questions that come together be gathered on a busy machine, too."""
    monkeypatch.setattr(pending_calls, "GATHER", 0.5)


@pytest.mark.usefixtures("gathering")
async def test_several_questions_travel_in_one_round(old: dict[str, Any], tmp_path: Path) -> None:
    """G7: and what was omitted is asked again."""
    arguments = {"requests": [FORM, SAMPLE]}
    async with gateway(configure(tmp_path, old)) as running, httpx2.AsyncClient(timeout=60) as http:
        first = await modern(http, running.url, "up__ask", arguments)
        asked = first["result"]["inputRequests"]
        assert list(asked.values()) == [FORM, SAMPLE]
        assert first["result"]["resultType"] == "input_required"
        form, sample = asked
        second = await resumed(http, running.url, "up__ask", arguments, first, {form: BRANCH})
        assert second["result"]["inputRequests"] == {sample: SAMPLE}
        last = await resumed(http, running.url, "up__ask", arguments, second, {sample: ANSWERS[2]})
    assert last["result"]["resultType"] == "complete"
    assert json.loads(last["result"]["content"][0]["text"]) == [BRANCH, ANSWERS[2]]


async def test_nobody_else_goes_on_with_a_call(tmp_path: Path) -> None:
    """G2, G7: another principal, session, tool or argument finds nothing, and the owner still does."""
    arguments = {"requests": [FORM]}
    with upstream("http", handshake=True) as up:
        async with gateway(configure(tmp_path, up, more=TOKENS)) as running, httpx2.AsyncClient(timeout=60) as http:
            first = await modern(http, running.url, "up__ask", arguments, token=ADA)
            state, answers = first["result"]["requestState"], dict.fromkeys(first["result"]["inputRequests"], BRANCH)
            more = {"requestState": state, "inputResponses": answers}
            wrong = [
                await modern(http, running.url, "up__ask", arguments, token=BOB, **more),
                await modern(http, f"{running.url}?session=s", "up__ask", arguments, token=ADA, **more),
                await modern(http, running.url, "up__log", arguments, token=ADA, **more),
                await modern(http, running.url, "up__ask", {"requests": []}, token=ADA, **more),
                await modern(http, running.url, "up__ask", arguments, token=ADA, **{**more, "requestState": "guessed"}),
            ]
            assert {answer["error"]["code"] for answer in wrong} == {-32602}
            assert len({answer["error"]["message"] for answer in wrong}) == 1
            last = await modern(http, running.url, "up__ask", arguments, token=ADA, **more)
            assert json.loads(last["result"]["content"][0]["text"]) == [BRANCH]
            twice = await modern(http, running.url, "up__ask", arguments, token=ADA, **more)
            assert twice["error"]["code"] == -32602


async def test_nobody_else_answers_what_a_connection_was_asked(old: dict[str, Any], tmp_path: Path) -> None:
    """G2, G7: not even who knows the transport's session and the id of the question."""
    said = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    path = configure(tmp_path, old, more=TOKENS)
    async with gateway(path) as running, httpx2.AsyncClient(timeout=60) as http:
        greeting = hello()
        greeting["params"]["capabilities"] = CAN
        opened = await http.post(running.url, json=greeting, headers={**said, **of_token(ADA)})
        session = opened.headers["mcp-session-id"]
        said |= {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE_VERSION}
        await http.post(running.url, json=ready(), headers={**said, **of_token(ADA)})
        wanted = {"name": "up__ask", "arguments": {"requests": [FORM]}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": wanted}
        async with http.stream("POST", running.url, json=body, headers={**said, **of_token(ADA)}) as stream:
            events = (json.loads(line[5:]) async for line in stream.aiter_lines() if line.startswith("data:"))
            question = await anext(events)
            assert question["params"] == FORM["params"]
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            await http.post(running.url, json=answer, headers={**said, **of_token(BOB)})
            await http.post(f"{running.url}/default", json={**answer, "id": "pegboard-ask-9"}, headers=said)
            own = {**answer, "result": BRANCH}
            taken = await http.post(running.url, json=own, headers={**said, **of_token(ADA)})
            last = await anext(events)
    assert taken.status_code == 202
    assert json.loads(last["result"]["content"][0]["text"]) == [BRANCH]


async def test_a_call_that_nobody_comes_back_to_ends(
    old: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G7: the upstream hears that there was no answer, and the call is forgotten."""
    monkeypatch.setattr(pending_calls, "PATIENCE", 0.3)
    path = configure(tmp_path, old)
    async with Pegboard.open(path) as board, serving(board, port=0) as url, httpx2.AsyncClient(timeout=60) as http:
        first = await modern(http, url, "up__ask", {"requests": [FORM]})
        await until(lambda: in_flight(board) == 0)
        late = await resumed(http, url, "up__ask", {"requests": [FORM]}, first, {})
    assert "stands for no call of yours" in late["error"]["message"]


@pytest.mark.usefixtures("gathering")
async def test_only_so_many_questions_are_open(
    old: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G7: one more is refused, the others stand."""
    monkeypatch.setattr(handshake, "MOST", 2)
    arguments = {"requests": [FORM, FORM, FORM]}
    async with gateway(configure(tmp_path, old)) as running, httpx2.AsyncClient(timeout=60) as http:
        first = await modern(http, running.url, "up__ask", arguments)
        answers = dict.fromkeys(first["result"]["inputRequests"], BRANCH)
        last = await resumed(http, running.url, "up__ask", arguments, first, answers)
    got = json.loads(last["result"]["content"][0]["text"])
    assert got[:2] == [BRANCH, BRANCH]
    assert got[2]["message"].startswith("2 questions to this client's owner are open")


async def test_a_timeout_does_not_run_while_somebody_answers(old: dict[str, Any], tmp_path: Path) -> None:
    """G8, G9: the time that a tool may take is that of the tool."""
    person = Person(hold=True)
    path = configure(tmp_path, old, timeout="1s")
    async with Pegboard.open(path) as board, serving(board, port=0) as url, client(url, HANDSHAKE, person) as connected:
        going = asyncio.ensure_future(call(connected, "up__ask", requests=[FORM]))
        await until(lambda: bool(person.asked))
        loop = asyncio.get_running_loop()
        longer = loop.time() + 1.3
        await until(lambda: loop.time() > longer)
        assert in_flight(board) == 1
        person.go.set()
        assert await going == [BRANCH]
        slow = await connected.call_tool("up__hold", {})
        assert slow.is_error
        assert "did not answer 'hold' within 1 s" in str(slow.content)


def in_flight(board: Pegboard) -> int:
    return sum(state["in_flight"] for state in board.upstream_states())


async def held(connected: Any) -> bool:
    """Return whether the server itself has the call that waits: one on its way counts as in flight too."""
    return await call(connected, "up__held") == 1


async def test_a_client_that_goes_away_while_it_is_asked_leaves_nothing(old: dict[str, Any], tmp_path: Path) -> None:
    """G7: the upstream is told, and its call ends."""
    person = Person(hold=True)
    async with Pegboard.open(configure(tmp_path, old)) as board, serving(board, port=0) as url:
        async with client(url, HANDSHAKE, person) as connected:
            going = asyncio.ensure_future(call(connected, "up__ask", requests=[FORM]))
            await until(lambda: bool(person.asked))
        going.cancel()
        await asyncio.wait({going})
        await until(lambda: in_flight(board) == 0)


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_in_the_middle_of_two_calls_is_refused_and_then_they_queue(
    old: dict[str, Any], tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    """G9: nothing says whose it is, so from then on there is one call at a time."""
    path = configure(tmp_path, old)
    async with Pegboard.open(path) as board, serving(board, port=0) as url, client(url, era, Person()) as connected:
        holding = asyncio.ensure_future(call(connected, "up__hold"))
        await until(lambda: held(connected))
        (refused,) = await call(connected, "up__ask", requests=[FORM])
        assert "Several calls are under way over this connection" in refused["message"]
        assert [state["one_at_a_time"] for state in board.upstream_states()] == [True]
        assert "server 'up' asked for elicitation while 2 calls were running" in caplog.text
        queued = [asyncio.ensure_future(call(connected, "up__ask", requests=[FORM])) for _ in range(3)]
        await asyncio.wait(queued, timeout=0.2)
        assert not any(task.done() for task in queued)
        holding.cancel()
        assert await asyncio.gather(*queued) == [[BRANCH]] * 3


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_every_question_finds_its_call(tmp_path: Path, era: str) -> None:
    """G9: it comes on the stream of the call, however many are under way."""
    people = [Person(), Person()]
    with upstream("http", handshake=True) as up:
        async with (
            gateway(configure(tmp_path, up)) as running,
            client(running.url, era, people[0]) as one,
            client(running.url, era, people[1]) as other,
        ):
            questions = [altered(FORM, message=message) for message in "ab"]
            pairs = zip((one, other), questions, strict=True)
            work = [call(each, "up__ask", requests=[question], rounds=3) for each, question in pairs]
            assert await asyncio.gather(*work) == [[BRANCH], [BRANCH]]
    assert [{asked["message"] for asked in person.asked} for person in people] == [{"a"}, {"b"}]


async def test_servers_are_told_that_they_may_ask(up: dict[str, Any], tmp_path: Path) -> None:
    """G9: elicitation, sampling and roots are declared to every upstream."""
    async with gateway(configure(tmp_path, up)) as running, client(running.url, MODERN, None) as connected:
        assert await call(connected, "up__declared") == ["elicitation", "roots", "sampling"]


async def test_an_answer_that_nobody_awaits_is_refused(old: dict[str, Any], tmp_path: Path) -> None:
    """G7: a requestState of nowhere is one clear error by the official client too."""
    async with gateway(configure(tmp_path, old)) as running, client(running.url, MODERN, Person()) as connected:
        with pytest.raises(MCPError, match="stands for no call of yours"):
            await connected.session.call_tool("up__ask", {"requests": []}, request_state="x")
