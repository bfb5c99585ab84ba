"""What became of a connection, and what its processes printed, for operators."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pegboard.core.model.naming import visible

if TYPE_CHECKING:
    from pegboard.ports import PrintedLine

MOST_LINES: Final = 200
MOST_BYTES: Final = 64 * 1024
_LONGEST: Final = 1000
"""Characters of a line that are kept."""


class _Line(NamedTuple):
    at: float
    kind: Literal["stderr", "invalid", "event"]
    text: str
    pid: int | None

    @property
    def size(self) -> int:
        return len(self.text.encode(errors="surrogatepass"))


class PrintedLines:
    """The newest lines of a server, whichever of its processes printed them, within 200 lines and 64 KiB.

    ``mask`` takes the secrets out of a line while it is whole: half of one would not be found any more.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self.mask = mask
        self._lines: deque[_Line] = deque()
        self._size = 0
        self.count = 0
        """How many lines there were, those not kept included."""

    def add(self, kind: Literal["stderr", "invalid", "event"], text: str, pid: int | None) -> str:
        """Keep a line, and return it without secrets."""
        text = self.mask(text.rstrip())
        line = _Line(time.time(), kind, visible(text, limit=_LONGEST), pid)
        self._lines.append(line)
        self.count += 1
        self._size += line.size
        while len(self._lines) > MOST_LINES or self._size > MOST_BYTES:
            self._size -= self._lines.popleft().size
        return text

    def of_scope(self, scope: str) -> tuple[PrintedLine, ...]:
        """Return the lines, the newest last."""
        from pegboard.ports import PrintedLine  # every start would pay for it

        return tuple(
            PrintedLine(at=line.at, kind=line.kind, text=line.text, scope=scope, pid=line.pid) for line in self._lines
        )


class History:
    """What became of a connection, over all of its starts; times are in seconds since the epoch."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self.since: float | None = None
        self.changes = 0
        self.starts = 0
        self.error = ""
        self.failed_at: float | None = None
        self.printed = PrintedLines(mask)
        self._failed: object = None

    def changed(self) -> None:
        """Note that the state is another one from now on."""
        self.since = time.time()
        self.changes += 1

    def started(self, pid: int | None) -> None:
        """Note that it is up."""
        self.starts += 1
        self.changed()
        self.printed.add("event", "it is up", pid)

    def failed(self, of: object, error: str, reason: str, pid: int | None) -> None:
        """Note why it ended or did not come up, once for each start; ``of`` is the record of that start."""
        self.error = error
        self.changes += 1
        if of is not self._failed:
            self._failed, self.failed_at = of, time.time()
            self.printed.add("event", reason, pid)
