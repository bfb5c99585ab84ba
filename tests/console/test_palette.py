"""The palette: found by the server, chosen by keyboard, and a page without a script."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard

from .browser import opened
from .programs import Program, program, serving
from .running import running

MAIL = '''
def send_message(to: str, text: str) -> str:
    """Send a mail to somebody."""
    return "sent"


def read_mail() -> str:
    """Read the newest mail."""
    return "none"
'''
CONFIG = """
store: sqlite:///state.db
plugins: {mail: {python: mail_tools}, clock: {python: pegboard.quickstart.clock}}
agents:
  coder: {tools: [clock], discoverable: [mail], permissions: {mail: false}}
  writer: {tools: [mail]}
"""
TOKENS = """
tokens:
  root: {token: root-root-root-root-root, agents: ["*"], console: true}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: [writer], console: [see]}
  eve: {token: eve-eve-eve-eve-eve-eve, agents: [writer], console: [see, configure]}
  kim: {token: kim-kim-kim-kim-kim-kim, agents: ["*"], console: [see, configure]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "mail_tools.py").write_text(MAIL)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def config_with_tokens(config: Path) -> Path:
    config.write_text(CONFIG + TOKENS)
    return config


async def test_what_is_typed_last_counts_however_quickly_enter_follows(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.keyboard.press("Control+k")
        await expect(page.locator("#hits [role=option]").first).to_contain_text("Overview")
        await page.keyboard.type("sessions")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sessions")


async def test_escape_closes_the_palette_and_keys_lead_to_pages(browser: Browser, config: Path) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.keyboard.press("Control+k")
        await page.keyboard.press("Escape")
        await expect(page.locator("#palette")).to_be_hidden()
        await page.keyboard.press("?")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Keys")
        await page.keyboard.press("g")
        await page.keyboard.press("s")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sessions")
        await page.get_by_label("Search", exact=True).press("?")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sessions")


async def found(program: Program, text: str) -> list[tuple[str, str]]:
    entries = (await program.ask("GET", "/api/find", params={"query": text}))["entries"]
    return [(one["kind"], one["label"]) for one in entries]


async def test_an_operator_of_some_agents_finds_nothing_of_others(config_with_tokens: Path) -> None:
    """A5: neither agents, sessions nor pages that they may not open, and no action that they may not do."""
    async with Pegboard.open(config_with_tokens) as board, serving(board) as (app, _):
        for agent in ("coder", "writer"):
            await (await board.session(agent=agent, session_id=f"report of {agent}")).surface()
        async with program(app, "root-root-root-root-root") as root, program(app, "bob-bob-bob-bob-bob-bob") as bob:
            assert ("agent", "coder") in await found(root, "coder")
            assert ("session", "report of coder") in await found(root, "coder")
            assert await found(bob, "coder") == []
            assert await found(bob, "report") == [("session", "report of writer")]
            assert ("page", "Servers") in await found(root, "servers")
            assert ("page", "Servers") not in await found(bob, "servers")
            kinds = [kind for kind, _ in await found(bob, "writer send mail")]
            assert "tool" in kinds
            assert "action" not in kinds
            assert "action" in [kind for kind, _ in await found(root, "writer send mail")]


async def test_what_takes_the_right_to_configure_is_found_by_those_who_have_it(config_with_tokens: Path) -> None:
    """A5: what is found can be opened, and a tool is tried by whoever may call it."""
    pages = {
        "root": {"Access"},
        "bob": {"Access"},
        "eve": {"Access", "Edit", "Try a tool"},
        "kim": {"Access", "Edit", "Try a tool", "Add a server"},
    }
    async with Pegboard.open(config_with_tokens) as board, serving(board) as (app, _):
        for name, expected in pages.items():
            token = "-".join([name] * (5 if name == "root" else 6))
            async with program(app, token) as operator:
                entries = (await operator.ask("GET", "/api/find", params={"query": ""}))["entries"]
                assert {one["label"] for one in entries} & pages["kim"] == expected, name
                for one in entries:
                    assert (await operator.client.get(one["address"])).status_code == 200, (name, one["label"])
                tries = ("action", "Try read_mail as writer") in await found(operator, "writer read mail")
                assert tries is ("Try a tool" in expected), name
                for label in pages["kim"]:
                    assert (("page", label) in await found(operator, label)) is (label in expected), (name, label)
