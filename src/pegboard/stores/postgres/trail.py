"""The audit trail in the database, and what is kept of calls under the numbers of their records (X4)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import PART, AuditPart, AuditRecord, CallDetails, NumberedRecord, SessionKey, TrailPage, mentions
from pegboard.stores.postgres.texts import from_column, key_of, to_column

if TYPE_CHECKING:
    from pegboard.ports import AuditFilter
    from pegboard.stores.postgres.database import Database, Row, Statement

TRIMMED_EVERY: Final = 16 * 1024 * 1024
"""After how many characters of details it is looked whether they are too many."""
_ENDED_AT_ONCE: Final = 1_000
"""How many details whose days are over go with one batch."""
_KINDS: Final = {"turn": "bigint", "duration": "float8"}
_FIELDS: Final = ", ".join(AuditRecord._fields)
_GIVEN: Final = ("of", "moment", *AuditRecord._fields)
_NAMES: Final = ", ".join(_GIVEN)
_ARRAYS: Final = ", ".join(
    f"%s::{({'of': 'bytea', 'moment': 'timestamptz'} | _KINDS).get(name, 'text')}[]" for name in _GIVEN
)
_ADD: Final = (
    f"INSERT INTO {{s}}.audit ({_NAMES}) SELECT {_NAMES} FROM unnest({_ARRAYS}) WITH ORDINALITY"  # noqa: S608 - constants
    f" AS given ({_NAMES}, place) ORDER BY place RETURNING id"
)
_ADD_WITH_DETAILS: Final = (
    f"WITH added AS ({_ADD}), kept AS (INSERT INTO {{s}}.calls SELECT (SELECT min(id) FROM added) + place, until, size,"  # noqa: S608
    " text FROM unnest(%s::bigint[], %s::float8[], %s::bigint[], %s::text[]) AS given (place, until, size, text))"
    " SELECT max(id) FROM added"
)
_ADD_ALONE: Final = f"WITH added AS ({_ADD}) SELECT max(id) FROM added"  # noqa: S608 - constants
_ENDED: Final = "DELETE FROM {s}.calls WHERE id IN (SELECT id FROM {s}.calls WHERE until <= %s LIMIT %s)"
_TOO_LARGE: Final = (
    "DELETE FROM {s}.calls WHERE id <= (SELECT max(id) FROM"
    " (SELECT id, sum(size) OVER (ORDER BY id DESC) AS behind FROM {s}.calls) AS newest WHERE behind > %s)"
)


def writing(records: Sequence[AuditRecord], details: Mapping[int, CallDetails]) -> list[Statement]:
    """Return the statements that store records in their order, with details by place; the first returns the last id."""
    rows = zip(*map(_row, records), strict=True)
    columns = tuple(map(list, rows))
    if not details:
        return [(_ADD_ALONE, columns)]
    kept = [(at, one.until, len(one.text), to_column(one.text)) for at, one in details.items()]
    return [
        (_ADD_WITH_DETAILS, (*columns, *map(list, zip(*kept, strict=True)))),
        (_ENDED, (time.time(), _ENDED_AT_ONCE)),
    ]


def trimming(gone: int, most: int) -> list[Statement]:
    """Return the statements that remove old records, and the details that are theirs or too large in all."""
    return [
        ("DELETE FROM {s}.audit WHERE id <= %s", (gone,)),
        ("DELETE FROM {s}.calls WHERE id <= %s", (gone,)),
        (_TOO_LARGE, (most,)),
    ]


def _row(record: AuditRecord) -> tuple[Any, ...]:
    at, *cells = record
    texts = (to_column(cell) if isinstance(cell, str) else cell for cell in cells)
    return key_of(record.principal, record.agent, record.session), at, at.isoformat(), *texts


def _record(row: Row) -> AuditRecord:
    cells: list[Any] = [from_column(cell) if isinstance(cell, str) else cell for cell in row]
    return AuditRecord(datetime.fromisoformat(cells[0]), *cells[1:])


def _numbered(rows: Sequence[Row]) -> list[NumberedRecord]:
    return [NumberedRecord(row[0], _record(row[1:])) for row in rows]


async def select_details(database: Database, number: int) -> str | None:
    """Return what is kept of a call, or None where nothing is."""
    rows = await database.read("SELECT text FROM {s}.calls WHERE id = %s AND until > %s", (number, time.time()))
    return from_column(rows[0][0]) if rows else None


async def select_numbered(database: Database, number: int) -> AuditRecord | None:
    """Return a record by its number, or None."""
    rows = await database.read(f"SELECT {_FIELDS} FROM {{s}}.audit WHERE id = %s", (number,))  # noqa: S608 - constants
    return _record(rows[0]) if rows else None


async def select_session(
    database: Database,
    key: SessionKey,
    before: int | None,
    after: int | None,
    kinds: Collection[str],
    limit: int,
) -> list[NumberedRecord]:
    """Return records of a session, newest first, or behind ``after`` oldest first."""
    where, values = "of = %s", list[Any]([key_of(key.principal, key.agent, key.session)])
    for number, condition in ((before, "id < %s"), (after, "id > %s")):
        if number is not None:
            where += f" AND {condition}"
            values.append(number)
    if kinds:
        where += " AND kind = ANY(%s::text[])"
        values.append([to_column(kind) for kind in kinds])
    order = "DESC" if after is None else "ASC"
    query = f"SELECT id, {_FIELDS} FROM {{s}}.audit WHERE {where} ORDER BY id {order} LIMIT %s"  # noqa: S608 - constants
    return _numbered(await database.read(query, (*values, max(limit, 0))))


async def select_entries(database: Database, wanted: Mapping[str, str | None], limit: int) -> list[AuditRecord]:
    """Return the newest entries whose columns have the wanted values (None: any), newest first."""
    filters = {name: to_column(value) for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"{name} = %s" for name in filters) or "true"
    query = f"SELECT {_FIELDS} FROM {{s}}.audit WHERE {where} ORDER BY id DESC LIMIT %s"  # noqa: S608 - constants
    return [_record(row) for row in await database.read(query, (*filters.values(), max(limit, 0)))]


async def select_trail(database: Database, after: int, agent: str | None, limit: int) -> TrailPage:
    """Return the entries behind an id, oldest first."""
    where, values = "id > %s", list[Any]([after])
    if agent is not None:
        where += " AND agent = %s"
        values.append(to_column(agent))
    query = f"SELECT id, {_FIELDS} FROM {{s}}.audit WHERE {where} ORDER BY id LIMIT %s"  # noqa: S608 - constants
    rows = await database.read(query, (*values, limit))
    return TrailPage([_record(row[1:]) for row in rows], rows[-1][0] if rows and len(rows) == limit else None)


async def select_part(
    database: Database, wanted: AuditFilter, *, before: int | None, after: int | None, limit: int
) -> AuditPart:
    """Return the wanted entries of the next ``PART`` ids, newest first, or behind ``after`` oldest first."""
    oldest, newest = (await database.read("SELECT (SELECT min(id) FROM {s}.audit), (SELECT max(id) FROM {s}.audit)"))[0]
    if oldest is None:
        return AuditPart([], None, after or 0)
    if after is not None:
        first = max(min(after, newest) + 1, oldest)
        last, order = min(first + PART - 1, newest), "ASC"
    else:
        last = newest if before is None else min(before - 1, newest)
        first, order = max(last - PART + 1, oldest), "DESC"
    where, values = _conditions(wanted)
    query = f"SELECT id, {_FIELDS} FROM {{s}}.audit WHERE id BETWEEN %s AND %s{where} ORDER BY id {order}"  # noqa: S608
    found = _numbered(await database.read(f"{query} LIMIT %s", (first, last, *values, PART if wanted.text else limit)))
    if wanted.text:
        text = wanted.text.casefold()
        found = [one for one in found if mentions(text, one.record.subject, one.record.reason, one.record.by)][:limit]
    end = last if after is not None else first
    seen = found[-1].number if len(found) == limit and found else end
    left = seen < newest if after is not None else seen > oldest
    return AuditPart(found, seen if left else None, newest)


def _conditions(wanted: AuditFilter) -> tuple[str, list[Any]]:
    """Return what a row has to fulfil, and the values of it; of a text only what a comparison without case finds."""
    names = ("principal", "agent", "session", "kind", "decision", "outcome")
    equal = {name: getattr(wanted, name) for name in names}
    filters: dict[str, list[Any]] = {
        f"{name} = %s": [to_column(value)] for name, value in equal.items() if value is not None
    }
    if wanted.since is not None:
        filters["moment >= %s::timestamptz"] = [wanted.since]
    if wanted.until is not None:
        filters["moment < %s::timestamptz"] = [wanted.until]
    if wanted.agents is not None:
        filters["agent = ANY(%s::text[])"] = [[to_column(agent) for agent in wanted.agents]]
    if wanted.text and wanted.text.isascii():
        cells = [f"strpos(lower({name}), %s) > 0" for name in ("subject", "reason", "by")]
        odd = r"subject || reason || by ~ '[^\x20-\x7e]'"
        filters[f"({' OR '.join(cells)} OR {odd})"] = [to_column(wanted.text.lower())] * len(cells)
    return "".join(f" AND {condition}" for condition in filters), [one for values in filters.values() for one in values]
