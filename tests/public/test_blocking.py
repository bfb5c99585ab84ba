"""Test the blocking twins: what they offer, and what interrupting and closing them does."""

import inspect
import threading
from pathlib import Path
from typing import Any

import public_names
import pytest

from pegboard import ConfigError, Pegboard, Permissions, Session, SyncPegboard, SyncSession, UsageError
from pegboard.board.blocking import SyncPermissions

CONFIG = 'store: "memory:"\nplugins: {slow: {python: slow}}\nagents: {default: {tools: [slow]}}\n'
SLOW = """
import asyncio, signal, threading

cancelled = asyncio.Event()

async def wait_for_ever() -> None:
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.set()
        raise

async def wait_until_cancelled() -> str:
    await asyncio.wait_for(cancelled.wait(), 10)
    return "cancelled"
"""
TWINS: list[tuple[type, type]] = [(Session, SyncSession), (Pegboard, SyncPegboard), (Permissions, SyncPermissions)]
RENAMED = {"Session": "SyncSession", "Permissions": "SyncPermissions"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


def shape(value: Any) -> tuple[list[inspect.Parameter], object]:
    """Return the parameters and what comes of it, a session being a blocking one."""
    function: Any = value.fget if isinstance(value, property) else value
    signature = inspect.signature(function)
    returned = signature.return_annotation
    return list(signature.parameters.values()), RENAMED.get(returned, returned)


@pytest.mark.parametrize(("plain", "blocking"), TWINS, ids=lambda twin: twin.__name__)
def test_a_blocking_twin_has_the_same_methods_with_the_same_arguments_and_returns(plain: type, blocking: type) -> None:
    for_users = public_names.of(plain) - public_names.for_adapters(plain) - {"open", "open_sync"}
    assert public_names.of(blocking) == for_users
    for name in for_users - {"permissions"}:  # an attribute of the one, a property of the other
        mine, other = inspect.getattr_static(blocking, name), inspect.getattr_static(plain, name)
        assert shape(mine) == shape(other), name
        assert not inspect.iscoroutinefunction(mine), name
        assert isinstance(mine, property) == isinstance(other, property), name


def test_open_sync_takes_what_open_takes() -> None:
    assert inspect.signature(Pegboard.open_sync).parameters == inspect.signature(Pegboard.open).parameters


def test_a_blocking_call_that_is_interrupted_cancels_what_runs(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        session = board.session(session_id="s")
        with pytest.raises(KeyboardInterrupt):
            session.call("wait_for_ever")
        assert session.call("wait_until_cancelled").result.content[0]["text"] == "cancelled"


def test_a_call_after_the_end_says_that_the_board_is_closed(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        session = board.session(session_id="s")
    with pytest.raises(UsageError, match=r"The board is closed\. Open it again with `Pegboard\.open_sync`\."):
        session.load("slow")


def test_an_error_while_opening_is_raised_as_it_is_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ConfigError), Pegboard.open_sync(tmp_path / "pegboard.yaml"):
        pass
    assert threading.active_count() == before
