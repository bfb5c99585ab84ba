"""What operators do every day, and how many presses of links, buttons and choices it takes (F5).

Typing is no press, nor is the key that puts the cursor into a field.
"""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from pegboard import Session
from pegboard.core.principals.bearer_tokens import digest_of
from pegboard.ports import AuditRecord

from .browser import opened, tab_to
from .running import Console, running

__all__ = ["running_site", "site"]

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
CONFIG = """
store: "memory:"
record: {{arguments: true, results: 4kB}}
models: {{default: {{prices: {{input: 300000, output: 999999, currency: USD}}}}}}
{tokens}servers:
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


def delete_message(subject: str) -> str:
    """Delete a mail for ever."""
    return f"deleted {subject}"


def send_invoice(to: str) -> str:
    """Send an invoice to a customer."""
    return f"billed {to}"
'''
EVE = "eve-eve-eve-eve-eve-eve"
TOKENS = f'tokens: {{eve: {{token: {EVE}, agents: ["*"], console: [see, approve, switch, configure]}}}}\n'
numbers = count(1)


@dataclass
class Hand:
    """Someone at a page with a keyboard alone, whose presses are counted."""

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

    async def choose(self, target: Locator, value: str) -> None:
        """Choose one of a menu."""
        self.presses += 1
        await tab_to(self.page, target)
        await target.select_option(value)

    async def tick(self, target: Locator) -> None:
        """Tick a box, or one of several choices."""
        self.presses += 1
        await target.check()

    async def find(self, words: str, choice: str) -> None:
        """Type into the palette and press what it found."""
        await self.page.wait_for_load_state()
        await expect(self.page.locator("#palette")).to_be_attached()
        await self.page.evaluate("document.activeElement.blur()")
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
    config.write_text(CONFIG.format(python=sys.executable, server=SERVER, tokens=""))
    async with running(config) as console:
        await console.board.ready()
        yield console


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration of a test's own, which it may edit, on a machine on which no client has servers."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "task_mail.py").write_text(MAIL)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, server=SERVER, tokens=TOKENS))
    return path


def text_of(path: Path) -> str:
    return path.read_text()


async def saved(hand: Hand, what: str) -> None:
    """Press what saves the edit that is shown, which has the focus."""
    save = hand.page.get_by_role("button", name=re.compile("^Save"))
    await expect(save).to_be_focused()
    hand.presses += 1
    await hand.page.keyboard.press("Enter")
    await expect(hand.page.get_by_role("status")).to_contain_text(f"Saved: {what}")


@asynccontextmanager
async def somebody(console: Console, browser: Browser, width: int = 1280) -> AsyncIterator[Hand]:
    """Sign someone in; they are on the start page, and have pressed nothing yet."""
    async with opened(browser, console.origin, width=width) as page:
        await console.sign_in(page, EVE if console.board.configuration.tokens else None)
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


async def test_a_server_is_added_from_pasted_json_and_granted_with_five_presses(browser: Browser, config: Path) -> None:
    """G13: read it, tick an agent, look at what changes, save; its secret is kept, so that it runs."""
    secret = "ghp_s3cr3tS3cr3tS3cr3t99"
    server = {"command": sys.executable, "args": [str(SERVER)], "env": {"NOTES_TOKEN": secret}}
    pasted = json.dumps({"mcpServers": {"notes": server}})
    async with running(config) as console, somebody(console, browser) as hand:
        await hand.find("add server", "Add a server")
        await hand.page.get_by_label("Configuration of the server").fill(pasted)
        await hand.press(hand.page.get_by_role("button", name="Continue"))
        await hand.tick(hand.page.get_by_label("writer"))
        await hand.press(hand.page.get_by_role("button", name="Review changes").first)
        await saved(hand, "Add server notes")
        assert hand.presses == 5
        assert secret not in text_of(config)
        session = await console.board.session(agent="writer", session_id="notes")
        await session.load("notes")
        await session.end_turn()
        await session.surface()
        answer = await session.call("notes__environment", {"name": "NOTES_TOKEN"})
        assert (answer.status, secret in str(answer)) == ("ok", True), answer


async def test_who_destroyed_something_yesterday_is_three_presses_away(browser: Browser, console: Console) -> None:
    """X4: in the zone of the browser; no one has to guess what the names of such tools begin with."""
    noon = datetime.combine(datetime.now(UTC).date() - timedelta(days=1), time(12), UTC)
    record = AuditRecord(
        at=noon, kind="call", principal="carl", agent="writer", session="old", turn=1, subject="mail/delete_message",
        decision="allowed", reason="", duration=1.0, outcome="ok", arguments="", by="carl",
    )  # fmt: skip
    await console.board.services.store.record(record, record._replace(subject="mail/send_message", by="dora"))
    await at_work(console)
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Activity", exact=True))
        await hand.tick(hand.page.get_by_label("destructive", exact=True))
        await hand.tick(hand.page.get_by_label("yesterday", exact=True))
        await expect(hand.page.locator("#records tbody tr")).to_have_count(1)
        await expect(hand.page.locator("#records tbody tr")).to_contain_text("carl")
        assert hand.presses == 3


async def test_why_a_search_missed_is_three_presses_away(browser: Browser, config: Path) -> None:
    """X4, F5: its record leads to what that agent finds with the same words, and why not the rest."""
    async with running(config) as console:
        await console.board.ready()
        session = await console.board.session(agent="coder", session_id="search")
        await session.surface()
        await console.board.permissions.set("coder", "delete_message", value=False, by="grace")
        await session.call("search_tools", {"queries": ["delete a mail for ever"]})
        async with somebody(console, browser) as hand:
            await hand.press(hand.page.get_by_role("link", name="Activity", exact=True))
            await hand.press(hand.page.locator("#records").get_by_role("link", name="search", exact=True).first)
            await hand.press(hand.page.get_by_role("link", name="Why this was found"))
            await expect(hand.page.get_by_role("main")).to_contain_text("'delete_message' is switched off at run time")
            assert hand.presses == 3


async def test_a_budget_is_raised_with_at_most_four_presses(browser: Browser, config: Path) -> None:
    """P10: as a number; what is no number comes back beside its field with what was typed."""
    async with running(config) as console, somebody(console, browser) as hand:
        await hand.find("writer budget", "Edit agent writer")
        await hand.page.get_by_role("group", name="Budget").get_by_label("Tokens", exact=True).fill("9000")
        await hand.press(hand.page.get_by_role("button", name="Review changes"))
        await saved(hand, "Edit agent writer")
        assert hand.presses == 3
        assert console.board.configuration.agents["writer"].budget.tokens == 9000


async def test_a_person_is_granted_with_three_presses(browser: Browser, config: Path) -> None:
    """G2: the token is shown once, and nothing of it is kept but its digest."""
    async with running(config) as console, somebody(console, browser) as hand:
        await hand.find("user", "People and tokens")
        await hand.page.get_by_label("Name").fill("zoe")
        await hand.tick(hand.page.get_by_label("writer"))
        await hand.press(hand.page.get_by_role("button", name="Grant and show the token"))
        token = await hand.page.locator("#token").inner_text()
        assert digest_of(token) in text_of(config)
        assert hand.presses == 3


async def test_two_agents_are_compared_with_four_presses(browser: Browser, console: Console) -> None:
    """F5: what each may use alone, beside its calls, tokens, cost and budget."""
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Access", exact=True))
        await hand.press(hand.page.get_by_role("link", name="Compare", exact=True))
        await hand.choose(hand.page.get_by_label("One"), "coder")
        await hand.choose(hand.page.get_by_label("Other"), "writer")
        await expect(hand.page.locator("#compared")).to_contain_text("Only writer may use")
        await expect(hand.page.locator("#compared")).to_contain_text("Budget, tokens")
        assert hand.presses == 4


async def test_a_rule_before_anything_is_deleted_takes_four_presses(browser: Browser, config: Path) -> None:
    """A1: the palette finds the rules of a plugin; the next call waits."""
    async with running(config) as console, somebody(console, browser) as hand:
        await hand.find("approval rule", "Edit")
        await hand.press(hand.page.get_by_role("main").get_by_role("link", name="mail", exact=True))
        rules = hand.page.get_by_label("Approve", exact=True)
        await rules.fill(f"{await rules.input_value()}\ndelete_*: always")
        await hand.press(hand.page.get_by_role("button", name="Review changes"))
        await saved(hand, "Edit plugin mail")
        assert hand.presses == 4
        session = await console.board.session(agent="writer", session_id="rule")
        await session.surface()
        assert (await session.call("delete_message", {"subject": "x"})).status == "needs_approval"


async def test_an_edit_of_yesterday_is_undone_with_three_presses(browser: Browser, config: Path) -> None:
    """P10: whoever made it, in the console or in the file."""
    before = text_of(config)
    async with running(config) as console, somebody(console, browser) as hand:
        await hand.find("writer budget", "Edit agent writer")
        await hand.page.get_by_label("Role", exact=True).fill("writes letters")
        await hand.press(hand.page.get_by_role("button", name="Review changes"))
        await saved(hand, "Edit agent writer")
        assert text_of(config) != before
        hand.presses = 0
        await hand.press(hand.page.get_by_role("link", name="History", exact=True))
        await hand.press(hand.page.get_by_role("button", name=re.compile("^Restore")).last)
        await saved(hand, "Restore the configuration of")
        assert hand.presses == 3
        assert text_of(config) == before


async def test_the_most_expensive_toolkit_is_two_presses_away(browser: Browser, console: Console) -> None:
    """F4: the most expensive one is the first."""
    await at_work(console)
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Cost", exact=True))
        await hand.press(hand.page.get_by_role("link", name="By toolkit"))
        toolkits = hand.page.locator("#bill tbody tr").filter(has_not_text="in no toolkit")
        await expect(toolkits.first).to_contain_text("correspondence")
        await expect(toolkits.first).to_contain_text("USD")
        assert hand.presses == 2


async def test_a_server_is_paused_with_four_presses(browser: Browser, console: Console) -> None:
    """P4: on its own page, which says so."""
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Servers", exact=True))
        await hand.press(hand.page.get_by_role("link", name="text", exact=True))
        await hand.press(hand.page.get_by_role("button", name="Pause …"))
        await hand.confirm("Pause")
        await expect(hand.page.get_by_role("heading", level=1)).to_contain_text("paused for 2 of 2 agents")
        assert hand.presses == 4
        await hand.press(hand.page.get_by_role("button", name="Resume …"))
        await hand.confirm("Resume")
        await expect(hand.page.get_by_role("heading", level=1)).not_to_contain_text("paused")


async def test_the_audit_trail_is_a_table_after_two_presses(browser: Browser, console: Console) -> None:
    """X4: what is filtered, as CSV."""
    await at_work(console)
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Activity", exact=True))
        async with hand.page.expect_download() as begun:
            await hand.press(hand.page.get_by_role("link", name="CSV", exact=True))
        assert "text/echo" in text_of(await (await begun.value).path())
        assert hand.presses == 2


async def test_a_session_is_seen_as_it_happens_after_two_presses(browser: Browser, console: Console) -> None:
    """X4: a new session comes onto the open list by itself, and each call onto its open page."""
    async with somebody(console, browser) as hand:
        await hand.press(hand.page.get_by_role("link", name="Sessions", exact=True))
        await expect(hand.page.get_by_role("heading", level=1)).to_have_text("Sessions")
        session = await at_work(console)
        await hand.press(hand.page.get_by_role("link", name=session.key.session, exact=True))
        await expect(hand.page.locator(".timeline li")).to_have_count(1)
        await session.call("text__echo", {"text": "again"})
        await expect(hand.page.locator(".timeline li")).to_have_count(2)
        assert hand.presses == 2


async def test_what_changed_since_friday_is_one_press_away(browser: Browser, config: Path) -> None:
    """X4, P10: edits, switches and approvals in one list, since a day that is typed."""
    async with running(config) as console:
        await console.board.permissions.set("coder", "send_message", value=False, by="grace")
        session = await console.board.session(agent="writer", session_id="invoice")
        asked = await session.call("send_invoice", {"to": "ada"})
        assert asked.approval is not None
        await console.board.approvals.allow(asked.approval.id, by="grace")
        async with somebody(console, browser) as hand:
            await hand.press(hand.page.get_by_role("link", name="History", exact=True))
            await hand.page.get_by_label("Since").fill(f"{datetime.now(UTC).date() - timedelta(days=2):%Y-%m-%d}")
            changes = hand.page.locator("#changes")
            for kind in ("switch", "approval"):
                await expect(changes.get_by_role("cell", name=re.compile(f"^{kind}")).first).to_be_visible()
            await expect(hand.page).to_have_url(re.compile("since="))
            assert hand.presses == 1


async def test_the_login_of_a_server_is_one_press_away(browser: Browser, tmp_path: Path, site: LoginSite) -> None:
    """G11: from the start page to the issuer."""
    site.change(consent="page")
    path = tmp_path / "pegboard.yaml"
    agents = {"user": {"discoverable": ["notes"]}}
    path.write_text(json.dumps({"store": "memory:", "servers": {"notes": {"url": site.url}}, "agents": agents}))
    async with running(path) as console, opened(browser, console.origin, site.origin) as page:
        await console.board.ready()
        await console.sign_in(page)
        hand = Hand(page)
        await hand.press(page.get_by_role("button", name="Log in to notes"))
        await expect(page.get_by_role("link", name=re.compile("^Continue as")).first).to_be_visible()
        assert hand.presses == 1
