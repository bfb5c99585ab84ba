"""The process of the daemon: one at each address, apart from every client."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pegboard.daemon import log_file
from pegboard.daemon.boards import Boards
from pegboard.daemon.server import BACKLOG, DaemonServer, make_secret
from pegboard.support.version import __version__
from pegboard.thin.address import DaemonAddress, address_of
from pegboard.thin.connect import READY

if TYPE_CHECKING:
    from pegboard.daemon.requests import RunCommand

log = logging.getLogger("pegboard.daemon")

IDLE: Final = 300.0
"""After how many seconds without a client the daemon ends, and a board is closed."""
IDLE_VARIABLE: Final = "PEGBOARD_DAEMON_IDLE"


def serve_as_daemon(arguments: Sequence[str], run_command: RunCommand) -> int:
    """Be the daemon until no client needs it; return at once where another process is that.

    Args:
        arguments: ``--own KEY``, for one configuration alone; ``--ready NUMBER``, the descriptor that is written to
            once it listens, or that is written why it does not: it goes on without the process that started it;
            ``--of VERSION``, the version of that process.
        run_command: what runs the commands of clients.
    """
    parser = argparse.ArgumentParser(prog="pegboard daemon run", add_help=False)
    parser.add_argument("--own", default="")
    parser.add_argument("--ready", type=int)
    parser.add_argument("--of", default=__version__)
    given = parser.parse_args(arguments)
    if given.of != __version__:
        return _refuse(given.ready, f"Pegboard {__version__} has taken the place of {given.of}: restart the client")
    address = address_of(given.own)
    if given.ready is not None and os.fork():
        os._exit(0)  # the one that started this waits for it, and for nothing more
    try:
        lock = os.open(address.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(given.ready, READY)
            return 0  # another one is the daemon
        listener = _listen(address)
    except OSError as error:  # of a file system without sockets, or without locks
        why = error.strerror or str(error)
        return _refuse(given.ready, f"it cannot listen in {address.folder}: {error.filename or address.name}: {why}")
    _say(given.ready, READY)
    return asyncio.run(_serve(address, listener, lock, run_command))


def _refuse(number: int | None, reason: str) -> int:
    os.write(2, f"{time.strftime('%Y-%m-%d %H:%M:%S')} {reason}\n".encode(errors="backslashreplace"))
    _say(number, reason.encode(errors="backslashreplace"))
    return 1


def _say(number: int | None, said: bytes) -> None:
    if number is not None:
        with contextlib.suppress(OSError):
            os.write(number, said)
        os.close(number)


def _listen(address: DaemonAddress) -> socket.socket:
    """Return a socket that listens in place of whatever a daemon that was killed has left."""
    make_secret(address)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(address.socket)  # noqa: PTH108
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(address.socket)
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


async def _serve(address: DaemonAddress, listener: socket.socket, lock: int, run_command: RunCommand) -> int:
    log_file.follow(address.log)
    idle = _idle()
    server = DaemonServer(address, listener, Boards(own=address.own, idle=idle), run_command, idle=idle)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop.set)
    log.info("listening: process %d, %s", os.getpid(), sys.executable)

    def taking_ended() -> None:
        with contextlib.suppress(OSError):
            os.unlink(address.socket)  # noqa: PTH108
        os.close(lock)

    await server.serve(taking_ended)
    return 0


def _idle() -> float:
    try:
        seconds = float(os.environ.get(IDLE_VARIABLE, ""))
    except ValueError:
        return IDLE
    return seconds if 0 < seconds < 1e9 else IDLE
