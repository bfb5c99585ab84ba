"""A catalog that grows and changes while it is searched, and one that is mostly denied."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.gateway import serving
from pegboard.ports.adapters import Adapters
from pegboard.testing import Canned, FakeSource

from .clients import MODERN, connected

NEEDS = ("list the issues", "send a message", "own_send", "issue", "send", "a message about an issue", "nothing at all")


def server(name: str, *verbs: str, about: str = "") -> dict[str, Canned]:
    things = ("issue", "message", "user")
    return {
        f"{name}_{verb}_{thing}": Canned(results=["ok"], description=f"{verb.title()} a {thing}. {about}")
        for verb in verbs
        for thing in things
    }


def write(folder: Path, names: Iterable[str], **profile: Any) -> Path:
    folder.mkdir(exist_ok=True)
    config = {
        "store": "memory:",
        "servers": {name: {"command": "none"} for name in names},
        "toolkits": {"kit": {"description": "What is needed for issues", "tools": ["own"]}},
        "agents": {"default": {"allowed_toolkits": ["kit"], "dialect": "pegboard", **profile}},
    }
    (folder / "pegboard.json").write_text(json.dumps(config))
    return folder / "pegboard.json"


@asynccontextmanager
async def opened(folder: Path, source: FakeSource, names: list[str], **profile: Any) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(write(folder, names, **profile), adapters=Adapters(sources=[source])) as board:
        await board.ready()
        yield board


@asynccontextmanager
async def alone_and_among_others(folder: Path, **profile: Any) -> AsyncIterator[tuple[Pegboard, Pegboard]]:
    """Open a board with one server, and one where it stands among 200 others, with which it shares names and words."""
    own = {"own": server("own", "list", "send")}
    others = {f"other{i}": server(f"other{i}", "list", "send", "own_send", about=f"Own {i}.") for i in range(200)}
    async with (
        opened(folder / "alone", FakeSource(own), ["own"], **profile) as alone,
        opened(folder / "among", FakeSource({**others, **own}), [*others, "own"], **profile) as among,
    ):
        assert len(among.world.catalog) > 100 * len(alone.world.catalog)
        yield alone, among


async def answers_in_the_library(board: Pegboard) -> list[object]:
    session = await board.session(session_id="s")
    found: list[object] = [await session.search(need) for need in NEEDS]
    loaded = await session.load("own__own_send_issue")
    surface = await session.surface()
    return [
        *found,
        loaded.status,
        [item.tool.wire for item in surface.tools],
        surface.hints,
        await session.search("other1", "other1_list_issue"),
    ]


async def answers_through_the_gateway(board: Pegboard) -> list[object]:
    async with serving(board, port=0, session="s") as url, connected(url, MODERN) as client:
        found: list[object] = [await client.text("search_tools", queries=[need]) for need in NEEDS]
        loaded = await client.text("load_tools", names=["own"])
        return [*found, loaded, await client.names(), await client.text("search_tools", queries=["other1", "issue"])]


@pytest.mark.parametrize("profile", [{}, {"discoverable": ["own*"]}], ids=["by toolkit", "by pattern"])
async def test_denied_tools_change_no_byte_of_an_answer(tmp_path: Path, profile: dict[str, Any]) -> None:
    """P3, P9: order, scores and text are those of a catalog in which the denied tools do not exist."""
    async with alone_and_among_others(tmp_path, **profile) as (alone, among):
        for answers in (answers_in_the_library, answers_through_the_gateway):
            expected = await answers(alone)
            assert "own" in repr(expected)
            assert repr(await answers(among)) == repr(expected)


async def test_searches_while_a_server_changes_see_it_before_or_after_and_never_in_between(tmp_path: Path) -> None:
    """P3: 32 searches in parallel, each of one catalog, while servers change their tools."""
    others = {f"other{i}": server(f"other{i}", "list", "send") for i in range(20)}
    states = [{**server("own", "list", "send"), f"own_issue_{i}": Canned(results=[i])} for i in range(4)]
    source = FakeSource({**others, "own": states[0]})
    needs = [("own issue",), ("send message", "own_issue_2"), ("list users",)]

    async def all_answers(board: Pegboard) -> list[str]:
        sessions = [await board.session(session_id=f"s{i}") for i in range(32)]
        searches = (session.search(*needs[at % len(needs)]) for at, session in enumerate(sessions))
        return [repr(found) for found in await asyncio.gather(*searches)]

    async with opened(tmp_path, source, [*others, "own"], discoverable=["*"]) as board:
        possible: list[set[str]] = [set() for _ in range(32)]
        for state in states:
            await changed(board, source, state)
            for answers, answer in zip(possible, await all_answers(board), strict=True):
                answers.add(answer)
        for state in states * 3:
            source.change("own", state)
            for answers, answer in zip(possible, await all_answers(board), strict=True):
                assert answer in answers


async def changed(board: Pegboard, source: FakeSource, state: dict[str, Canned]) -> None:
    """Change the tools of a server and wait until the catalog has them, where it has not."""
    if {tool.name for tool in board.world.catalog.plugins["own"].tools} == set(state):
        return
    arrived = asyncio.Event()
    end = board.on("catalog_changed", lambda _: arrived.set())
    source.change("own", state)
    await arrived.wait()
    end()


def write_unprefixed(folder: Path, names: Iterable[str]) -> Path:
    servers = {name: {"command": "none", "prefix": ""} for name in names}
    config = {"servers": servers, "store": "memory:", "agents": {"default": {"discoverable": ["*"]}}}
    (folder / "pegboard.json").write_text(json.dumps(config))
    return folder / "pegboard.json"


async def test_servers_that_arrive_one_by_one_make_the_catalog_that_they_make_at_once(tmp_path: Path) -> None:
    """G10: also where they share names, and whichever comes first."""
    given = {f"s{i}": {"find": Canned(results=[i]), f"find_{i}": Canned(results=[i])} for i in range(30)}
    path = write_unprefixed(tmp_path, given)
    boards: list[Pegboard] = []
    for one_by_one in (False, True):
        async with Pegboard.open(path, adapters=Adapters(sources=[FakeSource(given)])) as board:
            worlds: list[object] = []
            board.on("catalog_changed", lambda _, seen=worlds, board=board: seen.append(board.world))
            for names in [[name] for name in reversed(given)] if one_by_one else [list(given)]:
                await board.ready(*names)
                assert all(board.world.catalog.plugins[name].variant("").known for name in names)
            assert len(worlds) == len(given)
            assert len(set(map(id, worlds))) == (len(given) if one_by_one else 1)
            boards.append(board)
    at_once, grown = (board.world.catalog for board in boards)
    assert list(grown) == list(at_once)
    assert grown.by_wire("find") == at_once.by_wire("find")
    assert [tool.id for tool in grown.by_wire("find")] == [f"s{number}/find" for number in range(30)]
