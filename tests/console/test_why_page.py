"""From "the agent cannot send mail" to the reason and the fix: search while typing, hits, explanations, fixes (F5)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.sessions import describe_session

from .browser import opened, tab_to
from .programs import ORIGIN, serving
from .running import running

MAIL = '''
def send_mail(to: str, text: str) -> str:
    """Send a mail to a person. Attachments are files."""
    return "sent"


def list_folders() -> str:
    """List the <b>folders</b> of the mailbox."""
    return ""
'''
NOTES = '''
def write_note(text: str) -> str:
    """Write a note, such as a mail that is to be sent later."""
    return text


def read_note(name: str) -> str:
    """Read a note that was written before."""
    return name
'''
CONFIG = """
store: sqlite:///state.db
plugins: {mail: {python: mail_tools}, notes: {python: notes_tools}}
servers: {ships: {command: pegboard-test-no-such-command, description: Ships and harbours.}}
toolkits: {post: {label: "<script>alert(1)</script>", description: Letters and mail., tools: [mail]}}
agents:
  mailer: {dialect: pegboard, allowed_toolkits: [post], permissions: {send_mail: false}}
  writer: {discoverable: [notes, ships]}
  "a% b <i>": {discoverable: ["*"]}
"""
TOKENS = """
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, console: true, agents: ["*"]}
  bob: {token: bob-bob-bob-bob-bob-bob, console: true, agents: [writer]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "mail_tools.py").write_text(MAIL)
    (tmp_path / "notes_tools.py").write_text(NOTES)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def configured(config: Path) -> Path:
    """Return the configuration with two operators."""
    config.write_text(CONFIG + TOKENS)
    return config


@pytest.fixture
async def board(configured: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(configured) as board:
        await board.ready("mail", "notes")
        yield board


@pytest.fixture
async def served(board: Pegboard) -> AsyncIterator[ConsoleApp]:
    async with serving(board) as (app, _):
        yield app


def client(app: ConsoleApp, name: str) -> httpx2.AsyncClient:
    """Return a client that bears the token of an operator."""
    headers = {"authorization": f"Bearer {name}-{name}-{name}-{name}-{name}-{name}"}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ORIGIN, headers=headers)


async def text_at(app: ConsoleApp, address: str, operator: str = "ada", status: int = 200) -> str:
    """Return a page, once everything is indexed."""
    async with client(app, operator) as http:
        response = await http.get(address)
        while "being indexed" in response.text:
            response = await http.get(address)
    assert response.status_code == status, response.text
    return response.text


def names_in(part: str) -> list[str]:
    """Return the names of the hits of a table, in their order."""
    return re.findall(r'<th scope="row">.*?<code class="name"><bdi>(.*?)</bdi>', part, re.DOTALL)


async def test_p3_what_is_typed_is_searched_at_once_and_stands_in_the_address(browser: Browser, config: Path) -> None:
    """P3: the answer follows each letter, the focus stays, and the address shows the same page again."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.board.ready("mail", "notes")
        await console.sign_in(page)
        await page.goto("/console/tools?agent=writer")
        field = page.get_by_label("Search", exact=True)
        await field.focus()
        await page.keyboard.type("write that down")
        first = page.get_by_role("table", name="What its model finds").get_by_role("rowheader").first
        await expect(first).to_contain_text("write_note")
        await expect(page).to_have_url(re.compile(r"q=write(\+|%20)that(\+|%20)down"))
        await expect(field).to_be_focused()
        await page.keyboard.press("Control+A")
        await page.keyboard.type("send_mail")
        await expect(page.locator("#tools")).to_contain_text("Nothing grants it to agent 'writer'.")
        await page.reload()
        await expect(page.locator("#tools")).to_contain_text("Nothing grants it to agent 'writer'.")
        await page.go_back()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


async def test_f5_a_hit_is_chosen_and_loaded_by_keyboard(browser: Browser, config: Path) -> None:
    """F5, S1: it is loaded in the session that is looked at, and the page says so."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.board.ready("mail", "notes")
        await console.sign_in(page)
        await page.goto("/console/tools?agent=mailer&session=s&q=folders")
        await tab_to(page, page.get_by_role("link", name="list_folders"))
        await page.keyboard.press("Enter")
        card = page.locator("#explanation")
        await expect(card).to_contain_text("may use 'list_folders', but it is not loaded in this session.")
        await tab_to(page, page.get_by_role("button", name="Load it in this session"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#notices")).to_contain_text("list_folders")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await page.get_by_role("link", name="list_folders").click()
        await expect(card).to_contain_text("Agent 'mailer' can call 'list_folders' now.")
        session = await console.board.session(agent="mailer", session_id="s")
        assert (await session.explain("list_folders")).callable


async def test_a_server_that_cannot_run_is_started_again_from_its_explanation(browser: Browser, config: Path) -> None:
    """G7: what was put right is tried at once."""
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page)
        await page.goto("/console/why?agent=writer&tool=ships")
        await expect(page.locator("#explanation")).to_contain_text("pegboard-test-no-such-command")
        await page.get_by_role("button", name="Restart").click()
        await expect(page.locator("#notices")).to_contain_text("Server ships was started again.")


@pytest.mark.parametrize("words", ["send mail", "mail", "note", "write"])
async def test_p3_the_hits_are_those_of_the_model_in_its_order(board: Pegboard, served: ConsoleApp, words: str) -> None:
    """P3, F5: what is not for the agent follows, with the first reason of each."""
    page = await text_at(served, f"/console/tools?agent=writer&q={words}")
    hits, _, rest = page.partition("Not for this agent")
    session = await board.session(agent="writer", session_id="s")
    own = await session.search(words, limit=20)
    assert names_in(hits.partition("Found by")[2]) == [result.name for result in own.results]
    assert rest.count("denied") >= len(names_in(rest)) - (len(names_in(rest)) == 0)


async def test_a_score_is_read_without_its_bars(served: ConsoleApp) -> None:
    """F5: the parts stand beside the bars as labelled numbers, behind the score."""
    page = await text_at(served, "/console/tools?agent=writer&q=a+note+for+later")
    assert re.search(r"<details><summary>\d\.\d\d<span[^>]*>, what the score of \S+ is made of", page)
    assert re.search(r'<span>words\s*<span class="dim"><bdi>.*?later', page, re.DOTALL)


async def test_a_toolkit_a_plugin_and_a_tool_are_told_apart(served: ConsoleApp) -> None:
    """F5: toolkits and plugins are explained as well, with their tools."""
    toolkit = await text_at(served, "/console/why?agent=writer&tool=toolkit:post")
    assert "may not load toolkit &#39;post&#39;" in toolkit
    assert "tool=send_mail" in toolkit
    plugin = await text_at(served, "/console/why?agent=writer&tool=plugin:notes")
    assert "may use 2 of 2 tools of plugin &#39;notes&#39;; 0 are loaded." in plugin


async def test_a_name_that_nothing_has_is_answered_with_the_nearest(served: ConsoleApp) -> None:
    page = await text_at(served, "/console/why?agent=writer&tool=write_nore")
    assert "There is no tool &#39;write_nore&#39; in the catalog. Did you mean &#39;write_note&#39;?" in page
    everyone = await text_at(served, "/console/why?tool=write_nore")
    assert "There is nothing of this name." in everyone


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "\u202egnp.exe", "a\x00b", "'\"><img src=x>", "%2F../..", "x" * 6000]
)
async def test_what_is_asked_never_becomes_markup(served: ConsoleApp, text: str) -> None:
    async with client(served, "ada") as http:
        for path, values in (
            ("/console/tools", {"q": text}),
            ("/console/why", {"agent": "writer", "tool": text}),
            ("/console/tools", {"agent": "writer", "q": text, "session": text}),
        ):
            response = await http.get(path, params=values)
            assert response.status_code == 200
            assert "<script>alert" not in response.text
            assert "<img" not in response.text.replace('<img src="/console/static/icon.svg"', "")
            assert "\u202e" not in response.text.partition('<div id="tools"')[2]


async def test_a_load_names_its_session_and_stays_on_the_page(served: ConsoleApp) -> None:
    form = {
        "agent": "writer",
        "principal": "local",
        "session": "",
        "name": "write_note",
        "back": "https://evil.example/",
    }
    async with client(served, "ada") as http:
        refused = await http.post("/console/why/load", data=form)
        assert refused.status_code == 400
        done = await http.post("/console/why/load", data={**form, "session": "s"})
    assert done.headers["location"] == "/console/why?agent=writer&tool=write_note"


async def test_a_load_is_recorded_with_its_operator_in_the_session_as_it_was_opened(
    board: Pegboard, served: ConsoleApp
) -> None:
    """X4, L8: also in a new session; a child that this process opened stays narrowed as its kind is."""
    child = await (await board.session(agent="writer", session_id="s")).child("explore")
    await child.surface()
    form = {"agent": "writer", "principal": "local", "name": "read_note", "back": "/"}
    async with client(served, "ada") as http:
        for session in (child.key.session, "new"):
            await http.post("/console/why/load", data={**form, "session": session})
    records = await board.services.store.entries(kind="load")
    assert [(one.session, one.by) for one in records] == [("new", "ada"), (child.key.session, "ada")]
    seen = await describe_session(board.services, CatalogCounting(board.services), child.key)
    assert seen is not None
    assert ([lease.subject for lease in seen.leases], seen.loadout) == (["tool:notes/read_note"], "research")
