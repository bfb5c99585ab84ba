"""The folder that Pegboard keeps beside a configuration: the store with its key, copies of clients' files, secrets."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = ".pegboard"
SECRETS: Final = "secrets"
_IGNORED: Final = ".gitignore"


def beside(configuration: Path) -> Path:
    """Return the folder of a configuration."""
    return configuration.absolute().parent / NAME


def make_private(folder: Path) -> None:
    """Make a folder and those above it where they are missing; only the owner may enter the new ones.

    One that is called ``.pegboard`` tells git to ignore all that is in it, so that no key or secret is committed.
    """
    if not folder.is_dir():
        if folder.exists() and not folder.is_dir():  # another process may just have made it
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        if folder.parent != folder:
            make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    if folder.name == NAME:
        with suppress(OSError), (folder / _IGNORED).open("x", encoding="utf-8") as stream:
            stream.write("*\n")


def remove_unused(folder: Path) -> None:
    """Remove the folder of a configuration where nothing is kept in it."""
    with suppress(OSError):
        (folder / SECRETS).rmdir()
    with suppress(OSError):
        if [entry.name for entry in folder.iterdir()] == [_IGNORED]:
            (folder / _IGNORED).unlink()
            folder.rmdir()
