"""The two promises of every quickstart tool: nothing outside the current folder, nothing endless."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_LINES = 200
MAX_CHARACTERS = 20_000
MAX_BYTES = 20_000_000
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox"})


def root() -> Path:
    """Return the current folder, the only one that these tools see."""
    return Path.cwd().resolve()


def inside(path: str) -> Path:
    """Return the real path; raises ``ValueError`` where it, or what a link points to, is outside."""
    base = root()
    try:
        found = (base / path).resolve()
    except (OSError, RuntimeError) as error:
        raise ValueError(f"'{path}' cannot be resolved: {error}") from None
    if not found.is_relative_to(base):
        raise ValueError(f"'{path}' is outside of the current folder; only paths inside it can be read.")
    if not found.exists():
        raise FileNotFoundError(f"there is no '{path}' here.")
    return found


def display_path(path: Path) -> str:
    """Return a path as it is written from the current folder, with forward slashes."""
    return path.relative_to(root()).as_posix() or "."


def read_text(path: Path) -> str:
    """Return the text of a file; raises ``ValueError`` where it is no text file or too large."""
    if not path.is_file():
        raise ValueError(f"'{display_path(path)}' is not a file.")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"'{display_path(path)}' is larger than {MAX_BYTES // 1_000_000} MB.")
    data = path.read_bytes()
    if b"\0" in data[:8192]:
        raise ValueError(f"'{display_path(path)}' is a binary file.")
    return data.decode("utf-8-sig", errors="replace")


def walk(start: Path) -> Iterator[Path]:
    """Yield the files below a folder in order of their names; no link is followed, no build folder entered."""
    for folder, folders, files in os.walk(start):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(folder, name)
            if not path.is_symlink():
                yield path


def cut_lines(lines: Iterable[str], go_on: str, *, limit: int = MAX_LINES) -> str:
    """Return the lines as text, cut with a note on how to go on."""
    kept: list[str] = []
    size = 0
    for line in lines:
        short = line if len(line) <= 2000 else f"{line[:2000]}…"
        size += len(short) + 1
        if len(kept) >= limit or size > MAX_CHARACTERS:
            return "\n".join([*kept, f"[cut after {len(kept)} lines; {go_on}]"])
        kept.append(short)
    return "\n".join(kept)
