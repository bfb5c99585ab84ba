"""The newest edit of the configuration for operators: whether it is in force, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pegboard.core.model.masking import Masker
from pegboard.operators.excerpts import ExcerptLine, WrittenLines
from pegboard.problems import Problem, Severity

MOST_EXCERPTS: Final = 100
"""How many problems have lines beside them; a file can be wrong in every line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProblem:
    """One problem of a configuration, without secrets; ``line`` and ``column`` count from 1, ``path`` is dotted.

    ``excerpt`` are the lines of the file around it as they were written, references not filled in; none where the
    problem is not in the file or the folders of the configuration.
    """

    severity: Severity
    code: str
    message: str
    hint: str
    file: str
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
    """

    file: str
    in_force_since: float
    read_at: float
    refused: bool
    problems: tuple[ShownProblem, ...]


def shown_problems(
    problems: Iterable[Problem], masker: Masker, written: Callable[[str], str | None]
) -> tuple[ShownProblem, ...]:
    """Return problems as plain values without secrets; ``written`` gives the text of a file by its name in them."""
    texts: dict[str, WrittenLines | None] = {}
    found: list[ShownProblem] = []
    for problem in problems:
        excerpt: tuple[ExcerptLine, ...] = ()
        if len(found) < MOST_EXCERPTS and (place := problem.place) is not None and place.line is not None:
            if place.file not in texts:
                text = written(place.file)
                texts[place.file] = WrittenLines(text, masker) if text is not None else None
            lines = texts[place.file]
            excerpt = lines.around(place.line, place.column) if lines is not None else ()
        found.append(_shown(problem, masker, excerpt))
    return tuple(found)


def _shown(problem: Problem, masker: Masker, excerpt: tuple[ExcerptLine, ...]) -> ShownProblem:
    place = problem.place
    return ShownProblem(
        severity=problem.severity,
        code=problem.code,
        message=masker.text(problem.message),
        hint=masker.text(problem.hint),
        file=place.file if place is not None else "",
        line=place.line if place is not None else None,
        column=place.column if place is not None else None,
        path=masker.text(place.path) if place is not None else "",
        excerpt=excerpt,
    )
