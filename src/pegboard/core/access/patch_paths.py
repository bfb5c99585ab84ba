"""The paths that a text names as a patch does; one that merely mentions a path names none (P10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OPENING: Final = re.compile(r"\*\*\* (?:(?:Add|Delete|Update) File|Move to): *(.+)")
_MOVED: Final = re.compile(r"(?:rename|copy) (?:from|to) (.+)")
_GIT: Final = "diff --git "
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
    git = any(line.startswith(_GIT) for line in lines)
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        for name in _named(before, line, after, git=git):
            yield from _spellings(name)


def _named(before: str, line: str, after: str, *, git: bool) -> Iterator[str]:
    """Yield the names of files in one line, by the lines around it."""
    sign, _, rest = line.partition(" ")
    if found := _OPENING.fullmatch(line):
        yield found[1]
    elif git and line.startswith(_GIT):
        yield from _both(line.removeprefix(_GIT))
    elif git and (found := _MOVED.fullmatch(line)):
        yield found[1]
    elif _is_header(sign, before, after) and rest:
        yield rest
    elif after.startswith(_SEARCH):
        yield before if line.startswith(_FENCE) else line


def _is_header(sign: str, before: str, after: str) -> bool:
    """Return whether a line that begins so names a file of a diff."""
    match sign:
        case "---":
            return after.startswith("+++ ") or before.startswith("*** ")
        case "+++":
            return before.startswith("--- ") or after.startswith("@@")
        case "***":
            return after.startswith("--- ")
        case "Index:":
            return after.startswith("====")
        case _:
            return False


def _both(rest: str) -> Iterator[str]:
    """Yield the two names behind ``diff --git``, which may have spaces in them."""
    if quoted := [found[0] for found in _QUOTED.finditer(rest)]:
        yield from quoted
        rest = _QUOTED.sub("", rest)
    yield from (part for part in rest.split() if part)
    half = len(rest) // 2
    if rest[half : half + 1] == " ":
        yield from (rest[:half], rest[half + 1 :])


def _spellings(name: str) -> Iterator[str]:
    """Yield what a name in a patch may mean: as it is, without a date behind it, without its first folder."""
    plain = name.partition("\t")[0].strip()
    if found := _QUOTED.match(plain):
        plain = _unescaped(found[1])
    for spelling in dict.fromkeys((plain, plain.partition(" ")[0])):
        if spelling:
            yield spelling
            if "/" in spelling:
                yield spelling.partition("/")[2]


def _unescaped(text: str) -> str:
    """Return a name as git writes it between quotation marks, with its bytes."""

    def byte(found: re.Match[bytes]) -> bytes:
        sign = found[1]
        return bytes([int(sign, 8) & 0xFF]) if sign[:1] in b"01234567" else _SIGNS.get(sign, sign)

    return _ESCAPE.sub(byte, text.encode(errors="surrogatepass")).decode(errors="replace")
