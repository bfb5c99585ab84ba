"""What is remembered of a call counts for the very session, switches and state that it was decided for."""

import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Cache, Host, Pegboard

MODULE = 'def note_list() -> str:\n    """List the notes."""\n    return "milk"\n'
CONFIG = "plugins: {notes: {python: notes_tools}}\nagents: {default: {discoverable: [notes], unloaded_call: reject}}\n"


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "notes_tools.py").write_text(MODULE)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


async def test_a_session_without_an_id_has_nothing_of_one_whose_id_is_empty(board: Pegboard) -> None:
    """S1, S4: what one has loaded the other cannot call, in either order."""
    named, bare = await board.session(session_id=""), await board.session()
    assert (await bare.call("note_list")).status == "not_loaded"
    await named.load("notes")
    for _ in range(2):
        assert (await named.call("note_list")).status == "ok"
        assert (await bare.call("note_list")).status == "not_loaded"


async def test_a_call_that_ran_before_is_judged_anew_after_every_change(board: Pegboard) -> None:
    """P4, S2: an unload and a switch bind the next call, also those of another holder of the session."""
    session, other = await board.session(session_id="x"), await board.session(session_id="x")
    await session.load("notes")
    assert (await session.call("note_list")).status == "ok"
    await other.unload("notes")
    assert (await session.call("note_list")).status == "not_loaded"
    await session.load("notes")
    assert (await session.call("note_list")).status == "ok"
    await board.permissions.set("default", "notes", False)
    assert (await session.call("note_list")).status == "not_found"
    await board.permissions.set("default", "notes", None)
    assert (await session.call("note_list")).status == "ok"


async def test_what_was_computed_for_hosts_does_not_grow_with_the_cache_of_a_host(board: Pegboard) -> None:
    """F4: a host sets its cache again at every step."""
    session = await board.session(session_id="x", host=Host(delivery=("result", "array"), cache=Cache()))
    await session.load("notes")
    kept = (await session.snapshot()).permissions.derived
    before = len(kept)
    for tokens in range(100):
        session.host = Host(delivery=("result", "array"), cache=Cache(tokens=tokens))
        await session.load("notes")
    assert (await session.snapshot()).permissions.derived is kept
    assert len(kept) - before <= 2


async def test_permissions_that_no_longer_count_are_given_up_by_a_session_that_called_under_them(
    board: Pegboard,
) -> None:
    session = await board.session(session_id="x")
    await session.load("notes")
    assert (await session.call("note_list")).status == "ok"
    stale = weakref.ref((await session.snapshot()).permissions)
    await board.permissions.set("default", "notes", False)
    await session.surface()
    gc.collect()
    assert stale() is None
