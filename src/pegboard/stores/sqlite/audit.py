"""The audit trail in the database: decisions at once, calls in batches (S2, X4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pegboard.ports import (
    PART,
    AuditPart,
    AuditRecord,
    CallDetails,
    NumberedRecord,
    TrailPage,
    mentions,
)
from pegboard.stores.rows.waiting_records import WaitingRecords
from pegboard.stores.sqlite import calls
from pegboard.stores.sqlite.codec import (
    AUDIT_COLUMNS,
    entry_from_row,
    entry_to_row,
    from_column,
    intact_entry_from_row,
    to_column,
)

if TYPE_CHECKING:
    import sqlite3

    from pegboard.ports import AuditFilter

TRIMMED_EVERY = 16 * 1024 * 1024
"""After how many characters of details it is looked whether they are too many."""
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)

_INSERT = f"INSERT INTO audit ({', '.join(AUDIT_COLUMNS)}) VALUES ({', '.join('?' * len(AUDIT_COLUMNS))})"  # noqa: S608
_EXTENT = "SELECT (SELECT min(id) FROM audit), (SELECT max(id) FROM audit)"  # both at once would be a scan

# Plain text is looked for by SQLite, which is ten times as fast; only it knows no case but that of ASCII.
_MENTIONED = "mentions(subject, reason, by)"
_CELLS = ("subject", "reason", "by")
_MENTIONS = (
    "(instr(lower(subject), ?) OR instr(lower(reason), ?) OR instr(lower(by), ?)"
    " OR ('blob' IN (typeof(subject), typeof(reason), typeof(by)) OR subject || reason || by GLOB '*[^ -~]*')"
    f" AND {_MENTIONED})"
)

_NONE: Mapping[int, CallDetails] = {}


class AuditQueue(WaitingRecords):
    """The audit entries that are not written yet; ``keep`` is how many stay in the table."""

    __slots__ = ("_keep", "_trim_every", "_untrimmed")

    def __init__(self, flush: Callable[[], Awaitable[None]], *, keep: int) -> None:
        super().__init__(flush)
        self._keep = keep
        self._trim_every = max(1, min(1024, keep // 10))
        self._untrimmed = 0

    def insert(self, connection: sqlite3.Connection) -> int:
        """Write what waits, inside the caller's transaction; return how many entries that were."""
        return self.write(connection, self._entries, self._details)

    def write(
        self, connection: sqlite3.Connection, entries: Sequence[AuditRecord], details: Mapping[int, CallDetails] = _NONE
    ) -> int:
        """Write entries inside the caller's transaction, and remove surplus old ones; return how many were written."""
        if not entries:
            return 0
        rows = [entry_to_row(entry) for entry in entries]
        if rows[:-1]:
            connection.executemany(_INSERT, rows[:-1])
        last = connection.execute(_INSERT, rows[-1]).lastrowid or 0
        if details:
            calls.write(connection, last - len(rows) + 1, details)
            self._untrimmed += self._size
        if self._untrimmed > TRIMMED_EVERY:
            self._untrimmed = 0
            calls.trim(connection, last - self._keep)
        if last // self._trim_every != (last - len(rows)) // self._trim_every:
            connection.execute("DELETE FROM audit WHERE id <= ?", (last - self._keep,))
            calls.trim(connection, last - self._keep)
        return len(rows)


def select_entries(connection: sqlite3.Connection, wanted: Mapping[str, str | None], limit: int) -> list[AuditRecord]:
    """Return the newest entries whose columns have the wanted values (None: any), newest first."""
    filters = {name: to_column(value) for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in filters) or "1"
    rows = connection.execute(
        f"SELECT {', '.join(AUDIT_COLUMNS)} FROM audit WHERE {where} ORDER BY id DESC LIMIT ?",  # noqa: S608
        (*filters.values(), max(limit, 0)),
    ).fetchall()
    return [entry_from_row(row) for row in rows]


def select_trail(connection: sqlite3.Connection, after: int, agent: str | None, limit: int) -> TrailPage:
    """Return the entries behind an id, oldest first; one whose columns hold something else is counted, not raised."""
    rows = connection.execute(
        f"SELECT id, {', '.join(AUDIT_COLUMNS)} FROM audit WHERE id > ?1 AND (?2 IS NULL OR agent = ?2)"  # noqa: S608
        " ORDER BY id LIMIT ?3",
        (after, None if agent is None else to_column(agent), limit),
    ).fetchall()
    entries = [entry for _, *cells in rows if (entry := intact_entry_from_row(tuple(cells))) is not None]
    return TrailPage(entries, rows[-1][0] if len(rows) == limit else None, len(rows) - len(entries))


def select_part(
    connection: sqlite3.Connection, wanted: AuditFilter, *, before: int | None, after: int | None, limit: int
) -> AuditPart:
    """Return the wanted entries of the next ``PART`` ids, newest first, or behind ``after`` oldest first."""
    oldest, newest = connection.execute(_EXTENT).fetchone()
    if oldest is None:
        return AuditPart([], None, after or 0)
    if after is not None:
        first = max(min(after, newest) + 1, oldest)
        last, order = min(first + PART - 1, newest), "ASC"
    else:
        last = newest if before is None else min(before - 1, newest)
        first, order = max(last - PART + 1, oldest), "DESC"
    filters, values = _conditions(connection, wanted)
    rows = connection.execute(
        f"SELECT id, {', '.join(AUDIT_COLUMNS)} FROM audit WHERE id BETWEEN ? AND ?{filters}"  # noqa: S608 - constants
        f" ORDER BY id {order} LIMIT ?",
        (first, last, *values, limit),
    ).fetchall()
    intact = [(number, intact_entry_from_row(tuple(cells))) for number, *cells in rows]
    records = [NumberedRecord(number, entry) for number, entry in intact if entry is not None]
    end = last if after is not None else first
    seen = rows[-1][0] if len(rows) == limit else end
    left = seen < newest if after is not None else seen > oldest
    return AuditPart(records, seen if left else None, newest, len(rows) - len(records))


def _conditions(connection: sqlite3.Connection, wanted: AuditFilter) -> tuple[str, list[Any]]:
    """Return what a row has to fulfil, and the values of it; a text is looked for by a function of the connection."""
    names = ("principal", "agent", "session", "kind", "decision", "outcome")
    equal = {name: getattr(wanted, name) for name in names}
    filters = {f"{name} = ?": to_column(value) for name, value in equal.items() if value is not None}
    if wanted.since is not None:
        filters["at >= ?"] = _moment(wanted.since)
    if wanted.until is not None:
        filters["at < ?"] = _moment(wanted.until)
    values: list[Any] = list(filters.values())
    if wanted.agents is not None:
        filters[f"agent IN ({', '.join('?' * len(wanted.agents))})"] = ""
        values += map(to_column, wanted.agents)
    if wanted.text:
        connection.create_function("mentions", 3, partial(_mentions, wanted.text.casefold()))
        plain = wanted.text.isascii() and "\0" not in wanted.text
        filters[_MENTIONS if plain else _MENTIONED] = ""
        values += [wanted.text.lower()] * len(_CELLS) if plain else []
    return "".join(f" AND {condition}" for condition in filters), values


def _moment(at: datetime) -> str:
    """Return a moment in UTC; one that is outside of what UTC can write is its first or last."""
    try:
        return at.astimezone(UTC).isoformat()
    except OverflowError:
        return (_FIRST if at.year == 1 else _LAST).isoformat()


def _mentions(text: str, *cells: Any) -> bool:
    return mentions(text, *[from_column(cell) for cell in cells if isinstance(cell, str | bytes)])
