"""One card, similar cards at once, and a rule from a card (A1–A3)."""

import re
from html import unescape
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.operators.audit import AuditQuery, audit

from .addresses import visitor
from .browser import findings, opened, tab_to
from .programs import serving
from .running import running
from .waiting_calls import asked, ran, set_up

HOSTILE = "<script>alert(1)</script>\u202e${PATH}\n- x: [1"
TOKENS = """
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: [see, approve, switch, configure]}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: ["*"], console: [see, approve]}
"""
PAYING = '''

def transfer(amount: int, to: str, urgent: bool = False) -> str:
    """Transfer an amount."""
    return noted(f"transferred {amount} to {to}")


__all__ = ["delete_file", "pay", "sign", "transfer"]
'''
RULED = """# What agents may do.
store: sqlite:///state.db
plugins:
  files:
    python: waiting_tools
    approve: {transfer: always, delete_file: always}   # a person looks
agents:
  default: {tools: [files]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = set_up(tmp_path, RULED)
    with (tmp_path / "waiting_tools.py").open("a") as file:
        file.write(PAYING)
    return path


def read(path: Path) -> str:
    return path.read_text()


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def test_similar_calls_are_allowed_at_once_each_for_its_own_arguments(
    browser: Browser, config: Path, axe_core: str
) -> None:
    """A2: every argument is shown first, each answer is recorded singly, and what was altered does not run."""
    async with running(config) as console, opened(browser, console.origin) as page:
        for name in ("a", HOSTILE, "c" * 900):
            await asked(console.board, path=name)
        await asked(console.board, "transfer", amount=5, to="ada")
        await console.sign_in(page)
        await page.goto("/console/approvals")
        await tab_to(page, page.get_by_role("link", name="Allow 3 once … delete_file"))
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("c" * 900)
        await expect(dialog).to_contain_text("<script>alert(1)</script><U+202E>${PATH}")
        await expect(dialog.get_by_role("button", name="Allow these 3 once")).to_be_focused()
        assert await findings(page, axe_core) == []
        await page.keyboard.press("Enter")
        await expect(page.locator("#notices")).to_contain_text("3 calls allowed, each once.")
        statuses = {one.arguments.get("path", ""): one.status for one in await console.board.approvals.list()}
        assert statuses == {"a": "allowed", HOSTILE: "allowed", "c" * 900: "allowed", "": "waiting"}
        session = await console.board.session(agent="default", session_id="s")
        assert (await session.call("delete_file", {"path": "b"})).approval is not None
        await session.call("delete_file", {"path": "a"})
        assert ran(config) == ["deleted a"]
        page_of = await audit(console.board.services, AuditQuery(kind="approval", decision="allowed"))
        assert len({line.outcome for line in page_of.lines}) == 3


async def test_of_two_operators_the_second_reads_which_calls_were_answered_before(
    browser: Browser, config: Path
) -> None:
    async with running(config) as console, opened(browser, console.origin) as page:
        ones = [await asked(console.board, path=name) for name in ("a", "b")]
        await console.sign_in(page)
        await page.goto("/console/approvals")
        await page.get_by_role("link", name="Deny 2").click()
        await expect(page.get_by_role("dialog")).to_contain_text("Deny 2 calls")
        await console.board.approvals.allow(ones[0].id, by="bob")
        await page.get_by_label("Message to the model").fill("Not today.")
        await page.get_by_role("button", name="Deny these 2").click()
        await expect(page.locator("#notices")).to_contain_text("1 call refused. 1 not:")
        statuses = {one.id: one.status for one in await console.board.approvals.list(ended=True)}
        assert statuses == {ones[0].id: "allowed", ones[1].id: "refused"}


async def test_a_rule_from_a_card_is_shown_as_a_change_of_the_file_and_counts_once_saved(
    browser: Browser, config: Path, axe_core: str
) -> None:
    """A1: what is below the limit runs unasked from then on, what is above still waits; no other line changes."""
    before = read(config)
    async with running(config) as console, opened(browser, console.origin) as page:
        one = await asked(console.board, "transfer", amount=250, to="ada@example.org")
        await console.sign_in(page)
        await page.goto(f"/console/approvals/{one.id}")
        await tab_to(page, page.get_by_role("link", name="Ask less often … transfer"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_contain_text("to is exactly “ada@example.org”")
        await expect(page.get_by_role("dialog")).to_contain_text("to ends with “@example.org”")
        await page.get_by_role("radio", name=re.compile("^amount is 100 or more")).check()
        assert await findings(page, axe_core) == []
        await page.get_by_role("button", name="Review changes").click()
        diff = page.get_by_role("group", name="Difference")
        await expect(diff).to_contain_text("+    approve: {transfer: {amount: ['???*']}, delete_file: always}")
        assert read(config) == before
        await expect(page.get_by_role("button", name=re.compile("^Save"))).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#notices")).to_contain_text(
            "Saved: Ask about 'transfer' only where 'amount' matches"
        )
        after = read(config)
        assert after == before.replace("transfer: always", "transfer: {amount: ['???*']}")
        session = await console.board.session(agent="default", session_id="s")
        await session.call("transfer", {"amount": 99, "to": "ada"})
        assert ran(config) == ["transferred 99 to ada"]
        assert (await session.call("transfer", {"amount": 100, "to": "ada"})).approval is not None
        assert (await session.call("transfer", {"amount": 250, "to": "ada@example.org"})).approval is not None
        assert (await console.board.approvals.allow(one.id, by="ada")).status == "allowed"
        assert (await session.call("transfer", {"amount": 250, "to": "ada@example.org"})).approval is not None


async def test_a_rule_that_was_saved_is_taken_back_as_any_edit_is(config: Path) -> None:
    """P10: it has the preview, the undo and the records of edits."""
    write(config, RULED + TOKENS)
    before = read(config)
    async with Pegboard.open(config) as board, serving(board) as (app, access):
        one = await asked(board, "transfer", amount=250, to="ada")
        async with visitor(app, access, "ada-ada-ada-ada-ada-ada") as ada:
            csrf = {"csrf": ada.sign_in.csrf}
            form = {"id": one.id, "choice": "own", "argument": "to", "pattern": "e*"}
            answer = await ada.client.post("/console/approvals/rule", data=form | csrf)
            edit = answer.headers["location"].partition("id=")[2].partition("&")[0]
            assert read(config) == before
            page = await ada.client.post("/console/edit/save", data={"id": edit} | csrf, follow_redirects=True)
            assert "transfer: {to: [e*]}" in read(config)
            undo = re.findall(r'name="id" value="([^"]+)"', page.text)[0]
            await ada.client.post("/console/edit/save", data={"id": undo, "undo": "yes"} | csrf)
        assert read(config) == before
        lines = (await audit(board.services, AuditQuery(kind="edit"))).lines
        assert [(line.decision, line.by) for line in lines] == [("undone", "ada"), ("saved", "ada")]


async def test_only_who_may_configure_saves_a_rule(config: Path) -> None:
    """A5: the right to answer calls is not the right to do without the question."""
    write(config, RULED + TOKENS)
    before = read(config)
    async with Pegboard.open(config) as board, serving(board) as (app, access):
        one = await asked(board, "transfer", amount=250, to="ada")
        async with visitor(app, access, "bob-bob-bob-bob-bob-bob") as bob:
            page = await bob.client.get(f"/console/approvals/{one.id}")
            assert "Allow once" in page.text
            assert "Ask less often" not in page.text
            form = {"id": one.id, "argument": "to", "pattern": "e*", "csrf": bob.sign_in.csrf}
            answer = await bob.client.post("/console/approvals/rule", data=form)
            assert answer.status_code == 403
    assert read(config) == before


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("{transfer: {to: ['e*']}}", "Its rule is about arguments already."),
        ("{'trans*': always}", "The rule `trans*` is about more tools than this one."),
        ("{transfer: always, '*': destructive}", "Several rules of the configuration ask about it."),
    ],
)
async def test_a_rule_that_cannot_be_changed_from_a_card_says_why(config: Path, rule: str, why: str) -> None:
    write(config, RULED.replace("{transfer: always, delete_file: always}", rule) + TOKENS)
    async with Pegboard.open(config) as board, serving(board) as (app, access):
        one = await asked(board, "transfer", amount=250, to="east")
        async with visitor(app, access, "ada-ada-ada-ada-ada-ada") as ada:
            page = await ada.client.get("/console/approvals/rule", params={"id": one.id})
            assert why in re.sub(r"<[^>]+>", "", page.text)


async def test_a_rule_with_who_answers_keeps_that(config: Path) -> None:
    write(config, RULED.replace("transfer: always", "transfer: {when: always, by: operator}") + TOKENS)
    async with Pegboard.open(config) as board, serving(board) as (app, access):
        one = await asked(board, "transfer", amount=250, to="ada")
        async with visitor(app, access, "ada-ada-ada-ada-ada-ada") as ada:
            form = {"id": one.id, "argument": "to", "pattern": "e*", "csrf": ada.sign_in.csrf}
            page = await ada.client.post("/console/approvals/rule", data=form, follow_redirects=True)
            text = unescape(re.sub(r"<[^>]+>", "", page.text))
            assert "+    approve: {transfer: {when: {to: [e*]}, by: operator}, delete_file: always}" in text


@pytest.mark.parametrize("pattern", ["", "a\nb", "x" * 201, "\x00"])
async def test_a_pattern_that_is_none_is_refused(config: Path, pattern: str) -> None:
    write(config, RULED + TOKENS)
    async with Pegboard.open(config) as board, serving(board) as (app, access):
        one = await asked(board, "transfer", amount=250, to="ada")
        async with visitor(app, access, "ada-ada-ada-ada-ada-ada") as ada:
            form = {"id": one.id, "choice": "own", "argument": "to", "pattern": pattern, "csrf": ada.sign_in.csrf}
            page = await ada.client.post("/console/approvals/rule", data=form)
            assert page.status_code == 400
            assert "This is not a pattern." in page.text
