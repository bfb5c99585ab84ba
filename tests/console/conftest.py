"""A browser for every test that asks for one: its start takes less time than a page, and loops need no care."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from .browser import PATIENCE, started

expect.set_options(timeout=PATIENCE)


@pytest.fixture
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    async with started(chromium) as browser:
        yield browser


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Return where screenshots are written: into the documentation where `make screenshots` says so."""
    return Path(os.environ.get("PEGBOARD_SCREENSHOTS") or tmp_path / "screenshots")
