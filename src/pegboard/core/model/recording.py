"""What is kept of a call beside its line of the audit trail (X4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KEPT_DAYS: Final = 7
"""For how many days it is kept where no one says so."""
MOST_DAYS: Final = 366
MOST_RESULT: Final = 1_000_000
"""How many bytes may be kept of one result."""
MOST_ARGUMENTS: Final = 64 * 1024
"""How many bytes are kept of the arguments of one call."""
MOST_ERROR: Final = 8 * 1024
"""How many bytes are kept of one error text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What is kept: error texts, arguments, of results so many bytes (0: none of them), and for how many days."""

    errors: bool = True
    arguments: bool = False
    results: int = 0
    days: int = KEPT_DAYS

    def within(self, other: Recording) -> Recording:
        """Return the narrower of both.

        >>> Recording(arguments=True, results=4000).within(Recording(results=100))
        Recording(errors=True, arguments=False, results=100, days=7)
        """
        return Recording(
            errors=self.errors and other.errors,
            arguments=self.arguments and other.arguments,
            results=min(self.results, other.results),
            days=min(self.days, other.days),
        )


UNLESS_STATED: Final = Recording()
"""What is kept where no one says anything."""
EVERYTHING: Final = Recording(errors=True, arguments=True, results=MOST_RESULT, days=MOST_DAYS)
"""What a server or plugin says that says nothing: it narrows nothing."""
