"""Nothing that one principal keeps in an object is read by another (G9)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from board.ten_plugins import KEEPERS, PRINCIPALS, SCOPES, Call, configure, secret
from pegboard import Pegboard

INTERLEAVINGS = 300
SLOW = {"csv": 2, "scheduler": 5, "workspace": 8, "memory": 8, "python": 8}
"""How often of a hundred the plugins are chosen whose calls take milliseconds."""


def caller(board: Pegboard, agent: str, who: str) -> Call:
    async def call(name: str, arguments: dict[str, Any]) -> str:
        session = await board.session(agent=agent, session_id="s", principal=who)
        answer = await session.call(name, arguments)
        assert answer.status in ("ok", "error"), (name, answer.status, answer.message)
        return " ".join(str(block.get("text")) for block in answer.result.content)

    return call


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(configure(tmp_path)) as board:
        yield board


@pytest.mark.parametrize("scope", SCOPES)
async def test_each_principal_finds_what_it_kept_itself(board: Pegboard, scope: str) -> None:
    """G9: so that not finding what another kept means something."""
    for name, keeper in KEEPERS.items():
        call = caller(board, scope, "ada")
        await keeper.keep(call, "ada", 0)
        assert (secret("ada") in await keeper.look(call)) is keeper.holds, name


async def test_in_hundreds_of_interleavings_nobody_reads_what_another_keeps(board: Pegboard) -> None:
    """G9: ten plugins, four scopes, two principals."""
    choose = random.Random(9)
    for number in range(INTERLEAVINGS):
        (name,) = choose.choices(list(KEEPERS), [SLOW.get(name, 14) for name in KEEPERS])
        calls = {who: caller(board, choose.choice(list(SCOPES)), who) for who in PRINCIPALS}
        steps = [(what, who) for what in ("keep", "look") for who in PRINCIPALS]
        choose.shuffle(steps)
        answers = await asyncio.gather(*(taken(what, name, calls[who], who, number) for what, who in steps))
        for (_, who), text in zip(steps, answers, strict=True):
            for other in set(PRINCIPALS) - {who}:
                assert secret(other) not in text, (number, name, who)


def taken(what: str, name: str, call: Call, who: str, number: int) -> Awaitable[str]:
    """Return the answer of one step of someone."""
    return KEEPERS[name].keep(call, who, number) if what == "keep" else KEEPERS[name].look(call)
