"""What happened, to subscribers and in the audit trail."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.core.model.tools import CallResult
from pegboard.errors import UsageError
from pegboard.ports.adapters import Adapters
from pegboard.testing import Canned, FakeSource

CONFIG = """
store: "memory:"
plugins: {notes: {python: notes_tools}, many: {python: many_tools}}
agents:
  default: {discoverable: [notes], lease: {kind: idle, turns: 0}}
  wide: {discoverable: ["*"], budget: {tokens: 8000}}
"""
NOTES = '''
def note_add(text: str) -> str:
    """Add a note."""
    return f"added {text}"
'''


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "notes_tools.py").write_text(NOTES)
    many = (
        f'def tool_{i}(first: str, second: int) -> str:\n    """Do number {i}."""\n    return ""\n' for i in range(1000)
    )
    (tmp_path / "many_tools.py").write_text("\n".join(many))
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


async def test_every_event_reaches_its_subscribers_until_they_leave(board: Pegboard) -> None:
    """X4, S7: loaded, called, denied, unloaded, evicted and turn_ended; one that fails stops no one."""
    seen: list[tuple[str, Any]] = []
    ended = [
        board.on(name, lambda record: seen.append((record["event"], record.get("subject"))))
        for name in ("loaded", "unloaded", "evicted", "denied", "called", "turn_ended")
    ]
    board.on("loaded", lambda _: 1 / 0)
    session = await board.session(session_id="s", agent="default")
    await session.load("notes")
    await session.call("note_add", {"text": "x"})
    await session.call("nothing_like_it")
    await session.unload("notes")
    await session.load("notes")
    await session.end_turn()
    await session.end_turn()
    assert seen == [
        ("loaded", "plugin:notes"),
        ("called", "notes/note_add"),
        ("denied", "nothing_like_it"),
        ("unloaded", "plugin:notes"),
        ("loaded", "plugin:notes"),
        ("turn_ended", None),
        ("evicted", "plugin:notes"),
        ("turn_ended", None),
    ]
    for off in ended:
        off()
    await session.load("notes")
    assert len(seen) == 8


async def test_every_call_leaves_a_record_without_its_arguments(board: Pegboard) -> None:
    """X4: also one whose arguments do not fit; what was passed stands nowhere, its digest does."""
    session = await board.session(session_id="s", agent="default")
    await session.load("notes")
    await session.call("note_add", {"text": "a private thing"})
    await session.call("note_add", {"text": 5})
    await session.call("note_add", {"text": "a private thing"})
    calls = list(await board.services.store.entries(kind="call"))
    assert [record.outcome for record in calls] == ["ok", "invalid_arguments", "ok"]
    assert [record.decision for record in calls] == ["allowed", "refused", "allowed"]
    assert calls[0].arguments == calls[2].arguments != calls[1].arguments
    assert "private" not in repr(await board.services.store.entries())


async def test_a_call_that_failed_leaves_its_error_without_secrets_and_without_its_arguments() -> None:
    """X4, X5: of a server, of Python, of a server that is gone, and of arguments that do not fit."""

    def divide(amount: int) -> float:
        if amount == 7:
            raise OSError("key-of-the-bank was refused")
        return amount / 0

    config = {
        "store": "memory:",
        "servers": {"up": {"command": "none", "env": {"KEY": "${BANK_KEY}"}}, "sums": {"command": "none"}},
        "agents": {"default": {"tools": ["up", "sums"]}},
    }
    failed = CallResult(content=({"type": "text", "text": "no such\nfolder: key-of-the-bank"},), is_error=True)
    source = FakeSource({"up": {"look": Canned(results=[failed])}, "sums": {"divide": divide}})
    adapters = Adapters(sources=[source])
    async with Pegboard.open(config, adapters=adapters, env={"BANK_KEY": "key-of-the-bank"}) as board:
        await board.ready("up", "sums")
        for principal in ("ada", "bob"):
            session = await board.session(session_id="s", principal=principal)
            for arguments in ({"amount": 3}, {"amount": 7}, {"amount": "nine"}):
                await session.call("sums__divide", arguments)
            await session.call("up__look", {})
            records = await board.services.store.entries(kind="call", principal=principal)
            assert [(one.outcome, one.reason) for one in reversed(records)] == [
                ("error", "ZeroDivisionError: division by zero"),
                ("error", "OSError: *** was refused"),
                ("invalid_arguments", "Its arguments do not fit."),
                ("error", "no such folder: ***"),
            ]


async def test_fallback_keeps_to_the_budget_and_takes_what_was_used_last_first(board: Pegboard) -> None:
    """S8, MI9: 1,000 permitted tools, 8,000 tokens; it says what it omitted, and ends with the turn."""
    await board.ready()  # importing 1,000 functions takes long on a busy machine
    session = await board.session(session_id="s", agent="wide")
    await session.load("tool_777")
    await session.call("tool_777", {"first": "x", "second": 1})
    await session.unload("tool_777")
    outcome = await session.fallback()
    (item,) = outcome.items
    assert item.message == f"Fallback mode: {item.details['loaded']} of 1001 tools loaded for this turn only"
    assert len(item.details["excluded"]) == 1001 - item.details["loaded"] > 500
    assert outcome.added[0].wire == "tool_777"
    surface = await session.surface()
    assert 7000 < surface.tokens.tools <= 8000
    await session.end_turn()
    assert "tool_777" not in (await session.surface()).names


async def test_a_call_during_which_the_board_is_closed_says_so(tmp_path: Path) -> None:
    """X4: a host that closes too early reads what it did, not what the store lacks."""
    began, may_end = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        began.set()
        await may_end.wait()
        return "done"

    (tmp_path / "pegboard.yaml").write_text("plugins: {slow: {python: slow}}\nagents: {default: {tools: [slow]}}\n")
    async with Pegboard.open(
        tmp_path / "pegboard.yaml", adapters=Adapters(sources=[FakeSource({"slow": [wait]})])
    ) as board:
        session = await board.session(session_id="s")
        call = asyncio.create_task(session.call("wait", {}))
        await began.wait()
    may_end.set()
    for calling in (call, session.call("wait", {}), session.load("slow")):
        with pytest.raises(UsageError, match=r"The board is closed\. Open it again with `Pegboard\.open`\."):
            await calling
