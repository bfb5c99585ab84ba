"""What an upstream logs reaches who wants it: the client of the call, or the connections that listen."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.gateway import serving

from .clients import HANDSHAKE, MODERN, gateway, modern_request, until, way_in
from .question_helpers import Person, call, client, configure, direct, other_way_in, upstream

LINES = [
    {"level": "debug", "logger": "db", "data": {"rows": [1, None], "x-more": "\u00e9"}},
    {"level": "info", "data": "plain text"},
    {"level": "error", "logger": "", "data": ["end", False]},
]

# Of the transport of a server, its era and the era of a client, every two meet.
PAIRS = [
    (("stdio", False), MODERN),
    (("stdio", True), HANDSHAKE),
    (("http", False), HANDSHAKE),
    (("http", True), MODERN),
]


@pytest.fixture(
    params=[("stdio", False), ("stdio", True), ("http", False), ("http", True)],
    ids=["stdio-2026", "stdio-handshake", "http-2026", "http-handshake"],
)
def up(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    kind, handshake = request.param
    with upstream(kind, handshake=handshake) as server:
        yield {**server, "prefix": "up"} if handshake else server


def old(up: dict[str, Any]) -> bool:
    """Return whether a server is of the handshake era."""
    return "prefix" in up


async def logged(target: Any, era: str, name: str, level: Any) -> tuple[Any, Any]:
    """Return what a client gets and hears that wants a level, or says nothing of it (None)."""
    person = Person()
    asks = {"level": level} if era == MODERN else {}
    async with client(target, era, person, **asks) as connected:
        if era == HANDSHAKE and level is not None:
            await connected.set_logging_level(level)
        got = await call(connected, name, messages=LINES)
        assert await call(connected, name, messages=[]) == "logged"
        return got, list(person.logged)


@pytest.mark.parametrize(("up", "era"), PAIRS, indirect=["up"])
async def test_a_client_hears_the_same_as_without_the_gateway(up: dict[str, Any], tmp_path: Path, era: str) -> None:
    """G7: before the answer, from the level on that it chose; one of the 2026-07-28 era only what it asks for."""
    heard = {None: LINES if era == HANDSHAKE else [], "debug": LINES, "error": LINES[2:]}
    async with other_way_in(up, configure(tmp_path, up)) as target:
        for level in heard if isinstance(target, str) else ("error",):
            assert await logged(target, era, "up__log", level) == ("logged", heard[level])
    if era == HANDSHAKE or not old(up):  # the same server, without the gateway
        assert await logged(direct(up), era, "log", "error") == ("logged", heard["error"])


@pytest.mark.parametrize(("up", "fast_path"), [(up, era == MODERN) for up, era in PAIRS], indirect=["up"])
async def test_a_call_through_logs_too(up: dict[str, Any], tmp_path: Path) -> None:
    """G6, G7: `call_tool` logs as the tool itself does."""
    person = Person()
    async with gateway(configure(tmp_path, up)) as running, client(running.url, HANDSHAKE, person) as connected:
        assert await call(connected, "call_tool", name="up__log", arguments={"messages": LINES}) == "logged"
        assert person.logged == LINES


async def test_an_upstream_is_told_the_lowest_level_that_is_wanted(tmp_path: Path) -> None:
    """G7: and everyone hears from the level on that he chose."""
    one, other = Person(), Person()
    with upstream("stdio", handshake=True) as up:
        async with (
            gateway(configure(tmp_path, up)) as running,
            client(running.url, HANDSHAKE, one) as first,
            client(running.url, HANDSHAKE, other) as second,
        ):
            await first.set_logging_level("error")
            assert await call(first, "up__level") == "error"
            await second.set_logging_level("info")
            assert await call(second, "up__level") == "info"
            await call(first, "up__log", messages=LINES)
            await call(second, "up__log", messages=LINES)
            assert (one.logged, other.logged) == (LINES[2:], LINES[1:])
            await second.set_logging_level("critical")

            async def told() -> bool:
                return await call(second, "up__level") == "error"

            await until(told)


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_what_is_logged_outside_of_calls_goes_to_who_has_called(tmp_path: Path, kind: str, way: str) -> None:
    """G7: connections of the handshake era, from their level on."""
    person = Person()
    with upstream(kind, handshake=True) as up:
        async with way_in(way, configure(tmp_path, up)) as target, client(target, HANDSHAKE, person) as connected:
            await connected.set_logging_level("info")
            assert await call(connected, "up__log_later", messages=LINES) == "soon"
            await until(lambda: person.logged == LINES[1:])


async def test_a_connection_that_is_closed_hears_nothing_more(tmp_path: Path) -> None:
    """G7: and keeps nothing alive."""
    gone, there = Person(), Person()
    with upstream("stdio", handshake=True) as up:
        path = configure(tmp_path, up)
        async with Pegboard.open(path) as board, serving(board, port=0) as url, client(url, HANDSHAKE, there) as stays:
            async with client(url, HANDSHAKE, gone) as leaves:
                assert await call(leaves, "up__log_later", messages=LINES) == "soon"
            await call(stays, "up__level")
            await until(lambda: there.logged == LINES)
    assert gone.logged == []


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_level_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    """G7: in the 2026-07-28 era the level belongs to a request, and there is no `logging/setLevel`."""
    with upstream(kind, handshake=False) as up:
        async with gateway(configure(tmp_path, up)) as running, httpx2.AsyncClient(timeout=60) as http:
            body, headers = modern_request("logging/setLevel", level="info")
            assert (await http.post(running.url, json=body, headers=headers)).json()["error"]["code"] == -32601
            meta = {"io.modelcontextprotocol/logLevel": "loud"}
            body, headers = modern_request("tools/call", name="up__level", arguments={}, _meta=meta)
            assert (await http.post(running.url, json=body, headers=headers)).json()["error"]["code"] == -32602


async def test_calls_at_once_are_told_apart_over_http(tmp_path: Path) -> None:
    """G7: each client hears what its own call logs."""
    people = [Person(), Person()]
    with upstream("http", handshake=True) as up:
        async with (
            gateway(configure(tmp_path, up)) as running,
            client(running.url, HANDSHAKE, people[0]) as one,
            client(running.url, HANDSHAKE, people[1]) as two,
        ):
            mine = [[{"level": "info", "data": f"{who} {n}"} for n in range(50)] for who in "ab"]
            await asyncio.gather(*(call(c, "up__log", messages=m) for c, m in zip((one, two), mine, strict=True)))
    assert [person.logged for person in people] == mine
