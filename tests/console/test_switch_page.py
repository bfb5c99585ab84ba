"""The switches of an agent, thrown in a browser while clients of both eras are in a session."""

import asyncio
from pathlib import Path

import pytest
from mcp import MCPError
from playwright.async_api import Browser, Page, Route, expect

from gateway.clients import HANDSHAKE, edit

from .browser import opened, tab_to
from .running import running

CONFIG = """
store: sqlite:///state.db
plugins:
  mail: {python: mail_tools}
  notes: {python: notes_tools}
toolkits:
  correspondence: {tools: [mail], label: "Correspondence", icon: "✉️", description: "Read and send mail."}
agents:
  default: {tools: [notes], allowed_toolkits: [correspondence], initial_toolkits: [correspondence], dialect: pegboard}
  other: {tools: [notes]}
"""
SPARE = "  spare: {python: notes_tools, prefix: spare}\n"
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
PANEL = "/console/agent?agent=default"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    (tmp_path / "mail_tools.py").write_text(MAIL)
    return path


async def throw_by_keyboard(page: Page, name: str, button: str) -> None:
    await tab_to(page, page.get_by_role("switch", name=name, exact=True))
    await page.keyboard.press("Space")
    confirm = page.get_by_role("dialog").get_by_role("button", name=button)
    await expect(confirm).to_be_visible()
    await tab_to(page, confirm)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_switch_thrown_by_keyboard_binds_the_next_call_and_changes_the_list(
    browser: Browser, config: Path
) -> None:
    """P2, P4: it says which live session loses what, then the next call is refused; undo gives it back."""
    async with running(config) as console, opened(browser, console.origin) as page, console.client(HANDSHAKE) as client:
        await console.sign_in(page)
        assert await client.text("send_message", to="ada") == "sent to ada"
        await page.goto(PANEL)
        switch = page.get_by_role("switch", name="Correspondence", exact=True)
        await expect(switch).to_have_attribute("aria-checked", "true")
        await switch.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("2 tools fewer")
        await expect(dialog).to_contain_text("s of local: loses list_messages, send_message")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await throw_by_keyboard(page, "Correspondence", "Switch off")
        await expect(page.get_by_role("status")).to_contain_text("correspondence is switched off for agent default")
        await expect(switch).to_have_attribute("aria-checked", "false")
        with pytest.raises(MCPError, match="not found"):
            await client.call("send_message", to="ada")
        assert "send_message" not in await client.names()
        await tab_to(page, page.get_by_role("button", name="Undo"))
        await page.keyboard.press("Enter")
        await expect(switch).to_have_attribute("aria-checked", "true")
        assert await client.text("send_message", to="ada") == "sent to ada"
        (undone, thrown) = await console.board.services.store.entries(kind="permission")
        assert [(thrown.decision, thrown.by), (undone.decision, undone.by)] == [("off", "local"), ("unset", "local")]


async def test_what_is_counted_is_called_tools_only_where_the_tools_are_known(browser: Browser, config: Path) -> None:
    """P2, F4: a server that was never reached counts as one member."""
    both = "servers: {far: {command: not-there}}\ntoolkits:\n  both: {tools: [mail, far], label: Both}\n"
    edit(config, "\ntoolkits:\n", f"\n{both}")
    edit(config, "[correspondence], initial", "[correspondence, both], initial")
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto(PANEL)
        await expect(page.get_by_role("link", name="2 of 2 tools on")).to_be_visible()
        await expect(page.get_by_role("link", name="3 of 3 members on")).to_be_visible()


async def test_a_tool_has_a_switch_of_its_own_that_can_be_removed(browser: Browser, config: Path) -> None:
    """P2: three states; without a stored switch the file decides."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto(PANEL)
        await page.get_by_role("link", name="2 of 2 tools on").click()
        await throw_by_keyboard(page, "send_message", "Switch off")
        await expect(page.get_by_role("row", name="send_message")).to_contain_text("switched off")
        await page.get_by_role("button", name="Remove switch").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove the switch").click()
        await expect(page.get_by_role("switch", name="send_message")).to_have_attribute("aria-checked", "true")
        assert await console.board.permissions.show() == {"default": {}, "other": {}}


async def test_of_two_operators_who_throw_one_switch_the_second_reads_who_was_first(
    browser: Browser, config: Path
) -> None:
    """P2, X4: nothing is switched on what someone no longer sees."""
    async with (
        running(config) as console,
        opened(browser, console.origin, expected="status of 409") as page,
    ):
        await console.sign_in(page)
        await page.goto(PANEL)
        await page.get_by_role("switch", name="Correspondence", exact=True).click()
        confirm = page.get_by_role("dialog").get_by_role("button", name="Switch off")
        await expect(confirm).to_be_visible()
        await console.board.permissions.set("default", "correspondence", False, by="grace")
        await confirm.click()
        await expect(page.get_by_role("alert")).to_contain_text("grace")
        records = await console.board.services.store.entries(kind="permission")
        assert [record.by for record in records] == ["grace"]


async def test_the_panel_follows_a_switch_of_another_place_and_is_filtered_while_typing(
    browser: Browser, config: Path
) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto(PANEL)
        await console.board.permissions.set("default", "notes", False)
        await expect(page.get_by_role("switch", name="notes")).to_have_attribute("aria-checked", "false")
        await page.get_by_label("Toolkits, plugins and tools").press_sequentially("messages")
        await expect(page.get_by_role("switch", name="notes")).to_have_count(0)
        await expect(page.get_by_role("switch", name="Correspondence", exact=True)).to_be_visible()


async def test_a_second_click_before_the_answer_decides_nothing(browser: Browser, config: Path) -> None:
    """P2: no one reads that they were overtaken by themselves."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto(PANEL)
        await page.get_by_role("switch", name="notes").click()
        clicked = asyncio.Event()

        async def after_the_clicks(route: Route) -> None:
            await clicked.wait()
            await route.continue_()

        await page.route("**/console/switch", after_the_clicks)
        confirm = page.get_by_role("dialog").get_by_role("button", name="Switch off")
        await confirm.dblclick()
        await confirm.click()
        clicked.set()
        await expect(page.get_by_role("status")).to_contain_text("notes")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("alert")).to_have_count(0)
        records = await console.board.services.store.entries(kind="permission")
        assert len(records) == 1


async def test_what_is_typed_stays_where_something_changes_before_its_answer(browser: Browser, config: Path) -> None:
    """P4: the list is that of the field, and shows the change."""
    async with running(config) as console, opened(browser, console.origin) as page:

        async def change_first(route: Route) -> None:
            await console.board.permissions.set("default", "notes", False)
            async with page.expect_response("**/console/approvals/waiting"):  # another part has heard of it
                console.board.services.events.emit("approval_asked", {})
            await route.continue_()

        await console.sign_in(page)
        await page.goto(PANEL)
        await page.route("**/console/agent?*q=note*", change_first, times=1)
        await page.get_by_label("Toolkits, plugins and tools").fill("note")
        await expect(page.get_by_role("switch", name="notes")).to_have_attribute("aria-checked", "false")
        await expect(page.get_by_role("switch", name="Correspondence", exact=True)).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        ("/console/agent?agent=other", "  other: {tools: [notes]}\n", "There is no agent 'other'"),
        ("/console/server?name=spare", SPARE, "There is no server or plugin 'spare'"),
    ],
)
async def test_an_open_page_says_that_an_edit_has_removed_what_it_shows(
    browser: Browser, config: Path, path: str, line: str, said: str
) -> None:
    edit(config, "toolkits:\n", f"{SPARE}toolkits:\n")
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto(path)
        edit(config, line, "")
        await expect(page.get_by_role("alert")).to_contain_text(said)


async def test_without_a_script_a_switch_is_thrown_with_forms_alone(browser: Browser, config: Path) -> None:
    async with running(config) as console:
        context = await browser.new_context(java_script_enabled=False)
        page = await context.new_page()
        await console.sign_in(page)
        await page.goto(f"{console.origin}{PANEL}")
        await page.get_by_role("switch", name="Correspondence", exact=True).click()
        await page.get_by_role("button", name="Switch off").click()
        await expect(page.get_by_role("status")).to_contain_text("is switched off")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("status")).to_contain_text("no longer has a stored switch")
        await context.close()
