"""What is counted beside an operator's answers, where that fails and where it ends early."""

import asyncio
from pathlib import Path

import pytest

from gateway.clients import until
from pegboard import Pegboard
from pegboard.operators import counting
from pegboard.operators.counting import CatalogCounting


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text('def note() -> str:\n    """Write."""\n    return "written"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text("plugins: {notes: {python: note_tools}}\nagents: {default: {discoverable: [notes]}}\n")
    return path


async def test_counting_that_fails_is_logged_and_tried_again(
    config: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """F4: one failure does not leave the tokens unknown for ever."""

    async def fail(*_: object) -> None:
        raise RuntimeError("no more")

    told: list[bool] = []
    async with Pegboard.open(config) as board:
        await board.ready()
        counted = CatalogCounting(board.services, lambda: told.append(True))
        with monkeypatch.context() as patched:
            patched.setattr(counting, "count_ahead", fail)
            assert await counted.done() is False
        assert ("could not be counted" in caplog.text, told) == (True, [])
        await until(counted.done)
        assert told == [True]
        await counted.aclose()


async def test_counting_ends_with_whoever_asked_for_it(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: nothing goes on behind a console that is closed."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    async with Pegboard.open(config) as board:
        await board.ready()
        monkeypatch.setattr(counting, "count_ahead", never)
        counted = CatalogCounting(board.services, lambda: None)
        assert await counted.done() is False
        await counted.aclose()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("count the tokens")] == []
