"""The PostgreSQL server of the tests: it ends with whoever started it, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STARTED = "from postgres_server import PostgresServer as S; s = S(); print(s.folder, s.pid, flush=True); input()"


def test_it_ends_with_a_process_that_is_killed() -> None:
    tools = Path(__file__).resolve().parent.parent / "tools"
    with subprocess.Popen(
        [sys.executable, "-c", STARTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tools
    ) as process:
        assert process.stdout is not None
        folder, _, pid = process.stdout.readline().strip().rpartition(" ")
        assert Path(folder, "postmaster.pid").exists()
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while (Path(folder).exists() or lives(int(pid))) and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert not lives(int(pid))


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
