"""Empty folders that constructors of plugins leave in the working folder, although nothing of them was called."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def without_made_folders() -> Generator[None]:
    """Remove the folders that are new in the working folder when the context ends, as far as nothing is in them.

    Toolkits make the folder for what they will write when they are constructed. A command that only asks which tools
    there are leaves none behind; a file, and the folder that it is in, always stay.
    """
    folder = Path.cwd()
    before = _folders(folder)
    try:
        yield
    finally:
        for made in _folders(folder) - before:
            for path, _, _ in os.walk(folder / made, topdown=False):
                with suppress(OSError):  # something is in it
                    Path(path).rmdir()


def _folders(folder: Path) -> frozenset[str]:
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:  # the working folder may be gone, or not be readable
        return frozenset()
