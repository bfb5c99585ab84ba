"""The screenshots of docs/console.md of one call, the access of agents, the palette, the cost and a tool on trial."""

import time
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.ports import CountRecord, Counts
from pegboard.ports.counts import bucket_of

from .browser import opened, shot
from .running import running
from .test_story import CALENDAR, MAIL, NOTES

CONFIG = """
store: sqlite:///state.db
record: {arguments: true, results: 4kB}
models: {default: {prices: {input: 3.00, output: 15.00, currency: USD}}}
plugins:
  mail: {python: mail_tools, prefix: mail, description: "Read and send mail."}
  calendar: {python: calendar_tools, prefix: calendar, description: Meetings and free time.}
  notes: {python: notes_tools, prefix: notes, description: "Notes of the team."}
toolkits:
  mail: {label: Mail, description: "Read, find and send messages.", tools: [mail]}
  planning: {label: Planning, description: "Meetings and free time.", tools: [calendar]}
  writing: {label: Writing, description: "Notes of the team.", tools: [notes]}
agents:
  assistant: {allowed_toolkits: [mail, planning, writing], initial_toolkits: [mail], dialect: pegboard}
  coder: {allowed_toolkits: [writing], initial_toolkits: [writing], discoverable: [mail], permissions: {mail: false}}
  reviewer: {allowed_toolkits: [mail, writing], initial_toolkits: [writing], permissions: {notes__notes_delete: false}}
"""
MINUTES = {"words": "minutes of the weekly review"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration in the working folder: screenshots name no other."""
    monkeypatch.chdir(tmp_path)
    path = Path("pegboard.yaml")
    path.write_text(CONFIG)
    for name, text in (("mail_tools", MAIL), ("calendar_tools", CALENDAR), ("notes_tools", NOTES)):
        (tmp_path / f"{name}.py").write_text(text)
    return path


async def act(board: Pegboard) -> int:
    """Let agents work, on a week that is made up; return the number of a call."""
    for back in range(6 * 24):
        start = int(time.time()) - back * 3_600
        for agent, part in (("assistant", 3), ("coder", 2), ("reviewer", 1)):
            busy = part * (2 + (back * 7) % 11)
            texts = {"arguments": 60 * busy, "results": 700 * busy}
            names, called = (start, "ada", agent, "weekly-report"), Counts(calls=busy, **texts)
            board.services.store.count_later(
                CountRecord(*names, "notes", "notes/notes_search", "ok", called, {bucket_of(20.0): busy}),
                CountRecord(*names, outcome="listed", counts=Counts(busy, 900 * busy, 2_500 * busy)),
            )
    session = await board.session(agent="assistant", session_id="weekly-report", principal="ada")
    await session.surface(message="Send the minutes to everyone.")
    await session.call("mail__list_messages", {})
    await session.load("writing")
    await session.surface()
    await session.call("notes__notes_search", MINUTES)
    await session.call("mail__send_message", {"to": "grace@example.org", "subject": "Minutes", "text": "As agreed."})
    await board.permissions.set("coder", "toolkit:writing", value=False, by="grace")
    found = await board.services.store.session_trail(session.key, kinds=("call",))
    return next(one.number for one in found if one.record.subject == "notes/notes_search")


async def test_the_screenshots_of_single_pages(browser: Browser, config: Path, screenshots: Path) -> None:
    async with running(config) as console, opened(browser, console.origin, width=1200, height=760) as page:
        await console.board.ready()
        call = await act(console.board)
        await console.sign_in(page)
        for name, address, words in (
            ("access", "/console/access", "assistant"),
            ("call", f"/console/call?id={call}", "minutes of the weekly review"),
            ("cost", "/console/cost", "USD"),
            ("try", "/console/try?agent=reviewer&tool=mail__send_message", "subject"),
        ):
            await page.goto(address)
            await expect(page.get_by_role("main")).to_contain_text(words)
            await shot(page, screenshots / f"{name}.png")
        await page.goto("/console/access")
        await page.keyboard.press("/")
        await page.keyboard.type("coder send mail")
        await expect(page.locator("#hits [role=option]").first).to_contain_text("is switched off")
        await shot(page, screenshots / "palette.png")
