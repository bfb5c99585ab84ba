"""A store in a file that another program holds, or that no one may write any longer (S2, P6)."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pegboard import Pegboard

TOOLS = "def {name}() -> str:\n    'Say one.'\n    return '1'\n"
CONFIG = """
store: sqlite:///state.db
reload: all
plugins: {mine: {python: mine_locked}, more: {python: more_locked}}
agents: {default: {tools: [mine], discoverable: ["*"]}}
"""
LOADS = """
import asyncio, ctypes, os, sys
from pathlib import Path
from pegboard import Pegboard

def respect_modes():
    # root writes what is read-only, unless it has not that right (CAP_DAC_OVERRIDE)
    libc, header, rights = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, rights) == 0
    rights[0] &= ~2
    assert libc.capset(header, rights) == 0

async def main():
    config = Path(sys.argv[1])
    if sys.platform == "linux":
        respect_modes()
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")
        assert (await session.call("one", {})).status == "ok"
        for file in config.parent.glob("state.db*"):
            file.chmod(0o444)
        config.parent.chmod(0o555)
        print((await session.load("more")).status, flush=True)
        os._exit(0)

asyncio.run(main())
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "mine_locked.py").write_text(TOOLS.format(name="one"))
    (tmp_path / "more_locked.py").write_text(TOOLS.format(name="two"))
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


@pytest.mark.parametrize("begin", ["BEGIN EXCLUSIVE", "BEGIN IMMEDIATE"])
async def test_a_store_that_another_program_locks_delays_no_call_of_a_loaded_tool(config: Path, begin: str) -> None:
    """S2: calls, lists and turns go on, and their records are written once the file is free; only a change waits."""
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")
        assert (await session.call("one", {})).status == "ok"
        with closing(sqlite3.connect(config.with_name("state.db"), isolation_level=None)) as other:
            other.execute(begin)
            async with asyncio.timeout(20):  # a change waits for 30 s
                for at in range(20):
                    assert (await session.call("one", {})).status == "ok"
                    await (await board.session(session_id=f"s{at}")).surface()
            loading = asyncio.create_task(session.load("more"))
            await asyncio.sleep(0)
            async with asyncio.timeout(20):
                assert (await session.call("one", {})).status == "ok"
            other.execute("ROLLBACK")
        assert (await loading).status == "ok"
    async with Pegboard.open(config) as board:
        calls = [entry for entry in await board.services.store.entries(limit=100) if entry.kind == "call"]
        assert len(calls) == 22
        assert "two" in (await (await board.session(session_id="s")).surface()).names


async def test_what_a_store_that_became_read_only_has_answered_is_kept_or_refused(config: Path) -> None:
    """S2: the process is killed right after its answer."""
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", LOADS, str(config)], capture_output=True, text=True, check=False
    )
    config.parent.chmod(0o755)
    for file in config.parent.glob("state.db*"):
        file.chmod(0o600)
    async with Pegboard.open(config) as board:
        kept = "two" in (await (await board.session(session_id="s")).surface()).names
    assert (ran.stdout.strip() == "ok") == kept, ran.stderr
    assert kept or "read-only" in ran.stderr
