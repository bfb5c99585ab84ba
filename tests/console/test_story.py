"""The story of docs/console.md, from "the agent cannot send mail" to the fix in two clicks, and its screenshots."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from .browser import opened, shot
from .running import Console, running

CONFIG = """
store: sqlite:///state.db
plugins:
  mail: {python: mail_tools, prefix: mail, description: "Read and send mail."}
  calendar:
    python: calendar_tools
    prefix: calendar
    description: Meetings and free time.
    approve: {invite_people: always}
  notes: {python: notes_tools, prefix: notes, description: "Notes of the team."}
toolkits:
  mail: {label: Mail, icon: "✉️", description: "Read, find and send messages.", tools: [mail]}
  planning: {label: Planning, icon: "☼", description: "Meetings, free time and reminders.", tools: [calendar]}
agents:
  assistant:
    tools: [notes]
    allowed_toolkits: [mail, planning]
    initial_toolkits: [mail]
    dialect: pegboard
    permissions: {notes/notes_delete: false}
  reviewer: {tools: [notes]}
"""
MAIL = '''
def send_message(to: str, subject: str, text: str) -> str:
    """Send a message by mail."""
    return f"sent to {to}"


def list_messages(folder: str = "inbox") -> str:
    """List the newest messages of a folder."""
    return "none"


def find_messages(words: str) -> str:
    """Find messages that have these words."""
    return "none"
'''
CALENDAR = '''
def list_meetings(day: str) -> str:
    """List the meetings of a day."""
    return "none"


def invite_people(people: list[str], title: str, start: str, minutes: int = 30) -> str:
    """Invite people to a meeting; each of them gets a message."""
    return "invited"
'''
NOTES = '''
def notes_search(words: str) -> str:
    """Search the notes of the team."""
    return "none"


def notes_delete(name: str) -> str:
    """Delete a note."""
    return "gone"
'''


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration in the working folder: screenshots name no other."""
    monkeypatch.chdir(tmp_path)
    path = Path("pegboard.yaml")
    path.write_text(CONFIG)
    for name, text in (("mail_tools", MAIL), ("calendar_tools", CALENDAR), ("notes_tools", NOTES)):
        (tmp_path / f"{name}.py").write_text(text)
    return path


async def act(console: Console) -> None:
    """Let an agent work for a while, as the screenshots show it."""
    session = await console.board.session(agent="assistant", session_id="weekly-report", principal="ada")
    await session.surface(message="Send the minutes to everyone and plan the next meeting.")
    await session.call("mail__list_messages", {})
    await session.call("notes__notes_search", {"words": "minutes"})
    await session.load("planning")
    await session.surface()
    await session.call("calendar__list_meetings", {"day": "2026-11-23"})
    people = ["grace@example.org", "linus@example.org"]
    meeting = {"people": people, "title": "Weekly review", "start": "2026-11-27T10:00", "minutes": 45}
    asked = await session.call("calendar__invite_people", meeting)
    assert asked.status == "needs_approval"
    await console.board.permissions.set("reviewer", "toolkit:mail", value=False, by="grace")


async def test_the_screenshots_of_the_documentation(browser: Browser, config: Path, screenshots: Path) -> None:
    async with running(config) as console, opened(browser, console.origin, width=1200, height=760) as page:
        await console.sign_in(page)
        await act(console)
        await page.goto("/console/agent?agent=assistant")
        await page.get_by_role("switch", name="Planning", exact=True).click()
        await expect(page.get_by_role("dialog")).to_contain_text("weekly-report")
        await shot(page, screenshots / "switches.png")
        await page.keyboard.press("Escape")
        await page.goto("/console/session?principal=ada&agent=assistant&session=weekly-report")
        await expect(page.get_by_role("rowheader").filter(has_text="calendar__invite_people").first).to_be_visible()
        await shot(page, screenshots / "session.png")
        await page.goto("/console/approvals")
        await expect(page.get_by_role("main")).to_contain_text("Weekly review")
        await shot(page, screenshots / "approvals.png")
        await page.goto("/console/why?agent=reviewer&tool=mail__send_message")
        await expect(page.get_by_role("main")).to_contain_text("may not use")
        await shot(page, screenshots / "explain.png")
