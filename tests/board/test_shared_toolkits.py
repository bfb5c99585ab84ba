"""Toolkits that two agents of one session share: loads and unloads of either count for both."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session
from pegboard.core.model.delivery import GATEWAY_HANDSHAKE

CONFIG = """
store: sqlite:///pegboard.db
plugins: {notes: {python: note_tools}, sums: {python: sum_tools}}
toolkits:
  paper: {tools: [notes], share_with: [writer, reviewer, outsider]}
  maths: {tools: [sums]}
agents:
  writer: {allowed_toolkits: [paper, maths], dialect: pegboard}
  reviewer: {allowed_toolkits: [paper, maths], lease: {kind: idle, turns: 1}, dialect: pegboard}
  outsider: {allowed_toolkits: [maths], dialect: pegboard}
  loner: {allowed_toolkits: [paper], dialect: pegboard}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text('def note() -> str:\n    """Note."""\n    return "noted"\n')
    (tmp_path / "sum_tools.py").write_text('def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n')
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as opened:
        yield opened


async def session(board: Pegboard, agent: str, **more: Any) -> Session:
    given: dict[str, Any] = {"session_id": "s", **more}
    return await board.session(agent=agent, **given)


async def has(session: Session) -> set[str]:
    return set((await session.surface()).names) & {"note", "add"}


async def test_a_load_and_an_unload_by_either_count_for_both(board: Pegboard) -> None:
    """S1: in the same principal and session id; only the toolkit that names both."""
    writer, reviewer = await session(board, "writer"), await session(board, "reviewer")
    await writer.load("paper", "maths")
    assert (await has(writer), await has(reviewer)) == ({"note", "add"}, {"note"})
    assert (await reviewer.call("note")).status == "ok"
    assert (await reviewer.load("paper")).items[0].status == "already_loaded"
    assert (await reviewer.unload("paper")).items[0].status == "unloaded"
    assert (await has(writer), await has(reviewer)) == ({"add"}, set())
    assert (await writer.call("note")).status == "not_loaded"


@pytest.mark.parametrize("other", [{"session_id": "t"}, {"principal": "bob"}])
async def test_another_session_or_principal_shares_nothing(board: Pegboard, other: Mapping[str, str]) -> None:
    """S1: and neither does an agent that the toolkit does not name, whichever of them loads."""
    await (await session(board, "writer")).load("paper")
    assert await has(await session(board, "reviewer", **other)) == set()
    assert await has(await session(board, "loner")) == set()
    loner = await session(board, "loner", session_id="u")
    await loner.load("paper")
    assert await has(await session(board, "writer", session_id="u")) == set()


async def test_each_needs_its_own_permission(board: Pegboard) -> None:
    """S1, P1, P4: one that is not allowed it has nothing, and a switch takes it from one alone."""
    await (await session(board, "writer")).load("paper")
    assert await has(await session(board, "outsider")) == set()
    await board.permissions.set("reviewer", "paper", False)
    assert await has(await session(board, "reviewer")) == set()
    assert await has(await session(board, "writer")) == {"note"}
    trail = await board.services.store.entries(session="s", kind="load")
    assert {(entry.agent, entry.decision) for entry in trail} == {("writer", "allowed"), ("reviewer", "allowed")}


async def test_each_keeps_its_own_turns_and_lease(board: Pegboard) -> None:
    """S1, S7: what idles away for one stays for the other, and a load brings it back for both."""
    writer, reviewer = await session(board, "writer"), await session(board, "reviewer")
    await writer.load("paper")
    for _ in range(3):
        await reviewer.end_turn()
    assert (await has(writer), await has(reviewer)) == ({"note"}, set())
    assert (await writer.load("paper")).items[0].status == "already_loaded"
    assert await has(reviewer) == {"note"}


async def test_explain_says_who_loaded_it(board: Pegboard) -> None:
    """S1, F5: the agent with which it is shared."""
    await (await session(board, "writer")).load("paper")
    found = await (await session(board, "reviewer")).explain("note")
    assert (found.loaded, found.callable) == (True, True)
    assert [reason.text for reason in found.reasons if reason.code == "loaded_loaded"] == [
        (
            "It is loaded because toolkit 'paper' was loaded by agent 'writer', which shares it, in turn 1, "
            "until it is unused for a turn."
        )
    ]


async def test_a_child_shares_nothing(board: Pegboard) -> None:
    """S1, P8: no one else has its session id."""
    child = await (await session(board, "writer")).child("general")
    await child.load("paper")
    stored = await board.services.store.sessions()
    assert {key.agent for key, _ in stored} == {"writer"}


async def test_writers_of_both_agents_lose_nothing(board: Pegboard) -> None:
    """S1, S2: whoever was overtaken in either state decides again for both."""
    writer, reviewer = await session(board, "writer"), await session(board, "reviewer")
    for _ in range(20):
        await asyncio.gather(
            writer.load("paper"), reviewer.load("maths"), reviewer.load("paper"), writer.load("maths"),
        )  # fmt: skip
        assert (await has(writer), await has(reviewer)) == ({"note", "add"}, {"note", "add"})
        await asyncio.gather(
            writer.unload("paper"), reviewer.unload("maths"), reviewer.end_turn(), writer.unload("maths"),
        )  # fmt: skip
        assert (await has(writer), await has(reviewer)) == (set(), set())


async def test_a_client_of_the_other_agent_is_notified(board: Pegboard) -> None:
    """S1, G5, X4: the event is that of its session."""
    seen: list[tuple[str, str, str]] = []
    for event in ("loaded", "unloaded"):
        board.on(event, lambda record: seen.append((record["event"], record["agent"], record["session"])))
    writer = await session(board, "writer", host=GATEWAY_HANDSHAKE)
    await writer.load("paper")
    await writer.unload("paper")
    events = [(event, agent) for event in ("loaded", "unloaded") for agent in ("writer", "reviewer")]
    assert seen == [(*event, "s") for event in events]


KILLED = """
import asyncio, os, signal, sys
from pegboard import Pegboard

async def main():
    async with Pegboard.open(sys.argv[1]) as board:
        session = await board.session(agent="writer", session_id="s")
        await session.load("paper")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_shared_load_survives_a_kill(config: Path) -> None:
    """S1, S2: it was stored for both before its answer was given."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(config))
    assert await process.wait() == -9
    async with Pegboard.open(config) as board:
        assert await has(await session(board, "reviewer")) == {"note"}
        assert await has(await session(board, "writer")) == {"note"}
