"""Calls that no person is asked about: they cannot be made as they are shown, or too many wait already (A1, A5)."""

import asyncio
import math
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.board.calls import approval_gate

PRICES = '''
from typing import Any


def set_price(value: Any) -> str:
    """Set a price."""
    raise AssertionError(value)
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "prices.py").write_text(PRICES)
    path = tmp_path / "pegboard.yaml"
    path.write_text("plugins: {shop: {python: prices, approve: {set_price: always}}}\nagents: {ada: {tools: [shop]}}\n")
    return path


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, float("1e400"), {"deep": [math.nan]}, "half \ud83d of one", {"\udc00": 1}],
    ids=repr,
)
async def test_what_json_does_not_have_is_refused_before_anybody_is_asked(shop: Path, value: object) -> None:
    """A5: a person would allow NaN, and the server get null; half of a character cannot be sent."""
    async with Pegboard.open(shop) as board:
        ada = await board.session(agent="ada", session_id="thread")
        answer = await ada.call("set_price", {"value": value})
        assert answer.status == "refused", answer
        assert "are not JSON" in answer.message
        assert await board.approvals.list(ended=True) == ()


async def test_calls_that_wait_are_bounded_for_a_principal_over_sessions_and_agents(
    board: Pegboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5: also those that are made at once; another principal is asked about as before."""
    monkeypatch.setattr(approval_gate, "MOST_OF_PRINCIPAL", 8)
    sessions = [
        await board.session(agent=agent, session_id=f"s{number}", principal="eve")
        for agent in ("ada", "bob")
        for number in range(10)
    ]
    answers = await asyncio.gather(*(session.call("delete_file", {"path": "x"}) for session in sessions))
    statuses = [answer.status for answer in answers]
    assert (statuses.count("needs_approval"), statuses.count("refused")) == (8, 12)
    refusal = next(answer.message for answer in answers if answer.status == "refused")
    assert refusal == "8 calls of this user wait for the approval of a person. 'delete_file' was not called."
    other = await board.session(agent="ada", session_id="s", principal="ada")
    assert (await other.call("delete_file", {"path": "x"})).status == "needs_approval"
    first = (await board.approvals.list())[-1]
    await board.approvals.refuse(first.id, by="grace")
    assert (await sessions[0].call("delete_file", {"path": "y"})).status == "needs_approval"


async def test_the_arguments_of_calls_that_wait_are_bounded_for_a_principal(board: Pegboard) -> None:
    """A5: 60 kB each, in sessions without end."""
    statuses: list[str] = []
    while "refused" not in statuses:
        session = await board.session(agent="ada", session_id=f"s{len(statuses)}", principal="eve")
        statuses.append((await session.call("delete_file", {"path": "x" * 60_000})).status)
    assert len(statuses) == approval_gate.LARGEST_OF_PRINCIPAL // 60_000 + 1
