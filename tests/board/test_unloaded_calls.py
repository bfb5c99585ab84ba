"""Calls of what is not loaded: what runs at once by default, and what is answered with its schema."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import CallAnswer, Pegboard, Session
from pegboard.core.model.delivery import GATEWAY

TOOLS = '''
from pegboard import tool


def read(path: str) -> str:
    """Read a file."""
    return f"read {path}"


@tool(read_only=True)
def look(path: str) -> str:
    """Look at a file."""
    return f"seen {path}"


def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool(destructive=True)
def tidy() -> str:
    """Tidy up."""
    return "tidied"


@tool(destructive=False)
def drop_anchor() -> str:
    """Drop the anchor."""
    return "dropped"


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


__all__ = ["read", "look", "delete", "tidy", "drop_anchor", "pay"]
'''
CONFIG = """
plugins: {desk: {python: desk_tools, guards: {read: {path: {deny: ["*secret*"]}}}}}
toolkits: {kit: {tools: [desk]}}
agents:
  ada: {allowed_toolkits: [kit], dialect: pegboard}
  old: {allowed_toolkits: [kit], dialect: pegboard, unloaded_call: schema}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "desk_tools.py").write_text(TOOLS)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


@pytest.fixture
async def ada(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread", host=GATEWAY)


def through(session: Session, name: str, *, meta: str = "call_tool", **arguments: Any) -> Any:
    return session.call(meta, {"name": name, "arguments": arguments})


def text(answer: CallAnswer) -> str:
    return str(answer.result.content[0]["text"])


async def loaded(session: Session) -> list[str]:
    return [str(lease.subject) for lease in (await session.snapshot()).state.leases]


async def test_a_call_through_call_tool_that_is_safe_runs_at_once_on_a_lease_of_that_tool_alone(ada: Session) -> None:
    """X1: it is the load command first, and leases the tool, not its toolkit."""
    assert text(await through(ada, "read", path="a.txt")) == "read a.txt"
    assert await loaded(ada) == ["tool:desk/read"]
    assert text(await through(ada, "look", meta="call_read_only_tool", path="a.txt")) == "seen a.txt"
    assert text(await through(ada, "drop_anchor")) == "dropped"


@pytest.mark.parametrize(
    ("name", "arguments"), [("read", {"path": 7}), ("delete", {"path": "a.txt"}), ("tidy", {}), ("pay", {"amount": 3})]
)
async def test_what_does_not_fit_destroys_or_waits_for_a_person_is_answered_with_its_schema(
    ada: Session, board: Pegboard, name: str, arguments: dict[str, Any]
) -> None:
    """X1, A1: it is loaded, has not run, no one was asked, and the next call is like one of any loaded tool."""
    first = await through(ada, name, **arguments)
    assert (first.status, first.is_error) == ("not_loaded", True)
    assert json.loads(first.result.content[1]["text"])["name"] == name
    assert await board.approvals.list() == ()
    assert await loaded(ada) == [f"tool:desk/{name}"]
    again = await through(ada, name, **arguments)
    assert again.status == {"read": "invalid_arguments", "pay": "needs_approval"}.get(name, "ok")


async def test_a_call_that_an_operator_has_allowed_for_always_is_safe(ada: Session, board: Pegboard) -> None:
    """X1, A3: no approval is due."""
    other = await board.session(agent="ada", session_id="other", host=GATEWAY)
    await other.load("pay")
    asked = (await through(other, "pay", amount=3)).approval
    assert asked is not None
    await board.approvals.allow(asked.id, by="grace", lasts="always")
    assert text(await through(ada, "pay", amount=5)) == "paid 5"


async def test_a_guard_refuses_a_call_of_what_is_not_loaded_in_its_words(ada: Session) -> None:
    """X1, T10: a guard is none of the reasons to answer with the schema."""
    refused = await through(ada, "read", path="secret.txt")
    assert refused.status == "refused"
    assert "guards" in refused.message


async def test_a_call_by_its_own_name_is_answered_with_the_schema(ada: Session) -> None:
    """X1: whoever writes the name of a tool that it was not shown has guessed its arguments."""
    assert (await ada.call("read", {"path": "a.txt"})).status == "not_loaded"
    assert (await ada.call("read", {"path": "a.txt"})).status == "ok"


async def test_schema_keeps_every_call_from_running_before_its_schema_was_read(board: Pegboard) -> None:
    """X1: as it was before `safe`."""
    old = await board.session(agent="old", session_id="thread", host=GATEWAY)
    assert (await through(old, "read", path="a.txt")).status == "not_loaded"
    assert (await through(old, "read", path="a.txt")).status == "ok"


@pytest.mark.parametrize(("name", "status"), [("read", "ok"), ("delete", "not_loaded")])
async def test_a_call_beside_the_load_of_its_tool_is_answered_as_one_without_the_load(
    ada: Session, name: str, status: str
) -> None:
    """X1, D2: it does not run on that load, but where it would have run without it."""
    load, called = await asyncio.gather(ada.call("load_tools", {"names": [name]}), through(ada, name, path="a.txt"))
    assert (load.status, called.status) == ("ok", status)
