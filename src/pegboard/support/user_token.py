"""The token that keeps confined processes out of the gateways of their user (A7, G2).

A process that is confined and has network reaches loopback like any program of the user, and no rule of the kernel
tells the two apart. So the file of this token is made before the first such process starts, where nothing confined
reads; from then on every gateway of the user that has no ``tokens:`` demands it, whichever configuration it serves.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from pegboard.support import user_folders

NAME: Final = "gateway-token"
_LONGEST: Final = 1000


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
    """The token as one gateway sees it: another process may make it at any time."""

    def __init__(self) -> None:
        self.file = token_file()
        self._path = str(self.file)
        self._read_as: tuple[int, int] | None = None
        self._value = ""

    @property
    def demanded(self) -> bool:
        """Return whether there is one."""
        return os.access(self._path, os.F_OK)

    def admits(self, authorization: str | None) -> bool:
        """Return whether a request with this ``Authorization`` header may come in: all may while there is no token."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 - of every request
        except FileNotFoundError:
            return True
        except OSError:
            return False
        version = (status.st_ino, status.st_mtime_ns)
        if version != self._read_as:
            self._read_as, self._value = version, _read(self._path)
        scheme, _, given = (authorization or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(errors="surrogatepass"), self._value.encode())
        return same and bool(self._value) and scheme.lower() == "bearer"


def _read(path: str) -> str:
    """Return the token of a file, nothing where the file is not this user's alone or cannot be read."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            status = os.fstat(stream.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077):
                return ""
            return stream.read(_LONGEST).decode("ascii", errors="replace").strip()
    except OSError:
        return ""
