"""Search, count and compare the text files of the current folder."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from pegboard.marks import tool
from pegboard.quickstart._bounds import cut_lines, display_path, inside, read_text, walk

__all__ = ["compare_files", "count_words", "search_text"]

_SECONDS: Final = 10.0
_LONGEST_LINE: Final = 2000
# One star or plus over a group that itself repeats can take exponential time.
_EXPLOSIVE: Final = re.compile(r"\([^()]*[*+}][^()]*\)[*+{]")


@tool(read_only=True)
def search_text(query: str, path: str = ".", regex: bool = False, glob: str = "*", context: int = 0) -> str:
    """Search text files for a word, a phrase or a regular expression; answers as 'file:line: text'.

    Args:
        query: What to look for; upper and lower case are the same.
        path: The file or folder to search.
        regex: Whether the query is a regular expression.
        glob: Only files whose name matches, such as '*.md'.
        context: How many lines to show before and after each hit, at most 5.
    """
    if not query:
        raise ValueError("'query' is empty.")
    pattern = _pattern(query, regex=regex)
    start = inside(path)
    files = [start] if start.is_file() else (file for file in walk(start) if fnmatchcase(file.name, glob))
    hits = _hits(files, pattern, max(0, min(context, 5)), time.monotonic() + _SECONDS)
    return cut_lines(hits, "narrow 'query', 'path' or 'glob'") or f"Nothing matches '{query}'."


@tool(read_only=True)
def count_words(path: str) -> dict[str, int]:
    """Count the lines, words, characters and different words of a text file."""
    text = read_text(inside(path))
    words = re.findall(r"\w+", text)
    return {
        "lines": len(text.splitlines()),
        "words": len(words),
        "characters": len(text),
        "different_words": len({word.casefold() for word in words}),
    }


@tool(read_only=True)
def compare_files(first: str, second: str) -> str:
    """Show the differences between two text files as a unified diff."""
    one, two = (read_text(inside(path)).splitlines() for path in (first, second))
    if max(len(one), len(two)) > 20_000:
        raise ValueError("the files are too long to compare (more than 20,000 lines).")
    lines = difflib.unified_diff(one, two, fromfile=first, tofile=second, lineterm="")
    return cut_lines(lines, "read the files for the rest") or "The files are equal."


def _pattern(query: str, *, regex: bool) -> re.Pattern[str]:
    if regex and _EXPLOSIVE.search(query):
        raise ValueError("the regular expression repeats a group that repeats; write it without nesting.")
    try:
        return re.compile(query if regex else re.escape(query), re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"'{query}' is not a regular expression: {error}.") from None


def _hits(files: list[Path] | Iterator[Path], pattern: re.Pattern[str], context: int, deadline: float) -> Iterator[str]:
    for file in files:
        try:
            lines = read_text(file).splitlines()
        except (ValueError, OSError):  # binary, too large, or not to be read: nothing to find
            continue
        name = display_path(file)
        for number, line in enumerate(lines):
            if time.monotonic() > deadline:
                yield f"[stopped after {_SECONDS:.0f} seconds; narrow 'path' or 'glob']"
                return
            if pattern.search(line[:_LONGEST_LINE]):
                around = range(max(0, number - context), min(len(lines), number + context + 1))
                yield from (f"{name}:{at + 1}{':' if at == number else '-'} {lines[at]}" for at in around)
                if context:
                    yield "--"
