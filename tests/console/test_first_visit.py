"""Coming to the console: with a code or a token, in both themes, by keyboard."""

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from gateway.clients import ADA, BOB, HANDSHAKE, edit

from .browser import Theme, findings, opened, tab_to
from .running import running

CONFIG = """
store: sqlite:///state.db
plugins:
  notes: {python: notes_tools}
agents:
  default: {discoverable: ["*"]}
  mailer: {}
"""
NOTES = '''
def note_add(text: str) -> str:
    """Add a note."""
    return f"added {text}"
'''
TOKENS = """
tokens:
  ada: {token: ada-s3cret-token, agents: [mailer], console: true}
  bob: {token: bob-s3cret-token, agents: [default]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    return path


@pytest.fixture
def config_with_tokens(config: Path) -> Path:
    config.write_text(CONFIG + TOKENS)
    return config


@pytest.mark.parametrize(("theme", "width"), [("light", 400), ("dark", 1600)])
async def test_a_one_time_code_leads_to_what_goes_on_now(
    browser: Browser, config: Path, axe_core: str, theme: Theme, width: int
) -> None:
    """G2: the page is there in both themes, narrow and wide, without a finding of axe-core."""
    async with running(config) as console, opened(browser, console.origin, theme=theme, width=width) as page:
        await console.sign_in(page)
        await expect(page).to_have_url(re.compile(r"/console$"))
        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        if width < 1_000:
            await page.get_by_role("button", name="Menu").click()
        await page.get_by_role("link", name="Access", exact=True).click()
        await expect(page.get_by_role("rowheader")).to_have_text(["default", "mailer"])
        assert await findings(page, axe_core) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_who_is_not_signed_in_is_asked_for_a_code(
    browser: Browser, config: Path, axe_core: str, theme: Theme
) -> None:
    """G2: a code typed in works as the printed address does, once, and without a mouse."""
    async with running(config) as console, opened(browser, console.origin, theme=theme, expected="401") as page:
        await page.goto("/console/access")
        code = console.access.codes.new()
        await expect(page.get_by_label("One-time code")).to_be_focused()
        assert await findings(page, axe_core) == []
        await page.keyboard.type(code)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        await tab_to(page, page.locator(".who summary"))
        await page.keyboard.press("Enter")
        await tab_to(page, page.get_by_role("button", name="Sign out"))
        await page.keyboard.press("Enter")
        await page.get_by_label("One-time code").fill(code)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").first).to_have_text("This code is no longer valid.")


async def test_the_content_is_one_key_away(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()


async def test_an_operator_signs_in_with_a_token_and_sees_the_agents_of_it(
    browser: Browser, config_with_tokens: Path
) -> None:
    """G2: a token without `console: true` opens the gateway and not the console."""
    async with running(config_with_tokens) as console, opened(browser, console.origin, expected="401") as page:
        await page.goto("/console")
        await page.get_by_label("Token").fill(BOB)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").first).to_have_text("This token has no operator rights.")
        await console.sign_in(page, ADA)
        await page.goto("/console/access")
        await expect(page.get_by_role("rowheader")).to_have_text(["mailer"])


async def test_an_open_page_follows_what_changes_while_a_client_works(browser: Browser, config: Path) -> None:
    """One gateway serves the page and the clients of both eras."""
    async with running(config) as console, opened(browser, console.origin) as page, console.client(HANDSHAKE) as client:
        await console.sign_in(page)
        await page.goto("/console/access")
        await client.load("notes")
        assert await client.text("call_tool", name="note_add", arguments={"text": "tea"}) == "added tea"
        edit(config, "mailer:", "courier:")
        await expect(page.get_by_role("rowheader")).to_have_text(["default", "courier"])
        await expect(page.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()


async def test_an_open_page_says_that_the_gateway_has_ended(browser: Browser, config: Path) -> None:
    """Its stream does not keep the gateway from ending, and what it shows is no longer called live."""
    async with AsyncExitStack() as gateway:
        console = await gateway.enter_async_context(running(config))
        async with opened(browser, console.origin, expected="ERR_") as page:
            await console.sign_in(page)
            lost = page.get_by_text("The connection to the gateway is lost")
            await expect(lost).to_be_hidden()
            await gateway.aclose()
            await expect(lost).to_be_visible()
