"""The newest edit of the configuration for operators: whether it is in force, and what is wrong in which lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.core.model.masking import Masker
from pegboard.operators.masked import ShownNames, Verbatim, mask_value
from pegboard.problems import Problem, Severity

MOST_EXCERPTS: Final = 100
"""How many problems have lines beside them; a file can be wrong in every line."""
AROUND: Final = 2
"""How many lines are shown before and after the one that is wrong."""
BESIDE: Final = 300
"""How many characters of a long line are looked at on either side of what is wrong in it."""
HIDDEN: Final = "…"
"""What stands for everything in a line that is no key."""
_Part = tuple[str, int, int]
"""What is shown of a stretch of a line, and where that begins and ends."""
_INDENTATION: Final = re.compile(r"[ \t]*")
_WORD: Final = re.compile(r"[^\s\"'{}\[\],:#]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptLine:
    """One line of a file: its indentation and its keys; ``marked`` is what is wrong in it, nothing in other lines."""

    number: int
    before: str
    marked: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProblem:
    """One problem of a configuration, without secrets; ``line`` and ``column`` count from 1, ``path`` is dotted.

    ``excerpt`` are the keys in the lines of the file around it; none where the problem is not in the file or the
    folders of the configuration.
    """

    severity: Severity
    code: Verbatim
    message: str
    hint: str
    file: Verbatim
    line: int | None
    column: int | None
    path: str
    excerpt: tuple[ExcerptLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationState:
    """The newest reading of a configuration; times are in seconds since the epoch.

    Attributes:
        file: its file as messages name it.
        in_force_since: when the configuration in force was taken over.
        read_at: when it was read last.
        refused: whether that reading was refused, so that an older one is in force.
        problems: what is wrong with the newest reading: errors where it was refused, else warnings.
        of_plugins: what is wrong with what is in force, as far as plugins are known: names that two tools want, claims
            that do not count, what cannot run, starts over their budget.
    """

    file: Verbatim
    in_force_since: float
    read_at: float
    refused: bool
    problems: tuple[ShownProblem, ...]
    of_plugins: tuple[ShownProblem, ...] = ()


def without_lines(problems: Iterable[Problem], masker: Masker) -> tuple[ShownProblem, ...]:
    """Return problems as plain values without secrets, and without the lines around them."""
    return shown_problems(problems, masker, lambda _: None, ())


def shown_problems(
    problems: Iterable[Problem], masker: Masker, written: Callable[[str], str | None], keys: Collection[str]
) -> tuple[ShownProblem, ...]:
    """Return problems as plain values without secrets, each with the lines around it.

    Args:
        keys: those that a configuration may have; nothing else of a line is shown.
    """
    texts: dict[str, WrittenLines | None] = {}
    found: list[ShownProblem] = []
    for problem in problems:
        excerpt: tuple[ExcerptLine, ...] = ()
        if len(found) < MOST_EXCERPTS and (place := problem.place) is not None and place.line is not None:
            if place.file not in texts:
                text = written(place.file)
                texts[place.file] = WrittenLines(text, keys) if text is not None else None
            lines = texts[place.file]
            excerpt = lines.lines_around(place.line, place.column) if lines is not None else ()
        found.append(_shown_problem(problem, excerpt))
    return mask_value(tuple(found), ShownNames(masker))


def _shown_problem(problem: Problem, excerpt: tuple[ExcerptLine, ...]) -> ShownProblem:
    place = problem.place
    return ShownProblem(
        severity=problem.severity,
        code=problem.code,
        message=problem.message,
        hint=problem.hint,
        file=place.file if place is not None else "",
        line=place.line if place is not None else None,
        column=place.column if place is not None else None,
        path=place.path if place is not None else "",
        excerpt=excerpt,
    )


class WrittenLines:
    """The lines of a file of which nothing is shown but indentation and keys.

    A refused edit may be any text, and what is secret in it cannot be known; what is a key can.
    """

    def __init__(self, text: str, keys: Collection[str]) -> None:
        self._lines = re.split(r"\r\n|\r|\n", text)
        self._keys = keys

    def lines_around(self, line: int, column: int | None) -> tuple[ExcerptLine, ...]:
        """Return the lines around a place, which counts from 1; none where the file is shorter."""
        if line == len(self._lines) + 1:  # the end of the file, where something is missing
            line, column = line - 1, None
        if not 0 < line <= len(self._lines):
            return ()
        first, last = max(1, line - AROUND), min(len(self._lines), line + AROUND)
        return tuple(
            self._excerpt_line(number, column if number == line else None) for number in range(first, last + 1)
        )

    def _excerpt_line(self, number: int, column: int | None) -> ExcerptLine:
        line = self._lines[number - 1]
        indentation = _INDENTATION.match(line, 0, BESIDE)
        assert indentation is not None  # it may be nothing
        parts = self._parts(line, indentation.end(), min(column or 1, len(line)) - 1)
        wrong = next((at for at, (_, start, end) in enumerate(parts) if column and start < column <= end), len(parts))
        before, marked, after = map(_text, (parts[:wrong], parts[wrong : wrong + 1], parts[wrong + 1 :]))
        gap = " " if before and marked else ""
        return ExcerptLine(
            number=number,
            before=indentation[0] + before + gap,
            marked=marked,
            after=f" {after}" if after else "",
        )

    def _parts(self, line: str, begin: int, place: int) -> list[_Part]:
        """Return the keys of a line and what is hidden between them, each with its start and end."""
        parts: list[_Part] = []
        at = begin
        for word in _WORD.finditer(line, max(begin, place - BESIDE), place + BESIDE):
            if word[0] in self._keys:
                parts += [(HIDDEN, at, word.start()), (word[0], word.start(), word.end())]
                at = word.end()
        parts.append((HIDDEN, at, len(line)))
        return [part for part in parts if part[0] is not HIDDEN or line[part[1] : part[2]].strip()]


def _text(parts: Sequence[_Part]) -> str:
    return " ".join(text for text, _, _ in parts)
