"""What changes between the rendering of a page and the opening of its stream."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, Page, Route, expect

from gateway.clients import until
from pegboard import Pegboard, StoreError
from pegboard.console.templating import Templates
from pegboard.console.updates import changes
from pegboard.ports import ChangeToken
from pegboard.ports.adapters import Adapters
from pegboard.stores.sql import SqliteStore

from .browser import opened
from .programs import serving
from .running import Console, running
from .sites import site

CONFIG = """
store: sqlite:///state.db
plugins: {notes: {python: note_tools}}
toolkits: {paper: {tools: [notes]}}
agents: {default: {allowed_toolkits: [paper], dialect: pegboard}}
"""
TOKENS = "tokens: {ada: {token: ada-ada-ada-ada-ada-ada, agents: ['*'], console: true}}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text('def note() -> str:\n    """Write."""\n    return "written"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def with_token(config: Path) -> Path:
    """Return a configuration with an operator who is a program."""
    config.write_text(CONFIG + TOKENS)
    return config


async def signed_in(console: Console, page: Page) -> None:
    """Sign in, and leave the page that this opens: its stream may open late, and would be taken for the next page's."""
    await console.sign_in(page)
    await page.goto("about:blank")


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

        await signed_in(console, page)
        await page.route("**/console/events*", change, times=1)
        await page.goto("/console/agent?agent=default")
        await rendered.wait()
        await expect(page.get_by_role("switch", name="paper")).to_have_attribute("aria-checked", "false")


async def test_a_page_that_is_slow_to_begin_misses_nothing(
    browser: Browser, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: its stream opens only where what asks for its parts hears of them."""
    monkeypatch.setattr(changes, "KEPT_FOR", 0.0)
    slow = "const timer = setTimeout; window.setTimeout = (run, after = 0) => timer(run, after || 500)"

    async with running(config) as console, opened(browser, console.origin) as page:

        async def change(route: Route) -> None:
            await console.board.permissions.set("default", "paper", False)
            await route.continue_()

        await signed_in(console, page)
        await page.add_init_script(slow)
        await page.route("**/console/events*", change, times=1)
        await page.goto("/console/agent?agent=default")
        await expect(page.get_by_role("switch", name="paper")).to_have_attribute("aria-checked", "false")


async def test_a_page_whose_sign_in_has_ended_leads_to_the_next_one(browser: Browser, config: Path) -> None:
    """G2: as after a restart of the gateway, which knows no sign-in of before."""
    async with running(config) as console, opened(browser, console.origin, expected="status of 401") as page:

        async def end(route: Route) -> None:
            await page.context.clear_cookies()
            await route.fulfill(status=401)

        await signed_in(console, page)
        await page.route("**/console/events*", end, times=1)
        await page.goto("/console/access")
        await expect(page).to_have_url(f"{console.origin}/console/sign-in")


@asynccontextmanager
async def reading(board: Pegboard) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve the console of a board to a program that may see everything."""
    async with AsyncExitStack() as stack:
        app, _ = await stack.enter_async_context(serving(board))
        origin = await stack.enter_async_context(site(app))
        headers = {"authorization": "Bearer ada-ada-ada-ada-ada-ada"}
        yield await stack.enter_async_context(httpx2.AsyncClient(base_url=origin, headers=headers, timeout=60))


def stream_of(page: str) -> tuple[str, str, str]:
    """Return the address of a page's stream, which process named it, and after which change it goes on."""
    found = re.search(r'data-events="(/console/events\?after=(\w+)-(\d+))"', page)
    assert found is not None
    return found[1], found[2], found[3]


async def first_event(client: httpx2.AsyncClient, address: str) -> tuple[str, str]:
    """Return the first event of a stream, and what it is about."""
    async with client.stream("GET", address) as stream:
        event, data = [line async for line in _lines_of_an_event(stream)]
    return event, data


async def _lines_of_an_event(stream: httpx2.Response) -> AsyncIterator[str]:
    async for line in stream.aiter_lines():
        if line.startswith(("event:", "data:")):
            yield line
        if line.startswith("data:"):
            return


def switch_off(folder: Path) -> None:
    """Switch a toolkit off as another process does, at once."""
    with closing(sqlite3.connect(folder / "state.db")) as other, other:
        other.execute("INSERT OR REPLACE INTO switch VALUES ('default', 'paper', 0)")
        other.execute("UPDATE counter SET value = value + 1 WHERE name = 'permissions'")


async def test_a_stream_goes_on_from_where_a_page_was_rendered_or_says_that_it_starts(with_token: Path) -> None:
    """P4: whatever an address holds that is not one of this process."""
    async with Pegboard.open(with_token) as board, reading(board) as client:
        page = ""
        async with asyncio.timeout(60):  # until what the number in the navigation counts is known
            while page != (newest := (await client.get("/console/access")).text):
                page = newest
        address, started, number = stream_of(page)
        await board.permissions.set("default", "paper", False)
        for _ in range(2):
            assert (await first_event(client, address))[0] == "event: changed"
        others = ("", "x", f"x-{number}", started, f"{started}-", f"{started}-0", f"{started}-²", f"-{number}")
        for after in (*others, f"{started}-{int(number) + 100}", f"{started}-{'9' * 5000}"):
            assert (await first_event(client, f"/console/events?after={after}"))[0] == "event: started", after


@pytest.mark.parametrize("path", ["/console/activity", "/console/agent?agent=default", "/console/approvals"])
async def test_what_another_process_stores_while_a_page_is_rendered_comes_with_its_stream(
    with_token: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """S2, P4: the page is compared with what was stored before it was read."""
    real = Templates.page

    def page(*given: Any, **values: Any) -> Any:
        switch_off(with_token.parent)
        return real(*given, **values)

    async with Pegboard.open(with_token) as board, reading(board) as client:
        await board.ready()
        monkeypatch.setattr(Templates, "page", page)
        address, _, _ = stream_of((await client.get(path)).text)
        event, data = await first_event(client, address)
        assert (event, "switches" in data) == ("event: changed", True)


class OutageStore(SqliteStore):
    """A store that cannot be looked at for a while."""

    outage = False
    refused = 0

    async def change_token(self, since: float | None = None) -> ChangeToken:
        if self.outage:
            self.refused += 1
            raise StoreError("It cannot be read.")
        return await super().change_token(since)


class SlowStore(SqliteStore):
    """A store that is looked at only once ``go`` is set."""

    looks = 0

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = asyncio.Event()
        self.go.set()

    async def change_token(self, since: float | None = None) -> ChangeToken:
        self.looks += 1
        await self.go.wait()
        return await super().change_token(since)


async def test_a_stream_that_opens_while_the_one_before_it_ends_hears_of_changes(
    with_token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: what was kept for a page ends while the store is looked at for the stream of another."""
    monkeypatch.setattr(changes, "KEPT_FOR", 0.1)
    store = SlowStore(with_token.with_name("state.db"))
    async with Pegboard.open(with_token, adapters=Adapters(store=store)) as board:
        await board.ready()
        of_board, before = changes.Changes(board), store.looks
        store.go.clear()

        async def hear() -> frozenset[str]:
            async with of_board.listening() as (listener, _):
                await board.permissions.set("default", "paper", False)
                return await listener.wait(5)

        kept = asyncio.create_task(of_board.keep_from_now())
        await until(lambda: store.looks > before)
        heard = asyncio.create_task(hear())
        await asyncio.wait({kept}, timeout=0.3)
        store.go.set()
        assert "switches" in await heard
        of_board.close()
        await kept


async def test_what_another_process_stores_while_the_store_cannot_be_read_is_heard_of(
    with_token: Path,
) -> None:
    """S2, P4: once, and nothing before that could not be read either."""
    store = OutageStore(with_token.with_name("state.db"))
    async with Pegboard.open(with_token, adapters=Adapters(store=store)) as board, reading(board) as client:
        await board.ready()
        await client.get("/console/clients")
        store.outage = True
        await until(lambda: store.refused > 1)
        address, _, _ = stream_of((await client.get("/console/clients")).text)
        switch_off(with_token.parent)
        before = store.refused
        await until(lambda: store.refused > before + 1)
        store.outage = False
        event, data = await first_event(client, address)
        assert (event, "switches" in data) == ("event: changed", True)
