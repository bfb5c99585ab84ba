"""Every page of the console in one frame, at eleven widths, in both themes: axe-core, words and edges (F5)."""

import sys
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect
from starlette.datastructures import URL

from pegboard.console.pages.all_pages import PAGES

from .browser import BROKEN, findings, opened
from .running import Console, running

SERVER = Path(__file__).resolve().parent.parent / "servers" / "plain_server.py"
WIDTHS = (320, 400, 560, 640, 768, 960, 1_000, 1_001, 1_200, 1_440, 1_920)
"""Telephones, tablets and screens, and both sides of each width at which styles change."""
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core that look at colours."""
ROOM = ("target-size", "scrollable-region-focusable")
"""Those that look at where things stand."""
USUAL = 1_440
"""The width at which axe-core looks at a page with all of its rules."""
COVERED = """[...document.querySelectorAll("main table")].flatMap((table) => {
  const head = table.tHead?.querySelector("th")?.getBoundingClientRect();
  const row = table.tBodies[0]?.rows[0]?.getBoundingClientRect();
  const covers = head && row && table.tHead.offsetHeight > 1 && row.height > 0 && head.bottom > row.top + 1;
  return covers ? [table.rows[1].textContent.trim().slice(0, 40)] : [];
})"""
"""Gives the first rows that stand below the head of their table."""
FRAME = """(() => {
  const seen = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 1;
  const text = (element) => [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  const main = document.querySelector("main"), head = main.querySelector("h1").getBoundingClientRect();
  const parts = [...main.children].flatMap((one) => (one.matches("div[data-live]") ? [...one.children] : [one]));
  const blocks = parts.filter(seen);
  const row = (one) => one.getBoundingClientRect().height - parseFloat(getComputedStyle(one.cells[0]).borderTopWidth);
  const rows = [...main.querySelectorAll("table.dense tbody tr")].filter(seen).map(row);
  const texts = [...document.querySelectorAll("body *")].filter((one) => text(one) && seen(one));
  return {
    heading: [Math.round(head.left), Math.round(head.top), getComputedStyle(main.querySelector("h1")).fontSize],
    edges: [...new Set(blocks.map((one) => Math.round(one.getBoundingClientRect().left)))],
    rows: [...new Set(rows.map(Math.round))],
    sizes: [...new Set(texts.map((one) => getComputedStyle(one).fontSize))],
  };
})()"""
"""Gives where a page's heading and blocks begin, how high the rows of its lists are, and its sizes of text."""
SEEN = f"({{broken: {BROKEN}, covered: {COVERED}, whole: document.documentElement.scrollWidth <= innerWidth}})"
CONFIG = """
store: "memory:"
record: {{arguments: true, results: 4kB}}
models: {{default: {{prices: {{input: 300000, output: 999999, currency: USD}}}}}}
servers:
  text: {{command: {python}, args: [{server}]}}
  crm: {{command: {python}, args: [{server}, --exit, "3"]}}
plugins:
  a_mail_plugin_with_a_long_name: {{python: page_mail, prefix: mail, approve: {{send_invoice: always}}}}
toolkits:
  correspondence: {{label: Correspondence, description: Letters to customers., tools: [text]}}
agents:
  writer: {{tools: [a_mail_plugin_with_a_long_name], allowed_toolkits: [correspondence], budget: {{tools: 2}}}}
  coder_of_the_reporting_team: {{dialect: pegboard, allowed_toolkits: [correspondence], discoverable: [crm]}}
"""
MAIL = '''
from typing import Literal


def send_invoice(to: str, amount: int, copies: int = 1, kind: Literal["letter", "mail"] = "mail") -> str:
    """Send an invoice <b>to</b> a customer.

    Args:
        to: the customer.
        amount: in cents.
    """
    return f"billed {to}"


def find_messages(words: str) -> str:
    """Find messages that have these words."""
    if words == "fail":
        raise ValueError("the folder cannot be read: " + "very " * 30 + "busy")
    return "none " * 100
'''


def addresses(approval: str, session: dict[str, str], call: int) -> dict[str, tuple[str, ...]]:
    """Return every page with what it is asked for: an approval that waits, a session, and a call of it."""

    def of(path: str, **given: object) -> str:
        return str(URL(path).include_query_params(**given))

    switch = {"name": "toolkit:correspondence", "value": "off"}
    bill = "/console/cost"
    return {
        "/console": (of("/console", period="day"),),
        "/console/keys": ("/console/keys",),
        "/console/find": (of("/console/find", q="writer invoice"),),
        "/console/approvals": ("/console/approvals",),
        "/console/approvals/ended": ("/console/approvals/ended",),
        "/console/approvals/one": (of("/console/approvals/one", id=approval),),
        "/console/approvals/{id}": (f"/console/approvals/{approval}",),
        "/console/approvals/several": (of("/console/approvals/several", ids=approval, to="allow"),),
        "/console/approvals/allow": (of("/console/approvals/allow", id=approval, lasts="always"),),
        "/console/approvals/refuse": (of("/console/approvals/refuse", id=approval),),
        "/console/approvals/rule": (of("/console/approvals/rule", id=approval),),
        "/console/activity": ("/console/activity",),
        bill: (bill, of(bill, agent="writer"), of(bill, by="session", days=1)),
        "/console/call": (of("/console/call", id=call),),
        "/console/call/again": (of("/console/call/again", id=call),),
        "/console/session/timeline": (of("/console/session/timeline", **session),),
        "/console/session": (of("/console/session", **session),),
        "/console/session/sent": (of("/console/session/sent", **session, step=1),),
        "/console/session/delete": (of("/console/session/delete", **session),),
        "/console/sessions": ("/console/sessions",),
        "/console/history": ("/console/history", of("/console/history", days=1)),
        "/console/people": ("/console/people",),
        "/console/settings": ("/console/settings",),
        "/console/why": (
            of("/console/why", tool="mail__send_invoice"),
            of("/console/why", agent="coder_of_the_reporting_team", tool="mail__send_invoice"),
        ),
        "/console/edit": ("/console/edit",),
        "/console/edit/file": ("/console/edit/file",),
        "/console/edit/form": (
            of("/console/edit/form", section="agents", name="writer"),
            of("/console/edit/form", section="servers", name="text"),
        ),
        "/console/servers/add": ("/console/servers/add",),
        "/console/access": ("/console/access",),
        "/console/access/matrix": ("/console/access/matrix",),
        "/console/access/set": (of("/console/access/set", kind="switch", **switch),),
        "/console/changed-tools": ("/console/changed-tools", of("/console/changed-tools", server="text")),
        "/console/servers": ("/console/servers",),
        "/console/servers/plugins": ("/console/servers/plugins",),
        "/console/server": (of("/console/server", name="text"), of("/console/server", name="crm")),
        "/console/server/log": (of("/console/server/log", name="crm"),),
        "/console/tools": (
            "/console/tools",
            of("/console/tools", q="invoice"),
            of("/console/tools", agent="coder_of_the_reporting_team", q="send mail"),
        ),
        "/console/clients": ("/console/clients",),
        "/console/access/compare": (
            "/console/access/compare",
            of("/console/access/compare", one="writer", two="coder_of_the_reporting_team"),
        ),
        "/console/agent": (of("/console/agent", agent="writer"),),
        "/console/agent/members": (
            of("/console/agent/members", agent="writer", kind="toolkit", name="correspondence"),
        ),
        "/console/switch": (of("/console/switch", agent="writer", **switch),),
        "/console/try": (of("/console/try", agent="writer", tool="mail__send_invoice"),),
    }


NO_PAGES = {
    "/console/approvals/waiting",
    "/console/activity/export",
    "/console/events",
    "/console/icon",
    "/console/overview/attention",
    "/console/overview/count",
    "/console/overview/figures",
    "/console/overview/live",
    "/console/overview/usage",
    "/console/edit/proposal",
    "/console/servers/add/draft",
    "/console/history/version",
}
"""Parts of other pages, files, the stream, and what follows a form, which the tests of edits look at."""


async def at_work(console: Console) -> dict[str, tuple[str, ...]]:
    """Let agents work, so that no page is empty."""
    await console.board.ready()
    session = await console.board.session(agent="writer", session_id="a-session-with-a-long-name", principal="carl")
    await session.surface()
    await session.call("mail__find_messages", {"words": "minutes of the newest meeting"})
    await session.call("mail__find_messages", {"words": "fail"})
    await session.call("nothing_here", {})
    await session.load("correspondence")
    await session.surface()
    await session.call("text__echo", {"text": "hello"})
    waits = await session.call("mail__send_invoice", {"to": "ada", "amount": 500})
    assert waits.approval is not None
    other = await console.board.session(agent="coder_of_the_reporting_team", session_id="s")
    await other.load("crm")
    await console.board.permissions.set("coder_of_the_reporting_team", "correspondence", value=False, by="grace")
    (call, *_) = await console.board.services.store.session_trail(session.key, kinds=("call",))
    key = {"principal": session.key.principal, "agent": session.key.agent, "session": session.key.session}
    return addresses(waits.approval.id, key, call.number)


def framed(seen: dict[str, list[Any]]) -> list[str]:
    """Return where a page leaves the frame: one place of the heading, one left edge, one row, three sizes of text."""
    edge, sizes = 212 + 24, {"12.5px", "14px", "20px"}
    found = [] if seen["heading"] == [edge, 16, "20px"] else [f"its heading stands at {seen['heading']}"]
    found += [f"blocks begin at {one}" for one in seen["edges"] if one != edge]
    found += [f"rows are {one} high" for one in seen["rows"] if one != 28]
    return found + [f"text has {one}" for one in seen["sizes"] if one not in sizes]


async def faults(page: Page, axe_core: str) -> list[str]:
    """Show an open page at every width and in both themes, and return what is wrong with it, a line each.

    Only styles know of themes and widths, so the page need not be loaded again; a theme has other colours and nothing
    else. What a narrow page leaves out is in tables, so those are looked at in dark when they are wide, too.
    """
    found: list[str] = []
    await page.emulate_media(color_scheme="light")
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        if width == USUAL:
            found += framed(await page.evaluate(FRAME))
            found += [f"{width} light: {one}" for one in await findings(page, axe_core)]
        seen = await page.evaluate(SEEN)
        found += [f"{width}: the word {word} is broken" for word in seen["broken"]]
        found += [f"{width}: the row {row} is covered" for row in seen["covered"]]
        found += [] if seen["whole"] else [f"{width}: it is wider than the window"]
    await page.emulate_media(color_scheme="dark")
    if await page.locator("main table").count():
        found += [f"{width} dark: {one}" for one in await findings(page, axe_core, only=COLOURS)]
    await page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    return found + [f"{WIDTHS[0]} dark: {one}" for one in await findings(page, axe_core, only=(*ROOM, *COLOURS))]


async def test_every_page_is_accessible_and_whole_at_every_width_in_both_themes(
    browser: Browser, tmp_path: Path, axe_core: str
) -> None:
    """F5: axe-core has nothing to say, no short word is broken, no row covered, and nothing wider than the window."""
    (tmp_path / "page_mail.py").write_text(MAIL)
    config = tmp_path / "pegboard.yaml"
    config.write_text(CONFIG.format(python=sys.executable, server=SERVER))
    found: dict[str, list[str]] = {}
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        for address in [one for several in (await at_work(console)).values() for one in several]:
            answer = await page.goto(address)
            assert answer is not None
            assert answer.status == 200, address
            await expect(page.get_by_role("main")).not_to_contain_text("being indexed")
            if problems := await faults(page, axe_core):
                found[address] = problems
    assert found == {}


def test_every_address_that_is_got_is_looked_at_or_is_no_page() -> None:
    """A page that is added has to stand in one of the lists."""
    assert {page.path for page in PAGES if page.method == "GET"} == {*addresses("", {}, 0), *NO_PAGES}
