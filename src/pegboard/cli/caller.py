"""Who has given a command: where its output goes, what it reads, and in which folder it was given.

It is this process, unless the daemon runs the command for another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCaller:
    """The process that has given a command to the daemon, which runs it.

    Attributes:
        out: its standard output.
        err: its standard error.
        keeps_all: whether its standard output is a file, which takes results of any size.
        columns: how wide the terminal is at which a person reads; None where it is a program.
        folder: its current folder.
        read_input: returns what its standard input has.
        save: writes a file with its rights.
        agreed: whether the person at its terminal has agreed to what was asked.
        token: the token of an operator in its environment, or empty (A5).
        board: opens the board of the configuration that its command line names, for as long as the context lasts.
        defer: takes what the command does, which goes on once its line is parsed, and returns 0.
    """

    out: TextIO
    err: TextIO
    keeps_all: bool
    columns: int | None
    folder: Path
    read_input: Callable[[], bytes]
    save: Callable[[Path, bytes], None]
    agreed: bool
    token: str
    board: Callable[[Path | None], AbstractAsyncContextManager[Pegboard]]
    defer: Callable[[Coroutine[Any, Any, int]], int]


class AgreementNeeded(Exception):  # noqa: N818 - it is a question and no error
    """A person at the terminal of the caller has to agree to these lines first; then the command is given again."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(*lines)
        self.lines = lines


CALLER: ContextVar[CommandCaller | None] = ContextVar("pegboard_caller", default=None)
"""The process that has given the command which runs here; None where it is this one."""


def keeps_large_results() -> bool:
    """Return whether standard output is a file, which takes results of any size."""
    caller = CALLER.get()
    if caller is not None:
        return caller.keeps_all
    from pegboard.thin.files import is_file

    return is_file(sys.stdout)


def folder() -> Path:
    """Return the current folder of whoever gave the command."""
    caller = CALLER.get()
    return Path.cwd() if caller is None else caller.folder


def read_input() -> bytes:
    """Return what standard input has."""
    caller = CALLER.get()
    if caller is not None:
        return caller.read_input()
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode() if binary is None else binary.read()


def save(path: Path, data: bytes) -> None:
    """Write a file with the rights of whoever gave the command, for its owner alone; raises ``OSError``."""
    caller = CALLER.get()
    if caller is not None:
        caller.save(path, data)
        return
    from pegboard.thin.files import write_private

    write_private(str(path), data)
