"""The paths that a text names as a patch does; one that merely mentions a path names none (P10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OPENING: Final = re.compile(r"\*\*\* (?:(?:Add|Delete|Update) File|Move to): *(.+)")
_MOVED: Final = re.compile(r"(?:rename|copy) (?:from|to) (.+)")
_GIT: Final = "diff --git "
_INDEX: Final = re.compile(r"Index:\s*(.+)")
_HEADER: Final = re.compile(r"(?:---|\+\+\+|\*\*\*)\s+(.+)")
_HUNK: Final = re.compile(r"@@|\*{8}|\d+(?:,\d+)?[acd]")
"""What a change begins with in a diff; lines before it that are no header are skipped."""
_MOST_PARTS: Final = 64
"""How many last parts of a path are looked at that ``patch`` may be told to take alone, or takes alone unasked."""
_INDENT: Final = "X \t"
"""What ``patch`` takes off the beginning of each line."""
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_SIGNS: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_FENCE: Final = "```"
_SEARCH: Final = "<<<<<<<"


def patched_paths(text: str) -> Iterator[str]:
    r"""Yield the paths that a text of several lines would change, were it applied as a patch.

    Unified and context diffs, those of git, of ``svn``, patches of the form ``*** Update File:``, and blocks to search
    and replace below the name of a file.

    >>> list(patched_paths("--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-a\n+b\n"))
    ['a/one.txt', 'one.txt', 'b/one.txt', 'one.txt']
    >>> list(patched_paths("Please edit pegboard.yaml:\nsee pegboard.yaml\n"))
    []
    """
    lines = [line.strip() for line in text.split("\n")]
    plain = [line.lstrip(_INDENT) for line in lines]
    git = any(line.startswith(_GIT) for line in plain)
    diff = any(map(_HUNK.match, plain))
    for before, line, header, after in zip(["", *lines], lines, plain, [*lines[1:], ""], strict=False):
        if found := _OPENING.fullmatch(line):
            yield from _direct(found[1])
            continue
        if after.startswith(_SEARCH):
            yield from _direct(before if line.startswith(_FENCE) else line)
        for name in _headers(header, git=git, diff=diff):
            yield from _spellings(name)


def _headers(line: str, *, git: bool, diff: bool) -> Iterator[str]:
    """Yield the names of files in one line of a diff."""
    if git and line.startswith(_GIT):
        yield from _both(line.removeprefix(_GIT))
    for form, counts in ((_MOVED, git), (_INDEX, True), (_HEADER, diff)):
        if counts and (found := form.fullmatch(line)):
            yield found[1]


def _both(rest: str) -> Iterator[str]:
    """Yield the two names behind ``diff --git``, which may have spaces in them."""
    if quoted := [found[0] for found in _QUOTED.finditer(rest)]:
        yield from quoted
        rest = _QUOTED.sub("", rest)
    yield from (part for part in rest.split() if part)
    half = len(rest) // 2
    if rest[half : half + 1] == " ":
        yield from (rest[:half], rest[half + 1 :])


def _direct(name: str) -> Iterator[str]:
    """Yield what a name means of which nothing takes folders away but a first one, as git writes it."""
    for spelling in _dateless(name):
        yield from filter(None, (spelling, spelling.partition("/")[2]))


def _spellings(name: str) -> Iterator[str]:
    """Yield what a name in a diff may mean: as it is, and without its first folders."""
    for spelling in _dateless(name):
        yield spelling
        parts = [part for part in spelling.split("/") if part not in ("", ".")][-_MOST_PARTS:]
        yield from (shorter for start in range(len(parts)) if (shorter := "/".join(parts[start:])) != spelling)


def _dateless(name: str) -> Iterator[str]:
    """Yield a name without quotation marks, as it is and without a date behind it."""
    plain = name.partition("\t")[0].strip()
    if found := _QUOTED.match(plain):
        plain = _unescaped(found[1])
    yield from filter(None, dict.fromkeys((plain, plain.partition(" ")[0])))


def _unescaped(text: str) -> str:
    """Return a name as git writes it between quotation marks, with its bytes."""

    def byte(found: re.Match[bytes]) -> bytes:
        sign = found[1]
        return bytes([int(sign, 8) & 0xFF]) if sign[:1] in b"01234567" else _SIGNS.get(sign, sign)

    return _ESCAPE.sub(byte, text.encode(errors="surrogatepass")).decode(errors="replace")
