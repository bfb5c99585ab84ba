"""One call on its page, made again by keyboard, a session as a timeline, and what a limited operator sees of them."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard, Session
from pegboard.console.pages.calls_page import as_curl
from pegboard.operators.calls import call

from .browser import broken_words, findings, opened
from .programs import Program, program, serving
from .running import running

SECRET = "s3cret-of-the-tools"
HOSTILE = f"</pre><script>alert(1)</script>\u202e' \" onload=x {SECRET}"
CONFIG = f"""
store: sqlite:///state.db
record: {{arguments: true, results: 4kB}}
plugins:
  sums: {{python: sum_tools}}
  quiet: {{python: quiet_tools, record: {{arguments: false, results: 0}}}}
  mail: {{python: mail_tools, approve: {{send_mail: always}}}}
servers:
  git: {{command: no-such-program, env: {{API_KEY: {SECRET}}}}}
agents:
  default: {{tools: [sums, quiet, mail]}}
  other: {{tools: [sums]}}
  finds: {{discoverable: [sums]}}
  silent: {{tools: [sums], record: {{arguments: false, results: 0, errors: false}}}}
"""
TOKENS = """
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: ["*"], console: [see, approve, configure]}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: [other], console: [see, configure]}
  dan: {token: dan-dan-dan-dan-dan-dan, agents: ["*"], console: true}
  cleo: {token: cleo-cleo-cleo-cleo-cleo-cleo, agents: ["*"], console: [see]}
"""
SUMS = f'''
from pegboard.core.model.tools import CallResult

HOSTILE = {HOSTILE!r}


def divide(number: int, by: int) -> float:
    """Divide a number."""
    return number / by


def say(text: str) -> str:
    """Say something."""
    return HOSTILE + text


def point(before: int) -> CallResult:
    """Point at something."""
    return CallResult(content=({{"type": "resource_link", "uri": "file:///" + "x" * (before - 8) + "{SECRET}"}},))


def fail(text: str) -> str:
    """Fail."""
    raise RuntimeError(HOSTILE + text)
'''
QUIET = '''
def whisper(text: str) -> str:
    """Say nothing."""
    return text
'''
MAIL = '''
def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    for name, text in (("sum_tools", SUMS), ("quiet_tools", QUIET), ("mail_tools", MAIL)):
        (tmp_path / f"{name}.py").write_text(text)
    return path


@pytest.fixture
def tokens(config: Path) -> Path:
    config.write_text(CONFIG + TOKENS)
    return config


@pytest.fixture
async def board(tokens: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(tokens) as board:
        yield board


@pytest.fixture
async def operators(board: Pegboard) -> AsyncIterator[dict[str, Program]]:
    async with AsyncExitStack() as stack:
        app, _ = await stack.enter_async_context(serving(board))
        names = ("ada", "bob", "cleo", "dan")
        yield {name: await stack.enter_async_context(program(app, "-".join([name] * 6))) for name in names}


async def numbers(board: Pegboard, session: Session) -> list[int]:
    """Return the numbers of the calls of a session, the newest first."""
    found = await board.services.store.session_trail(session.key, kinds=("call", "deny"))
    return [one.number for one in found]


async def test_x4_a_call_has_what_it_was_given_and_answered_and_where_its_time_went(
    operators: dict[str, Program], board: Pegboard
) -> None:
    """X4, X5: masked, with tokens, why it ran, and what came before and after it."""
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.call("divide", {"number": 6, "by": 3})
    await session.call("say", {"text": "hello"})
    await session.call("divide", {"number": 1, "by": 0})
    failed, said, divided = await numbers(board, session)
    ada = operators["ada"]
    found = await ada.ask("GET", f"/api/calls/{said}")
    assert (found["tool"], found["plugin"], found["outcome"], found["turn"]) == ("sums/say", "sums", "ok", 1)
    assert json.loads(found["arguments"]) == {"text": "hello"}
    assert found["answer"][0]["text"] == HOSTILE.replace(SECRET, "***") + "hello"
    assert found["upstream"] > 0
    assert found["queued"] >= 0
    assert (found["sent_tokens"] > 0, found["received_tokens"] > 0, found["estimated"]) == (True, True, False)
    assert found["because"] == "It is loaded because it is a static tool; it cannot be unloaded."
    assert ([one["id"] for one in found["before"]], [one["id"] for one in found["after"]]) == ([divided], [failed])
    wrong = await ada.ask("GET", f"/api/calls/{failed}")
    assert "division by zero" in wrong["error"]
    assert (wrong["answer"], wrong["answer_missing"]) == ([], "")


async def test_x4_what_is_not_kept_names_the_line_that_keeps_it(operators: dict[str, Program], board: Pegboard) -> None:
    """X4: the narrower of what agent and plugin say counts."""
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.call("whisper", {"text": "hello"})
    silent = await board.session(agent="silent", session_id="s", principal="local")
    await silent.call("fail", {"text": "hello"})
    ada = operators["ada"]
    found = await ada.ask("GET", f"/api/calls/{(await numbers(board, session))[0]}")
    assert found["arguments"] == ""
    assert "`record: {arguments: true}`" in found["arguments_missing"]
    assert "`record: {results: 4kB}`" in found["arguments_missing"]
    assert "under 'quiet', which says less" in found["arguments_missing"]
    assert (found["estimated"], found["received_tokens"]) == (True, 2)  # of its characters, which every record has
    nothing = await ada.ask("GET", f"/api/calls/{(await numbers(board, silent))[0]}")
    assert (nothing["outcome"], nothing["error"], nothing["reason"]) == ("error", "", "")
    assert "'sums'" not in nothing["arguments_missing"]
    assert "agents: silent" in nothing["arguments_missing"]


async def test_x4_a_limited_operator_sees_no_call_of_another_agent(
    operators: dict[str, Program], board: Pegboard
) -> None:
    """X4: neither page nor answer tells it from one that does not exist, and none is made again."""
    mine = await board.session(agent="other", session_id="s", principal="local")
    await mine.call("say", {"text": "mine"})
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.call("say", {"text": "of another"})
    number, bob = (await numbers(board, session))[0], operators["bob"]
    assert (await bob.ask("GET", f"/api/calls/{(await numbers(board, mine))[0]}"))["tool"] == "sums/say"
    for method, address in (("GET", f"/api/calls/{number}"), ("POST", f"/api/calls/{number}/again")):
        there = await bob.refused(method, address, 404)
        missing = await bob.refused(method, address.replace(str(number), "987654"), 404)
        assert there == missing
        assert there[0] == "unknown_call"
    assert (await bob.refused("GET", "/api/session/timeline?agent=default&session=s", 404))[0] == "unknown_agent"
    page = await bob.client.get(f"/console/call?id={number}")
    assert (page.status_code, "of another" in page.text) == (404, False)
    for wrong in ("0", "-1", "x", "1e3", "9" * 30, "%D9%A3"):
        assert (await bob.refused("GET", f"/api/calls/{wrong}", 404))[0] == "unknown_call"
    assert len(await numbers(board, session)) == 1


async def test_x4_a_call_is_made_again_as_its_agent_by_the_operator_alone(
    operators: dict[str, Program], board: Pegboard
) -> None:
    """X4, A1: in a session of the operator's own name that stays for no one; approvals decide as ever, and once."""
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.call("say", {"text": "hello"})
    number, ada = (await numbers(board, session))[0], operators["ada"]
    again = await ada.ask("POST", f"/api/calls/{number}/again")
    assert (again["status"], again["blocks"][0]["text"]) == ("ok", HOSTILE.replace(SECRET, "***") + "hello")
    assert await of_tries(board) == []
    found = await ada.ask("GET", f"/api/calls/{again['id']}")
    assert (found["by"], found["principal"], found["agent"], found["tool"]) == ("ada", "ada", "default", "sums/say")
    assert await numbers(board, session) == [number]

    waits = await session.call("send_mail", {"to": "carl"})
    assert waits.approval is not None
    await board.approvals.allow(waits.approval.id, by="ada")
    assert (await session.call("send_mail", {"to": "carl"})).status == "ok"
    sent = (await numbers(board, session))[0]
    approved = await ada.ask("GET", f"/api/calls/{sent}")
    assert (approved["approval"], approved["approved_by"]) == (waits.approval.id, "ada")
    waiting = await ada.ask("POST", f"/api/calls/{sent}/again")
    assert (waiting["status"], waiting["id"]) == ("needs_approval", None)
    (card,) = (await ada.ask("GET", "/api/approvals"))["waiting"]
    await ada.ask("POST", f"/api/approvals/{card['id']}/allow", json={})
    assert (await ada.ask("POST", f"/api/calls/{sent}/again"))["status"] == "ok"
    assert (await ada.ask("POST", f"/api/calls/{sent}/again"))["status"] == "needs_approval"
    assert await of_tries(board) == []


async def of_tries(board: Pegboard) -> list[str]:
    """Return the sessions of tries that are stored or live."""
    stored = [key.session for key, _ in await board.services.store.sessions()]
    live = [info.key.session for info, _ in board.services.live]
    return [one for one in (*stored, *live) if one.startswith("try-")]


async def test_a5_who_may_approve_and_not_configure_makes_no_call_again(
    operators: dict[str, Program], board: Pegboard
) -> None:
    """A5: neither by a program nor by the form, which is not offered; an approval of the call lets no one else in."""
    session = await board.session(agent="default", session_id="s", principal="local")
    waits = await session.call("send_mail", {"to": "carl"})
    assert waits.approval is not None
    await board.approvals.allow(waits.approval.id, by="ada")
    await session.call("send_mail", {"to": "carl"})
    (number,) = await numbers(board, session)
    for name, offered in (("ada", True), ("dan", False), ("cleo", False)):
        page = (await operators[name].client.get(f"/console/call?id={number}")).text
        assert (">Try again</button>" in page) is offered, name
        if not offered:
            code, message, _ = await operators[name].refused("POST", f"/api/calls/{number}/again", 403)
            assert (code, "'configure'" in message) == ("right_required", True)
            form = await operators[name].client.post("/console/call/again", data={"id": str(number)})
            assert form.status_code == 403
    assert (await operators["dan"].ask("GET", "/api/approvals"))["waiting"] == []
    waiting = await operators["ada"].ask("POST", f"/api/calls/{number}/again")
    assert waiting["status"] == "needs_approval"
    await operators["dan"].ask("POST", f"/api/approvals/{waiting['approval']}/allow", json={})
    assert (await operators["ada"].ask("POST", f"/api/calls/{number}/again"))["status"] == "ok"


@pytest.mark.parametrize("most", [2_000, 500])
async def test_x5_an_address_in_an_answer_is_masked_before_it_is_cut(
    operators: dict[str, Program], board: Pegboard, most: int
) -> None:
    """X5: of the secret that the cut falls into nothing is left, neither kept nor shown."""
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.call("point", {"before": most - 10})
    (number,) = await numbers(board, session)
    (kept,) = (await operators["ada"].ask("GET", f"/api/calls/{number}"))["answer"]
    (shown,) = (await operators["ada"].ask("POST", f"/api/calls/{number}/again"))["blocks"]
    for text in (kept["uri"], shown["text"]):
        assert "xxx" in text
        assert SECRET[:3] not in text


async def test_x4_two_clicks_get_a_record_each(operators: dict[str, Program], board: Pegboard) -> None:
    session = await board.session(agent="other", session_id="s", principal="local")
    await session.call("say", {"text": "hello"})
    (number,) = await numbers(board, session)
    clicks = [operators[name].ask("POST", f"/api/calls/{number}/again") for name in ("ada", "ada", "bob", "bob")]
    answers = await asyncio.gather(*clicks)
    records = [await operators["ada"].ask("GET", f"/api/calls/{one['id']}") for one in answers]
    assert [one["session"] for one in records] == [one["session"] for one in answers]
    assert len({one["session"] for one in records}) == 4
    assert [one["by"] for one in records] == ["ada", "ada", "bob", "bob"]


async def test_x4_what_must_be_loaded_first_is_loaded_and_what_is_switched_off_is_not(
    operators: dict[str, Program], board: Pegboard
) -> None:
    session = await board.session(agent="finds", session_id="s", principal="local")
    await session.load("tool:sums/divide")
    await session.call("divide", {"number": 6, "by": 3})
    (number,) = await numbers(board, session)
    assert (await operators["ada"].ask("POST", f"/api/calls/{number}/again"))["status"] == "ok"
    await board.permissions.set("finds", "divide", False)
    refused = await operators["ada"].ask("POST", f"/api/calls/{number}/again")
    assert (refused["status"], "was not found" in refused["message"]) == ("not_found", True)
    assert (await operators["ada"].ask("GET", f"/api/calls/{refused['id']}"))["outcome"] == "denied_switch"
    assert await of_tries(board) == []


def rename_plugin(config: Path) -> None:
    config.write_text(config.read_text().replace("sums", "calculator"))


async def test_x4_what_has_the_name_of_a_tool_later_is_not_called_in_its_place(tokens: Path) -> None:
    async with Pegboard.open(tokens) as board:
        session = await board.session(agent="other", session_id="s", principal="local")
        await session.call("divide", {"number": 6, "by": 3})
        (number,) = await numbers(board, session)
    rename_plugin(tokens)
    async with Pegboard.open(tokens) as board, serving(board) as (app, _), program(app, "-".join(["ada"] * 6)) as ada:
        await board.accept()
        session = await board.session(agent="other", session_id="s", principal="local")
        assert (await session.call("divide", {"number": 6, "by": 3})).status == "ok"
        assert (await ada.ask("POST", f"/api/calls/{number}/again"))["status"] == "not_found"


async def test_x5_a_call_is_not_made_again_with_what_is_masked_or_not_kept(
    operators: dict[str, Program], board: Pegboard
) -> None:
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.call("say", {"text": f"with {SECRET}"})
    await session.call("whisper", {"text": "hello"})
    reasons: list[str] = []
    for number in await numbers(board, session):
        code, message, _ = await operators["ada"].refused("POST", f"/api/calls/{number}/again", 409)
        assert (code, SECRET in message) == ("not_again", False)
        why = (await operators["ada"].ask("GET", f"/api/calls/{number}"))["not_again"]
        assert why in message
        reasons.append(why)
    assert reasons[0].startswith("its arguments are not kept. `record: {arguments: true}` in `agents: default`, or at")
    assert reasons[1] == "its arguments are kept without what is secret in them, or cut."
    assert len(await numbers(board, session)) == 2


async def test_x4_a_timeline_has_searches_loads_and_calls_by_turn_and_an_older_part(
    operators: dict[str, Program], board: Pegboard
) -> None:
    session = await board.session(agent="default", session_id="s", principal="local")
    await session.search("divide numbers")
    await session.call("divide", {"number": 6, "by": 3})
    await session.end_turn()
    await session.call("divide", {"number": 1, "by": 0})
    ada, place = operators["ada"], "/api/session/timeline?agent=default&session=s"
    found = await ada.ask("GET", place)
    kinds = [(turn["turn"], [line["kind"] for line in turn["lines"]]) for turn in found["turns"]]
    assert kinds == [(2, ["call"]), (1, ["call", "search"])]
    assert [turn["failed"] for turn in found["turns"]] == [1, 0]
    newest = await ada.ask("GET", f"{place}&limit=2")
    older = await ada.ask("GET", f"{place}&limit=2&before={newest['before']}")
    assert [line["kind"] for turn in older["turns"] for line in turn["lines"]] == ["search"]
    assert older["before"] is None
    search = older["turns"][0]["lines"][0]
    asked = await ada.ask("GET", f"/api/calls/{search['call']}")
    assert json.loads(asked["arguments"]) == {"queries": ["divide numbers"]}


async def test_the_command_of_a_call_makes_it_again_over_mcp(config: Path) -> None:
    """G1: as it is copied, but for the token."""
    async with running(config) as console:
        session = await console.board.session(agent="default", session_id="s", principal="local")
        await session.call("divide", {"number": 6, "by": 3})
        (number,) = await numbers(console.board, session)
        shown = await call(console.board.services, number, lambda _: True)
        words = shlex.split(as_curl(shown, console.origin).replace("\\\n", " "))
        headers = dict(line.split(": ", 1) for word, line in pairwise(words) if word == "-H")
        headers.pop("Authorization")
        async with httpx2.AsyncClient() as client:
            answer = await client.post(words[1], content=words[words.index("--data") + 1], headers=headers)
        assert answer.status_code == 200
        assert "2.0" in answer.text


async def test_hostile_texts_of_a_call_stay_texts_and_the_page_is_accessible(
    browser: Browser, config: Path, axe_core: str
) -> None:
    """X5: markup, characters that turn text around, a secret; no short word is broken, nothing overflows."""
    async with running(config) as console, opened(browser, console.origin, theme="dark", width=400) as page:
        await console.sign_in(page)
        session = await console.board.session(agent="default", session_id="<b>s</b>\u202e", principal="carl")
        await session.call(HOSTILE, {"text": HOSTILE})
        await session.call("fail", {HOSTILE: [HOSTILE] * 3, "text": HOSTILE})
        await session.call("fail", {"text": HOSTILE})
        await session.call("say", {"text": HOSTILE * 20})
        for number in await numbers(console.board, session):
            await page.goto(f"/console/call?id={number}")
            assert await findings(page, axe_core) == []
            text = await page.content()
            assert SECRET not in text
            assert "\u202e" not in re.sub(r'(?:value|href|hx-get)="[^"]*"', "", text)
            assert await page.locator("main script, main b").count() == 0
            assert await broken_words(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.goto(f"/console/session/timeline?agent=default&principal=carl&session={quote(session.key.session)}")
        await expect(page.locator(".timeline .failed")).to_have_count(3)
        assert await findings(page, axe_core) == []
        assert await page.locator("main script, main b").count() == 0
