"""What is wrong with a configuration, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a value in a file; ``line`` and ``column`` count from 1, ``path`` is dotted."""

    file: str
    line: int | None = None
    column: int | None = None
    path: str = ""

    def __str__(self) -> str:
        spot = "".join(f":{n}" for n in (self.line, self.column) if n is not None)
        return f"{self.file}{spot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a configuration: where, what, and what would be right."""

    severity: Severity
    code: str
    message: str
    hint: str = ""
    place: Place | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        path = f"{self.place.path}: " if self.place and self.place.path else ""
        if not self.hint:
            return f"{where}{path}{self.message}"
        end = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{where}{path}{self.message}{end} {self.hint}"
