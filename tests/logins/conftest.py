"""A board over the protected server of the tests, and a person with a browser."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from pegboard import Pegboard

__all__ = ["board", "configuration", "person", "running_site", "site"]

Person = Callable[[str, str], Awaitable[httpx2.Response]]


@pytest.fixture
def configuration(site: LoginSite, tmp_path: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{tmp_path}/pegboard.db",
        "servers": {"linear": {"url": site.url}},
        "agents": {"default": {"tools": ["linear"]}},
    }


@pytest.fixture
async def board(configuration: dict[str, Any]) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(configuration) as board:
        yield board


@pytest.fixture
async def person() -> AsyncIterator[Person]:
    """Return someone who opens an address as an account, and follows wherever the browser is sent."""
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:

        async def opens(url: str, account: str = "ada") -> httpx2.Response:
            return await browser.get(f"{url}&account={account}")

        yield opens
