"""The newest edit of the configuration for operators: whether it is in force, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.core.model.masking import Masker
from pegboard.problems import Problem, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProblem:
    """One problem of a configuration, without secrets; ``line`` and ``column`` count from 1, ``path`` is dotted."""

    severity: Severity
    code: str
    message: str
    hint: str
    file: str
    line: int | None
    column: int | None
    path: str


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


def shown_problems(problems: Iterable[Problem], masker: Masker) -> tuple[ShownProblem, ...]:
    """Return problems as plain values without secrets."""
    return tuple(_shown(problem, masker) for problem in problems)


def _shown(problem: Problem, masker: Masker) -> ShownProblem:
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
    )
