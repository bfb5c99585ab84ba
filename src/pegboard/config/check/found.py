"""Problems as checks report them."""

from __future__ import annotations

from pegboard.config.problem_codes import ProblemCode
from pegboard.problems import Place, Problem


def error(code: ProblemCode, message: str, place: Place | None, hint: str = "") -> Problem:
    """Return a problem with which a file cannot be used."""
    return Problem(severity="error", code=code, message=message, hint=hint, place=place)


def warning(code: ProblemCode, message: str, place: Place | None, hint: str = "") -> Problem:
    """Return a problem with which a file can be used."""
    return Problem(severity="warning", code=code, message=message, hint=hint, place=place)
