"""Calls that a person approves, in the library: asked, allowed, refused, resumed (A1–A3, T13)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import CallResult, Pegboard, Session, UsageError

TOOLS = '''
from pathlib import Path

from pegboard import tool

HERE = Path(__file__).parent


def noted(name, *values):
    with (HERE / "ran").open("a") as file:
        file.write(f"{name} {values}\\n")


@tool(requires_confirmation=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    noted("delete_file", path)
    return f"deleted {path}"


@tool(user_input_fields=["code"])
def pay(amount: int, code: str) -> str:
    """Pay an amount."""
    noted("pay", amount, code)
    return f"paid {amount} with {code}"


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    noted("sign", text)
    return "signed here"


def read_file(path: str) -> str:
    """Read a file."""
    return f"read {path}"


__all__ = ["delete_file", "pay", "sign", "read_file"]
'''
CONFIG = """
store: sqlite:///state.db
plugins: {files: {python: files_tools}}
agents: {ada: {tools: [files]}, bob: {tools: [files]}}
"""


def ran(folder: Path) -> list[str]:
    found = folder / "ran"
    return found.read_text().splitlines() if found.exists() else []


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "files_tools.py").write_text(TOOLS)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


@pytest.fixture
async def ada(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread")


async def test_a_marked_call_waits_and_runs_once_when_it_is_resumed(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """T13, A2, A3, X3: `needs_approval` has a handle; after `allow` the call runs once."""
    asked = await ada.call("delete_file", {"path": "a.txt"})
    assert (asked.status, asked.is_error) == ("needs_approval", True)
    assert asked.approval is not None
    (listed,) = await board.approvals.list()
    assert listed == asked.approval
    assert (listed.tool, dict(listed.arguments), listed.status) == ("delete_file", {"path": "a.txt"}, "waiting")
    again = await ada.resume(listed.id)
    assert (again.status, again.approval) == ("needs_approval", asked.approval)
    assert ran(tmp_path) == []

    await board.approvals.allow(listed.id, by="grace")
    done = await ada.resume(listed.id)

    assert (done.status, done.result.content[0]["text"]) == ("ok", "deleted a.txt")
    assert ran(tmp_path) == ["delete_file ('a.txt',)"]
    assert (await ada.resume(listed.id)).status == "refused"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "needs_approval"
    assert len(ran(tmp_path)) == 1


async def test_the_same_call_made_again_after_the_approval_runs_once(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A3: without a handle to resume, the model makes the call again."""
    asked = await ada.call("delete_file", {"path": "a.txt"})
    assert (await ada.call("delete_file", {"path": "a.txt"})).approval == asked.approval
    assert asked.approval is not None
    await board.approvals.allow(asked.approval.id, by="grace")
    assert (await ada.call("delete_file", {"path": "b.txt"})).status == "needs_approval"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "ok"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "needs_approval"
    assert ran(tmp_path) == ["delete_file ('a.txt',)"]


async def test_a_refusal_reaches_the_model_with_the_words_of_the_operator(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A3: and the same call is not asked about again."""
    asked = await ada.call("delete_file", {"path": "a.txt"})
    assert asked.approval is not None
    await board.approvals.refuse(asked.approval.id, by="grace", reason="That is the only copy.")
    for answer in (await ada.resume(asked.approval.id), await ada.call("delete_file", {"path": "a.txt"})):
        assert answer.status == "refused"
        assert answer.message == "'delete_file' was not called. grace refused it: That is the only copy."
    assert ran(tmp_path) == []


async def test_fields_that_a_person_fills_in_are_never_the_models(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """T13: what is digested is what was filled in."""
    asked = await ada.call("pay", {"amount": 3})
    assert asked.approval is not None
    assert asked.approval.kind == "user_input"
    with pytest.raises(UsageError, match="required property"):
        await board.approvals.allow(asked.approval.id, by="grace")
    with pytest.raises(UsageError, match="no field 'cod'"):
        await board.approvals.allow(asked.approval.id, by="grace", fields={"cod": "x"})
    await board.approvals.allow(asked.approval.id, by="grace", fields={"code": "1234"})
    assert (await ada.call("pay", {"amount": 3})).result.content[0]["text"] == "paid 3 with 1234"
    assert (await ada.call("pay", {"amount": 3})).status == "needs_approval"
    assert ran(tmp_path) == ["pay (3, '1234')"]


async def test_what_is_run_elsewhere_is_resumed_with_its_result(ada: Session, board: Pegboard, tmp_path: Path) -> None:
    """T13: it never runs here."""
    asked = await ada.call("sign", {"text": "x"})
    assert asked.approval is not None
    assert (asked.status, asked.approval.kind) == ("needs_approval", "external")
    with pytest.raises(UsageError, match="run elsewhere"):
        await board.approvals.allow(asked.approval.id, by="grace")
    done = await ada.resume(asked.approval.id, result={"signature": "abc"})
    assert (done.status, done.result.structured) == ("ok", {"signature": "abc"})
    assert (await ada.resume(asked.approval.id, result="again")).status == "refused"
    other = await ada.call("sign", {"text": "y"})
    assert other.approval is not None
    result = CallResult(content=({"type": "text", "text": "done"},))
    assert (await ada.resume(other.approval.id, result=result)).result == result
    assert ran(tmp_path) == []
