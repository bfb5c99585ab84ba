"""How values stand in the database: texts, audit entries as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from pegboard.ports import AuditRecord

Column = str | bytes | int | float | None

AUDIT_COLUMNS = AuditRecord._fields


def to_column(text: str) -> str | bytes:
    """Return the text as it is bound: bytes where SQLite cannot hold it as text (lone surrogates, NUL).

    A text always has the same form, so equality in SQL is equality of the texts.
    """
    if "\0" not in text:
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return text.encode("utf-8", "surrogatepass")


def from_column(value: str | bytes) -> str:
    """Return the text that :func:`to_column` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def entry_to_row(entry: AuditRecord) -> tuple[Column, ...]:
    """Return the columns of an audit entry in the order of ``AUDIT_COLUMNS``; the time as ISO text."""
    at, kind, principal, agent, session, turn, subject, decision, reason, duration, outcome, arguments, by = entry
    texts = f"{kind}{principal}{agent}{session}{subject}{decision}{reason}{outcome}{arguments}{by}"
    if texts.isascii() and "\0" not in texts:
        return (
            at.isoformat(), kind, principal, agent, session, turn, subject, decision, reason, duration, outcome,
            arguments, by,
        )  # fmt: skip
    return tuple(map(_to_cell, entry))


def entry_from_row(row: tuple[Any, ...]) -> AuditRecord:
    """Return the audit entry that :func:`entry_to_row` was given."""
    if bytes in map(type, row):
        row = tuple(from_column(cell) if isinstance(cell, bytes) else cell for cell in row)
    return AuditRecord(datetime.fromisoformat(row[0]), *cast("tuple[Any, ...]", row[1:]))


def intact_entry_from_row(row: tuple[Any, ...]) -> AuditRecord | None:
    """Return the audit entry, or None where a column holds what :func:`entry_to_row` never writes."""
    try:
        entry = entry_from_row(row)
        entry.at.timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    texts = (entry.kind, entry.principal, entry.agent, entry.session, entry.subject, entry.decision, entry.outcome)
    numbered = type(entry.turn) is int and (entry.duration is None or type(entry.duration) in (int, float))
    return entry if numbered and all(type(text) is str for text in texts) else None


def _to_cell(value: datetime | str | float | None) -> Column:
    match value:
        case str():
            return to_column(value)
        case datetime():
            return value.isoformat()
        case _:
            return value
