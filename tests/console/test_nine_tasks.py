"""What operators do every day with the keyboard alone, and how many presses of links and buttons it takes (F5).

Typing is no press, nor is the key that puts the cursor into a field. A server that is added from pasted JSON stands in
the test of that form.
"""

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from pegboard import Session

from .browser import opened, tab_to
from .running import Console, running

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
CONFIG = """
store: "memory:"
record: {{arguments: true, results: 4kB}}
models: {{default: {{prices: {{input: 300000, output: 999999, currency: USD}}}}}}
servers:
  text: {{command: {python}, args: [{server}]}}
  crm: {{command: {python}, args: [{server}, --exit, "3"]}}
plugins:
  mail: {{python: task_mail, approve: {{send_invoice: always}}}}
toolkits:
  correspondence: {{label: Correspondence, description: Letters to customers., tools: [text]}}
agents:
  coder: {{allowed_toolkits: [correspondence], initial_toolkits: [correspondence], discoverable: [mail, crm]}}
  writer: {{tools: [mail], allowed_toolkits: [correspondence], initial_toolkits: [correspondence]}}
"""
MAIL = '''
def send_message(to: str) -> str:
    """Send a mail to somebody."""
    return f"sent to {to}"


def send_invoice(to: str) -> str:
    """Send an invoice to a customer."""
    return f"billed {to}"
'''
numbers = count(1)


@dataclass
class Hand:
    """Somebody at a page with a keyboard alone, whose presses are counted."""

    page: Page
    presses: int = 0

    async def press(self, target: Locator) -> None:
        """Press a link or a button."""
        self.presses += 1
        await expect(target).to_be_visible()
        await tab_to(self.page, target)
        await self.page.keyboard.press("Enter")

    async def confirm(self, name: str) -> None:
        """Press the button of a question, which has the focus already."""
        self.presses += 1
        button = self.page.locator("#preview, #ask").get_by_role("button", name=name)
        await expect(button).to_be_focused()
        await self.page.keyboard.press("Enter")

    async def find(self, words: str, choice: str) -> None:
        """Type into the palette and press what it found."""
        await self.page.keyboard.press("/")
        await expect(self.page.locator("#palette-words")).to_be_focused()
        await self.page.keyboard.type(words)
        option = self.page.get_by_role("option").filter(has_text=choice).first
        await expect(option).to_be_visible()
        self.presses += 1
        while await option.get_attribute("aria-selected") != "true":
            await self.page.keyboard.press("ArrowDown")
        await self.page.keyboard.press("Enter")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def console(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Console]:
    """Run a gateway with a server that answers, one that fails, and two agents."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "task_mail.py").write_text(MAIL)
    config = folder / "pegboard.yaml"
    config.write_text(CONFIG.format(python=sys.executable, server=SERVER))
    async with running(config) as console:
        await console.board.ready()
        yield console


@asynccontextmanager
async def somebody(console: Console, browser: Browser, width: int = 1280) -> AsyncIterator[Hand]:
    """Sign somebody in; they are on the start page, and have pressed nothing yet."""
    async with opened(browser, console.origin, width=width) as page:
        await console.sign_in(page)
        await expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
        yield Hand(page)


async def at_work(console: Console, agent: str = "writer") -> Session:
    """Let an agent call a tool of a server in a session of its own."""
    session = await console.board.session(agent=agent, session_id=f"report-{next(numbers)}", principal="carl")
    await session.surface()
    answer = await session.call("text__echo", {"text": "minutes"})
    assert answer.status == "ok", answer
    return session


async def test_why_an_agent_cannot_send_mail_and_the_fix_are_two_presses(browser: Browser, console: Console) -> None:
    """F5, P2: the palette itself says why; its action asks, and the confirmation is the second press."""
    await console.board.permissions.set("coder", "send_message", value=False, by="grace")
    async with somebody(console, browser) as hand:
        await hand.find("coder send message", "Switch send_message on for coder")
        await hand.confirm("Switch on")
        await expect(hand.page.get_by_role("status")).to_contain_text("switched on for agent coder")
        assert hand.presses == 2
    session = await console.board.session(agent="coder", session_id="mail")
    await session.load("mail")
    await session.surface()
    assert (await session.call("send_message", {"to": "ada"})).status == "ok"


async def test_the_palette_says_why_and_its_page_has_the_fix(browser: Browser, console: Console) -> None:
    """F5: one press more, the confirmation, for who wants to read the whole chain of reasons first."""
    await console.board.permissions.set("coder", "send_message", value=False, by="grace")
    async with somebody(console, browser) as hand:
        await hand.find("coder send message", "is switched off at run time")
        main = hand.page.get_by_role("main")
        await expect(main).to_contain_text("'send_message' is switched off at run time")
        await hand.press(main.get_by_role("link", name="Switch send_message on").first)
        await hand.confirm("Switch on")
        await expect(hand.page.get_by_role("status")).to_contain_text("switched on for agent coder")
        assert hand.presses == 3


async def test_a_toolkit_is_off_for_all_agents_after_two_presses(browser: Browser, console: Console) -> None:
    """P2: and one more takes it back."""
    async with somebody(console, browser) as hand:
        await hand.find("correspondence", "Switch correspondence off for everyone")
        await hand.confirm("Switch off for everyone")
        status = hand.page.get_by_role("status")
        await expect(status).to_contain_text("correspondence is switched off for every agent (2)")
        assert hand.presses == 2
        for agent in ("coder", "writer"):
            session = await console.board.session(agent=agent, session_id="off")
            assert "text__echo" not in (await session.surface()).names
        await hand.press(status.get_by_role("button", name="Undo"))
        await expect(status).to_contain_text("as it was before, for 2 agents")


async def test_a_call_is_allowed_on_a_telephone_with_two_presses(browser: Browser, console: Console) -> None:
    """A1: from the start page at 390 pixels."""
    session = await console.board.session(agent="writer", session_id="invoice")
    arguments = {"to": "ada-lovelace"}
    assert (await session.call("send_invoice", arguments)).status == "needs_approval"
    async with somebody(console, browser, width=390) as hand:
        await hand.press(hand.page.locator("#attention").get_by_role("link", name=re.compile("^Review")))
        await expect(hand.page.get_by_role("main")).to_contain_text(arguments["to"])
        await hand.press(hand.page.get_by_role("button", name="Allow once"))
        await expect(hand.page.get_by_role("status")).to_contain_text("this call may run once")
        assert hand.presses == 2
    assert (await session.call("send_invoice", arguments)).status == "ok"


async def test_the_log_of_a_server_that_failed_is_one_press_away(browser: Browser, console: Console) -> None:
    await (await console.board.session(agent="coder", session_id="crm")).load("crm")
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.locator("#attention").get_by_role("link", name=re.compile("^Logs.*crm")))
        await expect(hand.page.get_by_role("heading", level=1)).to_contain_text("crm")
        await expect(hand.page.locator("#log")).to_be_visible()
        await expect(hand.page.get_by_role("main")).to_contain_text("exited with code 3")
        assert hand.presses == 1


async def test_what_an_agent_cost_this_week_is_two_presses_away(browser: Browser, console: Console) -> None:
    """F4: the sum of all of them is on the first of these pages."""
    await at_work(console)
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Cost", exact=True))
        await hand.press(hand.page.locator("tbody").get_by_role("link", name="writer", exact=True).first)
        await expect(hand.page.get_by_role("heading", level=1)).to_have_text("Cost of agent writer")
        await expect(hand.page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
        await expect(hand.page.locator("#bill .figures strong").first).to_have_text(re.compile(r"^USD \d"))
        assert hand.presses == 2


async def test_the_tool_that_is_called_most_stands_on_the_start_page(browser: Browser, console: Console) -> None:
    """F4: of the last day; another time is one press."""
    for _ in range(3):
        await at_work(console)
    async with somebody(console, browser) as hand:
        await expect(hand.page.locator("#tool-1")).to_contain_text("echo")
        assert hand.presses == 0
        await hand.press(hand.page.get_by_role("link", name="7 days", exact=True))
        await expect(hand.page.locator("#tool-1")).to_contain_text("echo")
        assert hand.presses == 1


async def test_what_the_model_sees_is_two_presses_away(browser: Browser, console: Console) -> None:
    """F1: from what an agent called just now, or by the name of its session."""
    session = await at_work(console)
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.locator("#ticker").get_by_role("link", name="text/echo").first)
        await hand.press(hand.page.get_by_role("link", name="What the model sees"))
        await expect(hand.page.locator("#json")).to_contain_text('"inputSchema"')
        assert hand.presses == 2
        await hand.find(session.key.session, session.key.session)
        await hand.press(hand.page.get_by_role("link", name="What the model sees"))
        await expect(hand.page.locator("#json")).to_contain_text('"inputSchema"')
        assert hand.presses == 4


async def test_one_call_is_looked_at_and_made_again_with_three_presses(browser: Browser, console: Console) -> None:
    """X4: its arguments and answer after one."""
    await at_work(console)
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.locator("#ticker").get_by_role("link", name="text/echo").first)
        await expect(hand.page.locator("#arguments")).to_contain_text("minutes")
        await hand.press(hand.page.get_by_role("button", name="Try again"))
        await hand.confirm("Try again")
        await expect(hand.page.locator("#notices")).to_contain_text("Made again in session try-")
        assert hand.presses == 3
