"""Processes that are killed between approval and call, and many approvals that must not count (A2)."""

import asyncio
import sys
from pathlib import Path

import pytest
from approved_files import asked, ran
from benchmarks import approvals

from pegboard import Pegboard


@pytest.mark.parametrize(("when", "runs"), [("before", 1), ("after", 0)])
async def test_kill_9_between_approval_and_call_runs_it_at_most_once(config: Path, when: str, runs: int) -> None:
    """A2: marked as used before anything runs; after a restart it runs only where it was not marked yet."""
    async with Pegboard.open(config) as board:
        approval = await asked(await board.session(agent="ada", session_id="thread"))
        await board.approvals.allow(approval.id, by="grace")
    script = Path(__file__).with_name("killed_caller.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), str(config), approval.id, when)
    assert await process.wait() == -9
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        resumed = await session.resume(approval.id)
        assert resumed.status == ("ok" if runs else "refused")
        assert (await session.call("delete_file", {"path": "a.txt"})).status == "needs_approval"
    assert len(ran(config.parent)) == runs


async def test_of_many_approvals_that_must_not_count_none_lets_a_call_run(tmp_path: Path) -> None:
    """A2, A5: altered, replayed, expired, raced, or without the right; the benchmark `approvals` tries 10,000."""
    counted = await approvals.tried(tmp_path, each=15)
    assert counted.pop("must run") == counted.pop("ran")
    assert set(counted) == set(approvals.KINDS)
    assert all(attempts >= 15 for attempts in counted.values())
