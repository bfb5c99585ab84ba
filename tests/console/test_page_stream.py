"""What changes between the rendering of a page and the opening of its stream."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser, Route, expect

from gateway.clients import edit
from pegboard import Pegboard
from pegboard.console.updates import changes

from .browser import opened
from .programs import serving
from .running import running
from .sites import site

CONFIG = """
plugins: {notes: {python: note_tools}}
toolkits: {paper: {tools: [notes]}}
agents: {default: {allowed_toolkits: [paper], dialect: pegboard}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text('def note() -> str:\n    """Write."""\n    return "written"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize("kept", [10.0, 0.0])
async def test_what_changes_while_a_page_opens_is_shown(
    browser: Browser, config: Path, monkeypatch: pytest.MonkeyPatch, kept: float
) -> None:
    """P4: also where the stream opens after what was kept for it is gone."""
    monkeypatch.setattr(changes, "KEPT_FOR", kept)
    rendered = asyncio.Event()

    async with running(config) as console, opened(browser, console.origin) as page:

        async def change(route: Route) -> None:
            await expect(page.get_by_role("switch", name="paper")).to_have_attribute("aria-checked", "true")
            await console.board.permissions.set("default", "paper", False)
            rendered.set()
            await route.continue_()

        await console.sign_in(page)
        await page.route("**/console/events*", change)
        await page.goto("/console/agent?agent=default")
        await rendered.wait()
        await expect(page.get_by_role("switch", name="paper")).to_have_attribute("aria-checked", "false")


async def test_a_stream_goes_on_from_where_a_page_was_rendered_or_says_that_it_starts(config: Path) -> None:
    """P4: whatever an address holds that is not one of this process."""
    edit(config, "agents:", "tokens: {ada: {token: ada-ada-ada-ada-ada-ada, agents: ['*'], console: true}}\nagents:")
    headers = {"authorization": "Bearer ada-ada-ada-ada-ada-ada"}
    async with AsyncExitStack() as stack:
        board = await stack.enter_async_context(Pegboard.open(config))
        app, _ = await stack.enter_async_context(serving(board))
        origin = await stack.enter_async_context(site(app))
        client = await stack.enter_async_context(httpx2.AsyncClient(base_url=origin, headers=headers, timeout=60))
        page = (await client.get("/console/agents")).text
        assert page == (await client.get("/console/agents")).text
        found = re.search(r'data-events="(/console/events\?after=(\w+)-(\d+))"', page)
        assert found is not None
        address, started, number = found.groups()

        async def first_event(address: str) -> list[str]:
            async with client.stream("GET", address) as stream:
                return [line async for line in _lines_of_an_event(stream)]

        await board.permissions.set("default", "paper", False)
        for _ in range(2):
            event, data = await first_event(address)
            assert (event, "switches" in data) == ("event: changed", True)
        others = ("", "x", f"x-{number}", started, f"{started}-", f"{started}-0", f"{started}-²", f"-{number}")
        for after in (*others, f"{started}-{int(number) + 100}", f"{started}-{'9' * 5000}"):
            assert (await first_event(f"/console/events?after={after}"))[0] == "event: started", after


async def _lines_of_an_event(stream: httpx2.Response) -> AsyncIterator[str]:
    async for line in stream.aiter_lines():
        if line.startswith(("event:", "data:")):
            yield line
        if line.startswith("data:"):
            return
