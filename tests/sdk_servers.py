"""The servers of `tests/servers` that are made with the SDK, without importing the SDK for each."""

import atexit
import sys
import tempfile
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen

SERVERS = Path(__file__).parent / "servers"


def sdk_command(script: str, *options: str) -> list[str]:
    """Return the command that runs one of these servers; see `warm_parent.py`."""
    starter = (sys.executable, "-S", "-E", str(SERVERS / "warm_start.py"))
    return [*starter, _socket_of_parent(), str(SERVERS / script), *options]


@cache
def _socket_of_parent() -> str:
    folder = tempfile.TemporaryDirectory(prefix="warm-")  # a short path: that of a socket has 108 bytes
    path = str(Path(folder.name) / "s")
    parent = Popen([sys.executable, str(SERVERS / "warm_parent.py"), path], stdin=PIPE, stdout=PIPE)
    atexit.register(folder.cleanup)
    atexit.register(parent.communicate)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    return path
