"""What is known of a server's troubles: for errors, the health page and the log."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Literal

from pegboard.core.model.naming import one_line

log = logging.getLogger("pegboard.sources.mcp")

_STDERR_LINE = 500
_STDERR_LINES = 40
_INVALID_LINE = 200
_INVALID_LINES = 3

LONGEST_LINE = 8192
"""How much of a line for people is read, in bytes: far more than is kept, so that no cut leaves half a secret."""

Printed = Literal["stderr", "invalid"]
Keep = Callable[[Printed, str, int | None], str]
"""What keeps a line of a process for operators, and returns it whole but without secrets."""


class Diagnostics:
    """What a server printed and what of it could not be used.

    ``exit`` says how its process ended, ``any_message`` whether anything valid ever came. ``dropped`` has the tools
    that are not listed, ``excluded`` other lists and items, each with the reason. ``report_invalid`` is called with the
    first line on standard output that is no message.
    """

    def __init__(
        self, name: str, keep: Callable[[Printed, str], str], report_invalid: Callable[[str], None] | None = None
    ) -> None:
        self.name = name
        self.exit = ""
        self.any_message = False
        self.stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self.invalid_lines: deque[str] = deque(maxlen=_INVALID_LINES)
        self.invalid_count = 0
        self.dropped: dict[str, str] = {}
        self.excluded: dict[str, str] = {}
        self._keep = keep
        self._report_invalid = report_invalid

    def add_stderr(self, text: str) -> None:
        """Keep a line that the server wrote to its standard error."""
        if line := one_line(self._kept("stderr", text), limit=_STDERR_LINE):
            self.stderr.append(line)

    def add_invalid_line(self, text: str) -> None:
        """Keep a line on standard output that is no message of the protocol, and report the first."""
        self.invalid_count += 1
        line = one_line(self._kept("invalid", text), limit=_INVALID_LINE)
        if not line:
            return
        self.invalid_lines.append(line)
        if self._report_invalid is not None:
            self._report_invalid(line)
            self._report_invalid = None

    def _kept(self, kind: Printed, text: str) -> str:
        return self._keep(kind, text) if text.strip() else ""

    def drop(self, tool: str, reason: str) -> None:
        """Report a tool that is not listed."""
        if self.dropped.get(tool) != reason:
            log.warning("server %r: tool %r is excluded: %s", self.name, tool, reason)
        self.dropped[tool] = reason

    def exclude(self, what: str, reason: str) -> None:
        """Report a list, or an item of it, besides tools that is not listed."""
        log.warning("server %r: %s is excluded: %s", self.name, one_line(what, limit=200), reason)
        self.excluded[what] = reason
