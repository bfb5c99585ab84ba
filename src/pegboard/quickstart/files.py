"""Look at the files of the current folder."""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
from datetime import UTC, datetime
from pathlib import Path

from pegboard.marks import tool
from pegboard.quickstart._bounds import MAX_LINES, SKIPPED_FOLDERS, cut_lines, display_path, inside, read_text, walk

__all__ = ["file_info", "find_files", "list_files", "list_tree", "read_file"]


@tool(read_only=True)
def list_files(path: str = ".") -> str:
    """List what is in a folder: one name per line, folders with a slash, files with their size in bytes.

    Args:
        path: The folder, as seen from the current one.
    """
    folder = _folder(path)
    lines = (_line(entry) for entry in sorted(folder.iterdir(), key=lambda p: (p.is_file(), p.name)))
    return cut_lines(lines, "list a folder further down, or use find_files") or "(empty)"


@tool(read_only=True)
def list_tree(path: str = ".", depth: int = 3) -> str:
    """Show folders and files as an indented tree, without version control and build folders.

    Args:
        path: The folder to start from.
        depth: How many levels to show.
    """
    return cut_lines(_folder_lines(_folder(path), max(1, depth), 0), "start further down or with a smaller depth")


@tool(read_only=True)
def read_file(path: str, first: int = 1, count: int = MAX_LINES) -> str:
    """Read a text file, or some of its lines.

    Args:
        path: The file.
        first: The first line to read, counted from 1.
        count: How many lines to read, at most 200.
    """
    lines = read_text(inside(path)).splitlines()
    start = max(first, 1) - 1
    if start and start >= len(lines):
        raise ValueError(f"'{path}' has only {len(lines)} lines.")
    end = start + max(1, min(count, MAX_LINES))
    text = cut_lines(lines[start:end], "go on with a later 'first'")
    rest = len(lines) - end
    return f"{text}\n[{rest} more lines; go on with first={end + 1}]" if rest > 0 else text


@tool(read_only=True)
def find_files(pattern: str, path: str = ".") -> str:
    """Find files by name with a glob pattern such as '*.py' or 'src/**/test_*'.

    Args:
        pattern: The glob; without a slash it is compared with names, else with paths below 'path'.
        path: The folder to search.
    """
    folder = _folder(path)
    found = (
        display_path(file)
        for file in walk(folder)
        if _matches_pattern(file.relative_to(folder).as_posix() if "/" in pattern else file.name, pattern)
    )
    return cut_lines(found, "use a narrower pattern") or f"No file matches '{pattern}'."


@tool(read_only=True)
def file_info(path: str) -> dict[str, str | int]:
    """Tell the kind, size, time of change, number of lines and SHA-256 of a file or folder."""
    found = inside(path)
    stat = found.stat()
    changed = datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(timespec="seconds")
    info: dict[str, str | int] = {"path": display_path(found), "changed": changed}
    if found.is_dir():
        return {**info, "kind": "folder", "entries": sum(1 for _ in found.iterdir())}
    info |= {"kind": "file", "bytes": stat.st_size}
    with found.open("rb") as stream:
        info["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
    try:
        info["lines"] = len(read_text(found).splitlines())
    except ValueError:
        info["kind"] = "binary file"
    return info


def _folder(path: str) -> Path:
    found = inside(path)
    if not found.is_dir():
        raise ValueError(f"'{path}' is not a folder.")
    return found


def _line(entry: Path) -> str:
    if entry.is_symlink():
        return f"{entry.name} (link)"
    return f"{entry.name}/" if entry.is_dir() else f"{entry.name} ({entry.stat().st_size})"


def _folder_lines(folder: Path, depth: int, level: int) -> itertools.chain[str]:
    entries = sorted(folder.iterdir(), key=lambda p: (p.is_file(), p.name))
    return itertools.chain.from_iterable(
        itertools.chain(
            [f"{'  ' * level}{_line(entry)}"],
            _folder_lines(entry, depth, level + 1)
            if entry.is_dir() and not entry.is_symlink() and level + 1 < depth
            else (),
        )
        for entry in entries
        if entry.name not in SKIPPED_FOLDERS
    )


def _matches_pattern(name: str, pattern: str) -> bool:
    forms = {pattern, pattern.replace("**/", "")}
    return any(fnmatch.fnmatchcase(name, form) for form in forms)
