"""What was written in a file, with the place of every value and key."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeGuard

from pegboard.config.problem_codes import ProblemCode
from pegboard.core.model.tools import EMPTY
from pegboard.problems import Place, Problem

LARGEST_FILE: Final = 10_000_000
ARRIVAL: Final = 10.0
"""How long to wait for a pipe or device to give something, in seconds."""
DEEPEST: Final = 64
MOST_VALUES: Final = 500_000

PathKey = str | int
KeyPath = tuple[PathKey, ...]


class YamlWord(str):
    """An unquoted ``yes``, ``no``, ``on`` or ``off``: a name where a name stands, else a boolean."""

    __slots__ = ()

    @property
    def truth(self) -> bool:
        """Return the boolean that YAML 1.1 reads in it."""
        return self.lower() in ("yes", "on")


class Expanded(str):
    """Text that came out of ``${…}``: it may stand for a number or boolean, and is never shown.

    ``written`` is what is in the file.
    """

    __slots__ = ("written",)

    written: str

    def __new__(cls, text: str, written: str = "") -> Self:
        """Return the text with what is in the file."""
        made = super().__new__(cls, text)
        made.written = written
        return made


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands; ``size`` counts the values in it, aliases written out."""

    value: Any
    line: int
    column: int
    size: int = 1
    children: Mapping[Any, Node] = field(default=EMPTY)
    keys: Mapping[str, tuple[int, int]] = field(default=EMPTY)


def sequence(nodes: Sequence[Node], spot: tuple[int, int]) -> Node:
    """Return the node of a list."""
    size = 1 + sum(node.size for node in nodes)
    return Node([node.value for node in nodes], *spot, size, dict(enumerate(nodes)))


def mapping_node(children: Mapping[str, Node], keys: Mapping[str, tuple[int, int]], spot: tuple[int, int]) -> Node:
    """Return the node of a mapping; ``keys`` are the places of its keys."""
    size = 1 + sum(node.size for node in children.values())
    return Node({key: node.value for key, node in children.items()}, *spot, size, children, keys)


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a mapping; all keys are text in what was read."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value is a list."""
    return isinstance(value, list)


class UnreadableError(Exception):
    """The end of the reading of a file: it cannot be read any further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What one file says; ``problems`` are those that did not stop the reading.

    ``heads`` says where a section really stands, if not under its own key. ``placed`` is whether there are lines: a
    mapping of a program has none, and its places are whole paths.
    """

    file: str
    root: Node
    problems: tuple[Problem, ...] = ()
    heads: Mapping[PathKey, tuple[PathKey, ...]] = field(default_factory=dict[PathKey, tuple[PathKey, ...]])
    placed: bool = True

    @property
    def value(self) -> Any:
        """Return the plain value."""
        return self.root.value

    def place(self, path: Sequence[PathKey], *, key: bool = False) -> Place:
        """Return where a value, or its key, stands; for a missing one, where its nearest owner does."""
        if path and path[0] in self.heads:
            path = (*self.heads[path[0]], *path[1:])
        if not self.placed:
            return Place(file=self.file, path=dotted_path(path, whole=True))
        node, spot = self.root, (self.root.line, self.root.column)
        for part in path:
            child = node.children.get(part)
            if child is None:
                break
            known = node.keys.get(part, spot) if isinstance(part, str) else spot
            spot = (child.line, child.column) if not key or isinstance(part, int) else known
            node = child
        return Place(file=self.file, line=spot[0], column=spot[1], path=dotted_path(path))


def dotted_path(path: Sequence[PathKey], *, whole: bool = False) -> str:
    """Return a path as it is shown; the place of an entry in a list says enough at the end, unless it is ``whole``.

    >>> dotted_path(("toolkits", "data", "tools", 3, "sql")), dotted_path(("agents", "a", "tools", 1))
    ('toolkits.data.tools[3].sql', 'agents.a.tools')
    """
    parts = list(path)
    while not whole and parts and isinstance(parts[-1], int):
        parts.pop()
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def fault(
    file: str, code: ProblemCode, message: str, *, hint: str = "", at: tuple[int, int] | None = None
) -> UnreadableError:
    """Return the error that ends the reading of a file; ``at`` is line and column, from 1."""
    line, column = at or (None, None)
    place = Place(file=file, line=line, column=column)
    return UnreadableError(Problem(severity="error", code=code, message=message, hint=hint, place=place))


def duplicate_key(file: str, key: str, spot: tuple[int, int], first: tuple[int, int]) -> Problem:
    """Return the problem that a key stands twice in one mapping."""
    message = f"the key '{key}' is given twice; the first one is on line {first[0]}, column {first[1]}."
    place = Place(file=file, line=spot[0], column=spot[1])
    return Problem(severity="error", code="duplicate_key", message=message, place=place)


def display_path(path: Path) -> str:
    """Return the name under which messages name a file: short where it lies below the working folder."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def read_text(path: Path, *, file: str) -> str:
    """Return the text of a file; raises :class:`UnreadableError` for what cannot be a configuration."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise fault(file, "file_unreadable", "is a folder.", hint="Name the file in it.")
        if not stat.S_ISREG(status.st_mode):
            return _decode_text(_read_device(path, file), file)
        if status.st_size > LARGEST_FILE:
            raise _too_large_error(file, f"is {_megabytes(status.st_size)}")
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise fault(file, "file_missing", "does not exist.", hint="`pegboard init` writes one.") from None
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    return _decode_text(data, file)


def read_input(number: int, *, file: str) -> str:
    """Return the text that arrives at a descriptor, such as standard input; raises :class:`UnreadableError`."""
    try:
        return _decode_text(_read_available(number, file), file)
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None


def _read_device(path: Path, file: str) -> bytes:
    """Return what a pipe or device gives; a pipe that no one writes to is opened without waiting."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        return _read_available(number, file)
    finally:
        os.close(number)


def _read_available(number: int, file: str) -> bytes:
    poller = select.poll() if hasattr(select, "poll") else None
    if poller is not None:
        poller.register(number, select.POLLIN)
    data = bytearray()
    while len(data) <= LARGEST_FILE:
        if poller is not None and not poller.poll(ARRIVAL * 1000):
            hint = "No process writes to it. Name a file, or write to it first."
            raise fault(file, "file_unreadable", f"sent nothing for {ARRIVAL:g} s.", hint=hint)
        try:
            chunk = os.read(number, 65_536)
        except BlockingIOError:
            continue
        if not chunk:
            break
        data += chunk
    return bytes(data)


def _unreadable(file: str, error: Exception) -> UnreadableError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return fault(file, "file_unreadable", f"cannot be read: {reason}.")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f}".removesuffix(".0") + " MB"


def _too_large_error(file: str, message: str) -> UnreadableError:
    return fault(file, "file_too_large", f"{message}; a configuration is at most 10 MB.")


def _decode_text(data: bytes, file: str) -> str:
    if len(data) > LARGEST_FILE:
        raise _too_large_error(file, "is more than 10 MB")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise fault(file, "file_binary", "is written in UTF-16.", hint="Save it as UTF-8.", at=(1, 1))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"is not text: byte 0x{data[error.start]:02x} is not UTF-8."
        raise fault(file, "file_binary", message, hint="Save it as UTF-8.", at=(line, column)) from None
    if "\0" in text:
        spot = text.index("\0")
        at = (text.count("\n", 0, spot) + 1, spot - text.rfind("\n", 0, spot))
        raise fault(file, "file_binary", "is not text: it contains a zero byte.", at=at)
    if not text.strip():
        raise fault(file, "file_empty", "is empty.", hint="`pegboard init` writes a configuration to start from.")
    return text
