"""What the contract tests share: a driver, a board."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from framework_drivers import Driver
from framework_tools import RAN
from framework_world import CONFIG, DRIVERS

from pegboard import Pegboard

Opened = Callable[[], AbstractAsyncContextManager[Pegboard]]


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    RAN.clear()
    return request.param


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Return what opens a board over a stored file; opened again, it is as after a restart."""
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return lambda: Pegboard.open(tmp_path / "pegboard.yaml")


@pytest.fixture
async def board(opened: Opened) -> AsyncIterator[Pegboard]:
    async with opened() as board:
        yield board
