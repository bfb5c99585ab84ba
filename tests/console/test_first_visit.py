"""Coming to the console: by the printed address, in both themes, by keyboard."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from .browser import Theme, findings, opened, tab_to
from .running import running

CONFIG = """
plugins:
  notes: {python: no_such_module}
agents:
  default: {discoverable: ["*"]}
  mailer: {}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_who_has_the_printed_address_is_signed_in(
    browser: Browser, config: Path, axe_core: str, theme: Theme, width: int
) -> None:
    """G2: the page is there in both themes, narrow and wide, without a finding of axe-core."""
    async with running(config) as console, opened(browser, console.origin, theme=theme, width=width) as page:
        await console.sign_in(page)
        await expect(page).to_have_url(re.compile(r"/console/agents$"))
        await expect(page.get_by_role("rowheader")).to_have_text(["default", "mailer"])
        assert await findings(page, axe_core) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_who_is_not_signed_in_is_asked_for_a_code(
    browser: Browser, config: Path, axe_core: str, theme: Theme
) -> None:
    """G2: a code typed in works as the printed address does, once, and without a mouse."""
    async with running(config) as console, opened(browser, console.origin, theme=theme, expected="403") as page:
        await page.goto("/console/agents")
        code = await console.new_code()
        await expect(page.get_by_label("One-time code")).to_be_focused()
        assert await findings(page, axe_core) == []
        await page.keyboard.type(code)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agents")
        await tab_to(page, page.get_by_role("button", name="Sign out"))
        await page.keyboard.press("Enter")
        await page.get_by_label("One-time code").fill(code)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").first).to_have_text("This code is not good any more.")


async def test_the_content_is_one_key_away(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()
