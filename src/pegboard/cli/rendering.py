"""Text for people and JSON for scripts; the only place that writes to the terminal."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from pegboard.cli.caller import CALLER
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

UNBOUNDED = 1000
"""How many columns a table may take off a terminal."""
LONGEST_CELL = 200
NARROWEST = 20
GAP = 3
FIRST_SAID = 3.0
"""After how long it is said off a terminal how far something is that takes long, in seconds."""
SAID_EVERY = 10.0
"""How often it is said off a terminal how far long work is, in seconds."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table; ``flexible`` ones give way where the terminal is narrow, ``whole`` ones are never cut."""

    title: str
    align: Literal["left", "right"] = "left"
    flexible: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class UnmaskedText:
    """A value of a tool or its server, or a name: it is printed unmasked, since X5 is about Pegboard's own texts."""

    value: Any

    def __str__(self) -> str:
        return str(self.value)


class Printer:
    """The writer of answers to standard output, and of everything else to standard error, without secrets (X5).

    With ``as_json`` exactly one document goes to standard output. ``masker`` is replaced as soon as
    the secrets of the configuration are known.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.masker = Masker()
        self._caller = CALLER.get()  # tasks that report progress may have been begun for another one

    @property
    def _stdout(self) -> TextIO:
        return sys.stdout if self._caller is None else self._caller.out

    @property
    def _err(self) -> TextIO:
        return sys.stderr if self._caller is None else self._caller.err

    @property
    def for_people(self) -> bool:
        """Return whether a person reads standard output: at a terminal, or as wide as ``COLUMNS`` says."""
        if self._caller is not None:
            return self._caller.columns is not None
        return sys.stdout.isatty() or "COLUMNS" in os.environ

    def document(self, value: Any) -> None:
        """Write the one JSON document."""
        text = json.dumps(plain(value, self.masker), indent=2, allow_nan=False)
        _write(self._stdout, text)

    def say(self, text: str = "") -> None:
        """Write text for people."""
        _write(self._stdout, without_controls(self.masker.text(text)))

    def show(self, text: str) -> None:
        """Write for people what a tool or its server gave, without masking it."""
        _write(self._stdout, without_controls(text))

    def patch(self, diff: str) -> None:
        """Write a change of a file as a program takes it: line ends and control characters stay as they are."""
        _write(self._stdout, self.masker.text(diff).removesuffix("\n"))

    def note(self, text: str) -> None:
        """Write what is not part of the answer: progress, warnings, errors."""
        _write(self._err, without_controls(self.masker.text(text)))

    def heading(self, text: str) -> None:
        """Write the title of what follows."""
        from rich.text import Text

        self._print(Text(without_controls(self.masker.text(text)), style="bold"))

    def table(self, columns: Sequence[TableColumn], rows: Iterable[Sequence[object]]) -> None:
        """Write a table as wide as it needs to be, and no wider than the terminal."""
        from rich import box
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        limits = [None if column.whole else LONGEST_CELL for column in columns]
        cells = [
            [one_line(self._text(cell), limit=limit) for cell, limit in zip(row, limits, strict=True)] for row in rows
        ]
        taken = [max(map(cell_len, (c.title, *texts))) for c, *texts in zip(columns, *cells, strict=True)]
        fixed = sum(width for column, width in zip(columns, taken, strict=True) if not column.flexible)
        rest = self._console().width - fixed - GAP * (len(columns) - 1)
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(
                column.title,
                justify=column.align,
                overflow="ellipsis" if column.flexible else "fold",
                no_wrap=column.flexible,
                max_width=max(rest, NARROWEST) if column.flexible else None,
            )
        for row in cells:
            table.add_row(*map(Text, row))
        self._print(table)

    def _text(self, cell: object) -> str:
        return str(cell) if isinstance(cell, UnmaskedText) else self.masker.text(str(cell))

    @contextmanager
    def working(self, text: str, *, lasting: bool = False) -> Generator[Callable[[str], None]]:
        """Show on standard error what is being done; off a terminal only where it is ``lasting``.

        What is yielded takes how far it is: off a terminal it is said after a moment, and then every ten seconds.
        """
        text = one_line(self.masker.text(text))
        if self._caller is not None or not sys.stderr.isatty():
            due = time.monotonic() + FIRST_SAID

            def say(how_far: str) -> None:
                nonlocal due
                if time.monotonic() >= due:
                    due = time.monotonic() + SAID_EVERY
                    self.note(f"{text}: {how_far}")

            if lasting:
                self.note(text)
            yield say
            return
        from rich.console import Console
        from rich.text import Text

        with Console(file=sys.stderr).status(Text(text)) as status:
            yield lambda how_far: status.update(Text(f"{text}: {one_line(how_far)}"))

    def _print(self, what: RenderableType) -> None:
        """Write what rich renders; off a terminal without padding at the end of lines."""
        console = self._console()
        if self._caller is None and sys.stdout.isatty():
            console.print(what)
            return
        with console.capture() as drawn:
            console.print(what)
        _write(self._stdout, "\n".join(line.rstrip() for line in drawn.get().splitlines()))

    def _console(self) -> Console:
        """Return where people read: as wide as their terminal, or off a terminal as wide as it takes."""
        from rich.console import Console

        if self._caller is not None:
            return Console(file=self._stdout, width=self._caller.columns or UNBOUNDED, highlight=False, emoji=False)
        width = None if self.for_people else UNBOUNDED
        return Console(file=sys.stdout, width=width, highlight=False, emoji=False)


def without_controls(text: str) -> str:
    r"""Return text without what would steer a terminal; lines and indents stay.

    >>> without_controls("a\x1b[2Jb\n\tc")
    'a [2Jb\n\tc'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def plain(value: Any, masker: Masker) -> Any:
    """Return a value as JSON takes it, without secrets in its texts; keys are names and stay.

    >>> plain({"tokens": (1, float("nan")), "text": "hunter22"}, Masker(["hunter22"]))
    {'tokens': [1, None], 'text': '***'}
    """
    return _plain_value(value, masker.value)


def _plain_value(value: Any, text: Callable[[str], str]) -> Any:
    match value:
        case UnmaskedText():
            return _plain_value(value.value, str)
        case str():
            return text(str(value))
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            pairs = cast("Mapping[object, Any]", value)
            return {str(key): _plain_value(inner, text) for key, inner in pairs.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain_value(inner, text) for inner in cast("Iterable[Any]", value)]
        case _:
            return text(str(value))


def time_text(at: datetime) -> str:
    """Return a time for people, in the zone of this machine and with its distance from UTC."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %z}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "tool"), plural(2, "tool"), plural(0, "agent")
    ('1 tool', '2 tools', '0 agents')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()
