"""The servers of `tests/servers` that are made with the SDK, and gateways, without importing the SDK for each."""

import atexit
import sys
import tempfile
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen

SERVERS = Path(__file__).parent / "servers"


def sdk_command(script: str, *options: str) -> list[str]:
    """Return the command that runs one of these servers; see `warm_parent.py`."""
    return program_command(str(SERVERS / script), *options)


def program_command(script: str, *options: str) -> list[str]:
    """Return the command that runs a script, as seen from its current folder, without importing all of it again."""
    return [*_starter(), script, *options]


def pegboard_command(*arguments: str) -> list[str]:
    """Return the command that runs `pegboard` with these arguments, without importing all of it again."""
    return [*_starter(), "-m", "pegboard", *arguments]


def _starter() -> list[str]:
    return [sys.executable, "-S", "-E", str(SERVERS / "warm_start.py"), _socket_of_parent()]


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
