"""Which functions of pegboard are entered, and which SQL statements run, on every thread of this process."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pegboard

SOURCE = f"{Path(pegboard.__file__).parent}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was traced: thread and file of every function entered, in order, and every statement of every connection.

    A coroutine that goes on counts as entered again, as ``sys.setprofile`` reports it.
    """

    entered: tuple[tuple[int, str], ...]
    statements: tuple[str, ...]

    @property
    def files(self) -> set[str]:
        """Return the files entered."""
        return {file for _, file in self.entered}

    @property
    def changes(self) -> int:
        """Return how often a function was entered in another file than the one entered before it in its thread."""
        return self.changes_within("")

    def changes_within(self, folder: str) -> int:
        """Return how many of these changes lead to a file of a folder."""
        threads: dict[int, list[str]] = {}
        for thread, file in self.entered:
            threads.setdefault(thread, []).append(file)
        return sum(
            before != after and after.startswith(folder)
            for files in threads.values()
            for before, after in pairwise(files)
        )


class Tracer:
    """A recorder of function entries and SQL statements between ``begin`` and ``end``."""

    def __init__(self) -> None:
        self._on = False
        self._entered: list[tuple[int, str]] = []
        self._statements: list[str] = []

    def begin(self) -> None:
        """Forget what was recorded and record from now on."""
        self._entered, self._statements = [], []
        self._on = True

    def so_far(self) -> Trace:
        """Return what was recorded since ``begin``."""
        return Trace(entered=tuple(self._entered), statements=tuple(self._statements))

    def end(self) -> Trace:
        """Record no more; return what was recorded since ``begin``."""
        self._on = False
        return self.so_far()

    def profile(self, frame: FrameType, event: str, arg: object) -> None:
        """Record a function entry; this is what ``sys.setprofile`` takes."""
        if self._on and event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self._entered.append((threading.get_ident(), frame.f_code.co_filename.removeprefix(SOURCE)))

    def statement(self, text: str) -> None:
        """Record a statement; this is what ``set_trace_callback`` takes."""
        if self._on:
            self._statements.append(text)


@contextmanager
def traced() -> Generator[Tracer]:
    """Trace this thread, the threads that start from now on, and the SQLite connections that are made."""
    tracer, connect = Tracer(), sqlite3.connect

    def connect_traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(tracer.statement)
        return connection

    sqlite3.connect = connect_traced
    threading.setprofile(tracer.profile)
    sys.setprofile(tracer.profile)
    try:
        yield tracer
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        sqlite3.connect = connect
        tracer.end()
