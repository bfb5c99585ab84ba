"""The page of approvals: what waits is readable, and answered once, by whoever was first (A1–A3)."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from gateway.clients import HANDSHAKE, MODERN, edit, until
from pegboard.operators.sessions import remove_session
from pegboard.ports import SessionKey

from .browser import findings, looks, opened, tab_to
from .running import Console, running
from .waiting_calls import asked, ran, set_up

HOSTILE = "<script>alert(1)</script>\u202egpj.exe\u0007"
PAGE = "/console/approvals"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return set_up(tmp_path)


async def shown(console: Console, page: Page, path: str = PAGE) -> None:
    await console.sign_in(page)
    await page.goto(path)


def card(page: Page, text: str) -> Locator:
    return page.get_by_role("article").filter(has_text=text)


def badge(page: Page) -> Locator:
    return page.locator("#waiting")


async def test_a_call_of_a_client_is_allowed_by_keyboard_and_the_same_call_finishes(
    browser: Browser, config: Path
) -> None:
    """A3: it appears at once on the open page; made again after the approval it runs once."""
    async with running(config) as console, opened(browser, console.origin) as page, console.client(MODERN) as client:
        await shown(console, page)
        await expect(page.get_by_text("No call waits for approval.")).to_be_visible()
        await expect(badge(page)).to_have_attribute("data-count", "0")
        assert (await client.call("delete_file", path="a.txt")).is_error
        await expect(badge(page)).to_have_attribute("data-count", "1")
        await tab_to(page, page.get_by_role("button", name="Allow once delete_file"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#notices")).to_contain_text("'delete_file': this call may run once.")
        await expect(page.get_by_role("row", name=re.compile("delete_file.*by local"))).to_be_visible()
        await expect(badge(page)).to_have_attribute("data-count", "0")
        assert await client.text("delete_file", path="a.txt") == "deleted a.txt"
        await expect(page.get_by_text("Allowed, not used yet")).to_be_hidden()
        assert (await client.call("delete_file", path="a.txt")).is_error
    assert ran(config) == ["deleted a.txt"]


async def test_a_refusal_reaches_the_model_in_the_words_of_the_operator(browser: Browser, config: Path) -> None:
    """A3: typed into a dialog without a mouse; Escape leaves it, and nothing was decided."""
    async with running(config) as console, opened(browser, console.origin) as page, console.client(HANDSHAKE) as client:
        await client.call("delete_file", path="a.txt")
        await shown(console, page)
        opener = page.get_by_role("link", name="Deny … delete_file")
        await tab_to(page, opener)
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Message to the model")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await expect(opener).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Message to the model")).to_be_focused()
        await page.keyboard.type("Not on a Friday.")
        await tab_to(page, page.get_by_role("button", name="Deny"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#notices")).to_contain_text("'delete_file' is refused.")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        answer = await client.text("delete_file", path="a.txt")
        assert answer == "'delete_file' was not called. local refused it: Not on a Friday."
        await page.get_by_text("Denied, used and expired").click()
        await expect(page.get_by_role("row", name=re.compile("delete_file.*refused.*Not on a Friday"))).to_be_visible()
    assert ran(config) == []


async def test_always_is_a_visible_rule_that_is_taken_back_and_undone(browser: Browser, config: Path) -> None:
    """A3: what it means stands beside the choice."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await asked(console.board)
        await shown(console, page)
        await page.get_by_role("link", name="Allow for longer … delete_file").click()
        always = page.get_by_label("Always.")
        await expect(always).to_have_accessible_name(
            "Always. Every call of delete_file, with any arguments, by agent default for local in any session, as long "
            "as neither the definition of the tool nor its rules change."
        )
        await always.check()
        await page.get_by_role("dialog").get_by_role("button", name="Allow").click()
        row = page.get_by_role("row", name=re.compile("delete_file.*every session"))
        await expect(row).to_be_visible()
        session = await console.board.session(agent="default", session_id="other")
        assert (await session.call("delete_file", {"path": "b"})).status == "ok"
        await row.get_by_role("button", name="Revoke").click()
        await expect(page.get_by_text("There are no standing allowances.")).to_be_visible()
        assert (await session.call("delete_file", {"path": "c"})).status == "needs_approval"
        await page.get_by_role("button", name="Undo").click()
        await expect(row).to_be_visible()
        assert (await session.call("delete_file", {"path": "d"})).status == "ok"
        edit(config, "delete_file: always", '"*": always')

        async def asks_again() -> bool:
            return (await session.call("delete_file", {"path": "e"})).status == "needs_approval"

        await until(asks_again)
        await expect(row).to_contain_text("no effect the rules in force for it have changed since")


async def test_what_was_allowed_and_is_not_used_can_be_undone(browser: Browser, config: Path) -> None:
    """A3: undoing it refuses the call."""
    async with running(config) as console, opened(browser, console.origin) as page:
        approval = await asked(console.board)
        await shown(console, page)
        await page.get_by_role("button", name="Allow once").click()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator("#notices")).to_contain_text("is refused")
        session = await console.board.session(agent="default", session_id="s")
        assert (await session.resume(approval.id)).status == "refused"
    assert ran(config) == []


async def test_of_two_operators_the_second_reads_who_was_first(browser: Browser, config: Path) -> None:
    """A2: the dialog of the second closes, and nothing was overruled."""
    async with running(config) as console, opened(browser, console.origin, expected="409") as page:
        approval = await asked(console.board)
        await shown(console, page)
        await page.get_by_role("link", name="Deny …").click()
        await page.get_by_label("Message to the model").fill("No.")
        await console.board.approvals.allow(approval.id, by="grace")
        await page.get_by_role("button", name="Deny").click()
        await expect(page.get_by_role("alert").first).to_contain_text(
            f"Approval '{approval.id}' is already allowed: 'grace' decided it in the meantime."
        )
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await expect(page.get_by_role("row", name=re.compile("by grace"))).to_be_visible()


async def test_the_fields_of_a_tool_are_filled_in_and_what_is_wrong_stands_beside_them(
    browser: Browser, config: Path, axe_core: str
) -> None:
    """T13: what was typed stays."""
    async with running(config) as console, opened(browser, console.origin, expected="422") as page:
        approval = await asked(console.board, "pay", amount=3)
        await shown(console, page)
        await expect(page.get_by_role("button", name="Allow once")).to_have_count(0)
        await page.get_by_role("link", name="Fill in and allow … pay").click()
        dialog = page.get_by_role("dialog")
        await page.get_by_label("code").fill("twelve")
        await dialog.get_by_role("button", name="Allow").click()
        await expect(page.get_by_label("code")).to_have_accessible_description('"twelve" is not of type "integer"')
        await expect(page.get_by_label("code")).to_have_value("twelve")
        await expect(page.get_by_label("account")).to_have_accessible_description("A value is required.")
        assert await findings(page, axe_core) == []
        await page.get_by_label("code").fill("12")
        await page.get_by_label("account").select_option("savings")
        await dialog.get_by_role("button", name="Allow").click()
        await expect(dialog).to_be_hidden()
        session = await console.board.session(agent="default", session_id="s")
        assert (await session.resume(approval.id)).status == "ok"
    assert ran(config) == ["paid 3 with 12 from savings"]


async def test_what_runs_elsewhere_can_only_be_refused(browser: Browser, config: Path) -> None:
    """T13: its result is handed in by the user who runs it."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await asked(console.board, "sign", text="I agree.")
        await shown(console, page)
        await expect(page.get_by_text("The call runs outside of Pegboard.")).to_be_visible()
        await expect(page.get_by_role("article").get_by_role("button")).to_have_count(0)
        await expect(page.get_by_role("link", name="Deny … sign")).to_be_visible()


ELSEWHERE = """
import asyncio, sys
from pegboard import Pegboard

async def main():
    async with Pegboard.open(sys.argv[1]) as board:
        session = await board.session(agent="mailer", session_id="elsewhere")
        assert (await session.call("delete_file", {"path": "far.txt"})).status == "needs_approval"

asyncio.run(main())
"""


async def test_a_call_of_another_process_appears_and_goes_with_its_session(browser: Browser, config: Path) -> None:
    """A2: on one store; an answer after that finds nothing, and the page stays usable."""
    async with running(config) as console, opened(browser, console.origin, expected="404") as page:
        await shown(console, page)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", ELSEWHERE, str(config))
        assert await process.wait() == 0
        await expect(card(page, "far.txt")).to_be_visible()
        await page.get_by_role("link", name="Deny …").click()
        await expect(page.get_by_label("Message to the model")).to_be_visible()
        removed = await console.board.services.store.remove_approvals(
            principal="local", agent="mailer", session="elsewhere"
        )
        assert removed == 1
        await page.get_by_role("button", name="Deny").click()
        await expect(page.get_by_role("alert").first).to_contain_text("There is no approval")
        await asked(console.board, path="next.txt")
        await expect(card(page, "next.txt")).to_be_visible()
        await expect(card(page, "far.txt")).to_be_hidden()


async def test_a_call_goes_with_its_session(browser: Browser, config: Path) -> None:
    """X4: also where nothing else was stored of the session, and it is on the audit trail who deleted it."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await asked(console.board, session="short")
        await shown(console, page)
        await expect(page.get_by_role("article")).to_have_count(1)
        key = SessionKey(principal="local", agent="default", session="short")
        assert await remove_session(console.board.services, key, by="grace")
        await expect(page.get_by_text("No call waits for approval.")).to_be_visible()
        (record, *_) = await console.board.services.store.entries(session="short")
        assert (record.kind, record.subject, record.by) == ("unload", "session", "grace")


async def test_a_call_that_expires_while_the_page_is_open_goes(browser: Browser, config: Path) -> None:
    """A2: by itself, without anything that is stored."""
    edit(config, "plugins:", "approvals: {expires: 1s}\nplugins:")
    async with running(config) as console, opened(browser, console.origin) as page:
        await page.clock.install()
        await console.sign_in(page)
        await asked(console.board)
        await page.goto(PAGE)

        async def over() -> bool:
            return await console.board.approvals.list() == ()

        await until(over)
        await page.clock.fast_forward(60_000)
        await expect(page.get_by_text("No call waits for approval.")).to_be_visible()
        await expect(badge(page)).to_have_attribute("data-count", "0")


async def test_a_call_that_expires_goes_from_the_page_of_its_session(browser: Browser, config: Path) -> None:
    """A2: and from what stands beside every page."""
    edit(config, "plugins:", "approvals: {expires: 2s}\nplugins:")
    async with running(config) as console, opened(browser, console.origin) as page:
        await page.clock.install()
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="s")
        await session.surface()
        await asked(console.board)
        await page.goto("/console/session?principal=local&agent=default&session=s")

        async def over() -> bool:
            return await console.board.approvals.list() == ()

        await until(over)
        await page.clock.fast_forward(60_000)
        await expect(page.get_by_text("Waits for")).to_have_count(0)
        await expect(badge(page)).to_have_attribute("data-count", "0")


async def test_hostile_texts_do_nothing_and_nothing_is_cut(browser: Browser, config: Path, axe_core: str) -> None:
    """Bad input: HTML, marks that turn text around, and as much of it as a person may be asked about."""
    async with running(config) as console, opened(browser, console.origin) as page:
        long = "x" * 60_000
        await asked(console.board, session=f"{HOSTILE}/a b", path=HOSTILE, options={HOSTILE: [long]})
        standing = await asked(console.board, session=f"{HOSTILE}/a b", path="b")
        await console.board.approvals.allow(standing.id, by="<b>grace</b>", lasts="session")
        await shown(console, page)
        found = card(page, "<script>alert(1)</script><U+202E>gpj.exe<U+0007>")
        await expect(found).to_contain_text("Delete a file <b>for ever</b>.")
        await expect(found).to_contain_text("60,061 characters")
        await expect(page.get_by_role("row").filter(has_text="<b>grace</b>")).to_be_visible()
        assert await findings(page, axe_core) == []
        async for look in looks(page):
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), look
        await found.get_by_role("link", name="Details").click()
        await expect(page.locator("pre")).to_contain_text(long)
        assert await findings(page, axe_core) == []
        async for look in looks(page):
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), look
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.get_by_text("allowed", exact=True)).to_be_visible()


async def test_everything_works_without_a_script(browser: Browser, config: Path) -> None:
    """Links and forms: each answer leads back to the page, with a notice and its undo."""
    async with running(config) as console:
        context = await browser.new_context(base_url=console.origin, java_script_enabled=False)
        page = await context.new_page()
        approval = await asked(console.board)
        await shown(console, page)
        await expect(badge(page)).to_have_attribute("data-count", "1")
        await page.get_by_role("link", name="Deny …").click()
        await page.get_by_label("Message to the model").fill("No.")
        await page.get_by_role("button", name="Deny").click()
        await expect(page.locator("#notices")).to_contain_text("'delete_file' is refused.")
        await page.get_by_text("Denied, used and expired").click()
        await page.get_by_role("link", name="Show it").click()
        await page.get_by_role("button", name="Allow once").click()
        await expect(page).to_have_url(f"{console.origin}{PAGE}")
        await page.get_by_role("button", name="Revoke").click()
        await page.goto(f"{PAGE}/one?id={approval.id}")
        await expect(page.get_by_text("refused", exact=True)).to_be_visible()
        await context.close()


MANY = {f"harmless_{number}": "yes" for number in range(1, 9)}


async def test_every_argument_is_on_the_card_and_the_button_counts_those_that_were_not_unfolded(
    browser: Browser, config: Path
) -> None:
    """A5: from the ninth on and behind 600 characters too; without JavaScript the count stays, and all can be read."""
    payload = {"path": "a" * 700 + " and then the payload", "options": {**MANY, "z": "x" * 600 + "the end"}}
    async with running(config) as console, opened(browser, console.origin) as page:
        await asked(console.board, "delete_file", **payload)
        await shown(console, page)
        one = card(page, "delete_file")
        allow = one.locator("button.main")
        await expect(allow).to_contain_text("Allow once, 2 arguments unseen")
        for number, left in enumerate(("Allow once, 1 argument unseen", "Allow once ")):
            await one.locator("summary").nth(number).click()
            await expect(allow).to_contain_text(left)
        await expect(allow).not_to_contain_text("unseen,")
        await expect(one.locator("pre").first).to_contain_text("and then the payload")
        await expect(one.locator("pre").nth(1)).to_contain_text("the end")
        text = await page.request.get(PAGE)
        body = await text.text()
        assert body.count("Allow once<span data-unseen-of=") == 1
        assert ", 2 arguments unseen" in body
        assert "and then the payload" in body
        await allow.click()
        await expect(page.locator("#notices")).to_contain_text("'delete_file': this call may run once.")
