"""The counts by time: one table of every unit, added to in batches, and sums over it (F4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pegboard.errors import StoreError
from pegboard.ports.counts import (
    EVERYTHING_COUNTED,
    MOST_GREATEST,
    STEP,
    UNITS,
    CountFilter,
    CountName,
    CountNames,
    CountRecord,
    Counts,
    CountSums,
    CountUnit,
    Durations,
    fold_names,
    rows_of,
    start_of,
)
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import condition_of_values, key_of, where_clause

if TYPE_CHECKING:
    from pegboard.stores.sql.cleaning import Cleaning
    from pegboard.stores.sql.database import Database, Row, Transaction

LONGEST_DURATIONS: Final = 160
"""How many characters the durations of a row may have before they are added up."""
REMOVED_AT_ONCE: Final = 500
"""How many old rows of a unit are removed at once: some milliseconds."""
FOLDED_AT_ONCE: Final = 100
"""How many rows are summed at once."""

_NAMES: Final = ("principal", "agent", "session", "server", "tool", "outcome")
_COUNTS: Final = Counts._fields
_KEY: Final = ("unit", "start", "key")
_COLUMNS: Final = (*_KEY, *_NAMES, *_COUNTS, "durations")
_ADD: Final = (
    f"INSERT INTO main.request_count AS old ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET"
    f" {', '.join(f'{name} = old.{name} + excluded.{name}' for name in _COUNTS)},"
    " durations = old.durations || excluded.durations"
)
_SUMS: Final = f"{', '.join(f'sum({name})' for name in _COUNTS)}, group_concat(durations, '')"
_STRETCH: Final = "unit = ? AND start = ?"
_EXTENT: Final = f"SELECT count(*), max(length(durations)) FROM main.request_count WHERE {_STRETCH}"  # noqa: S608
_CELLS: Final = ", ".join((*_NAMES, *_COUNTS, "durations"))
_ROWS: Final = f"SELECT key, {_CELLS} FROM main.request_count WHERE {_STRETCH}"  # noqa: S608
_TIMES: Final = (
    f"SELECT key, requests + calls + denials + waits, {', '.join(_NAMES)} FROM main.request_count WHERE {_STRETCH}"  # noqa: S608
)
_LONG: Final = f"SELECT key, durations FROM main.request_count WHERE {_STRETCH} AND length(durations) > ?"  # noqa: S608
_SHORTEN: Final = f"UPDATE main.request_count SET durations = ? WHERE {_STRETCH} AND key = ?"  # noqa: S608
_OLD: Final = (
    "DELETE FROM main.request_count WHERE (unit, start, key) IN"
    " (SELECT unit, start, key FROM main.request_count WHERE unit = ? AND start <= ? ORDER BY start LIMIT ?)"
)
_NUMBERS_AND_TEXTS: Final = frozenset({int, str, Decimal})
"""What a sum and its names are made of; PostgreSQL sums whole numbers as decimal ones."""
Stretch = tuple[CountUnit, int]


class PendingCounts:
    """What is to be added to the counts, one record for each step and names, however long it waits."""

    def __init__(self, cleaning: Cleaning) -> None:
        self._cleaning = cleaning
        self.rows: dict[tuple[int, CountNames], CountRecord] = {}
        self.touched: set[Stretch] = set()
        """Where rows were added since it was looked whether there are too many."""
        self._put: set[Stretch] = set()
        self.newest = 0

    def add(self, records: Iterable[CountRecord]) -> None:
        """Take records."""
        for record in records:
            key = start_of(STEP, record.start), record.names
            known = self.rows.get(key)
            self.rows[key] = record if known is None else known.plus(record)

    def take(self, most: int) -> list[CountRecord]:  # noqa: ARG002 - they are few, and added at once or not at all
        """Return what waits, which waits no longer."""
        taken, self.rows = self.rows, {}
        return [*taken.values()]

    def drop_surplus(self) -> int:
        """Return 0: what waits adds up."""
        return 0

    def note_written(self, taken: Sequence[CountRecord]) -> None:
        """Keep the rows few and remove old ones where it is time to; who looks before sees none of these."""
        self.touched |= self._put
        self._put = set()
        self._cleaning.schedule(len(taken))

    async def put(self, transaction: Transaction, taken: Sequence[CountRecord]) -> None:
        """Add to the rows of every unit."""
        await transaction.in_order()
        for unit in UNITS:
            rows = rows_of(unit, taken).values()
            await transaction.run_many(_ADD, sorted(_row(unit, row) for row in rows))
            if unit.most:
                self._put |= {(unit, row.start) for row in rows}
        self.newest = max(self.newest, *(record.start for record in taken))


async def _keep_few(transaction: Transaction, unit: CountUnit, start: int) -> bool:
    """Sum the rarest rows of a stretch of time where it has too many, and add durations up that are long.

    Returns whether there may be more to do.
    """
    ((number, longest),) = await transaction.rows(_EXTENT, unit.number, start)
    if number > unit.most and await _fold(transaction, unit, start):
        return True
    if (longest or 0) > LONGEST_DURATIONS:
        for key, text in await transaction.rows(_LONG, unit.number, start, LONGEST_DURATIONS):
            await transaction.run(_SHORTEN, _durations_text(_durations(text)), unit.number, start, key)
    return False


async def _fold(transaction: Transaction, unit: CountUnit, start: int) -> bool:
    """Sum some of the rarest rows of a stretch of time, and return whether there were any that can be read."""
    rows = await transaction.rows(_TIMES, unit.number, start)
    keys_and_times = {row[2:]: row[:2] for row in rows if tuple(map(type, row)) == (int, int, *[str] * len(_NAMES))}
    moved = fold_names({names: times for names, (_, times) in keys_and_times.items()}, unit.most)
    wholes = {keys_and_times[names][0]: whole for names, whole in moved.items()}
    condition, keys = condition_of_values("key", islice(wholes, FOLDED_AT_ONCE))
    sums: dict[CountNames, CountRecord] = {}
    gone: list[int] = []
    for key, *row in await transaction.rows(f"{_ROWS} AND {condition}", unit.number, start, *keys):
        if (one := _record_if_sound(start, row)) is not None:
            gone.append(key)
            whole = wholes[key]
            sums[whole] = sums.get(whole, CountRecord(start, *whole)).plus(one)
    condition, keys = condition_of_values("key", gone)
    query = f"DELETE FROM main.request_count WHERE {_STRETCH} AND {condition}"  # noqa: S608 - constants
    await transaction.run(query, unit.number, start, *keys)
    await transaction.run_many(_ADD, sorted(_row(unit, row) for row in sums.values()))
    return bool(gone)


class StoredCounts(StoreBase):
    """The part of the store that keeps the counts."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._counts: Final = PendingCounts(self._cleaning)
        self._batches.kinds.append(self._counts)
        self._cleaning.pieces.extend((self._keep_rows_few, self._remove_old_rows))

    async def _keep_rows_few(self, transaction: Transaction) -> bool:
        """Look at one stretch of time to which rows were added."""
        touched = self._counts.touched
        if touched:
            stretch = min(touched)
            touched.discard(stretch)  # what is written from here on is looked at again
            more = True
            try:
                more = await _keep_few(transaction, *stretch)
            finally:
                if more:
                    touched.add(stretch)
        return bool(touched)

    async def _remove_old_rows(self, transaction: Transaction) -> bool:
        """Remove rows of each unit that are older than they are kept."""
        newest = self._counts.newest
        gone = [
            await transaction.changed(_OLD, unit.number, newest - unit.kept - unit.seconds, REMOVED_AT_ONCE)
            for unit in UNITS
        ]
        return REMOVED_AT_ONCE in gone

    def count_later(self, *records: CountRecord) -> None:
        """Add to the counts within 50 ms, in a batch; where no loop runs, with the next that is written."""
        if records:
            self._require_open()
            self._counts.add(records)
            self._batches.schedule()

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:
        """Have what was counted handed over with each batch where others go on when this process is killed."""
        if self._db.answers_get_lost:
            self._batches.before_batch.append(hand_over)
        return self._db.answers_get_lost

    async def sums(
        self,
        unit: CountUnit,
        *,
        since: int,
        until: int,
        by: Sequence[CountName],
        of: CountFilter = EVERYTHING_COUNTED,
        greatest: int | None = None,
    ) -> CountSums:
        """Return sums of the rows of a unit; what waits is written before."""
        self._require_open()
        await self._batches.flush()
        read = self._db.rows if unit is STEP else self._db.slow_rows
        condition, values = _conditions(unit, since, until, of)
        found = await self._query_sums(read, by, condition, values, greatest)
        if found is not None:
            return found
        rows = await read(f"SELECT start, {_CELLS} FROM main.request_count{condition}", *values)  # noqa: S608
        return _sums_of_sound(by, rows, greatest)

    async def _query_sums(
        self,
        read: Callable[..., Awaitable[list[Row]]],
        by: Sequence[CountName],
        condition: str,
        values: Sequence[Any],
        greatest: int | None,
    ) -> CountSums | None:
        """Return sums as the database makes them; None where something else than numbers is in a row."""
        names, given = ", ".join(by), list(values)
        number = "0" if greatest is None else "count(*) OVER ()"
        wanted = ", ".join((*by, _SUMS, number))
        query = f"SELECT {wanted} FROM main.request_count{condition}"  # noqa: S608 - constants
        query += f" GROUP BY {names}" if by else ""
        if greatest is not None and by:
            query += f" ORDER BY sum(tokens + arguments + results) DESC, {names} LIMIT ?"
            given.append(max(min(greatest, MOST_GREATEST), 1))
        try:
            rows = [row for row in await read(query, *given) if row[-2] is not None]  # of nothing there is no sum
        except StoreError as error:
            if "integer overflow" in error.message:
                return None
            raise
        if any(not _NUMBERS_AND_TEXTS.issuperset(map(type, row)) for row in rows):
            return None
        places = [CountRecord._fields.index(name) for name in by]
        found = [_sum_of(places, row) for row in rows]
        if greatest is None:
            return CountSums(found)
        found = found[:greatest]
        return CountSums(found, 0, (rows[0][-1] if rows else 0) - len(found))


def _conditions(unit: CountUnit, since: int, until: int, of: CountFilter) -> tuple[str, list[Any]]:
    given = {"principal = ?": of.principal, "agent = ?": of.agent, "session = ?": of.session}
    text, values = where_clause({"unit = ?": unit.number, "start >= ?": since, "start < ?": until, **given})
    if of.agents is None:
        return text, values
    condition, agents = condition_of_values("agent", of.agents)
    return f"{text} AND {condition}", [*values, *agents]


def _sum_of(places: Sequence[int], row: Row) -> CountRecord:
    *named, durations, _ = row
    cells: list[Any] = [*CountRecord()[:7], Counts(*map(int, named[len(places) :])), _durations(durations)]
    for place, cell in zip(places, named, strict=False):
        cells[place] = cell
    return CountRecord(*cells)


def _sums_of_sound(by: Sequence[CountName], rows: Sequence[Row], greatest: int | None) -> CountSums:
    """Return sums of the rows that can be read, and how many cannot."""
    sums: dict[tuple[Any, ...], CountRecord] = {}
    sound = [record for start, *row in rows if (record := _record_if_sound(start, row)) is not None]
    for record in sound:
        names: dict[str, Any] = {name: getattr(record, name) for name in by}
        key = tuple(names.values())
        one = CountRecord(**names, counts=record.counts, durations=record.durations)
        sums[key] = sums[key].plus(one) if key in sums else one
    found = sorted(sums.values(), key=lambda one: (-one.counts.all_tokens, one[:7]))
    shown = found if greatest is None else found[: min(greatest, MOST_GREATEST)]
    return CountSums(shown, len(rows) - len(sound), len(found) - len(shown))


def _row(unit: CountUnit, record: CountRecord) -> tuple[Any, ...]:
    names = record.names
    key = int.from_bytes(bytes.fromhex(key_of(*names))[:8], signed=True)
    return unit.number, record.start, key, *names, *record.counts, _durations_text(record.durations)


def _record_if_sound(start: int, row: Sequence[Any]) -> CountRecord | None:
    """Return a row as a record, or None where something else than numbers is in it."""
    names, counts, durations = row[: len(_NAMES)], row[len(_NAMES) : -1], row[-1]
    if any(type(count) is not int for count in counts) or any(type(text) is not str for text in (*names, durations)):
        return None
    return CountRecord._make((start, *names, Counts(*counts), _durations(durations)))


def _durations_text(durations: Durations) -> str:
    """Return durations as a text to which others can be appended.

    >>> _durations_text({65: 3, 66: 1})
    ' 65*3 66'
    """
    return "".join(f" {bucket}*{calls}" if calls > 1 else f" {bucket}" for bucket, calls in durations.items())


def _durations(text: str) -> Durations:
    """Return the durations of a text, or of several that stand behind each other.

    >>> _durations(" 65*3 66 65")
    {65: 4, 66: 1}
    """
    found: dict[int, int] = {}
    for part in text.split():
        bucket, calls = _bucket_and_calls(part)
        found[bucket] = found.get(bucket, 0) + calls
    return found


@lru_cache(maxsize=10_000)
def _bucket_and_calls(part: str) -> tuple[int, int]:
    bucket, _, calls = part.partition("*")
    return int(bucket), int(calls or 1)
