"""The token of the operator who runs a command, out of the environment (A5)."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    from typing import Final

VARIABLE: Final = "PEGBOARD_OPERATOR_TOKEN"
_taken: list[str] = []


def take_token() -> None:
    """Take the token out of the environment: no server or plugin inherits it."""
    _taken[:] = [found] if (found := os.environ.pop(VARIABLE, "")) else []


def taken_token() -> str:
    """Return the token that was taken, or nothing."""
    return "".join(_taken)
