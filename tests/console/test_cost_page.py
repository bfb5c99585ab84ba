"""The bill in tokens and money: in a real browser and over the API."""

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.clients import edit
from pegboard import Pegboard

from .browser import opened
from .programs import program, serving
from .running import Console, running

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
HOSTILE = "kit <script>alert(1)</script> with_a_name_of_some_length_that_has_no_room_in_a_tile & more"
CONFIG = """
store: "memory:"
models:
  default: {{prices: {{input: 300000, cached: 30000, written: 375000, output: 999999.5, currency: USD}}}}
  free: {{provider: own, id: small}}
servers:
  broken: {{command: {python}, args: [{server}, --exit, "3"]}}
plugins:
  notes: {{python: notes_tools, prefix: notes}}
  mail: {{python: mail_tools, prefix: mail}}
  a_plugin_with_a_name_of_some_length: {{python: sums_tools, prefix: sums}}
toolkits:
  writing: {{tools: [notes]}}
  mailing: {{tools: [mail], label: Mailing}}
  "{hostile}": {{tools: [a_plugin_with_a_name_of_some_length]}}
  failing: {{tools: [broken]}}
agents:
  assistant:
    tools: [notes]
    allowed_toolkits: [writing, mailing, "{hostile}", failing]
    permissions: {{mailing: false}}
    dialect: pegboard
  reviewer: {{tools: [notes], model: free, dialect: pegboard}}
"""
TOKENS = """
tokens:
  root: {token: root-root-root-root-root, agents: ["*"], console: true}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: [reviewer], console: [see]}
"""


def module(name: str, count: int) -> str:
    return "\n\n".join(
        f'def {name}_{at}(text: str) -> str:\n    """Do it. {"Again. " * 20 * at}"""\n    return text * 4'
        for at in range(count)
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name, count in (("notes", 6), ("mail", 3), ("sums", 4)):
        (tmp_path / f"{name}_tools.py").write_text(module(name, count))
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SERVER, hostile=HOSTILE))
    return path


@pytest.fixture
def config_with_tokens(config: Path) -> Path:
    config.write_text(config.read_text() + TOKENS)
    return config


@asynccontextmanager
async def shown(config: Path, browser: Browser, **options: Any) -> AsyncIterator[tuple[Console, Page]]:
    """Open a browser that is signed in, with a board whose agents have worked."""
    async with running(config) as console:
        await console.board.ready()
        await work(console.board)
        async with opened(browser, console.origin, **options) as page:
            await console.sign_in(page)
            yield console, page


async def work(board: Pegboard) -> None:
    for agent in ("assistant", "reviewer"):
        session = await board.session(agent=agent, session_id=f"s of {agent}", principal="carl")
        await session.surface()
        await session.call("notes__notes_1", {"text": "minutes of the meeting"})


async def test_what_has_no_prices_is_in_tokens_with_the_line_that_adds_them(browser: Browser, config: Path) -> None:
    """F4: the line is one that the configuration takes, and the page follows the edit."""
    async with shown(config, browser) as (_, page):
        await page.goto("/console/cost?agent=reviewer")
        await expect(page.locator("#bill .figures")).not_to_contain_text("USD")
        line = page.locator("#prices code")
        await expect(line).to_contain_text("free: {prices: {input: 3.00")
        written = (await line.inner_text()).split("free: {", 1)[1].split("}}", 1)[0]
        edit(config, "id: small}", f"id: small, {written}}}}}")
        await expect(page.locator("#bill .figures")).to_contain_text("USD")
        await expect(page.locator("#prices")).to_have_count(0)


async def test_servers_say_how_their_last_day_was_and_what_does_not_run_comes_first(
    browser: Browser, config: Path
) -> None:
    """F5: calls, failures and how long they took."""
    async with shown(config, browser) as (console, page):
        session = await console.board.session(agent="assistant", session_id="s")
        await session.load("failing")
        await page.goto("/console/servers")
        await expect(page.locator("#server-1")).to_contain_text("broken")
        await page.goto("/console/servers/plugins")
        first = page.locator("tbody tr").first
        await expect(first).to_contain_text("notes")
        await expect(first.locator("[data-label='Calls, 24 h']")).to_have_text("2")
        await expect(first.locator("[data-label=p95]")).to_have_text(re.compile(r"^[\d.]+ ms$"))


async def test_an_operator_of_some_agents_sees_the_sums_of_these_alone(config_with_tokens: Path) -> None:
    """A5: on the page and in the API, by whatever a row stands for."""
    async with (
        Pegboard.open(config_with_tokens) as board,
        serving(board) as (app, _),
        program(app, "bob-bob-bob-bob-bob-bob") as bob,
        program(app, "root-root-root-root-root") as root,
    ):
        await work(board)
        own = await root.ask("GET", "/api/bill?by=agent&agent=reviewer")
        whole = await root.ask("GET", "/api/bill?by=agent")
        assert [row["agent"] for row in whole["rows"]] == ["assistant", "reviewer"]
        assert whole["totals"]["money"][0]["currency"] == "USD"
        for by in ("agent", "principal", "session", "day"):
            seen = await bob.ask("GET", f"/api/bill?by={by}")
            assert seen["totals"] == own["totals"]
            assert [step["results"] for step in seen["steps"]] == [own["totals"]["results"]]
            page = (await bob.client.get(f"/console/cost?by={by}")).text
            assert not re.search("assistant|USD [0-9]", page)
        assert (await bob.client.get("/console/cost?agent=assistant")).status_code == 404
        assert (await bob.refused("GET", "/api/usage/servers", 403))[0] == "every_agent_required"
        assert "/console/server?" not in (await bob.client.get("/console/agent?agent=reviewer")).text


async def test_programs_get_the_figures_of_the_bill(config_with_tokens: Path) -> None:
    """F4: the same as the page."""
    async with (
        Pegboard.open(config_with_tokens) as board,
        serving(board) as (app, _),
        program(app, "root-root-root-root-root") as root,
    ):
        await board.ready()
        await work(board)
        (notes,) = await root.ask("GET", "/api/usage/servers")
        assert (notes["name"], notes["calls"], notes["errors"], len(notes["hourly"])) == ("notes", 2, 0, 24)
        usage = await root.ask("GET", "/api/usage")
        bill = await root.ask("GET", "/api/bill?by=agent")
        assert usage["money"] == bill["totals"]["money"]
        assert usage["totals"]["results"] == bill["totals"]["results"] > 0
