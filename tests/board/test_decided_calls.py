"""What a call would come to, decided without making it: it agrees with the call, and leaves nothing behind."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import CallAnswer, Pegboard, Session
from pegboard.core.model.delivery import GATEWAY, LIBRARY
from pegboard.core.state.call_plans import CallDecision

TOOLS = '''
from pathlib import Path

from pegboard import tool

HERE = Path(__file__).parent


def noted(name):
    with (HERE / "ran").open("a") as file:
        file.write(f"{name}\\n")
    return name


def read(path: str) -> str:
    """Read a file."""
    return noted("read")


def count(path: str) -> str:
    """Count the lines of a file."""
    return noted("count")


def post(to: str) -> str:
    """Post a letter."""
    return noted("post")


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return noted("pay")


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    return noted("sign")


def never(principal, arguments):
    return "Never that." if arguments["path"] == "guarded" else None


def large(principal, arguments):
    if arguments["path"] == "broken":
        1 / 0
    return "it is large" if arguments["path"] == "large" else False


@tool(requires_confirmation=large, guard=never)
def wipe(path: str) -> str:
    """Wipe something."""
    return noted("wipe")


def secret() -> str:
    """Keep a secret."""
    return noted("secret")


def translate() -> str:
    """Translate a text."""
    return noted("translate")


__all__ = ["count", "pay", "post", "read", "secret", "sign", "translate", "wipe"]
'''
CONFIG = """
store: sqlite:///state.db
plugins:
  desk:
    python: desk_tools
    guards: {read: {path: {deny: ["*secret*"]}}}
    approve: {post: {to: ["bob*"]}}
    needs: {translate: {env: [NO_SUCH_KEY]}}
  sums: {python: sum_tools}
agents:
  ada: {tools: [desk], discoverable: [sums], permissions: {secret: false}, dialect: pegboard}
  schema: {discoverable: [desk, sums], permissions: {secret: false}, dialect: pegboard, unloaded_call: schema}
  run: {discoverable: [desk, sums], permissions: {secret: false}, dialect: pegboard, unloaded_call: run}
  reject: {discoverable: [desk, sums], permissions: {secret: false}, dialect: pegboard, unloaded_call: reject}
  tight: {discoverable: [desk, sums], dialect: pegboard, unloaded_call: run, budget: {tools: 3}}
  later: {allowed_toolkits: [kit], dialect: toolkits}
toolkits: {kit: {tools: [desk]}}
"""
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read", {"path": "a.txt"}),
    ("read", {"path": "my-secret.txt"}),
    ("read", {"path": "pegboard.yaml"}),
    ("read", {"path": 7}),
    ("read", {}),
    ("post", {"to": "carol"}),
    ("post", {"to": "bob"}),
    ("pay", {"amount": 3}),
    ("pay", {"amount": float("nan")}),
    ("sign", {"text": "x"}),
    ("sign", {"text": "x" * 70_000}),
    ("wipe", {"path": "small"}),
    ("wipe", {"path": "large"}),
    ("wipe", {"path": "guarded"}),
    ("wipe", {"path": "broken"}),
    ("secret", {}),
    ("translate", {}),
    ("nonsense", {}),
    ("raed", {"path": "a.txt"}),
    ("add", {"a": 1, "b": 2}),
    ("load_tools", {"names": ["sums"]}),
    ("load_tools", {"nmaes": []}),
    ("search_tools", {"queries": "add numbers"}),
)
AGENTS = ("ada", "schema", "run", "reject", "tight", "later")


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "desk_tools.py").write_text(TOOLS)
    (tmp_path / "sum_tools.py").write_text('def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n')
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={}) as opened:
        yield opened


def ran(folder: Path) -> str:
    found = folder / "ran"
    return found.read_text() if found.exists() else ""


async def left_behind(board: Pegboard, session: Session, folder: Path) -> tuple[object, ...]:
    """Return what a call leaves: the state as it is stored, the audit trail, approvals, numbers, what has run."""
    store, metrics = board.services.store, board.services.metrics
    numbers = metrics.report(lambda tools: 0, len, lambda agent: None), dict(metrics.totals)
    approvals = await board.approvals.list(ended=True)
    return await store.load(session.key), await store.entries(), approvals, numbers, ran(folder)


def agree(decision: CallDecision, answer: CallAnswer) -> None:
    """Assert that a call came to what was decided: the same status and the same text."""
    assert decision.tool == answer.tool
    if decision.status == "runs":
        assert decision.answer is None
        assert answer.status in ("ok", "error") or (answer.tool is not None and answer.tool.plugin == "pegboard")
        return
    assert decision.answer is not None
    assert decision.answer.status == answer.status
    assert decision.status == ("needs_approval" if answer.status == "needs_approval" else "refused")
    if decision.approval is not None or answer.status != "needs_approval":
        assert (decision.approval, decision.answer.result) == (answer.approval, answer.result)


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("agent", AGENTS)
async def test_a_decision_agrees_with_the_call_and_leaves_nothing_behind(
    board: Pegboard, tmp_path: Path, agent: str, through: bool
) -> None:
    """X1, X2, P9, P10, T10, A1: for every way to be refused, loaded or not, and again once the call was made."""
    for number, (name, arguments) in enumerate(CALLS):
        session = await board.session(agent=agent, session_id=f"s{number}", host=GATEWAY if through else LIBRARY)
        called = ("call_tool", {"name": name, "arguments": arguments}) if through else (name, arguments)
        await session.surface()
        for _ in range(2):
            before = await left_behind(board, session, tmp_path)
            decision = await session.decide(*called)
            assert await left_behind(board, session, tmp_path) == before, called
            agree(decision, await session.call(*called))


async def test_every_kind_of_refusal_is_among_those_calls(board: Pegboard) -> None:
    """The calls above come to everything that a call may come to without running."""
    found: set[str] = set()
    for agent in AGENTS:
        for number, (name, arguments) in enumerate(CALLS):
            session = await board.session(agent=agent, session_id=f"s{number}")
            decision = await session.decide(name, arguments)
            found.add(decision.answer.status if decision.answer is not None else decision.status)
            await session.call(name, arguments)
            decision = await session.decide(name, arguments)
            found.add(decision.answer.status if decision.answer is not None else decision.status)
    assert found == {
        "runs", "needs_approval", "refused", "not_found", "not_loaded", "next_request", "invalid_arguments",
        "tool_unavailable", "over_budget",
    }  # fmt: skip


async def test_a_decision_says_what_was_approved_refused_and_granted_for_longer(
    board: Pegboard, tmp_path: Path
) -> None:
    """A2, A3: waiting, allowed once and used up, refused in the words of a person, standing for the session."""
    ada = await board.session(agent="ada", session_id="thread")
    pay: tuple[str, dict[str, Any]] = ("pay", {"amount": 3})
    unasked = await ada.decide(*pay)
    assert (unasked.status, unasked.approval) == ("needs_approval", None)
    assert unasked.message == (
        "'pay' needs the approval of a person (its source says that a person confirms it). No one has been asked yet."
    )

    asked = (await ada.call(*pay)).approval
    assert asked is not None
    assert (await ada.decide(*pay)).approval == asked
    await board.approvals.allow(asked.id, by="grace")
    for _ in range(2):
        assert (await ada.decide(*pay)).status == "runs"
    assert (await ada.call(*pay)).status == "ok"

    assert (await ada.decide(*pay)).status == "needs_approval"
    again = (await ada.call(*pay)).approval
    assert again is not None
    await board.approvals.refuse(again.id, by="grace", reason="Too much.")
    refused = await ada.decide(*pay)
    assert (refused.status, refused.message) == ("refused", "'pay' was not called. grace refused it: Too much.")
    assert refused.answer == await ada.call(*pay)

    await board.approvals.allow(again.id, by="grace", lasts="session")
    assert (await ada.decide("pay", {"amount": 4})).status == "runs"
    assert ran(tmp_path) == "pay\n"


async def test_a_decision_asks_a_person_where_it_is_told_to(board: Pegboard, tmp_path: Path) -> None:
    """A3: once, and the approval is the one that the call then waits for."""
    ada = await board.session(agent="ada", session_id="thread")
    decision = await ada.decide("pay", {"amount": 3}, ask=True)
    assert (decision.status, decision.tool is not None) == ("needs_approval", True)
    assert decision.approval is not None
    assert await board.approvals.list() == (decision.approval,)
    assert (await ada.decide("pay", {"amount": 3}, ask=True)).approval == decision.approval
    assert (await ada.call("pay", {"amount": 3})).approval == decision.approval
    await board.approvals.allow(decision.approval.id, by="grace")
    assert (await ada.resume(decision.approval.id)).status == "ok"
    assert ran(tmp_path) == "pay\n"


async def test_a_decision_knows_the_failures_that_stop_a_meta_tool_and_what_was_unloaded(board: Pegboard) -> None:
    """X3, D2: the third equal failure is not executed; what was unloaded by name comes back by no call."""
    run = await board.session(agent="run", session_id="thread")
    wrong: tuple[str, dict[str, Any]] = ("unload_tools", {"names": 7})
    for _ in range(3):
        agree(await run.decide(*wrong), await run.call(*wrong))
    decided = await run.decide(*wrong)
    assert decided.answer is not None
    assert decided.answer.status == "stopped"
    await run.load("add")
    assert (await run.decide("add", {"a": 1, "b": 2})).status == "runs"
    await run.unload("add")
    agree(await run.decide("add", {"a": 1, "b": 2}), await run.call("add", {"a": 1, "b": 2}))


async def test_the_changes_are_what_joined_and_left_since_the_newest_surface(board: Pegboard) -> None:
    """F1: definitions of what joined, names of what left; a look changes nothing, the next surface does."""
    session = await board.session(agent="schema", session_id="thread")
    first = await session.changes()
    assert ([tool.wire for tool in first.joined], first.left) == (list((await session.surface()).names), ())
    await session.load("read", "post")
    await session.surface()
    await session.unload("read")
    await session.load("add")
    for _ in range(2):
        changed = await session.changes()
        assert [tool.wire for tool in changed.joined] == ["add"]
        assert changed.joined[0].input_schema["required"] == ["a", "b"]
        assert changed.left == ("read",)
    await session.surface()
    assert await session.changes() == type(changed)()


async def test_who_asked_before_is_told_without_deciding_anew_as_long_as_it_holds(board: Pegboard) -> None:
    """A1, P4: adapters need not decide a call twice that no one approves; a switch counts at once."""
    ada = await board.session(agent="ada", session_id="s")
    assert await ada.runs_unasked("count") is False
    for _ in range(2):  # the first call constructs the plugin
        await ada.call("count", {"path": "a.txt"})
        await ada.call("post", {"to": "carol"})

    assert [await ada.runs_unasked(name) for name in ("count", "post", "pay", "unknown")] == [True, False, False, False]
    await board.permissions.set("ada", "count", value=False)
    assert await ada.runs_unasked("count") is False
