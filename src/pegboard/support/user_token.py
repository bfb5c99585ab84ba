"""The token that keeps confined processes out of the gateways of their user (A7, G2).

A process that is confined and has network reaches loopback like any program of the user, and no rule of the kernel
tells the two apart. So the file of this token is made before the first such process starts, where nothing confined
reads. Every gateway of the user that has no ``tokens:`` demands it, whichever configuration it serves, as long as such
a process runs that could reach it, a child that has outlived its parents too. They are known by their limit of file
locks: it means nothing to the kernel, everyone sees it, children have it as well, and no one can raise it.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pegboard.support import user_folders

NAME: Final = "gateway-token"
HIGHEST_PORT: Final = 65535
_LONGEST: Final = 1000
_LIMIT: Final = re.compile(rb"^Max file locks +\d+ +(\d+) ", re.MULTILINE)
_TICK: Final = 2_000_000_000
"""Nanoseconds within which two changes of a file may have the same time."""


def token_file() -> Path:
    """Return where the token lies, once there is one."""
    return user_folders.state() / NAME


def make_token() -> Path:
    """Make the token where there is none, readable for this user alone; return its file. Raises ``OSError``."""
    file = token_file()
    if file.exists():
        return file
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = file.with_name(f"{NAME}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(whole, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as stream:
            stream.write(f"{secrets.token_urlsafe(32)}\n")
        with suppress(FileExistsError):  # of another process
            os.link(whole, file)
    finally:
        whole.unlink(missing_ok=True)
    return file


class UserToken:
    """The token as one gateway sees it: another process may make it at any time.

    Args:
        port: where that gateway listens.
    """

    def __init__(self, port: int = 0) -> None:
        self.file = token_file()
        self._path = str(self.file)
        self.port = port
        self._read_as: _Version | None = None
        self._value = ""
        self._free_as: _Version | None = None
        self._found = ""  # the number of the process that was found last

    def needs_token(self, *, by_itself: bool = False) -> bool:
        """Return whether requests need the token.

        Args:
            by_itself: whether the gateway starts what could reach it.
        """
        return os.access(self._path, os.F_OK) and (by_itself or not self._is_free(os.stat(self._path)))  # noqa: PTH116

    def admits(self, authorization: str | None, by_itself: Callable[[], bool] = bool) -> bool:
        """Return whether a request with this ``Authorization`` header may come in: all may while none is demanded."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 - of every request
        except FileNotFoundError:
            return True
        except OSError:
            return False
        version = _version(status)
        if version != self._read_as:
            self._read_as, self._value = version, _read_token(self._path)
        scheme, _, given = (authorization or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(errors="surrogatepass"), self._value.encode())
        if same and bool(self._value) and scheme.lower() == "bearer":
            return True
        return not by_itself() and self._is_free(status)

    def _is_free(self, status: os.stat_result) -> bool:
        """Return whether nothing runs that is confined and could reach the gateway.

        Each such process has touched the file before it became what it is: none was started while that is unchanged.
        """
        version = _version(status)
        if version == self._free_as:
            return True
        if self._found and _can_reach(self._found, self.port):
            return False
        self._found = next(_processes_reaching(self.port), "")
        if not self._found and time.time_ns() - status.st_ctime_ns > _TICK:  # else a later touch may look the same
            self._free_as = version
        return not self._found


_Version = tuple[int, int]


def _version(status: os.stat_result) -> _Version:
    """Return what tells one state of the file from another: the time of its change, which no one can set."""
    return status.st_ino, status.st_ctime_ns


def _processes_reaching(port: int) -> Iterator[str]:
    """Yield the processes that are confined and could connect to a port; one that stands for all where none is seen."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:  # no Linux: who runs is not known
        yield "0"
        return
    if "hidepid=" in mounts:
        yield "0"
    yield from (name for name in names if _can_reach(name, port))


def _can_reach(process: str, port: int) -> bool:
    """Return whether a process is confined and could connect to a port, by the limit that its launcher has set."""
    if process == "0":
        return True
    try:
        with open(f"/proc/{process}/limits", "rb") as stream:  # noqa: PTH123
            found = _LIMIT.search(stream.read())
    except OSError:  # it has ended
        return False
    return found is not None and int(found[1]) + port <= HIGHEST_PORT


def _read_token(path: str) -> str:
    """Return the token of a file, nothing where the file is not this user's alone or cannot be read."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            status = os.fstat(stream.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077):
                return ""
            return stream.read(_LONGEST).decode("ascii", errors="replace").strip()
    except OSError:
        return ""
