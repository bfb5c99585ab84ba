"""The session state of Agno's functions is kept in the store (G9)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session
from pegboard.operators.sessions import remove_session
from pegboard.ports import SessionKey

TOOLKIT = """
from agno.run import RunContext
from agno.tools import Toolkit

class Diary(Toolkit):
    def __init__(self):
        super().__init__(name="diary", tools=[self.note, self.read, self.replace])

    def note(self, run_context: RunContext, name: str, value: str) -> str:
        run_context.session_state.setdefault(name, []).append(object() if value == "object" else value)
        return "noted"

    def replace(self, run_context: RunContext, name: str) -> str:
        run_context.session_state = {name: ["replaced"]}
        return "replaced"

    def read(self, run_context: RunContext) -> str:
        shown = {k: [v if isinstance(v, str) else "an object" for v in values]
                 for k, values in run_context.session_state.items()}
        return str(dict(sorted(shown.items())))
"""
FILE = """
store: sqlite:///state.db
plugins: {diary: {python: "diary:Diary"}}
agents: {a: {tools: [diary]}, b: {tools: [diary]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "diary.py").write_text(TOOLKIT)
    path = tmp_path / "pegboard.yaml"
    path.write_text(FILE)
    return path


async def session(board: Pegboard, **more: Any) -> Session:
    given: dict[str, Any] = {"agent": "a", "session_id": "s", "principal": "ada", **more}
    return await board.session(**given)


async def said(session: Session, tool: str, **arguments: str) -> str:
    result = (await session.call(tool, arguments)).result
    assert not result.is_error, result
    return result.content[0]["text"]


async def test_the_state_of_a_session_outlives_the_process_and_is_of_that_session_alone(file: Path) -> None:
    """G9, S1: agent, session and principal each tell it from others."""
    async with Pegboard.open(file) as board:
        await said(await session(board), "note", name="city", value="Oslo")
    async with Pegboard.open(file) as board:
        assert await said(await session(board), "read") == "{'city': ['Oslo']}"
        for other in ({"agent": "b"}, {"session_id": "t"}, {"principal": "bob"}, {"session_id": None}):
            assert await said(await session(board, **other), "read") == "{}"


async def test_two_processes_that_keep_different_names_both_keep_them(file: Path) -> None:
    """S2: what one stored the other reads at its next call."""
    async with Pegboard.open(file) as one, Pegboard.open(file) as two:
        await said(await session(one), "note", name="city", value="Oslo")
        await said(await session(two), "note", name="fruit", value="fig")
        await said(await session(one), "note", name="city", value="Rome")
        for board in (one, two):
            assert await said(await session(board), "read") == "{'city': ['Oslo', 'Rome'], 'fruit': ['fig']}"


async def test_calls_at_once_in_one_session_work_on_one_state(file: Path) -> None:
    """S2: none of them is lost."""
    async with Pegboard.open(file) as board:
        ada = await session(board)
        await asyncio.gather(*(said(ada, "note", name=f"n{n}", value="v") for n in range(8)))
    async with Pegboard.open(file) as board:
        assert (await said(await session(board), "read")).count("['v']") == 8


async def test_what_is_no_json_stays_in_the_process_and_a_state_can_be_replaced(file: Path) -> None:
    """G9: a value that cannot be stored fails no call."""
    async with Pegboard.open(file) as board:
        ada = await session(board)
        await said(ada, "note", name="thing", value="object")
        await said(ada, "note", name="city", value="Oslo")
        assert await said(ada, "read") == "{'city': ['Oslo'], 'thing': ['an object']}"
    async with Pegboard.open(file) as board:
        ada = await session(board)
        assert await said(ada, "read") == "{'city': ['Oslo']}"
        await said(ada, "replace", name="fresh")
    async with Pegboard.open(file) as board:
        assert await said(await session(board), "read") == "{'fresh': ['replaced']}"


async def test_a_session_that_is_deleted_takes_its_state_with_it(file: Path) -> None:
    """G9: also what is in the memory of this process alone."""
    async with Pegboard.open(file) as board:
        ada = await session(board)
        await said(ada, "note", name="city", value="Oslo")
        await said(ada, "note", name="thing", value="object")
        assert await remove_session(board.services, SessionKey(principal="ada", agent="a", session="s"), by="ops")
        assert await said(await session(board), "read") == "{}"
