"""A tool that an operator calls as an agent: by keyboard in a browser, and by the programs of two operators."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp

from .browser import broken_words, findings, opened, tab_to
from .programs import Program, program
from .running import running

TOOLS = '''
import asyncio
from typing import Any, Literal

from pegboard import tool

CALLS = []


def book(
    title: str,
    copies: int = 1,
    price: float | None = None,
    gift: bool = False,
    wrap: Literal["paper", "none"] = "none",
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Order a book.

    Args:
        title: what it is called.
        copies: how many.
    """
    CALLS.append(title)
    return {"title": title, "copies": copies, "price": price, "gift": gift, "wrap": wrap, "tags": tags}


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    CALLS.append(amount)
    return f"paid {amount}"


def fail() -> str:
    """Fail."""
    raise ValueError("no <b>luck</b> with it")


def huge() -> str:
    """Return much."""
    return "<script>alert(1)</script>" + "\\u202eboo " + "x" * 3_000_000


def calls() -> list[Any]:
    """List the calls."""
    return CALLS
'''
CONFIG = """
store: sqlite:///state.db
plugins: {shop: {python: shop_tools}}
toolkits: {books: {tools: [shop]}}
agents:
  clerk: {allowed_toolkits: [books]}
  plain: {}
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: [clerk, plain], console: [see, approve, switch, configure]}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: [plain], console: [see, approve, switch, configure]}
  eve: {token: eve-eve-eve-eve-eve-eve, agents: [clerk], console: true}
"""
ADA = "ada-ada-ada-ada-ada-ada"


@pytest.fixture
def mailer_config(tmp_path: Path) -> Path:
    (tmp_path / "shop_tools.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def eve(app: ConsoleApp) -> AsyncIterator[Program]:
    async with program(app, "eve-eve-eve-eve-eve-eve") as eve:
        yield eve


def call(tool: str, arguments: object = None, **more: str) -> dict[str, Any]:
    return {"json": {"agent": "clerk", "tool": tool, "arguments": arguments or {}, **more}}


async def test_a_program_calls_a_tool_as_an_agent_and_nothing_stays(ada: Program, mailer: Pegboard) -> None:
    """X1, X4: what is not loaded is loaded first; no session stays, and the record has ada."""
    found = await ada.ask("POST", "/api/try", **call("book", {"title": "Ada"}))
    assert (found["status"], found["is_error"], found["principal"]) == ("ok", False, "ada")
    assert json.loads(found["blocks"][0]["text"])["title"] == "Ada"
    assert found["tokens_in"] > 0 < found["tokens_out"]
    assert found["session"].startswith("try-")
    store = mailer.services.store
    assert await store.sessions() == []
    record = next(one for one in await store.entries(kind="call") if one.subject.endswith("/book"))
    assert (record.by, record.principal, record.agent, record.session) == ("ada", "ada", "clerk", found["session"])
    other = await ada.ask("POST", "/api/try", **call("book", {"title": "Bob"}))
    assert other["session"] != found["session"]


async def test_everything_decides_as_for_the_model(ada: Program, mailer: Pegboard) -> None:
    """P3, X2: arguments that do not fit, a tool that fails, one that is denied, switched off or not there."""
    wrong = await ada.ask("POST", "/api/try", **call("book", {"title": 1, "copies": "x"}))
    assert (wrong["status"], wrong["is_error"]) == ("invalid_arguments", True)
    assert "argument 'copies'" in wrong["message"]
    failed = await ada.ask("POST", "/api/try", **call("fail"))
    assert (failed["status"], "no <b>luck</b>" in failed["blocks"][0]["text"]) == ("error", True)
    await mailer.permissions.set("clerk", "book", False)
    assert (await ada.ask("POST", "/api/try", **call("book", {"title": "x"})))["status"] == "not_found"
    denial = (await mailer.services.store.entries(kind="deny"))[0]
    assert (denial.by, denial.outcome) == ("ada", "denied_switch")
    assert (await ada.ask("POST", "/api/try", **call("nothing")))["status"] == "not_found"
    assert (await ada.ask("POST", "/api/try", **call("calls")))["blocks"][0]["text"] == "[]"
    assert await mailer.services.store.sessions() == []


async def test_a_call_that_needs_an_approval_runs_once_it_is_given(ada: Program, mailer: Pegboard) -> None:
    """A1, A3: the usual card; then the same call in the same session, once, and no other."""
    waits = await ada.ask("POST", "/api/try", **call("pay", {"amount": 5}))
    assert waits["status"] == "needs_approval"
    (card,) = (await ada.ask("GET", "/api/approvals"))["waiting"]
    assert (card["id"], card["agent"], card["principal"]) == (waits["approval"], "clerk", "ada")
    assert await mailer.services.store.sessions() == []
    await ada.ask("POST", f"/api/approvals/{card['id']}/allow", json={})
    again = {"session": waits["session"]}
    assert (await ada.ask("POST", "/api/try", **call("pay", {"amount": 6}, **again)))["status"] == "needs_approval"
    assert (await ada.ask("POST", "/api/try", **call("pay", {"amount": 5}, **again)))["status"] == "ok"
    assert (await ada.ask("POST", "/api/try", **call("pay", {"amount": 5}, **again)))["status"] == "needs_approval"
    code, message, _ = await ada.refused("POST", "/api/try", 400, **call("pay", {"amount": 5}, session="s"))
    assert (code, "earlier try" in message) == ("usage", True)


async def test_only_who_may_configure_calls_and_only_as_an_agent_that_they_see(
    ada: Program, bob: Program, eve: Program
) -> None:
    """A5: eve sees the form and not more; for bob there is no clerk."""
    assert (await eve.refused("POST", "/api/try", 403, **call("calls")))[0] == "right_required"
    assert (await eve.ask("GET", "/api/try?agent=clerk&tool=book"))["known"] is True
    assert (await bob.refused("POST", "/api/try", 404, **call("calls")))[0] == "unknown_agent"
    assert (await bob.refused("GET", "/api/try?agent=clerk&tool=book", 404))[0] == "unknown_agent"
    assert (await ada.ask("POST", "/api/try", **call("calls")))["blocks"][0]["text"] == "[]"


async def test_a_large_answer_is_cut(ada: Program) -> None:
    """X5: what is shown is bounded, and says what is left."""
    found = await ada.ask("POST", "/api/try", **call("huge"))
    (block,) = found["blocks"]
    assert (len(block["text"]), block["left"] > 2_900_000, found["tokens_out"]) == (65_536, True, None)


async def test_a_form_of_the_schema_is_filled_in_by_keyboard(browser: Browser, mailer_config: Path) -> None:
    """X2, A3: what does not fit stands beside its field; then the answer, escaped, and its records."""
    async with running(mailer_config) as console, opened(browser, console.origin, expected="status of 422") as page:
        await console.sign_in(page, ADA)
        await page.goto("/console/try?agent=clerk&tool=book")
        await expect(page.locator("#decided-now")).to_contain_text("clerk")
        assert await page.get_by_label("copies").input_value() == "1"
        assert await page.get_by_label("wrap").evaluate("one => [...one.options].map(o => o.value)") == [
            "",
            "paper",
            "none",
        ]
        await tab_to(page, page.get_by_label("copies"))
        await page.keyboard.press("Control+A")
        await page.keyboard.type("many")
        await tab_to(page, page.get_by_role("button", name="Call it"))
        await page.keyboard.press("Enter")
        await expect(page.locator(".field", has_text="copies")).to_contain_text("is not")
        await expect(page.locator(".field", has_text="title")).to_contain_text("A value is required.")
        assert await page.get_by_label("copies").input_value() == "many"
        await page.get_by_label("title").fill("<i>Ada</i>")
        await page.get_by_label("copies").fill("3")
        await page.get_by_label("gift").select_option("true")
        await page.get_by_label("tags").fill('["new"]')
        await tab_to(page, page.get_by_role("button", name="Call it"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#answer")).to_contain_text('"copies": 3')
        await expect(page.locator("#answer")).to_contain_text("<i>Ada</i>")
        await expect(page.locator("#answered")).to_be_focused()
        assert await page.locator("#answer i").count() == 0
        await page.get_by_role("link", name="its records").click()
        await expect(page.locator("table")).to_contain_text("book")


async def test_the_page_is_accessible_while_it_waits_and_with_a_hostile_answer(
    browser: Browser, mailer_config: Path, axe_core: str
) -> None:
    async with (
        running(mailer_config) as console,
        opened(browser, console.origin, theme="dark", width=400, expected="status of 422") as page,
    ):
        await console.sign_in(page, ADA)
        await page.goto("/console/try?agent=clerk&tool=huge")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator("#answer")).to_contain_text("<script>alert(1)</script><U+202E>boo")
        assert await findings(page, axe_core) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        await page.goto("/console/try?agent=clerk&tool=pay")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator(".field").first).to_contain_text("A value is required.")
        assert await findings(page, axe_core) == []
        await page.get_by_label("amount").fill("7")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator("#answer")).to_contain_text("waits for a person")
        (approval,) = await console.board.approvals.list()
        await console.board.approvals.allow(approval.id, by="ada")
        await page.get_by_role("button", name="Call it again").click()
        await expect(page.locator("#answer")).to_contain_text("paid 7")
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
