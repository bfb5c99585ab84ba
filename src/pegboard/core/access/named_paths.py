"""What in the arguments of a call may name a path, and which paths are Pegboard's own (P10)."""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath
from typing import Any, Final, Literal, cast

from pegboard.core.access.guards import decodings
from pegboard.core.model.tools import EMPTY, JsonObject

OwnKind = Literal["configuration", "loadout", "env file", "code", "store", "cache", "state", "client", "settings"]
"""What a path of Pegboard's own is for."""
SECRET: Final[frozenset[OwnKind]] = frozenset({"env file", "store", "state"})
"""What no tool reads either: state, keys and secrets."""
UNCOUNTED: Final[frozenset[OwnKind]] = frozenset({"store", "cache", "state", "settings"})
"""What is Pegboard's own and counts as it is: nothing that is confined may write a folder that has any (A7)."""
_LONGEST: Final = 4096
"""How many characters a path may have."""
_DEEPEST: Final = 100
_MOST_JSON: Final = 50
"""In how many lines of a text JSON may begin."""
_JSON: Final = re.compile(r"^\s*(?=[{\[])", re.MULTILINE)
_DECODER: Final = json.JSONDecoder()
_SWEEPING: Final = frozenset(
    (
        *("clone", "copy", "cp", "delete", "extract", "link", "move", "mv", "purge", "remove", "rename", "rm", "rmdir"),
        *("rmtree", "symlink", "trash", "unlink", "untar", "unzip", "wipe"),
    )
)
_ADDRESS: Final = re.compile(r"(?:file:|[A-Za-z][A-Za-z0-9+.-]*://)(.*)", re.DOTALL | re.IGNORECASE)
_SCRIPTS: Final = (
    *(".bat", ".cjs", ".cmd", ".exe", ".jar", ".js", ".mjs"),
    *(".pl", ".ps1", ".py", ".rb", ".sh", ".ts"),
)
_PIECES: Final = re.compile(r"[=,;]")
plain_name: Final = re.compile(r"(?:\w(?:[\w .!-]{0,253}\w)?)?", re.ASCII).fullmatch
"""Matches a text that comes to nothing but itself as a path, see :func:`path_forms`: ``a.yaml``, not ``a/b``."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPaths:
    """The files of Pegboard's own, and the folders of which everything is, by their folded paths.

    ``absent`` are folders that are not there: their names alone are common words, what would lie in them counts.
    ``started`` is what Pegboard and what is not confined are run from, each with what that is: nothing that is
    confined may change it, and no argument of a call is refused for it.
    """

    files: Mapping[str, OwnKind] = field(default=EMPTY)
    folders: Mapping[str, OwnKind] = field(default=EMPTY)
    absent: Mapping[str, OwnKind] = field(default=EMPTY)
    started: Mapping[str, str] = field(default=EMPTY)

    def kind(self, path: str, *, made: bool = False) -> OwnKind | None:
        """Return what an absolute path is for, or None where it is not Pegboard's own.

        With ``made``, the call may put a folder in the place of an absent one.

        >>> own = OwnPaths(files={"/srv/pegboard.yaml": "configuration"}, folders={"/srv/loadouts": "loadout"})
        >>> own.kind("/srv/PEGBOARD.yaml"), own.kind("/srv/loadouts/mine.yaml"), own.kind("/srv/notes.txt")
        ('configuration', 'loadout', None)
        """
        name = fold_path(path)
        found = self.files.get(name) or self.folders.get(name) or (self.absent.get(name) if made else None)
        if found is not None:
            return found
        tops = [str(top) for top in PurePath(name).parents]
        above: list[OwnKind | None] = [self.folders.get(top) or self.absent.get(top) for top in tops]
        return next((kind for kind in above if kind is not None), None)

    def own_files_below(self, folder: str) -> Iterator[tuple[str, OwnKind]]:
        """Yield what of Pegboard's own lies below a folder: the rest of each path, and what it is for."""
        start = f"{fold_path(folder).rstrip('/')}/"
        for path, kind in (*self.files.items(), *self.folders.items()):
            if path.startswith(start):
                yield path.removeprefix(start), kind

    def started_in(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield what is run from a folder, from above or from below it: each path, and what that is."""
        name = fold_path(folder)
        below = f"{name.rstrip('/')}/"
        for path, what in self.started.items():
            place = fold_path(path)
            if place == name or place.startswith(below) or name.startswith(f"{place}/"):
                yield path, what


def fold_path(path: str) -> str:
    """Return a path as it is compared: no file system tells fewer spellings apart."""
    return unicodedata.normalize("NFC", path).casefold()


def named_texts(arguments: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield every text in the arguments of a call, keys, JSON and patches in texts too, with the argument that has it.

    >>> list(named_texts({"how": {"path": "a.csv"}, "given": '["b"]', "limit": 5}))
    [('how', 'path'), ('how', 'a.csv'), ('given', '["b"]'), ('given', 'b')]
    """
    for name, value in arguments.items():
        for text in _texts(value, 0):
            yield name, text


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield value
        for inner in _json_values_in(value):
            yield from _texts(inner, depth + 1)
        if "\n" in value:
            yield from patched_paths(value)
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield str(key)
            yield from _texts(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            yield from _texts(inner, depth + 1)


def _json_values_in(text: str) -> Iterator[Any]:
    """Yield what is in a text as JSON: all of it, or what begins with a line."""
    end = 0
    for found in islice(_JSON.finditer(text), _MOST_JSON):
        if found.end() >= end:
            try:
                inner, end = _DECODER.raw_decode(text, found.end())
            except (ValueError, RecursionError):
                continue
            yield inner


def path_forms(text: str) -> tuple[str, ...]:
    r"""Return what a text may come to as a path: as it is, decoded, without a scheme, without what stands before it.

    >>> path_forms("file:///srv/a")
    ('file:///srv/a', '/srv/a', 'srv/a', '/a')
    >>> path_forms("--output=a.yaml")
    ('--output=a.yaml', '--output', 'a.yaml')
    >>> path_forms("a.yaml:/inside")
    ('a.yaml:/inside', 'a.yaml', '/inside')
    >>> path_forms("view://host/file:///srv/a")[-3:]
    ('/srv/a', 'srv/a', '/a')
    >>> path_forms("two lines\nof text")
    ('two lines\nof text',)
    """
    if len(text) > _LONGEST and "/" in text.replace("\\", "/"):
        text = posixpath.normpath(text.replace("\\", "/"))  # a program may do so before any file system counts
    if not text or len(text) > _LONGEST or "\0" in text:
        return ()
    found: dict[str, None] = {}
    for plain in decodings(text):
        bare = plain.strip().strip("\"'`").removeprefix("@")
        for form in (plain, bare, bare.replace("\\", "/")):
            found.update(dict.fromkeys(_parts_of(form)))
    return tuple(form for form in found if form)


def is_script(text: str) -> bool:
    """Return whether a text is named as a file that is run."""
    return text.lower().endswith(_SCRIPTS)


def _parts_of(text: str) -> Iterator[str]:
    yield text
    whole = any(sign.isspace() for sign in text)
    for piece in (text,) if whole else _PIECES.split(text):
        address = _ADDRESS.fullmatch(piece)
        if address is None:
            yield from (piece,) if whole else piece.split(":")
        else:
            whole_rest = address[1].partition("?")[0].lstrip("/")
            inner = whole_rest.rpartition("://")[2].lstrip("/")  # an address may stand in another
            for rest in dict.fromkeys((whole_rest, inner)):
                yield from (f"/{rest}", rest)
                if "/" in rest:
                    yield f"/{rest.partition('/')[2]}"  # what came first was a host


def is_moving_tool(tool: str) -> bool:
    """Return whether a tool of this name copies, moves or removes what it is given, folders with all that is in them.

    >>> [is_moving_tool(name) for name in ("delete_file", "moveFile", "list_files", "remote")]
    [True, True, False, False]
    """
    return any(word.lower() in _SWEEPING for word in _WORDS.findall(tool))


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
            yield from _possible_names(name)


def _headers(line: str, *, git: bool, diff: bool) -> Iterator[str]:
    """Yield the names of files in one line of a diff."""
    if git and line.startswith(_GIT):
        yield from _split_diff_names(line.removeprefix(_GIT))
    for form, counts in ((_MOVED, git), (_INDEX, True), (_HEADER, diff)):
        if counts and (found := form.fullmatch(line)):
            yield found[1]


def _split_diff_names(rest: str) -> Iterator[str]:
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
    for spelling in _names_without_date(name):
        yield from filter(None, (spelling, spelling.partition("/")[2]))


def _possible_names(name: str) -> Iterator[str]:
    """Yield what a name in a diff may mean: as it is, and without its first folders."""
    for spelling in _names_without_date(name):
        yield spelling
        parts = [part for part in spelling.split("/") if part not in ("", ".")][-_MOST_PARTS:]
        yield from (shorter for start in range(len(parts)) if (shorter := "/".join(parts[start:])) != spelling)


def _names_without_date(name: str) -> Iterator[str]:
    """Yield a name without quotation marks, as it is and without a date behind it."""
    plain = name.partition("\t")[0].strip()
    if found := _QUOTED.match(plain):
        plain = _unescape_name(found[1])
    yield from filter(None, dict.fromkeys((plain, plain.partition(" ")[0])))


def _unescape_name(text: str) -> str:
    """Return a name as git writes it between quotation marks, with its bytes."""

    def byte(found: re.Match[bytes]) -> bytes:
        sign = found[1]
        return bytes([int(sign, 8) & 0xFF]) if sign[:1] in b"01234567" else _SIGNS.get(sign, sign)

    return _ESCAPE.sub(byte, text.encode(errors="surrogatepass")).decode(errors="replace")
