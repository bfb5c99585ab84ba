"""Records as rows: numbers, and two rows of names that many records share; and those that are not written yet (X4, S2).

A call takes a third of what it took with its names in its own row, and is written as quickly.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from pegboard.ports import MOST_UNWRITTEN, AuditRecord, CallDetails, CallNumbers
from pegboard.stores.sql.cleaning import Cleaning, OldRequests
from pegboard.stores.sql.database import EPOCH, Transaction, condition_of_values, insert, key_of

SESSION: Final = ("principal", "agent", "session")
NAMES: Final = ("kind", "subject", "decision", "outcome", "by")
ADD_SESSION: Final = insert("request_session", ("key", *SESSION), key=("key",), keep=SESSION)
ADD_NAMES: Final = insert("request_names", ("key", *NAMES), key=("key",), keep=NAMES)
_OWN: Final = (
    "at", "turn", "reason", "duration", "arguments", *CallNumbers._fields, "days", "size", "details"
)  # fmt: skip
_ID_OF: Final = "(SELECT id FROM main.{} WHERE key = ?)"
_INTO: Final = f"INSERT INTO main.request ({', '.join((*_OWN, 'of_session', 'of_names'))})"
_CELLS: Final = ", ".join("?" * len(_OWN))
ADD: Final = f"{_INTO} VALUES ({_CELLS}, {_ID_OF.format('request_session')}, {_ID_OF.format('request_names')})"
ADD_NUMBERED: Final = f"{_INTO} VALUES ({_CELLS}, ?, ?)"

_FIELDS: Final = AuditRecord._fields
_is_digest: Final = re.compile("[0-9a-f]{16}").fullmatch
_NO_DIGEST: Final = b"\xff"
"""What stands before a text that would be taken for a digest."""
_session_of: Final = attrgetter(*SESSION)
_names_of: Final = attrgetter(*NAMES)
_TEXT: Final = frozenset({str})
_NUMBER: Final = frozenset({int})
_TYPES: Final = tuple(
    {"at": _NUMBER, "turn": _NUMBER, "duration": frozenset({int, type(None)}), "arguments": frozenset({bytes})}.get(
        name, _TEXT
    )
    for name in _FIELDS
)


Names = tuple[str, ...]
"""The names of a row that many records share."""


@lru_cache(maxsize=4096)
def names_key(*names: str) -> bytes:
    """Return the key of a row of names."""
    return bytes.fromhex(key_of(*names))


class _NameKeys(dict[Names, Any]):
    """The keys of rows of names, made when they are looked up."""

    def __missing__(self, names: Names) -> bytes:
        key = self[names] = names_key(*names)
        return key


def request_row(
    record: AuditRecord, details: CallDetails, call: bool, sessions: Mapping[Names, Any], names: Mapping[Names, Any]
) -> tuple[Any, ...]:
    """Return the values of a row, the last two as they are in the mappings; raises ``KeyError`` where one is missing.

    ``days`` are those that a call is kept, and less than 0 those of the details of a decision.
    """
    at, kind, principal, agent, session, turn, subject, decision, reason, duration, outcome, arguments, by = record
    (queued, waited, upstream, sent, received), text, days = details
    since = at - EPOCH
    return (
        (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, turn, reason,
        None if duration is None else round(duration * 1000),
        bytes.fromhex(arguments) if _is_digest(arguments) else _text_bytes(arguments),
        None if queued is None else round(queued * 1000), None if waited is None else round(waited * 1000),
        None if upstream is None else round(upstream * 1000), sent, received,
        days if call else -days if text else 0, len(text) or None, text or None,
        sessions[principal, agent, session], names[kind, subject, decision, outcome, by],
    )  # fmt: skip


def record_of(row: Sequence[Any]) -> AuditRecord | None:
    """Return a record, or None where a column holds what :func:`request_row` never writes."""
    if any(type(cell) not in types for cell, types in zip(row, _TYPES, strict=True)):
        return None
    found = AuditRecord._make(row)
    try:
        at, arguments = EPOCH + timedelta(microseconds=row[0]), _digest_text(row[_FIELDS.index("arguments")])
    except (OverflowError, UnicodeDecodeError):
        return None
    return found._replace(at=at, duration=milliseconds(found.duration), arguments=arguments)


def milliseconds(microseconds: float | None) -> float | None:
    """Return microseconds in milliseconds."""
    return None if microseconds is None else microseconds / 1000


def _text_bytes(text: str) -> bytes:
    r"""Return a text that is no digest in any number of bytes but the eight of one.

    >>> _text_bytes(""), _text_bytes("no digit")
    (b'', b'\xffno digit')
    """
    found = text.encode("utf-8", "surrogatepass")
    return _NO_DIGEST + found if len(found) == 8 else found


def _digest_text(found: bytes) -> str:
    r"""Return the text of which these bytes were made.

    >>> [_digest_text(found) for found in (b"\x01#Eg\x89\xab\xcd\xef", b"", _text_bytes("no digit"))]
    ['0123456789abcdef', '', 'no digit']
    """
    return found.hex() if len(found) == 8 else found.removeprefix(_NO_DIGEST).decode("utf-8", "surrogatepass")


MOST_PENDING: Final = 100_000
"""How many are pending at most while they cannot be written; the oldest are dropped."""

_MOST_NUMBERS: Final = 4_096
"""Of how many rows of names of a table the numbers are kept."""
_NO_DETAILS: Final = CallDetails()
PendingRecord = tuple[AuditRecord, CallDetails, bool]
"""A record, what is kept beside it, and whether it is a call, which goes with its days."""


class PendingRecords:
    """The records that are not written yet."""

    def __init__(self, cleaning: Cleaning) -> None:
        self._cleaning: Final = cleaning
        self.old: Final = OldRequests()
        self.rows: list[PendingRecord] = []
        self._pending_size = 0
        self._numbers = _KnownNumbers()

    @staticmethod
    def records_of(decisions: Sequence[AuditRecord]) -> list[PendingRecord]:
        """Return decisions as they are written, without details."""
        return [(entry, _NO_DETAILS, False) for entry in decisions]

    def add(self, entry: AuditRecord, details: CallDetails | None, call: bool) -> None:
        """Take a record; of one whose details are too much to keep in memory, the numbers alone are kept."""
        if details is not None and details.text:
            if self._pending_size + len(details.text) > MOST_UNWRITTEN:
                details = details._replace(text="")
            self._pending_size += len(details.text)
        self.rows.append((entry, details or _NO_DETAILS, call))

    def take(self, most: int) -> list[PendingRecord]:
        """Return the oldest, which are pending no longer."""
        taken, self.rows = self.rows[:most], self.rows[most:]
        if self._pending_size:
            self._pending_size -= sum(len(details.text) for _, details, _ in taken)
        return taken

    def drop_surplus(self) -> int:
        """Drop the oldest where there are too many; return how many."""
        return len(self.take(max(0, len(self.rows) - MOST_PENDING)))

    def note_written(self, taken: Sequence[PendingRecord]) -> None:
        """Remove some old records where it is time to."""
        decisions = details = 0
        for _, one, call in taken:
            if not call:
                decisions += 1
            if one.text:
                details += len(one.text)
        self.old.note_written(decisions, details)
        self._cleaning.schedule(len(taken))

    async def put(self, transaction: Transaction, taken: Sequence[PendingRecord]) -> None:
        """Write records in their order."""
        await transaction.in_order()
        others = await transaction.commits_of_others()
        if others is None:
            sessions, names = _NameKeys(), _NameKeys()
            rows = [request_row(*one, sessions, names) for one in taken]
            await transaction.run_many(ADD_SESSION, [(key, *row) for row, key in sessions.items()])
            await transaction.run_many(ADD_NAMES, [(key, *row) for row, key in names.items()])
            await transaction.run_many(ADD, rows)
            return
        state = others, self.old.names_removed
        sessions, names = self._numbers.found if state == self._numbers.state else self._numbers.forget(state)
        try:
            if len(taken) == 1:
                await transaction.run(ADD_NUMBERED, *request_row(*taken[0], sessions, names))
                return
            rows = [request_row(*one, sessions, names) for one in taken]
        except KeyError:  # then each is looked for once, not for each of its records
            sessions = await _numbers_of_names(
                transaction, "request_session", ADD_SESSION, {_session_of(one) for one, _, _ in taken}, sessions
            )
            names = await _numbers_of_names(
                transaction, "request_names", ADD_NAMES, {_names_of(one) for one, _, _ in taken}, names
            )
            rows = [request_row(*one, sessions, names) for one in taken]
        await transaction.run_many(ADD_NUMBERED, rows)


class _KnownNumbers:
    """The numbers of names that are stored, as long as no other process has written and none was removed.

    ``found`` are those of sessions and of names that are known in a ``state`` of the file.
    """

    __slots__ = ("found", "state")

    def __init__(self) -> None:
        self.forget(None)

    def forget(self, state: object) -> tuple[dict[Names, int], dict[Names, int]]:
        """Begin with no numbers, in another state."""
        self.state = state
        self.found: tuple[dict[Names, int], dict[Names, int]] = {}, {}
        return self.found


async def _numbers_of_names(
    transaction: Transaction, table: str, add: str, wanted: Collection[Names], known: dict[Names, int]
) -> Mapping[Names, int]:
    """Return the numbers of rows of names; those that are missing are added, and not known before that is committed."""
    if len(known) > _MOST_NUMBERS:
        known.clear()
    missing = {names_key(*row): row for row in wanted if row not in known}
    if not missing:
        return known
    condition, keys = condition_of_values("key", missing)
    query = f"SELECT key, id FROM main.{table} WHERE {condition}"  # noqa: S608 - a constant
    stored = await transaction.rows(query, *keys)
    known.update((missing.pop(key), number) for key, number in stored)
    if not missing:
        return known
    await transaction.run_many(add, [(key, *row) for key, row in missing.items()])
    condition, keys = condition_of_values("key", missing)
    added = await transaction.rows(f"SELECT key, id FROM main.{table} WHERE {condition}", *keys)  # noqa: S608
    return {**known, **{missing[key]: number for key, number in added}}
