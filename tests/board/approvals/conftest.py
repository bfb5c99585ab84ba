"""A board over a plugin whose calls a person approves."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from approved_files import set_up

from pegboard import Pegboard, Session


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    set_up(path)
    return path


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


@pytest.fixture
async def ada(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread")
