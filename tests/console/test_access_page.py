"""The matrix of agents and toolkits in a browser, by keyboard, while clients are in sessions of two agents."""

from pathlib import Path

import pytest
from mcp import MCPError
from playwright.async_api import Browser, Page, expect

from gateway.clients import edit

from .browser import broken_words, findings, opened, tab_to
from .running import running

CONFIG = """
store: sqlite:///state.db
plugins:
  mail: {python: mail_tools}
  notes: {python: notes_tools}
toolkits:
  correspondence: {tools: [mail], label: Correspondence}
agents:
  default: {tools: [notes], allowed_toolkits: [correspondence], initial_toolkits: [correspondence]}
  second: {allowed_toolkits: [correspondence], initial_toolkits: [correspondence]}
  third: {tools: [notes]}
"""
NOTES = '''
def note_add(text: str) -> str:
    """Add a note."""
    return f"added {text}"
'''
MAIL = '''
def send_message(to: str) -> str:
    """Send a message by mail."""
    return f"sent to {to}"


def list_messages() -> str:
    """List the newest messages."""
    return "none"
'''
MATRIX = "/console/access/matrix"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    (tmp_path / "mail_tools.py").write_text(MAIL)
    return path


async def press(page: Page, name: str) -> None:
    """Press a button without a mouse."""
    await tab_to(page, page.get_by_role("button", name=name))
    await page.keyboard.press("Enter")


async def test_a_toolkit_is_off_for_everyone_after_two_presses_and_one_takes_it_back(
    browser: Browser, config: Path
) -> None:
    """P2, P4: one preview over all agents, one confirmation by Enter alone, one undo, one mark."""
    async with (
        running(config) as console,
        opened(browser, console.origin) as page,
        console.client("legacy") as client,
        console.client("legacy", agent="second", session="t") as other,
    ):
        await console.board.permissions.set("second", "list_messages", False)
        for one in (client, other):
            assert await one.text("send_message", to="ada") == "sent to ada"
        before = (await console.board.services.store.stored_permissions()).switches
        await console.sign_in(page)
        await page.get_by_role("link", name="Access", exact=True).click()
        await page.get_by_role("link", name="Matrix", exact=True).click()
        await press(page, "Correspondence: Off for everyone")
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("3 agents and 2 sessions change with the next call")
        await expect(dialog).to_contain_text("s of local: loses list_messages, send_message")
        await expect(dialog).to_contain_text("t of local: loses")
        await expect(dialog.get_by_role("button", name="Switch off for everyone")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("is switched off for every agent (3)")
        for one in (client, other):
            with pytest.raises(MCPError, match="not found"):
                await one.call("send_message", to="ada")
        await expect(page.get_by_role("button", name="Correspondence, agent second: off, set")).to_be_visible()
        records = await console.board.services.store.entries(kind="permission", limit=3)
        assert {(one.decision, one.subject, one.by) for one in records} == {("off", "correspondence", "local")}
        assert len({one.reason for one in records}) == 1
        await press(page, "Undo")
        await expect(page.get_by_role("status")).to_contain_text("as it was before, for 3 agents")
        assert (await console.board.services.store.stored_permissions()).switches == before
        assert await other.text("send_message", to="ada") == "sent to ada"


IN_SIGHT = """(element) => {
  const box = element.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight && document.elementFromPoint(box.left + 5, box.top + 5) !== null;
}"""


async def test_a_preview_of_many_sessions_opens_at_its_head_with_the_button_in_sight(
    browser: Browser, config: Path
) -> None:
    """P2: the sum is at the head, the sessions are folded by agent, and Enter confirms what was seen."""
    async with running(config) as console, opened(browser, console.origin, width=640, height=400) as page:
        for agent in ("default", "second"):
            for number in range(15):
                await (await console.board.session(agent=agent, session_id=f"report-{number}")).surface()
        await console.sign_in(page)
        await page.goto(MATRIX)
        await press(page, "Correspondence: Off for everyone")
        dialog = page.get_by_role("dialog")
        confirm = dialog.get_by_role("button", name="Switch off for everyone")
        await expect(confirm).to_be_focused()
        for seen in (dialog.locator("#dialog-title"), dialog.get_by_text("30 sessions"), confirm):
            assert await seen.evaluate(IN_SIGHT)
        await expect(dialog.get_by_text("15 sessions change")).to_have_count(2)
        await expect(dialog.get_by_role("link", name="report-1", exact=True).first).to_be_hidden()


async def test_a_cell_has_three_states_and_is_reached_by_arrows(browser: Browser, config: Path) -> None:
    """P2: on, off, or as the file says; the dialog shows each before it is set."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto(MATRIX)
        await tab_to(page, page.get_by_role("button", name="Correspondence, agent default: on"))
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowRight")
        third = page.get_by_role("button", name="Correspondence, agent third: off")
        await expect(third).to_be_focused()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("button", name="Off", exact=True)).to_have_attribute("aria-pressed", "true")
        await dialog.get_by_role("button", name="On", exact=True).press("Enter")
        await expect(dialog).to_contain_text("2 tools more")
        await expect(dialog.get_by_role("button", name="Switch on")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Correspondence, agent third: on, set").press("Enter")
        await dialog.get_by_role("button", name="As configured").press("Enter")
        await dialog.get_by_role("button", name="Remove the switch").press("Enter")
        await expect(page.get_by_role("button", name="Correspondence, agent third: off", exact=True)).to_be_visible()
        assert (await console.board.services.store.stored_permissions()).switches == {}


async def test_a_paused_agent_is_shown_everywhere_and_resumed_as_it_was(browser: Browser, config: Path) -> None:
    """P4, F5: nothing of it can be called; Now, its page and the explanation say so, and resume it."""
    async with (
        running(config) as console,
        opened(browser, console.origin) as page,
        console.client("2026-07-28", agent="second") as client,
    ):
        await console.board.permissions.set("second", "notes", True)
        before = (await console.board.services.store.stored_permissions()).switches
        await console.sign_in(page)
        await page.goto(MATRIX)
        await press(page, "Pause agent second")
        await expect(page.get_by_role("dialog")).to_contain_text("3 tools fewer")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("Agent second is paused")
        with pytest.raises(MCPError, match="not found"):
            await client.call("send_message", to="ada")
        await page.goto("/console/agent?agent=second")
        await expect(page.locator("#main")).to_contain_text("This agent is paused")
        await page.goto("/console/why?agent=second&tool=note_add")
        await expect(page.locator("#explanation")).to_contain_text("Agent 'second' is paused by an operator.")
        await page.goto("/console")
        await expect(page.locator("#attention")).to_contain_text("Agent 'second' is paused")
        await press(page, "Resume … second")
        await expect(page.get_by_role("dialog").get_by_role("button", name="Resume")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#attention")).not_to_contain_text("is paused")
        assert await client.text("send_message", to="ada") == "sent to ada"
        assert (await console.board.services.store.stored_permissions()).switches == before


async def test_a_plugin_is_paused_for_every_agent(browser: Browser, config: Path) -> None:
    """P4: also where a toolkit holds it; other plugins go on."""
    async with (
        running(config) as console,
        opened(browser, console.origin) as page,
        console.client("legacy") as client,
    ):
        await console.sign_in(page)
        await page.goto(MATRIX)
        await page.get_by_text("Pause a server or plugin for everyone").press("Enter")
        await press(page, "Pause mail")
        await expect(page.get_by_role("dialog")).to_contain_text("Pause mail for every agent (3)")
        await page.keyboard.press("Enter")
        await expect(page.locator("#pauses")).to_contain_text("paused for 3 of 3")
        with pytest.raises(MCPError, match="not found"):
            await client.call("send_message", to="ada")
        assert await client.text("note_add", text="x") == "added x"
        await press(page, "Resume mail")
        await expect(page.get_by_role("dialog")).to_contain_text("as they were before the pause")
        await page.keyboard.press("Enter")
        await expect(page.locator("#pauses")).not_to_contain_text("paused for")
        assert await client.text("send_message", to="ada") == "sent to ada"


async def test_where_somebody_was_first_nothing_is_set_for_anybody(browser: Browser, config: Path) -> None:
    """P2, X4: of two operators the second reads that something has changed, and decides again."""
    async with running(config) as console, opened(browser, console.origin, expected="status of 409") as page:
        await console.sign_in(page)
        await page.goto(MATRIX)
        await press(page, "Correspondence: Off for everyone")
        confirm = page.get_by_role("dialog").get_by_role("button", name="Switch off for everyone")
        await expect(confirm).to_be_focused()
        await console.board.permissions.set("third", "correspondence", True, by="grace")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("nothing was changed")
        assert (await console.board.services.store.stored_permissions()).switches == {"third": {"correspondence": True}}


async def test_the_matrix_is_accessible_with_hostile_names_and_fits_a_phone(
    browser: Browser, config: Path, axe_core: str
) -> None:
    edit(config, "label: Correspondence", 'label: "<b id=x>\\u202eliam</b>"')
    edit(config, "  third:", '  "a% <b> é": {tools: [mail]}\n  third:')
    async with running(config) as console, opened(browser, console.origin, theme="dark", width=400) as page:
        await console.sign_in(page)
        await page.goto(MATRIX)
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
        assert await page.locator("#x").count() == 0
        assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        await page.get_by_role("button", name="Pause agent a% <b> é").click()
        await expect(page.get_by_role("dialog")).to_contain_text("a% <b> é")
        assert await findings(page, axe_core) == []
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Resume agent a% <b> é")).to_be_visible()
        await page.get_by_role("button", name="Off for everyone").first.click()
        await expect(page.get_by_role("dialog")).to_contain_text("for every agent (4)")
        assert await findings(page, axe_core) == []
