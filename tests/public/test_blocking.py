"""Test the blocking classes: what they offer, and what interrupting and closing them does."""

import inspect
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import public_names
import pytest

from pegboard import ConfigError, Pegboard, Permissions, Session, SyncPegboard, SyncSession, UsageError
from pegboard.board.blocking import SyncApprovals, SyncPermissions, SyncPins
from pegboard.board.calls.approvals import Approvals
from pegboard.board.pins import Pins
from pegboard.support.own_folder import store_of

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

hanging = asyncio.Event()

async def hang() -> None:
    hanging.set()
    await asyncio.Event().wait()

async def wait_until_it_hangs() -> None:
    await asyncio.wait_for(hanging.wait(), 10)
"""
PAIRS: list[tuple[type, type]] = [
    (Session, SyncSession),
    (Pegboard, SyncPegboard),
    (Permissions, SyncPermissions),
    (Approvals, SyncApprovals),
    (Pins, SyncPins),
]
RENAMED = {
    "Session": "SyncSession",
    "Permissions": "SyncPermissions",
    "RunChild | None": "SyncRunChild | None",
    "RunScheduled | None": "SyncRunScheduled | None",
}


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


@pytest.mark.parametrize(("plain", "blocking"), PAIRS, ids=lambda face: face.__name__)
def test_a_blocking_class_has_the_methods_of_the_plain_one_with_their_arguments(plain: type, blocking: type) -> None:
    for_users = public_names.of(plain) - public_names.for_adapters(plain) - {"open", "open_sync"}
    assert public_names.of(blocking) - {"wait"} == for_users  # for adapters
    attributes = {"permissions", "approvals", "pins", "toolkits", "loadouts"}
    for name in for_users - attributes:
        mine, other = inspect.getattr_static(blocking, name), inspect.getattr_static(plain, name)
        assert inspect.unwrap(mine) is other or not hasattr(mine, "__wrapped__"), f"{name} calls another method"
        assert shape(mine) == shape(other), name
        assert not inspect.iscoroutinefunction(mine), name
        assert isinstance(mine, property) == isinstance(other, property), name


def test_a_method_that_returns_a_session_says_that_it_blocks() -> None:
    assert [inspect.signature(opened).return_annotation for opened in (SyncPegboard.session, SyncSession.child)] == [
        "SyncSession",
        "SyncSession",
    ]


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


def test_a_call_that_another_thread_waits_for_ends_and_is_audited_when_the_board_is_closed(tmp_path: Path) -> None:
    """X4: the thread gets an error that says so."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "pegboard.yaml").write_text(CONFIG.partition("\n")[2])
    raised: list[BaseException] = []

    def call(session: SyncSession) -> None:
        try:
            session.call("hang")
        except UsageError as error:
            raised.append(error)

    with Pegboard.open_sync(tmp_path / "pegboard.yaml") as board:
        session = board.session(session_id="s")
        waiting = threading.Thread(target=call, args=(session,))
        waiting.start()
        session.call("wait_until_it_hangs")
    waiting.join(10)
    assert [str(error) for error in raised] == ["The board is closed. Open it again with `Pegboard.open_sync`."]
    with sqlite3.connect(store_of(tmp_path / "pegboard.yaml")) as store:
        calls = dict(store.execute("SELECT subject, outcome FROM request_names WHERE kind = 'call'").fetchall())
    store.close()
    assert calls == {"slow/hang": "cancelled", "slow/wait_until_it_hangs": "ok"}


def test_a_callback_that_waits_for_its_own_board_is_refused_instead_of_waiting_for_ever(config: Path) -> None:
    refused: list[str] = []

    def callback(event: object) -> None:
        with pytest.raises(UsageError) as info:
            session.surface()
        refused.append(info.value.message)

    with Pegboard.open_sync(config) as board:
        board.on("called", callback)
        session = board.session(session_id="s")
        session.call("no_such")
        session.call("wait_until_cancelled", {"no": "such"})
    assert refused == ["A callback of the board waits for the board itself."]


def test_a_call_in_a_forked_process_is_refused_instead_of_waiting_for_ever(config: Path) -> None:
    """The thread of the loop does not survive a fork."""
    with Pegboard.open_sync(config) as board:
        session = board.session(session_id="s")
        child = os.fork()
        if not child:
            try:
                session.surface()
            except UsageError as error:
                os._exit(7 if "another process" in error.message else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert session.surface().names


def test_an_error_while_opening_is_raised_as_it_is_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ConfigError), Pegboard.open_sync(tmp_path / "pegboard.yaml"):
        pass
    assert threading.active_count() == before
