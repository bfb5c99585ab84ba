"""The start page: what needs a person, curves, the busiest, the newest; in a real browser and without script."""

import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.clients import edit
from pegboard import Pegboard
from pegboard.ports import CountRecord, Counts
from pegboard.ports.counts import bucket_of

from .browser import opened, shot, tab_to
from .programs import program, serving
from .running import Console, running

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
SEARCH = "notes/notes_search"
HOSTILE = "<script>alert(1)</script>\u202egnp.exe"
CONFIG = """
store: sqlite:///state.db
servers:
  crm: {{command: {python}, args: [{server}, --exit, "3"]}}
plugins:
  mail: {{python: mail_tools, prefix: mail, approve: {{send_message: always}}}}
  notes: {{python: notes_tools, prefix: notes}}
agents:
  assistant: {{tools: [mail, notes], discoverable: [crm], dialect: pegboard, budget: {{tools: 7}}}}
  reviewer: {{tools: [notes], dialect: pegboard}}
"""
WHOLE = CONFIG.format(python=sys.executable, server=SERVER)
MAIL = '''
def send_message(to: str, text: str) -> str:
    """Send a message by mail."""
    return f"sent to {to}"


def list_messages(folder: str = "inbox") -> str:
    """List the newest messages of a folder."""
    return "none"
'''
NOTES = '''
def notes_search(words: str) -> str:
    """Search the notes of the team."""
    return "none"


def notes_broken() -> str:
    """Fail."""
    raise ValueError("no")
'''
TOKENS = """
tokens:
  root: {token: root-root-root-root-root, agents: ["*"], console: true}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: [reviewer], console: [see]}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration in the working folder: screenshots name no other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail_tools.py").write_text(MAIL)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    path = Path("pegboard.yaml")
    path.write_text(WHOLE)
    return path


@pytest.fixture
def config_with_tokens(config: Path) -> Path:
    config.write_text(WHOLE + TOKENS)
    return config


@asynccontextmanager
async def shown(config: Path, browser: Browser, **options: Any) -> AsyncIterator[tuple[Console, Page]]:
    """Open the start page for someone who has signed in."""
    async with running(config) as console, opened(browser, console.origin, **options) as page:
        await console.sign_in(page)
        await expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
        yield console, page


async def work(board: Pegboard, agent: str = "assistant", session: str = "weekly-report") -> None:
    """Let an agent call: two that succeed, one that fails, one that is refused, one that waits for a person."""
    one = await board.session(agent=agent, session_id=session, principal="ada")
    await one.surface()
    await one.call("notes__notes_search", {"words": "minutes"})
    await one.call("notes__notes_search", {"words": "plans"})
    await one.call("notes__notes_broken", {})
    await one.call("no_such_tool", {})
    await one.call("mail__send_message", {"to": "ada", "text": "See the notes."})


def past(board: Pegboard) -> None:
    """Count what is made up for the picture: a day of work."""
    for back in range(24):
        start, busy = int(time.time()) - back * 3_600, 3 + (back * 7) % 11
        names = start, "ada", "assistant", "thread", "notes", SEARCH
        took = {bucket_of(2.0): busy - 2, bucket_of(20.0): 1, bucket_of(200.0): 1}
        board.services.store.count_later(
            CountRecord(*names, "ok", Counts(calls=busy), took),
            CountRecord(*names, "error", Counts(calls=back % 3), {bucket_of(70.0): back % 3}),
            CountRecord(*names[:4], outcome="listed", counts=Counts(busy, 900 * busy, 2_500 * busy)),
        )


async def test_what_needs_a_person_comes_first_and_is_answered_in_two_clicks(browser: Browser, config: Path) -> None:
    """F5, A1: a call that waits appears by itself, with how many there are in the navigation; then it is allowed."""
    async with shown(config, browser, width=400) as (console, page):
        needs = page.locator("#attention")
        await work(console.board)
        first = needs.locator("li").first
        await expect(first).to_contain_text("mail__send_message")
        await expect(first).to_contain_text("assistant, ada: to: ada, text: See the notes.")
        await page.get_by_role("button", name="Menu").click()
        count = page.get_by_role("link", name=re.compile(r"^Overview")).first.locator(".count")
        await expect(count).to_have_text(re.compile(r"[1-9]"))
        await page.keyboard.press("Escape")
        await needs.get_by_role("link", name=re.compile("^Review")).click()
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.get_by_role("status")).to_contain_text("this call may run once")
        await page.goto("/console")
        await expect(needs).not_to_contain_text("mail__send_message")


async def test_a_server_that_is_down_is_restarted_from_the_start_page(browser: Browser, config: Path) -> None:
    """F5: with one click, and what comes of it is said."""
    async with shown(config, browser) as (console, page):
        await console.board.ready()
        session = await console.board.session(agent="assistant", session_id="s")
        await session.load("crm")
        item = page.locator("#attention li", has_text="Server 'crm'")
        await expect(item).to_contain_text(re.compile("cannot run|is down"))
        await item.get_by_role("button", name=re.compile("^Restart")).click()
        await expect(page.get_by_role("status")).to_contain_text("'crm' was restarted and cannot run")


async def test_edits_that_are_refused_and_budgets_that_are_nearly_used_need_a_person(
    browser: Browser, config: Path
) -> None:
    """F5, S9: with what is wrong and where; what is repaired is gone."""
    async with shown(config, browser) as (console, page):
        await console.board.ready()
        needs = page.locator("#attention")
        await expect(needs).to_contain_text("The start of agent 'assistant' takes 100% of its budget: 7 tools of 7.")
        edit(config, "dialect: pegboard, budget", "dialekt: pegboard, budget")
        await expect(needs).to_contain_text("The newest edit is refused")
        await expect(needs).to_contain_text("dialekt")
        await needs.get_by_role("link", name=re.compile("^Open settings")).first.click()
        await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
        await page.goto("/console")
        edit(config, "dialekt", "dialect")
        await expect(needs).not_to_contain_text("refused")


async def test_curves_lists_and_the_newest_records_follow_what_agents_call(browser: Browser, config: Path) -> None:
    """F4, F5: without a reload, and what is unfolded stays so."""
    async with shown(config, browser) as (console, page):
        figures, table = page.locator("#figures"), page.locator("#usage-figures")
        await expect(figures.locator("strong").first).to_have_text("0")
        await table.locator("summary").click()
        await work(console.board)
        await expect(figures.locator("strong").first).to_have_text("3")
        await expect(figures).to_contain_text("33% failed")
        await expect(page.locator("#tool-1")).to_contain_text("notes_search")
        await expect(page.locator("#agent-1")).to_contain_text("assistant")
        await expect(page.locator("#server-1")).to_contain_text("notes")
        await expect(page.locator("#plot-calls canvas")).to_be_visible()
        await expect(page.locator("#ticker li").first).to_contain_text("mail/send_message")
        await expect(page.locator("#ticker li")).to_have_count(5)
        await expect(table.get_by_role("columnheader", name="Denied")).to_be_visible()


async def test_how_far_back_is_chosen_by_keyboard_and_stays_in_the_address(browser: Browser, config: Path) -> None:
    """F5: also on the way back."""
    async with shown(config, browser) as (console, page):
        await work(console.board)
        await tab_to(page, page.get_by_role("link", name="7 days", exact=True))
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(r"/console\?period=week$"))
        await expect(page.get_by_role("link", name="7 days", exact=True)).to_have_attribute("aria-current", "true")
        await expect(page.locator("#usage-figures tbody tr")).to_have_count(28)
        await tab_to(page, page.locator("#tool-1").get_by_role("link"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_contain_text("agents may use it")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page).to_have_url(re.compile(r"period=week$"))
        await tab_to(page, page.get_by_role("link", name=re.compile("^Review")))
        await page.keyboard.press("Enter")
        await tab_to(page, page.get_by_role("button", name="Allow once"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("this call may run once")


CUT = "[...document.querySelectorAll('.plot')].every((one) => one.scrollHeight <= one.clientHeight + 1)"


async def test_what_needs_a_person_and_the_first_curve_are_on_the_first_screen(browser: Browser, config: Path) -> None:
    """F5: ten problems end within 900 pixels; the curves begin above 700 where there are few."""
    servers = "".join(f"  reports_{n}: {{command: /no-such-command-{n}}}\n" for n in range(7))
    edit(config, "servers:\n", f"servers:\n{servers}")
    edit(config, "[crm]", f"[crm, {', '.join(f'reports_{n}' for n in range(7))}]")
    async with shown(config, browser, width=1_440, height=900) as (console, page):
        await console.board.ready()
        await work(console.board)
        await page.reload()
        curve = await page.locator("#plot-calls").bounding_box()
        needs = await page.locator("#attention").bounding_box()
        count = await page.locator("#attention li").count()
        assert curve is not None
        assert needs is not None
        row = needs["height"] / count
        assert row <= 42
        assert needs["y"] + 10 * row <= 900
        assert needs["y"] + needs["height"] + 60 >= curve["y"]
        assert await page.evaluate(CUT)


async def test_a_cursor_on_one_curve_shows_the_values_of_all(browser: Browser, config: Path) -> None:
    """F5: also for a browser whose system names no language that exists, and without another request."""
    async with running(config) as console, opened(browser, console.origin, width=1_440) as page:
        past(console.board)
        await page.add_init_script(
            "Object.defineProperty(navigator, 'language', {value: 'en-US@posix', configurable: true})"
        )
        await console.sign_in(page)
        await page.goto("/console?period=day")
        over = page.locator("#plot-calls .u-over")
        await over.hover()
        for name, value in (("calls", r"^[1-9]\d*$"), ("latency", r"ms$|s$"), ("tokens", r"^[1-9][\d.]*( k)?$")):
            legend = page.locator(f"#plot-{name} .u-series").last.locator(".u-value")
            await expect(legend).to_have_text(re.compile(value))
        await over.hover(position={"x": 5, "y": 5})
        await expect(page.locator("#plot-tokens .u-series").first.locator(".u-value")).to_have_text(
            re.compile(r"\d\d:\d\d")
        )


async def test_the_screenshot_of_the_start_page(browser: Browser, config: Path, screenshots: Path) -> None:
    async with running(config) as console, opened(browser, console.origin, width=1_440, height=900) as page:
        past(console.board)
        await work(console.board)
        session = await console.board.session(agent="assistant", session_id="s")
        await session.load("crm")
        await console.sign_in(page)
        await page.goto("/console?period=day")
        await expect(page.locator("#attention li")).not_to_have_count(0)
        await shot(page, screenshots / "overview.png")
        assert (screenshots / "overview.png").is_file()


async def test_an_operator_of_some_agents_sees_nothing_of_others(config_with_tokens: Path) -> None:
    """A5: on the page, in its parts and in the API; nothing that they may not do is offered."""
    async with (
        Pegboard.open(config_with_tokens) as board,
        serving(board) as (app, _),
        program(app, "bob-bob-bob-bob-bob-bob") as bob,
        program(app, "root-root-root-root-root") as root,
    ):
        await work(board)
        await work(board, agent="reviewer", session="own")
        usage = await bob.ask("GET", "/api/usage")
        assert [row["name"] for row in usage["agents"]] == ["reviewer"]
        assert (usage["totals"]["ok"], usage["totals"]["waits"]) == (2, 0)
        assert (await bob.ask("GET", "/api/attention"))["items"] == []
        code, _, _ = await bob.refused("GET", "/api/usage?agent=assistant", 404)
        assert code == "unknown_agent"
        for part in ("", "/overview/attention", "/overview/usage?period=week", "/overview/live"):
            path = f"/console{part}"
            text = (await bob.client.get(path)).text
            assert not re.search(r"assistant|weekly-report|crm|Restart|Review", text), path
        whole = await root.ask("GET", "/api/usage?period=day&limit=1")
        assert (whole["totals"]["ok"], whole["totals"]["waits"], whole["more_tools"]) == (4, 1, 2)
        assert (await root.ask("GET", "/api/usage?period=day&agent=reviewer"))["totals"]["ok"] == 2
        (first, *_) = (await root.ask("GET", "/api/attention"))["items"]
        assert (first["kind"], first["subject"], first["agent"], first["action"]) == (
            "approval", "mail__send_message", "assistant", "decide",
        )  # fmt: skip


async def test_a_time_that_there_is_not_is_refused(config_with_tokens: Path) -> None:
    """F5: with those that there are."""
    async with (
        Pegboard.open(config_with_tokens) as board,
        serving(board) as (app, _),
        program(app, "root-root-root-root-root") as root,
    ):
        for path in ("/console?period=year", "/console/overview/usage?period=x"):
            answer = await root.client.get(path)
            assert answer.status_code == 400
            assert "Choose one of hour, day, week, month, quarter." in answer.text
        code, message, _ = await root.refused("GET", "/api/usage?period=year", 422)
        assert code == "bad_request"
        assert "period" in message


async def test_what_is_of_some_seconds_ago_is_asked_for_anew_though_nothing_happens(config_with_tokens: Path) -> None:
    """F5: the last weeks are not read at every call; the page is right all the same once calls have ended."""
    async with (
        Pegboard.open(config_with_tokens) as board,
        serving(board) as (app, _),
        program(app, "root-root-root-root-root") as root,
    ):
        first, again = [(await root.client.get("/console/overview/usage?period=week")).text for _ in range(2)]
        assert ("data-until" in first, "data-until" in again) == (False, True)


async def test_without_script_the_page_has_everything(config_with_tokens: Path) -> None:
    """F5: the figures of the curves stand as a table."""
    async with (
        Pegboard.open(config_with_tokens) as board,
        serving(board) as (app, _),
        program(app, "root-root-root-root-root") as root,
    ):
        await work(board, session=HOSTILE)
        answer = await root.client.get("/console")
        assert answer.text.count('class="plot"') == 3
        (last,) = re.findall(r'<tr id="step-\d+".*?</tr>', answer.text, re.DOTALL)[-1:]
        assert re.findall(r'data-value="(\d+)"', last)[:4] == ["2", "1", "1", "1"]
        assert "to: ada, text: See the notes." in answer.text
        assert "<script>alert" not in answer.text
        assert not re.search(r"\sstyle=|<style|onclick", answer.text)
