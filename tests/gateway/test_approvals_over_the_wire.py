"""Calls of MCP clients that a person approves: asked by elicitation in both eras, or by the operator (A3, T13)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.gateway.clients import handshake, pending_calls
from pegboard.gateway.handlers.turns import SessionTurns
from pegboard.operators.audit import AuditQuery, audit
from pegboard.testing import ManualClock

from .clients import ERAS, HANDSHAKE, MODERN, until, way_in
from .question_helpers import Person, client

TOOLS = '''
from pathlib import Path

from pegboard import tool

RAN = Path(__file__).with_name("ran")


def noted(text):
    with RAN.open("a") as file:
        file.write(f"{text}\\n")
    return text


@tool(requires_confirmation=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return noted(f"deleted {path}")


@tool(user_input_fields=["code"])
def pay(amount: int, code: str) -> str:
    """Pay an amount."""
    return noted(f"paid {amount} with {code}")


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    return noted("signed")


def echo(text: str) -> str:
    """Say it again."""
    return text


__all__ = ["delete_file", "pay", "sign", "echo"]
'''
CONFIG = """
store: sqlite:///state.db
plugins:
  files: {python: files_tools}
  clock: {python: pegboard.quickstart.clock}
agents:
  default: {tools: [files], discoverable: ["*"], turn_gap: 1s}
"""


@dataclass
class Decider(Person):
    """A person who answers with this action and these fields."""

    action: Any = "accept"
    content: dict[str, Any] | None = None

    async def elicit(self, ctx: Any, params: Any) -> Any:
        await super().elicit(ctx, params)
        return types.ElicitResult(action=self.action, content=self.content)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "files_tools.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@asynccontextmanager
async def served(config: Path, era: str, person: Person | None) -> AsyncIterator[tuple[Pegboard, Any]]:
    async with Pegboard.open(config) as board, serving(board, port=0) as url, client(url, era, person) as connected:
        yield board, connected


def ran(config: Path) -> list[str]:
    found = config.with_name("ran")
    return found.read_text().splitlines() if found.exists() else []


def text(result: types.CallToolResult) -> str:
    (first, *_) = result.content
    assert isinstance(first, types.TextContent)
    return first.text


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_with_elicitation_is_asked_and_the_call_goes_on(config: Path, era: str, way: str) -> None:
    """A3: in the call itself, once; through `call_tool` as well."""
    person = Decider()
    async with way_in(way, config) as target, client(target, era, person) as connected:
        assert text(await connected.call_tool("delete_file", {"path": "a.txt"})) == "deleted a.txt"
        through = {"name": "delete_file", "arguments": {"path": "b.txt"}}
        assert text(await connected.call_tool("call_tool", through)) == "deleted b.txt"
        assert text(await connected.call_tool("delete_file", {"path": "a.txt"})) == "deleted a.txt"
    assert len(person.asked) == 3
    message = person.asked[0]["message"]
    assert message.startswith("Agent 'default' wants to call 'delete_file': its source says that a person confirms it.")
    assert '"path": "a.txt"' in message
    assert ran(config) == ["deleted a.txt", "deleted b.txt", "deleted a.txt"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_refusal_and_a_closed_question_run_nothing(config: Path, era: str) -> None:
    """A3: who closes the question leaves it to the operator, who can still allow the call."""
    async with served(config, era, Decider(action="decline")) as (board, connected):
        refused = await connected.call_tool("delete_file", {"path": "a.txt"})
        assert refused.is_error
        assert text(refused) == "'delete_file' was not called. local refused it: Refused by the user of the client."
        assert await board.approvals.list() == ()
    person = Decider(action="cancel")
    async with served(config, era, person) as (board, connected):
        closed = await connected.call_tool("delete_file", {"path": "b.txt"})
        assert closed.is_error
        assert "The user of the client closed the question without an answer. Approval " in text(closed)
        (approval,) = await board.approvals.list()
        assert closed.structured_content["approval"]["id"] == approval.id
        await board.approvals.allow(approval.id, by="grace")
        assert text(await connected.call_tool("delete_file", {"path": "b.txt"})) == "deleted b.txt"
    assert len(person.asked) == 1
    assert ran(config) == ["deleted b.txt"]


async def test_a_client_without_elicitation_gets_an_id_and_the_call_made_again_runs_once(config: Path) -> None:
    """A3, A5: the answer has the id, and never says by what a person allows it."""
    async with served(config, HANDSHAKE, None) as (board, connected):
        asked = await connected.call_tool("delete_file", {"path": "a.txt"})
        (approval,) = await board.approvals.list()
        assert asked.is_error
        assert f"Approval {approval.id} waits for an operator; once they have allowed it," in text(asked)
        assert "pegboard" not in text(asked)
        assert asked.structured_content == {
            "status": "needs_approval",
            "message": text(asked),
            "approval": {
                "id": approval.id, "kind": "confirm", "tool": "delete_file", "expires_at": approval.expires_at
            },
        }  # fmt: skip
        assert text(await connected.call_tool("delete_file", {"path": "a.txt"})) == text(asked)
        await board.approvals.allow(approval.id, by="grace")
        assert text(await connected.call_tool("delete_file", {"path": "a.txt"})) == "deleted a.txt"
        assert (await connected.call_tool("delete_file", {"path": "a.txt"})).is_error
    assert ran(config) == ["deleted a.txt"]


async def test_fields_are_filled_in_by_the_user_of_the_client(config: Path) -> None:
    """T13: the model neither sees nor gives them; what does not fit is not taken."""
    person = Decider(content={"code": "1234"})
    async with served(config, MODERN, person) as (board, connected):
        listed = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert list(listed["pay"].input_schema["properties"]) == ["amount"]
        assert text(await connected.call_tool("pay", {"amount": 3})) == "paid 3 with 1234"
        assert person.asked[0]["requestedSchema"]["properties"] == {"code": {"type": "string"}}
        person.content = {}
        wrong = await connected.call_tool("pay", {"amount": 4})
        assert "The fields of 'pay' do not fit" in text(wrong)
        assert len(await board.approvals.list()) == 1
    assert ran(config) == ["paid 3 with 1234"]


async def test_what_is_run_elsewhere_is_unavailable_over_mcp(config: Path) -> None:
    """T13: with the reason; no one is asked."""
    person = Decider()
    async with served(config, MODERN, person) as (board, connected):
        answer = await connected.call_tool("sign", {"text": "x"})
        assert answer.is_error
        assert text(answer).startswith("'sign' is not available here: the host program runs it")
        assert await board.approvals.list() == ()
    assert (person.asked, ran(config)) == ([], [])


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_is_never_answered_ends_clearly(
    config: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: nothing has run, nothing is lost: the operator can still decide."""
    monkeypatch.setattr(handshake, "PATIENCE", 0.2)
    monkeypatch.setattr(pending_calls, "PATIENCE", 0.2)
    person = Decider(hold=True)
    async with served(config, era, person) as (board, connected):
        calling = asyncio.ensure_future(connected.call_tool("delete_file", {"path": "a.txt"}))
        await until(lambda: bool(person.asked))
        (approval,) = await board.approvals.list()
        loop = asyncio.get_running_loop()
        late = loop.time() + 0.5
        await until(lambda: loop.time() > late)
        person.go.set()
        if era == HANDSHAKE:
            assert "did not answer within 0.2 s. Approval" in text(await calling)
        else:
            with pytest.raises(MCPError, match="stands for no call of yours that is under way"):
                await calling
        assert ran(config) == []
        await board.approvals.allow(approval.id, by="grace")
        assert text(await connected.call_tool("delete_file", {"path": "a.txt"})) == "deleted a.txt"
    assert (len(person.asked), ran(config)) == (1, ["deleted a.txt"])


async def test_neither_other_calls_nor_the_end_of_the_turn_wait_for_a_person(config: Path) -> None:
    """A3, G3: a call that waits is not in flight."""
    person = Decider(hold=True)
    async with served(config, HANDSHAKE, person) as (board, connected):
        calling = asyncio.ensure_future(connected.call_tool("delete_file", {"path": "a.txt"}))
        await until(lambda: bool(person.asked))
        assert text(await connected.call_tool("echo", {"text": "meanwhile"})) == "meanwhile"
        await board.permissions.set("default", "delete_file", False)
        person.go.set()
        with pytest.raises(MCPError, match="not found"):
            await calling
    assert ran(config) == []


async def test_a_turn_ends_while_a_call_waits_for_a_person(config: Path) -> None:
    """A3, G3: `turn_gap` counts from the question."""
    clock = ManualClock()
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")
        turns = SessionTurns(board.services.store, clock)
        activity = turns.activity(session)
        with activity, activity.waiting():
            assert turns.idle.is_set()
            clock.advance(100)
            await turns.begin(session, None)
            assert (await session.snapshot()).state.turn == 2
        assert activity.in_flight == 0


async def test_two_clients_cannot_answer_for_each_other(config: Path) -> None:
    """A2: an approval of one session does not count in another one, whoever is asked."""
    async with (
        Pegboard.open(config) as board,
        serving(board, port=0) as url,
        client(f"{url}?session=a", ERAS[0], None) as one,
        client(f"{url}?session=b", ERAS[0], None) as other,
    ):
        await one.call_tool("delete_file", {"path": "a.txt"})
        (approval,) = await board.approvals.list()
        await board.approvals.allow(approval.id, by="grace")
        assert (await other.call_tool("delete_file", {"path": "a.txt"})).is_error
        assert not (await one.call_tool("delete_file", {"path": "a.txt"})).is_error
    assert ran(config) == ["deleted a.txt"]


BY_OPERATOR = {
    "for every call": CONFIG + "approvals: {by: operator}\n",
    "by a rule": CONFIG.replace("files_tools}", "files_tools, approve: {delete_file: {when: always, by: operator}}}"),
    "by a rule about an argument": CONFIG.replace(
        "files_tools}", 'files_tools, approve: {echo: {when: {text: ["*"]}, by: operator}}}'
    ),
}


@pytest.mark.parametrize("written", BY_OPERATOR)
async def test_where_an_operator_answers_the_client_is_not_asked(config: Path, written: str) -> None:
    """A5: an unattended client that declares elicitation and says yes to everything allows nothing itself."""
    await asyncio.to_thread(config.write_text, BY_OPERATOR[written])
    person = Decider()
    name, given = ("echo", {"text": "a"}) if "argument" in written else ("delete_file", {"path": "a.txt"})
    async with served(config, MODERN, person) as (board, connected):
        waits = await connected.call_tool(name, given)
        assert waits.structured_content["status"] == "needs_approval"
        assert "An operator answers it, not the user of the client." in text(waits)
        assert (person.asked, ran(config)) == ([], [])
        (approval,) = await board.approvals.list()
        assert (approval.decider, approval.status) == ("operator", "waiting")
        await board.approvals.allow(approval.id, by="grace")
        assert not (await connected.call_tool(name, given)).is_error
        if written != "for every call":
            other, more = ("delete_file", {"path": "b.txt"}) if name == "echo" else ("pay", {"amount": 1})
            person.content = {"code": "1"}
            await connected.call_tool(other, more)
            assert len(person.asked) == 1


async def test_an_answer_of_the_client_says_that_it_is_one(config: Path) -> None:
    """A5: in the approval and on the audit trail."""
    async with served(config, MODERN, Decider()) as (board, connected):
        assert not (await connected.call_tool("delete_file", {"path": "a.txt"})).is_error
        (approval,) = await board.approvals.list(ended=True)
        assert (approval.elicited, approval.by, approval.status) == (True, "local", "used")
        assert any("By the user of the client." in record.reason for record in await _trail(board))


async def _trail(board: Pegboard) -> Any:
    page = await audit(board.services, AuditQuery(kind="approval"))
    return page.lines


async def test_a_client_is_shown_what_hides_or_turns_text_around(config: Path) -> None:
    """A5: the same as the console shows."""
    person = Decider()
    async with served(config, HANDSHAKE, person) as (_, connected):
        await connected.call_tool("delete_file", {"path": "safe\u202egpj.exe\u200b"})
    assert person.asked[0]["message"].count("safe<U+202E>gpj.exe<U+200B>") == 1
