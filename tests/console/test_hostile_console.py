"""The console, given what no page would send: each gets one clear answer, nothing is lost and nothing is run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.clients import until
from pegboard import Pegboard
from pegboard.console.entry.own_requests import HEADERS
from pegboard.console.updates import changes

from .addresses import ADDRESSES, CHANGING, STREAMS, label, visitor
from .conftest import MAILER
from .programs import serving
from .running import running
from .sites import site

ROOT = "root-root-root-root-root"
BOB = "bob-bob-bob-bob-bob-bob"
NOWHERE = "/console/nowhere"
TEXTS = ("/%2F'\"<script>alert(1)\n\u202e😀", "\ud800", "\x00", "x" * 60_000)
VALUES = ("-1", "9" * 30, "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59")
EVERYWHERE = (*TEXTS, "..", "", "nan", "2026-13-01")
NUMBERS = ("offset", "limit", "before", "after", "since", "until")


@pytest.fixture
def config(mailer_config: Path) -> Path:
    """Return a configuration with an operator of every agent."""
    mailer_config.write_text(
        MAILER + f'  root: {{token: {ROOT}, agents: ["*"], console: [approve, switch, configure]}}\n'
    )
    return mailer_config


def sound(response: httpx2.Response) -> bool:
    """Return whether an answer is one that any answer may be."""
    kept = all(response.headers.get(name) == value for name, value in HEADERS.items())
    media = response.headers.get("content-type", "")
    lines = [json.loads(line) for line in response.text.splitlines()] if media.startswith("application/json") else []
    typed = not response.content or "charset=utf-8" in media or media == "image/svg+xml" or lines != []
    markup = "text/html" in response.headers.get("content-type", "") and "<script>alert" in response.text
    plain = "Traceback" not in response.text and not markup
    return response.status_code < 500 and kept and typed and plain and response.headers["cache-control"] == "no-store"


async def opened(board: Pegboard, agent: str = "mailer") -> None:
    """Let a session be there in which a call waits."""
    session = await board.session(agent=agent, session_id="s", principal="carl")
    await session.surface()
    await session.call("send_mail", {"to": "<script>alert(1)</script>"})


async def test_whatever_an_address_is_given_the_answer_is_sound(config: Path) -> None:
    """G2: headers, no cache, its media type, no trace of the inside; also as a part of a page.

    Each name is given one of the values beside values that fit, and all names together are given three of them, in
    turn from address to address.
    """
    unsound: list[object] = []
    async with Pegboard.open(config) as board, serving(board) as (app, access):
        for at, address in enumerate(ADDRESSES):
            async with visitor(app, access, ROOT) as root:
                await opened(board)
                given = [
                    (name, (VALUES if name in NUMBERS else TEXTS)[(at + place) % 4])
                    for place, name in enumerate(address.names)
                ]
                answers = [(one, await root.send(address, **dict([one]))) for one in given]  # type: ignore[arg-type]
                part = {"hx-request": "true"}
                for value in (EVERYWHERE * 2)[at % 8 : at % 8 + 3]:
                    every = dict.fromkeys(address.names, value[:200])
                    answers.append((("every", value), await root.send(address, part, **every)))
            unsound += [(label(address), name, value[:100]) for (name, value), one in answers if not sound(one)]
    assert unsound == []


async def test_a_form_that_cannot_be_read_is_the_senders_mistake(config: Path) -> None:
    async with Pegboard.open(config) as board, serving(board) as (app, access), visitor(app, access, ROOT) as root:
        token = {"x-csrf-token": root.sign_in.csrf}
        for address in CHANGING:
            target = address.request()["url"]
            bodyless = address.path.startswith("/api") or address.path.endswith("/ask")
            for media, body in (
                ("multipart/form-data; boundary=x", b"garbage"),
                ("multipart/form-data", b""),
                ("application/x-www-form-urlencoded", b"a=b&" * 5_000),
                ("application/x-www-form-urlencoded", b"\xff\x00%zz=&&=;"),
                ("text/plain", b"agent=mailer"),
                ("application/json", b'{"agent": "mailer"'),
            ):
                headers = {**token, "content-type": media}
                response = await root.client.request(address.method, target, content=body, headers=headers)
                assert sound(response), (label(address), media)
                refused = response.status_code in (400, 404, 409, 413, 415, 422)
                assert refused or bodyless, (label(address), media, response.status_code)


async def test_a_load_of_more_names_than_anybody_means_is_refused(config: Path) -> None:
    """So many names would keep everyone else waiting."""
    async with Pegboard.open(config) as board, serving(board) as (app, access), visitor(app, access, ROOT) as root:
        await opened(board)
        (change,) = [one for one in CHANGING if one.path == "/console/session"]
        response = await root.send(change, do="load", names="a," * 200_000)
        assert response.status_code == 400
        assert "200,000 names are too many" in response.text


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "DELETE", "BREW"])
async def test_other_methods_change_nothing_and_end(config: Path, method: str) -> None:
    """Also of a stream, and of an address that is none; files of the console alone may be cached."""
    async with Pegboard.open(config) as board, serving(board) as (app, access), visitor(app, access, ROOT) as root:
        await opened(board)
        before = await board.services.store.change_token()
        for address in ADDRESSES:
            request: dict[str, Any] = {**address.request(), "method": method}
            assert sound(await root.client.request(**request)), address.path
        for path in (*STREAMS, NOWHERE, "/console/sign-in", "/console/static/nothing.css", "/console", "/api"):
            response = await root.client.request(method, path)
            assert sound(response), path
            assert method != "HEAD" or response.content == b""
        await board.services.store.open()
        assert await board.services.store.change_token() == before
        assert "cache-control" not in (await root.client.get("/console/static/console.css")).headers


async def test_there_are_only_so_many_streams_however_they_come(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at once as a browser farm asks for; when they vanish, there is room again."""
    monkeypatch.setattr(changes, "MOST", 20)
    headers = {"authorization": f"Bearer {ROOT}"}
    async with Pegboard.open(config) as board, serving(board) as (app, _), site(app) as origin:
        limits = httpx2.Limits(max_connections=100)
        async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
            requests = [client.build_request("GET", f"{origin}{path}") for path in STREAMS * 15]
            answers = await asyncio.gather(*(client.send(request, stream=True) for request in requests))
            assert sorted(answer.status_code for answer in answers) == [200] * 20 + [503] * 10
            await asyncio.gather(*(answer.aclose() for answer in answers))

            async def free() -> bool:
                async with client.stream("GET", f"{origin}/console/events") as answer:
                    return answer.status_code == 200

            await until(free, within=60)


async def test_streams_of_one_operator_leave_room_for_another(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G2: whoever opens them without end gets so many, and a page of someone else opens."""
    monkeypatch.setattr(changes, "MOST_OF_ONE", 3)
    async with Pegboard.open(config) as board, serving(board) as (app, _), site(app) as origin:
        bob, root = ({"authorization": f"Bearer {token}"} for token in (BOB, ROOT))
        async with httpx2.AsyncClient(base_url=origin, timeout=60) as client:
            requests = [client.build_request("GET", "/console/events", headers=bob) for _ in range(5)]
            answers = await asyncio.gather(*(client.send(request, stream=True) for request in requests))
            assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 2
            async with client.stream("GET", "/console/events", headers=root) as answer:
                assert answer.status_code == 200
            await asyncio.gather(*(answer.aclose() for answer in answers))


async def test_what_is_no_request_of_a_browser_is_refused_and_the_console_goes_on(config: Path) -> None:
    """G2: other names of this host, bodies without end, and clients that vanish in the middle of one."""
    async with running(config) as console, httpx2.AsyncClient(base_url=console.origin, timeout=60) as client:
        for host in ("evil.example", "127.0.0.1:99999", "[::1", "a b", ""):
            refused = await client.get("/console/access", headers={"host": host})
            assert 300 <= refused.status_code < 500, host
            assert (ROOT in refused.text, "Traceback" in refused.text) == (False, False)
        large = await client.post("/console/sign-in", content=b"x" * (1024 * 1024 + 1))
        assert (large.status_code, large.headers["x-content-type-options"]) == (413, "nosniff")
        assert large.headers["cache-control"] == "no-store"
        port = httpx2.URL(console.origin).port
        for _ in range(20):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"POST /console/sign-in HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100\r\n\r\nsecret="
            writer.write(head.encode())
            await writer.drain()
            writer.close()
        signed_in = await client.post("/console/sign-in", data={"secret": ROOT})
        assert (signed_in.status_code, signed_in.headers["cache-control"]) == (303, "no-store")
        assert (await client.get("/console/access")).status_code == 200
