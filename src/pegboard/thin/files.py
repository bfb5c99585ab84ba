"""Files for results, each for its owner alone. Standard library only: the thin client imports this."""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    from typing import TextIO

DAY = 24 * 60 * 60
"""How long a result is kept, in seconds."""


def write_private(path: str, data: bytes) -> None:
    """Write a file that its owner alone may read where it is new; raises ``OSError``."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(data)


def keep_result(folder: str, data: bytes, suffix: str) -> str:
    """Write a result into the folder for results, and return its path.

    Raises:
        OSError: it cannot be written.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib costs the thin client a third of its time
    path = os.path.join(folder, f"result-{os.urandom(6).hex()}{suffix}")  # noqa: PTH118
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    return path


def is_file(stream: TextIO) -> bool:
    """Return whether a stream writes into a file, which takes results of any size."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def remove_old_results(folder: str) -> None:
    """Remove the results of more than a day; what cannot be removed stays."""
    since = time.time() - DAY
    try:
        entries = [*os.scandir(folder)]
    except OSError:
        return
    for entry in entries:
        try:
            if entry.name.startswith("result-") and entry.stat(follow_symlinks=False).st_mtime < since:
                os.unlink(entry.path)  # noqa: PTH108
        except OSError:  # another process has removed it
            continue
