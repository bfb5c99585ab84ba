"""Other sites, guessers, operators who see less or race one another, and a store that is locked or gone."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from itertools import cycle
from pathlib import Path

import httpx2
import pytest

from gateway.clients import edit, until
from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import CODE_LIFETIME, OperatorAccess
from pegboard.ports import Adapters
from pegboard.stores.sql import SqliteStore

from .addresses import ADDRESSES, CHANGING, Address, Visitor, label, visitor
from .conftest import MAILER
from .programs import ORIGIN, serving
from .sites import site

ROOT = "root-root-root-root-root"
ADA = "ada-ada-ada-ada-ada-ada"
BOB = "bob-bob-bob-bob-bob-bob"
FORM = "application/x-www-form-urlencoded"
SWITCH = next(address for address in CHANGING if address.path == "/console/switch")
OPEN = tuple(Address(method="POST", path=f"/console/{last}", given={}, names=()) for last in ("sign-in", "sign-out"))


@pytest.fixture
def config(mailer_config: Path) -> Path:
    """Return a configuration with an operator of every agent."""
    mailer_config.write_text(MAILER + f'  root: {{token: {ROOT}, agents: ["*"], console: true}}\n')
    return mailer_config


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    """Return a board whose store waits for no one, with a session in which a call waits."""
    store = SqliteStore(config.with_name("state.db"), patience=0.05)
    async with Pegboard.open(config, adapters=Adapters(store=store)) as board:
        await opened(board)
        yield board


def replace_store(path: Path, instead: str) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    if instead == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"<script>alert(1)</script>" * 1000)


def make_room(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()


async def opened(board: Pegboard) -> str:
    """Let a session be there in which a call waits; return the approval's id."""
    session = await board.session(agent="mailer", session_id="s", principal="carl")
    await session.surface()
    answer = await session.call("send_mail", {"to": "x"})
    assert answer.approval is not None
    return answer.approval.id


async def test_nothing_is_done_for_who_is_not_a_page_of_this_sign_in(board: Pegboard) -> None:
    """G2: another site, another port, an opaque origin, someone else's proof, or none, in every kind of body."""
    async with AsyncExitStack() as stack:
        app, access = await stack.enter_async_context(serving(board))
        other = await stack.enter_async_context(visitor(app, access, ADA))
        root = await stack.enter_async_context(visitor(app, access, ROOT))
        proof = {"x-csrf-token": root.sign_in.csrf}
        elsewhere = [
            {**proof, "origin": "http://evil.example"},
            {**proof, "origin": "http://127.0.0.1:8322"},
            {**proof, "origin": "http://127.0.0.1"},
            {**proof, "origin": "null"},
            {**proof, "sec-fetch-site": "cross-site"},
            {**proof, "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        ]
        before = await board.services.store.change_token()
        for address in (*CHANGING, *OPEN):
            text = address.request().get("content", b"").decode()
            unproved = [
                ({}, text),
                ({"x-csrf-token": other.sign_in.csrf}, text),
                ({"content-type": FORM}, f"{text}&csrf={other.sign_in.csrf}"),
                ({"content-type": FORM}, f"{text}&csrf="),
                ({"content-type": "text/plain"}, f"{text}&csrf={root.sign_in.csrf}"),
                ({"content-type": "application/json"}, json.dumps({"csrf": root.sign_in.csrf})),
                ({"content-type": "multipart/form-data; boundary=x"}, multipart(root.sign_in.csrf)),
            ]
            sent = [(headers, text) for headers in elsewhere]
            for headers, body in sent + (unproved if address.path != "/console/sign-in" else []):
                target = address.request()["url"]
                response = await root.client.request(address.method, target, content=body, headers=headers)
                assert response.status_code == 403, (label(address), headers, body)
        assert await board.services.store.change_token() == before
        assert (await root.client.get("/console/access")).status_code == 200


def multipart(csrf: str) -> str:
    return f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{csrf}\r\n--x--\r\n'


STREAM = re.compile(r"/console/events[^\"]*")
"""Where the stream of a page begins, which differs once plugins have been asked for their tools."""


async def test_an_agent_that_is_not_the_operators_is_like_one_that_does_not_exist(config: Path) -> None:
    """G2: on every page and in every answer, whatever is asked of it."""
    async with AsyncExitStack() as stack:
        board = await stack.enter_async_context(Pegboard.open(config))
        app, access = await stack.enter_async_context(serving(board))
        bob = await stack.enter_async_context(visitor(app, access, BOB))
        waiting = await opened(board)
        for address in ADDRESSES:
            await indexed(bob, address)
        before = await board.services.store.change_token()
        for address, headers in zip(ADDRESSES, cycle(({}, {"hx-request": "true"})), strict=False):
            seen = await bob.send(address, headers, **chosen(address, agent="mailer", id=waiting))
            none = await bob.send(address, headers, **chosen(address, agent="mailex", id="0" * len(waiting)))
            assert seen.status_code == none.status_code, label(address)
            texts = seen.text.replace("mailer", "mailex").replace(waiting, "0" * len(waiting))
            assert STREAM.sub("", texts) == STREAM.sub("", none.text.replace("mailer", "mailex")), label(address)
            text = seen.text.replace("tool=send_mail", "").replace('value="send_mail"', "")
            assert "agent" not in address.names or "send_mail" not in text, label(address)
        assert await board.services.store.change_token() == before


async def indexed(bob: Visitor, address: Address) -> None:
    """Wait until what searches find is found: an index of all tools is made beside the first."""

    async def done() -> bool:
        return '"indexing":true' not in (await bob.send(address, {}, **chosen(address, agent="mailer"))).text

    await until(done)


def chosen(address: Address, **values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name in address.given}


async def test_of_operators_who_throw_one_switch_at_once_exactly_one_wins(board: Pegboard) -> None:
    """P2, X4: over forms and as programs, through real connections; the others read that it has changed."""
    async with serving(board) as (app, access), site(app) as origin, httpx2.AsyncClient(timeout=60) as client:
        url = f"{origin}/api/agents/mailer/switches"
        for value, expected in ((False, None), (True, False), (None, True), (False, None)):
            body = {"name": "post", "value": value, "expected": expected}
            headers = [{"authorization": f"Bearer {token}"} for token in (ADA, ROOT) * 5]
            answers = await asyncio.gather(*(client.put(url, json=body, headers=one) for one in headers))
            assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
        async with visitor(app, access, ADA) as ada, visitor(app, access, ROOT) as root:
            sent = [one.send(SWITCH, name="post", value="on", expected="off") for one in (ada, root, ada, root)]
            assert sorted(answer.status_code for answer in await asyncio.gather(*sent)) == [303, 409, 409, 409]
        records = await board.services.store.entries(kind="permission")
        assert [record.decision for record in records] == ["on", "off", "unset", "on", "off"]


async def test_a_code_is_good_once_not_for_long_and_not_guessed(config: Path) -> None:
    """G2: ten thousand guesses use up nothing and are not kept."""
    edit(config, f"tokens:{MAILER.partition('tokens:')[2]}", "")
    edit(config, f'  root: {{token: {ROOT}, agents: ["*"], console: true}}', "")
    now = 0.0
    async with Pegboard.open(config) as board:
        access = OperatorAccess(lambda: board.configuration.tokens, clock=lambda: now)
        app = ConsoleApp(board, access)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            once, old, good = (access.codes.new() for _ in range(3))
            assert (await client.post("/console/sign-in", data={"secret": once})).status_code == 303
            client.cookies.clear()
            for guess in (once, once[:-1], "", "é\x00", "x" * 10_000, *map(str, range(20))):
                answer = await client.post("/console/sign-in", data={"secret": guess})
                assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
            held = len(access.codes._until)
            assert [access.with_code(f"{n}") for n in range(10_000)] == [None] * 10_000
            assert len(access.codes._until) == held
            assert (await client.post("/console/sign-in", data={"secret": good})).status_code == 303
            now = CODE_LIFETIME
            client.cookies.clear()
            assert (await client.post("/console/sign-in", data={"secret": old})).status_code == 401
        await app.close()


async def test_an_operator_whose_token_is_taken_away_is_out_at_once(config: Path) -> None:
    """G2: with the next request, and the stream ends; a change of the agents counts at once, too."""
    async with AsyncExitStack() as stack:
        board = await stack.enter_async_context(Pegboard.open(config))
        app, access = await stack.enter_async_context(serving(board))
        root = await stack.enter_async_context(visitor(app, access, ROOT))
        origin = await stack.enter_async_context(site(app))
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))
        bearer = {"authorization": f"Bearer {ROOT}"}
        stream = await stack.enter_async_context(client.stream("GET", f"{origin}/api/events", headers=bearer))
        lines = stream.aiter_lines()
        assert "event: started" in [await anext(lines), await anext(lines)]
        edit(config, 'agents: ["*"]', "agents: [deskless]")
        await board.reload()
        assert (await root.client.get("/console/agent?agent=mailer")).status_code == 404
        assert (await root.client.get("/console/agent?agent=deskless")).status_code == 200
        edit(config, ROOT, "another-another-another")
        await board.reload()
        assert (await root.client.get("/console/access")).headers["location"] == "/console/sign-in"
        assert (await root.send(SWITCH)).headers["location"] == "/console/sign-in"
        assert "event: signed_out" in [line async for line in lines]


async def test_a_store_that_is_locked_is_said_to_be_and_nothing_is_lost(board: Pegboard) -> None:
    """X2: whatever would write says in a sentence that it did not; then it does."""
    async with AsyncExitStack() as stack:
        app, access = await stack.enter_async_context(serving(board))
        root = await stack.enter_async_context(visitor(app, access, ROOT))
        with closing(sqlite3.connect(board.services.store.path, isolation_level=None)) as other:  # type: ignore[attr-defined]
            other.execute("BEGIN IMMEDIATE")
            for address in ADDRESSES:
                response = await root.send(address)
                assert response.status_code < 500 or (response.status_code, "locked" in response.text) == (503, True)
            assert (await root.send(SWITCH, name="post", expected="unset")).status_code == 503
            part = await root.send(SWITCH, {"hx-request": "true"}, name="post", expected="unset")
            assert (part.status_code, part.headers["hx-retarget"]) == (503, "#notices")
            other.execute("ROLLBACK")
        assert (await root.send(SWITCH, name="post", expected="unset")).status_code == 303


@pytest.mark.parametrize("instead", ["directory", "garbage"])
async def test_a_store_that_is_gone_is_said_to_be_and_all_works_when_it_is_back(board: Pegboard, instead: str) -> None:
    """S2: with something else in its place every answer is a sentence, and the stream of an open page survives."""
    path: Path = board.services.store.path  # type: ignore[attr-defined]
    async with AsyncExitStack() as stack:
        app, access = await stack.enter_async_context(serving(board))
        root = await stack.enter_async_context(visitor(app, access, ROOT))
        origin = await stack.enter_async_context(site(app))
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))
        bearer = {"authorization": f"Bearer {ROOT}"}
        stream = await stack.enter_async_context(client.stream("GET", f"{origin}/api/events", headers=bearer))
        lines = stream.aiter_lines()
        assert "event: started" in [await anext(lines), await anext(lines)]
        replace_store(path, instead)
        for address, headers in zip(ADDRESSES, cycle(({}, {"hx-request": "true"})), strict=False):
            response = await root.send(address, headers)
            assert response.status_code < 500 or response.status_code == 503, (address.path, response.text)
            assert response.status_code != 503 or path.name in response.text.replace("<wbr>", "")
        assert (await root.send(SWITCH, name="post", expected="unset")).status_code == 503
        make_room(path)
        assert (await root.send(SWITCH, name="post", expected="unset")).status_code == 303
        for address in ADDRESSES:
            assert (await root.send(address)).status_code < 500, address.path
        async for line in lines:
            if line.startswith("data: ") and "switches" in line:
                break
