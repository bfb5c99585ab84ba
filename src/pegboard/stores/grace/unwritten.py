"""What calls leave to be written while the store is lost: bounded, the oldest gives way, and is counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pegboard.ports.audit_trail import AuditRecord
from pegboard.ports.call_details import MOST_UNWRITTEN, CallDetails

MOST_WAITING: Final = 100_000
"""How many records wait at most."""


class _Part(NamedTuple):
    write: Callable[[], None]
    records: int
    characters: int = 0


class Unwritten:
    """Records of calls, bills and uses in the order in which they came, each with what hands it to the store."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._parts: deque[_Part] = deque()
        self._characters = 0
        self.waiting = 0
        self.dropped = 0

    def add(self, write: Callable[[], None], records: Sequence[object]) -> None:
        """Take what ``write`` hands to the store."""
        self._add(_Part(write, len(records)))

    def add_call(
        self,
        write: Callable[[AuditRecord, CallDetails | None], None],
        record: AuditRecord,
        details: CallDetails | None,
    ) -> None:
        """Take the record of a call, with what is kept of it as long as there is room for that."""
        size = 0 if details is None else len(details.text)
        if self._characters + size > MOST_UNWRITTEN:
            size, details = 0, None
        self._add(_Part(lambda: write(record, details), 1, size))

    def _add(self, part: _Part) -> None:
        self._parts.append(part)
        self.waiting += part.records
        self._characters += part.characters
        while self.waiting > self._most and len(self._parts) > 1:
            self.dropped += self._take().records

    def _take(self) -> _Part:
        part = self._parts.popleft()
        self.waiting -= part.records
        self._characters -= part.characters
        return part

    def hand_over(self) -> tuple[int, int]:
        """Hand everything to the store; return how many records that were, and how many had given way."""
        written, dropped = self.waiting, self.dropped
        while self._parts:
            self._take().write()
        self.dropped = 0
        return written, dropped
