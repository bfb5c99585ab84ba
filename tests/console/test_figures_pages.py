"""Tools, clients, agents with their figures, two beside each other, cost by toolkit, server and tool (F4, F5)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.clients import HANDSHAKE, MODERN
from pegboard import Pegboard
from pegboard.console.app import ConsoleApp

from .browser import broken_words, findings, opened, tab_to
from .programs import Program, program, serving
from .running import running

CONFIG = """
store: "memory:"
models: {default: {prices: {input: 3000, output: 9000, currency: USD}}}
plugins:
  calculator: {python: pegboard.quickstart.calc}
  clock: {python: pegboard.quickstart.clock}
  mail: {python: mail_tools}
toolkits:
  sums: {description: Add numbers, tools: [calculator]}
  times: {description: Tell the time, tools: [clock]}
agents:
  helper: {allowed_toolkits: [sums], initial_toolkits: [sums], budget: {tools: 9}}
  other: {tools: [mail], allowed_toolkits: [times], initial_toolkits: [times]}
"""
TOKENS = """
tokens:
  eve: {token: eve-eve-eve-eve-eve-eve, agents: ["*"], console: true}
  ada: {token: ada-ada-ada-ada-ada-ada, agents: [helper], console: true}
"""
MAIL = '''
def delete_mail(number: int) -> str:
    """Delete a mail for ever."""
    raise ValueError("there is none")
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "mail_tools.py").write_text(MAIL)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def app(config: Path) -> AsyncIterator[ConsoleApp]:
    write(config, CONFIG + TOKENS)
    async with Pegboard.open(config) as board, serving(board) as (app, _):
        await worked(board)
        yield app


@pytest.fixture
async def eve(app: ConsoleApp) -> AsyncIterator[Program]:
    async with program(app, "-".join(["eve"] * 6)) as eve:
        yield eve


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def worked(board: Pegboard) -> None:
    """Let both agents call what they have, one of them in vain."""
    helper = await board.session(agent="helper", session_id="s")
    for _ in range(3):
        assert (await helper.call("calculate", {"expression": "1 + 2"})).status == "ok"
    other = await board.session(agent="other", session_id="s")
    assert (await other.call("current_time", {})).status == "ok"
    assert (await other.call("delete_mail", {"number": 1})).status == "error"


async def clean(page: Page, axe_core: str) -> None:
    assert await findings(page, axe_core) == []
    assert await broken_words(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_tools_agents_and_cost_are_read_in_a_browser(browser: Browser, config: Path, axe_core: str) -> None:
    """F4, F5: the busiest toolkit, two agents, and a destructive tool in at most four presses each."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await worked(console.board)
        await console.sign_in(page)
        await page.get_by_role("link", name="Cost", exact=True).click()
        await page.get_by_role("link", name="By toolkit").click()
        rows = page.get_by_role("table").get_by_role("row")
        await expect(rows.nth(1)).to_contain_text("USD")
        await expect(page.get_by_role("rowheader", name="sums")).to_be_visible()
        await clean(page, axe_core)
        await page.get_by_role("link", name="Access", exact=True).click()
        await expect(page.get_by_role("row", name="helper")).to_contain_text("3")
        await clean(page, axe_core)
        await page.get_by_role("link", name="Compare", exact=True).click()
        await page.locator("select[name=one]").select_option("helper")
        await page.locator("select[name=two]").select_option("other")
        compared = page.locator("#compared")
        await expect(compared.get_by_role("row", name="Budget, tools")).to_contain_text("9")
        await expect(compared).to_contain_text("delete_mail")
        await clean(page, axe_core)
        await tab_to(page, page.get_by_role("link", name="Tools", exact=True))
        await page.keyboard.press("Enter")
        await page.get_by_role("searchbox", name="Search").last.fill("delete mail")
        row = page.get_by_role("row", name="delete_mail")
        await expect(row).to_contain_text("destructive")
        await expect(row).to_contain_text("1 of 2")
        await clean(page, axe_core)


@pytest.mark.parametrize("era", [HANDSHAKE, MODERN])
async def test_a_client_is_listed_once_it_has_asked(browser: Browser, config: Path, axe_core: str, era: str) -> None:
    """G1: with its version, whose it is, its agent and session."""
    async with running(config) as console, opened(browser, console.origin) as page:
        async with console.client(era, agent="helper", session="work") as client:
            await client.call("calculate", expression="1 + 2")
        await console.sign_in(page)
        await page.get_by_role("link", name="Clients", exact=True).click()
        row = page.get_by_role("table").get_by_role("row").nth(1)
        await expect(row).to_contain_text("helper")
        await expect(row.get_by_role("link", name="work")).to_be_visible()
        await expect(row).not_to_contain_text("not stated")
        await clean(page, axe_core)


async def test_figures_are_those_of_what_was_called(eve: Program) -> None:
    """F4: tokens and money of tools, servers and toolkits; an operator of some agents reads theirs."""
    by_kit = {one["name"]: one for one in await eve.ask("GET", "/api/tool-figures?by=toolkit")}
    assert (by_kit["sums"]["calls"], by_kit["sums"]["errors"], by_kit["sums"]["results"] > 0) == (3, 0, True)
    assert by_kit["sums"]["money"][0]["currency"] == "USD"
    by_tool = {one["name"]: one for one in await eve.ask("GET", "/api/tool-figures?by=tool")}
    assert (by_tool["mail/delete_mail"]["calls"], by_tool["mail/delete_mail"]["errors"]) == (1, 1)
    by_server = {one["name"]: one for one in await eve.ask("GET", "/api/tool-figures?by=server")}
    assert by_server["calculator"]["calls"] == 3
    tools = await eve.ask("GET", "/api/tools?limit=3")
    assert (len(tools["rows"]), tools["total"] > 3) == (3, True)
    figures = {one["agent"]: one for one in await eve.ask("GET", "/api/agent-figures")}
    assert (figures["helper"]["calls"], figures["other"]["errors"], figures["other"]["last_at"] is None) == (
        3,
        1,
        False,
    )
    two = await eve.ask("GET", "/api/agent-figures/compare?one=helper&two=other")
    assert ("delete_mail" in two["two"]["alone"], two["one"]["budget_tools"], two["common"]) == (True, 9, 0)


async def test_an_operator_of_some_agents_reads_figures_of_these(app: ConsoleApp) -> None:
    """G2: the tools of others are not listed, nor what they came to."""
    async with program(app, "-".join(["ada"] * 6)) as ada:
        tools = await ada.ask("GET", "/api/tools?limit=200")
        assert {one["server"] for one in tools["rows"]} == {"calculator"}
        assert [one["name"] for one in await ada.ask("GET", "/api/tool-figures?by=server")] == ["calculator"]
        assert [one["agent"] for one in await ada.ask("GET", "/api/agent-figures")] == ["helper"]
        address = "/api/agent-figures/compare?one=helper&two=other"
        assert (await ada.refused("GET", address, 404))[0] == "unknown_agent"
        assert await ada.ask("GET", "/api/connected-clients") == []
