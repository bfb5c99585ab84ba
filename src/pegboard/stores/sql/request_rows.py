"""Records as rows: numbers, and two rows of names that many records share; and those that are not written yet (X4, S2).

A call takes a third of what it took with its names in its own row, and is written as quickly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from pegboard.ports import MOST_UNWRITTEN, AuditRecord, CallDetails, CallNumbers
from pegboard.stores.sql.cleaning import Cleaning, OldRequests
from pegboard.stores.sql.database import EPOCH, Database, Transaction, insert, key_of, microseconds, one_of

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
ADD_IF_KNOWN: Final = (
    f"{_INTO} SELECT {_CELLS}, s.id, n.id FROM main.request_session AS s, main.request_names AS n"  # noqa: S608
    " WHERE s.key = ? AND n.key = ?"
)
"""Add a row in SQLite where its names are stored, else none."""

_FIELDS: Final = AuditRecord._fields
_DIGEST: Final = re.compile("[0-9a-f]{16}")
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


@lru_cache(maxsize=4096)
def names_key(*names: str) -> bytes:
    """Return the key of a row of names."""
    return bytes.fromhex(key_of(*names))


def request_row(record: AuditRecord, details: CallDetails, call: bool) -> tuple[Any, ...]:
    """Return the values of a row.

    ``days`` are those that a call is kept, and less than 0 those of the details of a decision.
    """
    at, kind, principal, agent, session, turn, subject, decision, reason, duration, outcome, arguments, by = record
    numbers, text, days = details
    queued, waited, upstream, sent, received = numbers
    return (
        microseconds(at), turn, reason, None if duration is None else round(duration * 1000), _digest_bytes(arguments),
        None if queued is None else round(queued * 1000), None if waited is None else round(waited * 1000),
        None if upstream is None else round(upstream * 1000), sent, received,
        days if call else -days if text else 0, len(text) or None, text or None,
        names_key(principal, agent, session), names_key(kind, subject, decision, outcome, by),
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


def _digest_bytes(text: str) -> bytes:
    r"""Return a digest in eight bytes, and any other text in any other number of them.

    >>> _digest_bytes("0123456789abcdef"), _digest_bytes(""), _digest_bytes("no digit")
    (b'\x01#Eg\x89\xab\xcd\xef', b'', b'\xffno digit')
    """
    if _DIGEST.fullmatch(text):
        return bytes.fromhex(text)
    found = text.encode("utf-8", "surrogatepass")
    return _NO_DIGEST + found if len(found) == 8 else found


def _digest_text(found: bytes) -> str:
    """Return the text of which :func:`_digest_bytes` made these.

    >>> [_digest_text(_digest_bytes(text)) for text in ("0123456789abcdef", "", "no digit")]
    ['0123456789abcdef', '', 'no digit']
    """
    return found.hex() if len(found) == 8 else found.removeprefix(_NO_DIGEST).decode("utf-8", "surrogatepass")


MOST_PENDING: Final = 100_000
"""How many are pending at most while they cannot be written; the oldest are dropped."""

_FEW: Final = 4
"""Of how many records it is tried first whether their names are stored, where no message has to be sent for that."""
_NO_DETAILS: Final = CallDetails()
PendingRecord = tuple[AuditRecord, CallDetails, bool]
"""A record, what is kept beside it, and whether it is a call, which goes with its days."""


class PendingRecords:
    """The records that are not written yet."""

    def __init__(self, database: Database, cleaning: Cleaning) -> None:
        self._tries_few: Final = not database.answers_get_lost
        self._cleaning: Final = cleaning
        self.old: Final = OldRequests()
        self.rows: list[PendingRecord] = []
        self._pending_size = 0

    @staticmethod
    def of(decisions: Sequence[AuditRecord]) -> list[PendingRecord]:
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

    def written(self, taken: Sequence[PendingRecord]) -> None:
        """Remove some old records where it is time to."""
        decisions = len(taken) - sum([call for _, _, call in taken])
        self.old.written(decisions, sum([len(details.text) for _, details, _ in taken]))
        self._cleaning.schedule(len(taken))

    async def put(self, transaction: Transaction, taken: Sequence[PendingRecord]) -> None:
        """Write records in their order."""
        await transaction.in_order()
        rows, done = [request_row(*one) for one in taken], 0
        if self._tries_few and len(rows) <= _FEW:
            while done < len(rows) and await transaction.changed(ADD_IF_KNOWN, *rows[done]):
                done += 1
        rows, taken = rows[done:], taken[done:]
        if not rows:
            return
        sessions = {row[-2]: _session_of(record) for row, (record, _, _) in zip(rows, taken, strict=True)}
        names = {row[-1]: _names_of(record) for row, (record, _, _) in zip(rows, taken, strict=True)}
        if self._tries_few:  # then each is looked for once, not for each of its records
            of_session = await _numbers(transaction, "request_session", ADD_SESSION, sessions)
            of_names = await _numbers(transaction, "request_names", ADD_NAMES, names)
            numbered = [(*row[:-2], of_session[row[-2]], of_names[row[-1]]) for row in rows]
            await transaction.many(ADD_NUMBERED, numbered)
            return
        await transaction.many(ADD_SESSION, [(key, *row) for key, row in sessions.items()])
        await transaction.many(ADD_NAMES, [(key, *row) for key, row in names.items()])
        await transaction.many(ADD, rows)


async def _numbers(
    transaction: Transaction, table: str, add: str, rows: Mapping[bytes, tuple[str, ...]]
) -> Mapping[bytes, int]:
    """Return the numbers of rows by their keys; rows that are missing are added."""
    condition, keys = one_of("key", rows)
    query = f"SELECT key, id FROM main.{table} WHERE {condition}"  # noqa: S608 - a constant
    found = dict(await transaction.rows(query, *keys))
    if len(found) < len(rows):
        await transaction.many(add, [(key, *row) for key, row in rows.items() if key not in found])
        found = dict(await transaction.rows(query, *keys))
    return found
