"""What explain, and the search of operators, know of approvals (A5, F5)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.operators.explain import OperatorExplanation, explain_for_operator
from pegboard.operators.subjects import make_subjects

TOOLS = '''
from pegboard import tool


def wipe(path: str) -> str:
    """Wipe a path of the disk."""
    return path


def write(path: str) -> str:
    """Write to a path of the disk."""
    return path


@tool(requires_confirmation=lambda principal, arguments: False)
def move(path: str) -> str:
    """Move a path of the disk."""
    return path


def read(path: str) -> str:
    """Read a path of the disk."""
    return path
'''
CONFIG = """
store: sqlite:///state.db
plugins:
  disk:
    python: disk_tools
    approve:
      wipe: always
      "w*": {path: ["*.key"]}
agents:
  assistant: {tools: [disk]}
  later: {dialect: pegboard, discoverable: [disk]}
  never: {tools: [disk], permissions: {wipe: false}}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "disk_tools.py").write_text(TOOLS)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        yield board


async def explained(board: Pegboard, name: str, agent: str = "assistant", session: str = "s") -> OperatorExplanation:
    found = await explain_for_operator(board.services, agent, name, session=session)
    own = await (await board.session(agent=agent, session_id=session)).explain(name)
    assert (own.callable, [one.code for one in own.reasons]) == (found.callable, [one.code for one in found.reasons])
    return found


async def test_a_tool_whose_every_call_is_asked_about_is_not_callable(board: Pegboard) -> None:
    """F5, A5: with the rule, its place in the file, and what to do; `callable` is what a call would do now."""
    found = await explained(board, "wipe")
    assert (found.permitted, found.loaded, found.visible, found.callable) == (True, True, True, False)
    reason = found.reasons[-1]
    assert (reason.code, reason.where.endswith("pegboard.yaml:7:7")) == ("needs_approval", True)
    assert reason.text == "Every call of it needs the approval of a person: approve.wipe is always."
    assert found.verdict.startswith("Agent 'assistant' may call 'wipe', and each call needs the approval of a person.")
    assert [(fix.kind, fix.code) for fix in found.fixes] == [("approve", "needs_approval")]
    session = await board.session(agent="assistant", session_id="s")
    assert (await session.call("wipe", {"path": "a"})).status == "needs_approval"


@pytest.mark.parametrize(
    ("name", "where", "text"),
    [
        ("write", "pegboard.yaml:8:7", "Whether a call needs approval depends on its argument 'path'."),
        ("move", "pegboard.yaml:4:3", "Whether a call needs approval depends on its arguments."),
    ],
)
async def test_where_a_rule_or_a_hook_looks_at_arguments_a_call_may_need_it(
    board: Pegboard, name: str, where: str, text: str
) -> None:
    found = await explained(board, name)
    reason = found.reasons[-1]
    assert (found.callable, reason.code, reason.text) == (True, "may_need_approval", text)
    assert reason.where.endswith(where)
    assert found.verdict.endswith(text)


async def test_a_standing_allowance_is_a_reason_and_makes_it_callable_for_whom_it_counts(board: Pegboard) -> None:
    """A3: for the session in that session, always in every one of the agent and principal; until it is taken back."""
    session = await board.session(agent="assistant", session_id="s")
    asked = (await session.call("wipe", {"path": "a"})).approval
    assert asked is not None
    await board.approvals.allow(asked.id, by="grace", lasts="session")
    found = await explained(board, "wipe")
    text = "Every call of it in this session runs without a question: 'grace' allowed it."
    assert (found.callable, found.reasons[-1].code, found.reasons[-1].text) == (True, "standing_approval", text)
    assert not (await explained(board, "wipe", session="other")).callable
    await board.approvals.allow(asked.id, by="grace", lasts="always")
    assert (await explained(board, "wipe", session="other")).callable
    assert not (await explained(board, "wipe", agent="later")).callable
    await board.approvals.refuse(asked.id, by="grace")
    assert not (await explained(board, "wipe")).callable


async def test_what_is_not_loaded_or_denied_or_free_says_nothing_false(board: Pegboard) -> None:
    assert (await explained(board, "read")).reasons[-1].code != "may_need_approval"
    later = await explained(board, "wipe", agent="later")
    assert [fix.kind for fix in later.fixes] == ["load", "approve"]
    never = await explained(board, "wipe", agent="never")
    assert (never.permitted, "needs_approval" in [reason.code for reason in never.reasons]) == (False, False)


async def test_search_says_of_which_hits_a_person_approves_the_calls(board: Pegboard) -> None:
    subjects = make_subjects(board.services)
    try:
        while (answer := await subjects.search.for_agent("assistant", "path of the disk", session="s")).indexing:
            pass
        found = {hit.name: hit.approval.code if hit.approval else None for hit in answer.hits if hit.kind == "tool"}
        expected = {"wipe": "needs_approval", "write": "may_need_approval", "move": "may_need_approval", "read": None}
        assert found == expected
    finally:
        await subjects.aclose()
