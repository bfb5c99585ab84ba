"""The pages of sessions, the audit trail and the bill, in a browser beside clients of both eras."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect

from gateway.clients import HANDSHAKE
from pegboard.operators.sessions import remove_session
from pegboard.ports import SessionKey

from .browser import findings, opened, tab_to
from .running import running

CONFIG = """
store: sqlite:///state.db
plugins:
  notes: {python: notes_tools}
  sums: {python: sum_tools}
toolkits:
  counting: {tools: [sums], description: "Count things."}
agents:
  default: {tools: [notes], allowed_toolkits: [counting], dialect: pegboard}
  other: {tools: [notes]}
"""
NOTES = '''
def note_add(text: str) -> str:
    """Add a note."""
    return f"added {text}"
'''
SUMS = '''
def sum_up(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    (tmp_path / "sum_tools.py").write_text(SUMS)
    return path


@pytest.fixture
def config_for_ada(config: Path) -> Path:
    config.write_text(CONFIG + "tokens: {ada: {token: ada-s3cret-token, agents: [other], console: true}}")
    return config


def address(session: str, agent: str = "default", principal: str = "local") -> str:
    return f"/console/session?principal={quote(principal)}&agent={quote(agent)}&session={quote(session)}"


async def test_a_page_of_a_session_follows_a_load_and_unloads_what_the_client_has(
    browser: Browser, config: Path
) -> None:
    """S10, P4: what a client loads appears without a reload; what an operator unloads leaves the client's list."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        async with console.client(HANDSHAKE) as client:
            await client.call("note_add", text="a")
            await page.goto(address("s"))
            await expect(page.get_by_role("rowheader", name="sum_up")).to_have_count(0)
            await client.load("counting")
            await expect(page.get_by_role("rowheader", name="sum_up")).to_be_visible()
            await page.get_by_role("button", name="Unload toolkit:counting").click()
            await expect(page.get_by_role("status")).to_contain_text("counting")
            await expect(page.get_by_role("rowheader", name="sum_up")).to_have_count(0)
            assert "sum_up" not in await client.names()


async def test_the_open_list_follows_sessions_that_load_nothing(browser: Browser, config: Path) -> None:
    """S10: from the first request on."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto("/console/sessions")
        for name in ("first", "second"):
            await (await console.board.session(agent="default", session_id=name)).surface()
            await expect(page.get_by_role("link", name=name)).to_be_visible()


async def test_a_session_is_loaded_ended_and_deleted_by_keyboard(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="thread", principal="ada")
        await session.surface()
        await page.goto(address("thread", principal="ada"))
        await tab_to(page, page.get_by_label("Toolkits, plugins or tools"))
        await page.keyboard.type("counting")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("rowheader", name="sum_up")).to_be_visible()
        await tab_to(page, page.get_by_role("button", name="End the turn"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("Turn 2 now.")
        await tab_to(page, page.get_by_role("button", name="Delete …"))
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        await tab_to(page, dialog.get_by_role("button", name="Delete"))
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"{console.origin}/console/sessions")
        records = await console.board.services.store.entries(session="thread", kind="unload")
        assert records[0].by == "local"


@pytest.mark.parametrize("called", [False, True])
async def test_a_session_that_is_deleted_elsewhere_is_said_to_be_gone_at_once(
    browser: Browser, config: Path, called: bool
) -> None:
    """X4: its calls stay on the audit trail, and are no reason to show it."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="short", principal="ada")
        await session.load("counting")
        if called:
            assert (await session.call("note_add", {"text": "a"})).status == "ok"
        await page.goto(address("short", principal="ada"))
        await remove_session(console.board.services, session.key, by="grace")
        await expect(page.get_by_role("alert")).to_contain_text("There is no session 'short'")


async def test_what_is_asked_of_a_deleted_session_is_answered_that_it_is_gone(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin, expected="status of 404") as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="short", principal="ada")
        await session.load("counting")
        await page.goto(address("short", principal="ada"))
        await remove_session(console.board.services, session.key, by="grace")
        await page.get_by_label("Toolkits, plugins or tools").fill("counting")
        await page.get_by_role("button", name="Load", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("There is no session 'short'")


async def test_a_session_of_an_agent_that_left_the_configuration_is_shown_and_deleted(
    browser: Browser, config: Path, axe_core: str
) -> None:
    """S3, X4: its page says what is wrong, and offers nothing else."""
    async with running(config) as console, opened(browser, console.origin) as page:
        key = SessionKey(principal="ada", agent="gone", session="old")
        lease = {"subject": "toolkit:counting", "until": "unload", "because": "loaded", "loaded": 1, "used": 1}
        state = json.dumps({"turn": 2, "leases": [lease]})
        await console.board.services.store.save(key, state, expected=0)
        await console.sign_in(page)
        await page.goto("/console/sessions")
        await page.get_by_role("link", name="old").click()
        await expect(page.get_by_role("main")).to_contain_text("There is no agent 'gone'.")
        await expect(page.get_by_role("main").get_by_role("button")).to_have_text(["Delete …"])
        await expect(page.get_by_role("link", name="gone")).to_have_count(0)
        assert await findings(page, axe_core) == []
        await page.get_by_role("button", name="Delete …").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page).to_have_url(f"{console.origin}/console/sessions")
        assert await console.board.services.store.load(key) is None


async def test_the_trail_is_filtered_followed_and_exported(browser: Browser, config: Path) -> None:
    """X4: what happens appears on the open page; a file has what the filter selects, and no formula."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto("/console/activity?kind=call")
        await expect(page.get_by_role("main")).to_contain_text("No match.")
        session = await console.board.session(agent="default", session_id="=1+1")
        await session.call("note_add", {"text": "a"})
        await expect(page.get_by_role("rowheader", name="note_add")).to_be_visible()
        async with page.expect_download() as started:
            await page.get_by_role("link", name="CSV").click()
        text = (await (await started.value).path()).read_text("utf-8")
        assert text.count("\n") == 2
        assert "'=1+1" in text
        assert ",=1+1" not in text


async def test_an_operator_of_one_agent_sees_nothing_of_another(browser: Browser, config_for_ada: Path) -> None:
    """G2: sessions, records and the bill of other agents look as if there were none."""
    async with running(config_for_ada) as console, opened(browser, console.origin, expected="status of 404") as page:
        await console.sign_in(page, "ada-s3cret-token")
        for agent in ("default", "other"):
            session = await console.board.session(agent=agent, session_id=f"of-{agent}", principal="bob")
            await session.surface()
            await session.call("note_add", {"text": "a"})
        for path in ("/console/sessions", "/console/activity", "/console/cost?by=session"):
            await page.goto(path)
            await expect(page.get_by_role("main")).to_contain_text("of-other")
            await expect(page.get_by_role("main")).not_to_contain_text("of-default")
        await page.goto(address("of-default", principal="bob"))
        await expect(page.get_by_role("main")).to_contain_text("There is no agent 'default'")
