"""Where the daemon of this user is: its folder, and the names of its socket, secret, locks and log in it."""

from __future__ import annotations

import os
import stat
import sys

from pegboard.support.version import __version__

try:
    from _blake2 import blake2b  # `hashlib` loads OpenSSL, which takes longer than all else here
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

LONGEST_SOCKET: Final = 100
"""How long the path of a socket may be: systems have room for 104 or 108 bytes."""
OF_USER: Final = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "PYTHONPATH")
"""The variables that decide where the files of a user lie, and which code runs: another value is another daemon."""


class NoFolderError(Exception):
    """There is no folder in which this user alone can have a socket."""


class DaemonAddress:
    """The place of one daemon: of a user, a version of Pegboard, an interpreter, and perhaps one configuration.

    ``own`` is what a daemon is for that serves one configuration with plugins in code; empty for that of all others.
    """

    __slots__ = ("folder", "name", "own")

    def __init__(self, folder: str, name: str, own: str) -> None:
        self.folder, self.name, self.own = folder, name, own

    @property
    def socket(self) -> str:
        """Return where it listens."""
        return f"{self.folder}/{self.name}.sock"

    @property
    def secret(self) -> str:
        """Return the file by which its clients and it know each other."""
        return f"{self.folder}/{self.name}.secret"

    @property
    def lock(self) -> str:
        """Return the file that it has locked for as long as it takes clients."""
        return f"{self.folder}/{self.name}.lock"

    @property
    def start_lock(self) -> str:
        """Return the file that is locked by the client which starts it."""
        return f"{self.folder}/{self.name}.start"

    @property
    def log(self) -> str:
        """Return the file of its log."""
        return f"{self.folder}/{self.name}.log"


def address_of(own: str = "", env: Mapping[str, str] | None = None) -> DaemonAddress:
    """Return the place of the daemon; its folder is made where it is missing.

    Raises ``NoFolderError`` where there is no folder of this user alone.
    """
    env = os.environ if env is None else env
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes long
    parts = [__version__, package, sys.executable, sys.version, os.uname().nodename, own]
    parts += [env.get(name, "") for name in OF_USER]
    digest = _digest("\0".join(parts), 8)
    return DaemonAddress(_folder(env, len(digest) + len("/.secret")), digest, own)


def addresses() -> list[DaemonAddress]:
    """Return the places in this user's folder where a daemon listens, or has listened: of any version or configuration.

    Raises ``NoFolderError``.
    """
    folder = address_of().folder
    names = sorted(name.removesuffix(".sock") for name in os.listdir(folder) if name.endswith(".sock"))  # noqa: PTH208
    return [DaemonAddress(folder, name, "") for name in names]


def own_key(configuration: str, folder: str) -> str:
    """Return what tells the daemon of a configuration with plugins in code from others."""
    return _digest(f"{configuration}\0{folder}", 8)


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size).hexdigest()


def _folder(env: Mapping[str, str], name: int) -> str:
    runtime = env.get("XDG_RUNTIME_DIR", "").strip()
    state = env.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")  # noqa: PTH111
    found = [f"{runtime}/pegboard"] if os.path.isabs(runtime) else []  # noqa: PTH117
    found += [f"{state}/pegboard/run"] if os.path.isabs(state) else []  # noqa: PTH117
    reasons: list[str] = []
    for folder in found:
        if len(folder.encode(errors="surrogatepass")) + name > LONGEST_SOCKET:
            digest = _digest(folder, 6)
            folder = f"/tmp/pegboard-{os.getuid()}-{digest}"  # noqa: PLW2901, S108 - it has to be this user's
        try:
            _require_own(folder)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
        else:
            return folder
    raise NoFolderError("; ".join(reasons) or "there is neither a runtime folder nor a state folder")


def _require_own(folder: str) -> None:
    """Make a folder where it is missing; raises ``OSError`` where it is not this user's alone, or cannot be written."""
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError("it is not a folder that only you can enter")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError("it cannot be written")
