"""The folder that Pegboard keeps for a configuration: the store with its key, copies of files, secrets.

It is in the user's state folder, never beside the configuration: no project has it, none brings one, nothing that is
confined to a project reaches it.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from pegboard.support import user_folders

STORE: Final = "pegboard.db"
SECRETS: Final = "secrets"
_CONFIGURATIONS: Final = "configurations"


def folder_of(configuration: Path) -> Path:
    """Return the folder of a configuration; the same one whatever links lead to the folder of the configuration."""
    name = os.path.join(os.path.realpath(configuration.absolute().parent), configuration.name)  # noqa: PTH118
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return user_folders.state() / _CONFIGURATIONS / digest


def store_of(configuration: Path) -> Path:
    """Return the file of the store where a configuration names none."""
    return folder_of(configuration) / STORE


def make_private(folder: Path) -> None:
    """Make a folder and those above it where they are missing; only the owner may enter the new ones."""
    if folder.is_dir():
        return
    if folder.exists() and not folder.is_dir():  # another process may just have made it
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if folder.parent != folder:
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def remove_unused(folder: Path) -> None:
    """Remove the folder of a configuration where nothing is kept in it."""
    for empty in (folder / SECRETS, folder):
        with suppress(OSError):
            empty.rmdir()


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power; where folders cannot be opened the system sees to it."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
