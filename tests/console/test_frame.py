"""What stands around every page: navigation, theme, times, what waits, and how much of a list is in sight."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from pegboard.console.navigation import ENTRIES
from pegboard.console.pages.all_pages import PAGES

from .browser import broken_words, opened, tab_to
from .running import Console, running
from .waiting_calls import asked, set_up

WIDTHS = (400, 1_440)
LISTS = ("/console/sessions", "/console/activity", "/console/servers", "/console/access")
LIGHT, DARK = "rgb(250, 250, 250)", "rgb(15, 18, 19)"
MANY = 36
AGENTS = "".join(f"  assistant_of_team_{n:02d}: {{tools: [clock]}}\n" for n in range(MANY))
SERVERS = "".join(f"  reporting_server_{n:02d}: {{command: /no-such-command-{n}}}\n" for n in range(MANY))
CONFIG = f"""
store: sqlite:///state.db
plugins:
  files: {{python: waiting_tools, approve: {{delete_file: always}}}}
  clock: {{python: pegboard.quickstart.clock}}
servers:
{SERVERS}agents:
  default: {{tools: [files, clock], discoverable: [reporting_server_00]}}
{AGENTS}"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return set_up(tmp_path, CONFIG)


@asynccontextmanager
async def at_work(browser: Browser, config: Path, **options: Any) -> AsyncIterator[tuple[Console, Page]]:
    """Open the console for someone who has signed in, over many agents that have worked."""
    async with running(config) as console, opened(browser, console.origin, **options) as page:
        for n in range(MANY):
            one = await console.board.session(agent=f"assistant_of_team_{n:02d}", session_id=f"quarterly_report_{n}")
            await one.surface()
            await one.call("current_time", {})
        await console.sign_in(page)
        yield console, page


IN_SIGHT = """[...document.querySelectorAll("main tbody tr")]
  .map((row) => row.getBoundingClientRect())
  .filter((box) => box.height > 0 && box.bottom <= innerHeight).length"""


async def test_every_list_is_dense_whole_and_breaks_no_word(browser: Browser, config: Path) -> None:
    """Twenty-five rows are in sight at 1,440 x 900, and at 400 pixels the navigation is one line."""
    async with at_work(browser, config, width=1_440, height=900) as (console, page):
        await asked(console.board)
        for path in (*LISTS, "/console/approvals"):
            await page.goto(path)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            for width in WIDTHS:  # only styles know of them
                await page.set_viewport_size({"width": width, "height": 900})
                assert await broken_words(page) == [], (width, path)
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, path)
                assert await page.evaluate("document.querySelector('.top').offsetHeight") <= 60, (width, path)
                if width == 1_440 and path in LISTS:
                    assert await page.evaluate(IN_SIGHT) >= 25, path


async def test_the_navigation_has_the_pages_that_exist_in_groups_and_one_count(browser: Browser, config: Path) -> None:
    """Everything that needs attention is counted once, beside the page that lists it."""
    async with running(config) as console, opened(browser, console.origin, width=1_440) as page:
        await asked(console.board)
        await console.sign_in(page)
        navigation = page.get_by_role("navigation", name="Pages", exact=True)
        paths = {one.path for one in PAGES}
        expected = [entry for entry in ENTRIES if entry.group is not None and entry.address in paths]
        links = navigation.get_by_role("link")
        assert [await links.nth(at).get_attribute("href") for at in range(await links.count())] == [
            entry.address for entry in expected
        ]
        await expect(navigation.locator(".count")).to_have_count(1)
        await expect(navigation.get_by_role("link", name=re.compile("^Overview")).locator(".count")).to_be_visible()
        for entry in expected:
            answer = await page.goto(entry.address)
            assert answer is not None
            assert answer.status == 200
            await expect(page.get_by_role("heading", level=1)).to_have_text(entry.title)
            await expect(navigation.locator("[aria-current]")).to_have_attribute("href", entry.address)


async def test_a_narrow_window_has_the_pages_behind_a_button(browser: Browser, config: Path) -> None:
    """Without a script too."""
    async with running(config) as console, opened(browser, console.origin, width=400) as page:
        await console.sign_in(page)
        settings = page.get_by_role("link", name="Settings", exact=True)
        await expect(settings).to_be_hidden()
        await tab_to(page, page.get_by_role("button", name="Menu"))
        await page.keyboard.press("Enter")
        await expect(settings).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(settings).to_be_hidden()
        context = await browser.new_context(
            base_url=console.origin, java_script_enabled=False, viewport={"width": 400, "height": 800}
        )
        plain = await context.new_page()
        await console.sign_in(plain)
        await plain.get_by_role("button", name="Menu").click()
        await plain.get_by_role("link", name="Settings", exact=True).click()
        await expect(plain.get_by_role("heading", level=1)).to_have_text("Settings")
        await plain.get_by_role("button", name="Menu").click()
        await plain.locator(".who summary").click()
        await plain.get_by_role("button", name="Dark").click()
        await expect(plain.get_by_role("heading", level=1)).to_have_text("Settings")
        assert await plain.evaluate("getComputedStyle(document.body).backgroundColor") == DARK
        await context.close()


async def test_a_theme_is_kept_and_every_page_comes_in_it(browser: Browser, config: Path) -> None:
    """The answer itself is in the theme: nothing flashes, and no script takes part."""
    async with running(config) as console, opened(browser, console.origin, theme="light") as page:
        await console.sign_in(page)
        ground = "getComputedStyle(document.body).backgroundColor"
        assert await page.evaluate(ground) == LIGHT
        await page.goto("/console/sessions?q=a")
        await tab_to(page, page.locator(".who summary"))
        await page.keyboard.press("Enter")
        await tab_to(page, page.get_by_role("button", name="Dark"))
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(r"/console/sessions\?q=a$"))
        assert await page.evaluate(ground) == DARK
        answer = await page.goto("/console/activity")
        assert answer is not None
        assert '<html lang="en" data-theme="dark">' in await answer.text()
        assert '<meta name="color-scheme" content="dark">' in await answer.text()
        await page.locator(".who summary").click()
        await page.get_by_role("button", name="System").click()
        assert await page.evaluate(ground) == LIGHT


async def test_times_are_those_of_the_browser_and_utc_without_a_script(browser: Browser, config: Path) -> None:
    async with running(config) as console:
        one = await console.board.session(agent="default", session_id="s")
        await one.call("current_time", {})
        shown: dict[bool, list[str]] = {}
        for script in (True, False):
            context = await browser.new_context(
                base_url=console.origin, timezone_id="Asia/Kolkata", java_script_enabled=script
            )
            page = await context.new_page()
            await console.sign_in(page)
            await page.goto("/console/activity")
            cell = page.locator("td[data-label=When] time").first
            if script:
                await expect(cell).not_to_contain_text("UTC")
                assert re.search(r"GMT\+5:30; \d{4}-.* UTC$", await cell.get_attribute("title") or "")
            shown[script] = [await cell.inner_text(), await cell.get_attribute("datetime") or ""]
            await context.close()
        assert shown[False][0] == shown[False][1][:19].replace("T", " ") + " UTC"
        hours = int(shown[True][0][11:13]) * 60 + int(shown[True][0][14:16])
        assert (hours - int(shown[True][1][11:13]) * 60 - int(shown[True][1][14:16])) % 1_440 == 330


async def test_what_waits_stands_in_title_and_icon_as_it_comes_and_goes(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await expect(page).to_have_title("Overview · Pegboard")
        one = await asked(console.board)
        await expect(page).to_have_title("(1) Overview · Pegboard")
        await expect(page.locator("#icon")).to_have_attribute("href", "/console/icon?count=1")
        answer = await page.request.get("/console/icon?count=1")
        assert answer.headers["content-type"] == "image/svg+xml"
        assert ">1</text>" in await answer.text()
        assert "<script" not in await (await page.request.get("/console/icon?count=<script>")).text()
        await page.reload()
        await expect(page).to_have_title("(1) Overview · Pegboard")
        await console.board.approvals.refuse(one.id, by="ada")
        await expect(page).to_have_title("Overview · Pegboard")
        await expect(page.locator("#icon")).to_have_attribute("href", "/console/static/icon.svg")


async def test_a_notification_leads_to_the_card_and_only_where_it_was_asked_for(browser: Browser, config: Path) -> None:
    """Nothing is asked of the browser before someone presses the button."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await page.context.grant_permissions(["notifications"], origin=console.origin)
        await page.add_init_script(
            "window.notes = []; const Real = Notification; window.Notification = class extends EventTarget {"
            " constructor(title, options) { super(); this.options = options; window.notes.push(this); } close() {}"
            " static permission = 'granted'; static async requestPermission() { return 'granted'; } };"
        )
        await console.sign_in(page)
        await asked(console.board)
        await expect(page).to_have_title("(1) Overview · Pegboard")
        assert await page.evaluate("window.notes.length") == 0
        await page.locator(".who summary").click()
        button = page.get_by_role("button", name="Notify me of")
        await button.click()
        await expect(button).to_have_attribute("aria-pressed", "true")
        one = await asked(console.board, path="payroll.txt")
        await expect(page).to_have_title("(2) Overview · Pegboard")
        assert await page.evaluate("window.notes.map((one) => one.options.body)") == ["2 calls wait for approval."]
        await page.evaluate("window.notes[0].dispatchEvent(new Event('click'))")
        await expect(page).to_have_url(re.compile(rf"/console/approvals/{one.id}$"))


async def test_the_head_of_a_table_stays_in_sight(browser: Browser, config: Path) -> None:
    async with at_work(browser, config, height=500) as (_, page):
        await page.goto("/console/activity")
        await page.evaluate("scrollTo(0, 600)")
        top = "document.querySelector('thead th').getBoundingClientRect().top"
        assert await page.evaluate(top) == 0
        await page.set_viewport_size({"width": 980, "height": 500})
        await page.goto("/console/activity")
        await page.evaluate("scrollTo(0, 600)")
        assert await page.evaluate("document.querySelector('.top').getBoundingClientRect().top") == 0


async def test_filters_count_at_once_and_stay_in_the_address(browser: Browser, config: Path) -> None:
    async with at_work(browser, config) as (console, page):
        await page.goto("/console/sessions")
        await page.get_by_label("Search", exact=True).fill("report_7")
        await expect(page.locator("#sessions tbody tr")).to_have_count(1)
        await expect(page).to_have_url(re.compile(r"/console/sessions\?q=report_7$"))
        await page.reload()
        await expect(page.locator("#sessions tbody tr")).to_have_count(1)
        one = await console.board.session(agent="default", session_id="s")
        await one.call("no_such_tool", {})
        await page.goto("/console/activity")
        chip = page.get_by_role("radio", name="refused")
        await tab_to(page, page.get_by_role("radio", name="Any").first)
        for _ in range(2):
            await page.keyboard.press("ArrowRight")
        await expect(chip).to_be_checked()
        await expect(page.locator("#records tbody tr")).to_have_count(1)
        await expect(page).to_have_url(re.compile(r"/console/activity\?decision=refused$"))
        await page.goto("/console/approvals")
        await asked(console.board)
        await expect(page.get_by_role("article")).to_have_count(1)
        await page.get_by_label("Agent", exact=False).select_option("assistant_of_team_00")
        await expect(page.get_by_role("article")).to_have_count(0)
        await expect(page).to_have_url(re.compile(r"/console/approvals\?agent=assistant_of_team_00$"))


async def test_failed_servers_come_first_and_are_one_chip_away(browser: Browser, tmp_path: Path) -> None:
    text = CONFIG.replace("servers:\n", "servers:\n  zebra: {command: /no-such}\n", 1)
    async with running(set_up(tmp_path, text)) as console, opened(browser, console.origin) as page:
        session = await console.board.session(agent="default", session_id="s")
        await session.load("reporting_server_00")
        await console.sign_in(page)
        await page.goto("/console/servers")
        await expect(page.locator("#servers tbody th").first).to_have_text("reporting_server_00")
        await page.get_by_role("radio", name="failed").check()
        await expect(page.locator("#servers tbody tr")).to_have_count(1)
        await expect(page).to_have_url(re.compile(r"/console/servers\?state=failed$"))


async def test_the_first_steps_are_there_until_something_was_called(browser: Browser, config: Path) -> None:
    """With what a client is given, at the address at which the console was reached."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await expect(page.get_by_role("heading", name="First steps")).to_be_visible()
        snippet = json.loads(await page.get_by_role("group", name="Text for a client").inner_text())
        assert snippet == {"mcpServers": {"pegboard": {"type": "http", "url": f"{console.origin}/mcp"}}}
        await (await console.board.session(agent="default", session_id="s")).call("current_time", {})
        await page.reload()
        await expect(page.get_by_role("heading", name="First steps")).to_be_hidden()
