"""What is indexed beside a search for operators: its failure is said and tried again, and it ends with the console."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.core.surface.searchable import Searchable
from pegboard.operators.subjects import make_subjects
from pegboard.ports import Adapters
from pegboard.testing import FakeRanker

NOTES = '''
def write_note(text: str) -> str:
    """Write a note."""
    return text
'''


class SlowRanker(FakeRanker):
    """A ranker that prepares nothing before it may, and fails where ``failing`` says so."""

    def __init__(self) -> None:
        super().__init__("write_note")
        self.may = asyncio.Event()
        self.failing = True

    async def prepare(self, among: Searchable) -> None:
        await super().prepare(among)
        await self.may.wait()
        if self.failing:
            raise OSError("the table cannot be read")


@pytest.fixture
async def ranker() -> SlowRanker:
    return SlowRanker()


@pytest.fixture
async def board(tmp_path: Path, ranker: SlowRanker) -> AsyncIterator[Pegboard]:
    (tmp_path / "noting.py").write_text(NOTES)
    (tmp_path / "pegboard.yaml").write_text(
        'plugins: {notes: {python: noting}}\nagents: {ada: {discoverable: ["*"], dialect: pegboard}}\n'
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml", adapters=Adapters(ranker=ranker)) as board:
        await board.ready("notes")
        yield board


def indexing() -> list[asyncio.Task[object]]:
    """Return the tasks that index something."""
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("index ")]


async def test_a_failure_to_index_is_logged_said_once_and_tried_again(
    board: Pegboard, ranker: SlowRanker, caplog: pytest.LogCaptureFixture
) -> None:
    subjects = make_subjects(board.services)
    assert (await subjects.search.for_agent("ada", "note")).indexing
    assert {task.get_name() for task in indexing()} == {"index everything", "index a part"}
    ranker.may.set()
    await asyncio.wait(indexing())
    assert {record.getMessage() for record in caplog.records if record.exc_info} == {
        "could not index everything",
        "could not index a part",
    }
    with pytest.raises(OSError, match="the table"):
        await subjects.search.for_agents(("ada",), "note")
    ranker.failing = False
    assert "write_note" in {hit.name for hit in (await subjects.search.for_agents(("ada",), "note")).hits}


async def test_with_the_console_ends_what_is_being_indexed(board: Pegboard) -> None:
    app = ConsoleApp(board, OperatorAccess(lambda: board.configuration.tokens))
    subjects = app._context.subjects
    waiting = asyncio.create_task(subjects.search.for_agent("ada", "note"))
    assert (await subjects.search.for_agent("ada", "note")).indexing
    assert indexing()
    await app.close()
    assert indexing() == []
    assert (await waiting).indexing
