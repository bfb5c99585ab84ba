"""Servers in the console: what they do, live, and their restart, in a real browser and without its script."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.clients import edit, until
from pegboard import Pegboard
from pegboard.operators.servers import server_state

from .browser import findings, opened, tab_to
from .programs import program, serving
from .running import Console, running

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
ODD = 'odd/<b> & "näme"'
CONFIG = """
store: "memory:"
servers:
  git: {{command: {python}, args: [{server}, --complain, "warming <script>alert(1)</script> \u202e up"]}}
  '{odd}': {{command: {python}, args: [{server}, --exit, "3", --complain, "no database at postgres://ada:pw@db"]}}
  keyed: {{command: srv, env: {{KEY: "${{ABSENT_KEY}}"}}}}
plugins: {{notes: {{python: note_tools}}, lost: {{python: no_such_module}}}}
agents: {{ada: {{tools: [git], discoverable: ["*"]}}, bob: {{tools: [git]}}}}
"""
TOKENS = """
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: true}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: [bob], console: true}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "note_tools.py").write_text('def note(text: str) -> str:\n    """Write a note."""\n    return text\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SERVER, odd=ODD))
    return path


@asynccontextmanager
async def shown(config: Path, browser: Browser, **options: Any) -> AsyncIterator[tuple[Console, Page]]:
    """Open a browser that is signed in, with a configuration whose servers are known."""
    async with running(config) as console:
        await console.board.ready()
        async with opened(browser, console.origin, **options) as page:
            await console.sign_in(page)
            yield console, page


async def test_servers_are_shown_with_what_is_wrong_with_them(browser: Browser, config: Path, axe_core: str) -> None:
    """F5: state, last error, tools, tokens and agents of each; nothing that they say becomes markup."""
    async with shown(config, browser, theme="dark", width=400) as (_, page):
        await page.goto("/console/servers")
        odd, keyed, git = (page.locator("[id^=server-]").filter(has_text=name) for name in (ODD, "keyed", "git"))
        await expect(git).to_contain_text("up")
        await expect(git.locator("[data-label=Tools]")).to_have_text("13")
        await expect(git.locator("[data-label=Agents]")).to_have_text("2")
        await expect(odd).to_contain_text(ODD)
        await expect(odd).to_contain_text("exited with code 3")
        await expect(odd).to_contain_text("postgres://***@db")
        await expect(keyed).to_contain_text("cannot run")
        await page.locator("summary", has_text="Other plugins").click()
        await expect(page.locator("#plugins")).to_contain_text("no_such_module")
        assert await findings(page, axe_core) == []
        await odd.get_by_role("link").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text(ODD)
        assert await findings(page, axe_core) == []
        await page.goto("/console/server/log?name=git")
        await expect(page.locator("#log")).to_contain_text("warming <script>alert(1)</script> \\u202e up")
        assert await findings(page, axe_core) == []
        await page.get_by_role("link", name="State").click()
        await expect(page.locator("#dropped-2")).to_contain_text("bad_hint")
        await expect(page.locator("#tool-1 a").first).to_have_attribute("href", "/console/why?tool=git__echo")
        assert await findings(page, axe_core) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_server_that_dies_and_one_that_is_restarted_are_seen_at_once_by_keyboard(
    browser: Browser, config: Path
) -> None:
    """G8: state, process and log follow without loading the page again; the audit trail has who restarted it."""
    async with shown(config, browser) as (console, page):
        await page.goto("/console/server/log?name=git")
        await expect(page.locator("#server-head h1")).to_contain_text("up")
        first = (await server_state(console.board.services, "git")).pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await expect(page.locator("#log")).to_contain_text("SIGKILL")
        await expect(page.locator("#server-head h1 .chip")).not_to_have_text("up")
        await tab_to(page, page.locator("#restart-button"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#notices")).to_contain_text("'git' was restarted")
        await console.board.ready("git")
        await page.goto("/console/server?name=git")
        await page.locator("#restart-button").click()
        await expect(page.locator("#notices")).to_contain_text("'git' was restarted and is up.")
        pid = (await server_state(console.board.services, "git")).pid
        await expect(page.locator("#connection-1")).to_contain_text(str(pid))
        records = await console.board.services.store.entries(kind="server")
        assert {record.by for record in records} == {"local"}


async def test_a_long_log_opens_at_its_end_and_stays_there_and_failed_starts_are_counted(
    browser: Browser, config: Path, tmp_path: Path
) -> None:
    """F5: what a server printed last is in sight first, also what it prints while the page is open."""
    noise = tmp_path / "noise"
    noise.write_text("".join(f"line {number}\n" for number in range(40)))
    edit(config, "--exit,", f"--noise, {noise}, --exit,")
    async with shown(config, browser) as (console, page):
        await page.goto(f"/console/server/log?{urlencode({'name': ODD})}")
        log = page.get_by_role("group", name="Log")
        await expect(log.get_by_text("exited with code 3")).to_have_count(1)
        assert await log.evaluate(LAST_LINE_SHOWS)
        assert not await log.evaluate("log => log.scrollHeight === log.clientHeight")
        await console.board.ready(ODD)
        await expect(log.get_by_text("exited with code 3")).to_have_count(2)
        assert await log.evaluate(LAST_LINE_SHOWS)
        await page.get_by_role("link", name="State").click()
        await expect(page.locator("#server dl")).to_contain_text("failed 2 times")


LAST_LINE_SHOWS = """log => {
  const range = document.createRange();
  range.selectNodeContents(log.firstElementChild.lastElementChild);
  return range.getBoundingClientRect().bottom <= log.getBoundingClientRect().bottom;
}"""


async def test_a_restart_that_breaks_calls_off_is_asked_back(browser: Browser, config: Path) -> None:
    """G8: with how many there are; where it is left, the call goes on."""
    async with shown(config, browser) as (console, page):
        session = await console.board.session(agent="ada", session_id="s")
        call = asyncio.create_task(session.call("git__slow", {}))

        async def under_way() -> bool:
            return (await server_state(console.board.services, "git")).in_flight == 1

        await until(under_way)
        await page.goto("/console/server?name=git")
        await page.locator("#restart-button").click()
        dialog = page.locator("#dialog")
        await expect(dialog).to_contain_text("1 call is under way and fails")
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        assert (await server_state(console.board.services, "git")).in_flight == 1
        await page.locator("#restart-button").click()
        await dialog.get_by_role("button", name="Restart and break it off").click()
        await expect(page.locator("#notices")).to_contain_text("'git' was restarted")
        await expect(dialog).to_be_hidden()
        assert "an operator restarted it" in str((await call).result.content)


async def test_five_hundred_servers_are_paged_and_filtered(tmp_path: Path, browser: Browser) -> None:
    config = tmp_path / "pegboard.yaml"
    rows = "\n".join(f"  server-{number:03}: {{command: nothing-{number}}}" for number in range(500))
    config.write_text(f'store: "memory:"\nservers:\n{rows}\nagents: {{ada: {{}}}}\n')
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto("/console/servers")
        await expect(page.locator("#servers tbody tr")).to_have_count(50)
        await page.get_by_role("link", name="Next").click()
        await expect(page.locator("#server-1")).to_contain_text("server-050")
        await page.get_by_label("Name").fill("R-49")
        await page.keyboard.press("Enter")
        await expect(page.locator("#servers tbody tr")).to_have_count(10)
        await expect(page.get_by_label("Name")).to_have_value("R-49")


async def test_only_operators_of_every_agent_see_servers(config: Path) -> None:
    """G2: what all agents share is not shown or restarted with a token of some; bad addresses are told apart."""
    config.write_text(config.read_text() + TOKENS)  # noqa: ASYNC240
    async with Pegboard.open(config) as board, serving(board) as (app, _):
        async with program(app, "bob-bob-bob-bob-bob-bob") as bob:
            for address in ("servers", "servers/plugins", "server?name=git", "server/log?name=git", "settings"):
                assert (await bob.client.get(f"/console/{address}")).status_code == 403
            assert (await bob.client.post("/console/server/restart", data={"name": "git"})).status_code == 403
        async with program(app, "ada-ada-ada-ada-ada-ada") as ada:
            for address, status, said in (
                ("server?name=gti", 404, "Did you mean &#39;git&#39;?"),
                ("server/log?name=", 404, "There is no server or plugin"),
                ("servers?state=odd", 400, "States: failed, unavailable"),
                ("servers?offset=x", 400, "is not a number"),
            ):
                answer = await ada.client.get(f"/console/{address}")
                assert (answer.status_code, said in answer.text) == (status, True), answer.text
            answer = await ada.client.post("/console/server/restart", data={"name": "keyed"})
            assert (answer.status_code, "ABSENT_KEY is not set" in answer.text) == (400, True)
            answer = await ada.client.post("/console/server/restart", data={"name": "notes"})
            assert "runs in the process of Pegboard" in answer.text
        await board.ready("git")
        state = await server_state(board.services, "git")
        assert state.restarts == 0
