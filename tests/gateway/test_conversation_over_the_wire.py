"""What a conversation adds to the searches of a client, of which a gateway sees no message."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.gateway import serving
from pegboard.ports import PastUse
from pegboard.ports.adapters import Adapters
from pegboard.testing import FakeRanker
from sdk_servers import pegboard_command

from .clients import ADA, BOB, ERAS, MODERN, connected, until, way_in

NOTE_ADD = "notes/note_add"


@asynccontextmanager
async def served(config: Path, *, finds: str = NOTE_ADD) -> AsyncIterator[tuple[str, FakeRanker]]:
    """Serve over HTTP in this process, with a ranker that finds one tool and logs what it is given."""
    ranker = FakeRanker(finds)
    async with Pegboard.open(config, adapters=Adapters(ranker=ranker)) as board, serving(board, port=0) as url:
        yield url, ranker


async def search(pegboard: Any, *queries: str, **meta: str) -> None:
    await pegboard.call("search_tools", {f"pegboard/{name}": value for name, value in meta.items()}, queries=queries)


async def test_earlier_searches_of_a_session_are_the_context_of_one_that_fits_nothing(config: Path) -> None:
    """P3, G1: over every request of the session, in whatever turn; not of another session."""
    async with served(config, finds="nothing") as (url, ranker), connected(url, MODERN) as pegboard:
        await search(pegboard, "a flight to Oslo", turn="1")
        await search(pegboard, "a hotel", turn="1")
        await search(pegboard, "a train", turn="2")
        assert ranker.contexts[-1].messages == ("a flight to Oslo", "a hotel")
        await search(pegboard, "a boat", "a bus", session="another")
        assert ranker.contexts[-1].messages == ()
        await search(pegboard, "a hotel")
        assert ranker.contexts[-1].messages == ("a flight to Oslo", "a train")


async def test_what_a_client_calls_after_a_search_is_remembered(config: Path) -> None:
    """P3: a tool that is called by name, and one through `call_tool`; one turn's search is not answered in the next."""
    async with served(config) as (url, ranker), connected(url, MODERN) as pegboard:
        await search(pegboard, "write something down", turn="1")
        await pegboard.load("notes")
        assert not (await pegboard.call("note_add", {"pegboard/turn": "1"}, text="x")).is_error
        await search(pegboard, "keep a thought", turn="2")
        through = {"name": "note_add", "arguments": {"text": "y"}}
        assert not (await pegboard.call("call_tool", {"pegboard/turn": "2"}, **through)).is_error
        assert not (await pegboard.call("call_tool", {"pegboard/turn": "3"}, **through)).is_error
        await search(pegboard, "anything", session="another", turn="4")
        assert ranker.contexts[-1].used == (
            PastUse(need="write something down", tool=NOTE_ADD),
            PastUse(need="keep a thought", tool=NOTE_ADD),
        )


async def test_two_principals_of_a_gateway_never_share_what_they_used(config_with_tokens: Path) -> None:
    """S1, G2: the same agent, the same session id, the same words."""
    async with (
        served(config_with_tokens) as (url, ranker),
        connected(url, MODERN, token=ADA) as ada,
        connected(url, MODERN, token=BOB) as bob,
    ):
        await search(ada, "write something down")
        await ada.load("notes")
        assert not (await ada.call("call_tool", name="note_add", arguments={"text": "x"})).is_error
        await search(bob, "write something down")
        assert (ranker.contexts[-1].messages, ranker.contexts[-1].used) == ((), ())
        await search(ada, "write something down")
        assert [use.tool for use in ranker.contexts[-1].used] == [NOTE_ADD]


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_what_a_client_used_outlives_the_gateway(config: Path, kind: str) -> None:
    """S2: the next process finds it in the store, under the principal of either way in."""
    async with way_in(kind, config) as target, connected(target, ERAS[1]) as pegboard:
        await search(pegboard, "add a note")
        await pegboard.load("notes")
        assert not (await pegboard.call("note_add", text="x")).is_error
    async with served(config) as (url, ranker), connected(url, MODERN) as pegboard:
        await search(pegboard, "anything")
        assert [(use.need, use.tool) for use in ranker.contexts[-1].used] == [("add a note", NOTE_ADD)]


async def forgotten(config: Path) -> int:
    """Return how many uses the command forgets, in a process of its own."""
    command = pegboard_command("session", "forget", "--config", str(config), "--json")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return json.loads((await process.communicate())[0])["forgotten"]


async def test_what_the_command_forgets_counts_no_more_in_a_gateway_that_runs(config: Path) -> None:
    """S1: at its next search, in the same session."""
    async with served(config) as (url, ranker), connected(url, MODERN) as pegboard:
        await search(pegboard, "write something down")
        await pegboard.load("notes")
        assert not (await pegboard.call("call_tool", name="note_add", arguments={"text": "x"})).is_error
        await search(pegboard, "anything")
        assert len(ranker.contexts[-1].used) == 1

        async def gone() -> bool:  # what was called may still wait for its batch
            return await forgotten(config) == 1

        await until(gone)
        await search(pegboard, "anything else")
        assert ranker.contexts[-1].used == ()
