"""What the store asks of a database, whichever it is: statements, transactions, and news of what others change.

Statements are written once, for SQLite and for PostgreSQL: ``?`` stands for each value, and a table is written as
``main.NAME``. In SQLite that is the table of the open file; the driver for PostgreSQL puts its schema there.
``clock()`` is the time by the clock of the database, in seconds since the epoch; ``group_concat(column, '')`` joins
texts. A moment is stored as a number of microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeVar

from pegboard.errors import StoreError
from pegboard.ports import ChangeToken

T = TypeVar("T")
Row = tuple[Any, ...]

_ESCAPE: Final = "\x1a"
_NOT_STORED: Final = re.compile("[\0\x1a\ud800-\udfff]")
_ESCAPED: Final = re.compile("\x1a([0-9a-f]{4})")

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""From where times are counted: so that they take six bytes in a file until the year 2030, not eight."""


class ChangedMeanwhileError(Exception):
    """Raised in a transaction that finds something else than was read before: nothing of it is stored."""


class Transaction(Protocol):
    """A transaction that has begun."""

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        ...

    async def run(self, sql: str, *values: Any) -> None:
        """Run a statement by the end of the transaction; those before it run first."""
        ...

    async def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run an ``INSERT … VALUES (?, …)`` with many rows by the end of the transaction; no two have one key."""
        ...

    async def changed(self, sql: str, *values: Any) -> int:
        """Run a statement and return how many rows it has changed."""
        ...

    async def erase(self, sql: str, *values: Any) -> int:
        """Remove rows, also from where a file keeps what was removed; return how many there were."""
        ...

    async def in_order(self) -> None:
        """Let what is inserted from now on be numbered in the order in which transactions end."""
        ...

    async def commits_of_others(self) -> object | None:
        """Return a value that changes with each commit of another process; None where asking takes too long."""
        ...

    def announce(
        self,
        *,
        states: Iterable[str] = (),
        uses: Iterable[str] = (),
        permissions: bool = False,
        others: bool = False,
    ) -> None:
        """Let other processes know, once this is committed, what it has changed; keys are those of ``key_of``."""
        ...


class Database(Protocol):
    """A database that is open, or is to be opened; one event loop uses it."""

    @property
    def file_number(self) -> int:
        """Return a number that grows when another file has taken the place of the open one: what was read is void."""
        ...

    @property
    def remembers(self) -> int:
        """Return of how many sessions what was read is kept; 0 where reading is as quick."""
        ...

    @property
    def answers_get_lost(self) -> bool:
        """Return whether a transaction may be committed although an error was raised."""
        ...

    @property
    def lasts(self) -> bool:
        """Return whether it outlives the process."""
        ...

    @property
    def place(self) -> str:
        """Return where it is, as people name it; no password is in it."""
        ...

    @property
    def is_open(self) -> bool:
        """Return whether it is open."""
        ...

    @property
    def hears(self) -> bool:
        """Return whether changes of others are announced: what was read counts until then."""
        ...

    async def open(self, forget: Callable[[str, str | None], None]) -> None:
        """Open it, and make the tables where they are missing.

        ``forget`` is called with ``"s"`` (a session's state) or ``"u"`` (uses) and a key, None for all, when another
        process may have changed it.
        """
        ...

    async def aclose(self) -> None:
        """Let go of it."""
        ...

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        ...

    async def read_together(self, queries: Sequence[str]) -> list[list[Row]]:
        """Return the rows of several queries, which are asked at once."""
        ...

    async def slow_rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query that may take long; nothing else waits for it."""
        ...

    async def write(self, work: Callable[[Transaction], Awaitable[T]], *locks: str) -> T:
        """Return what the work returns once all that it wrote is committed. The work may be run several times.

        ``locks`` name what it reads before it writes: no other transaction that names one of them runs meanwhile. The
        work awaits nothing but the transaction.
        """
        ...

    async def token(self, since: float | None) -> ChangeToken:
        """Return what the database is at now, or was at after ``since`` (``time.monotonic()``)."""
        ...

    def certain_until(self) -> float:
        """Return until when it is certain that what is known without a statement is so (``time.monotonic()``)."""
        ...

    def known_token(self, since: float) -> ChangeToken | None:
        """Return the same where that needs no statement."""
        ...

    async def wait_for_change(self, token: ChangeToken, timeout: float) -> None:
        """Return when another process may have changed something, at the latest after some seconds."""
        ...

    async def catch_up(self) -> bool:
        """Take up what others have changed and was not heard of yet; return whether there was anything."""
        ...

    async def now(self) -> float:
        """Return the time by the clock of the database, in seconds since the epoch."""
        ...

    def clock(self) -> float:
        """Return the same as it was heard last, without waiting."""
        ...


def not_open_error(place: str) -> StoreError:
    """Return the error that a store is not open."""
    return StoreError(f"{place} is not open.", hint="Await `open()` before, and nothing after `aclose()`.")


def escape_value(value: Any) -> Any:
    r"""Return a value as both databases can store it: NUL and halves of characters in a text as their numbers.

    A text always has the same form, so equality in SQL is equality of the texts.

    >>> escape_value("a\0"), escape_value("a"), escape_value(1)
    ('a\x1a0000', 'a', 1)
    """
    if type(value) is not str or (value.isascii() and "\0" not in value and _ESCAPE not in value):
        return value
    return _NOT_STORED.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", value)


def escaped_row(row: Iterable[Any]) -> list[Any]:
    """Return :func:`escaped` of each value, with a function call for those alone that need it."""
    return [
        value
        if type(value) is not str or (value.isascii() and "\0" not in value and _ESCAPE not in value)
        else escape_value(value)
        for value in row
    ]


def escaped_rows(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return rows of values as they are stored; most have nothing to escape, which is seen of all of them at once.

    >>> escaped_rows([("a", 1), ("b", None)])
    [('a', 1), ('b', None)]
    """
    found = list(rows)
    text = "".join([value for row in found for value in row if type(value) is str])
    is_plain = text.isascii() and "\0" not in text and _ESCAPE not in text
    return found if is_plain else [escaped_row(row) for row in found]


def unescaped_rows(rows: Iterable[Row]) -> list[Row]:
    """Return :func:`unescaped` of each value of rows."""
    return [
        tuple([value if type(value) is not str or _ESCAPE not in value else unescape_value(value) for value in row])
        for row in rows
    ]


def unescape_value(value: Any) -> Any:
    r"""Return the value that :func:`escaped` was given.

    >>> unescape_value(escape_value("a\0\x1ab"))
    'a\x00\x1ab'
    """
    if type(value) is not str or _ESCAPE not in value:
        return value
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)


def microseconds(at: datetime) -> int:
    """Return a moment in microseconds since ``EPOCH``."""
    since = at - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


@lru_cache(maxsize=1024)
def key_of(*names: str) -> str:
    """Return a short key for names: in a cache, and in what is announced to others."""
    digest = blake2b(digest_size=16)
    for name in names:
        text = name.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text))
        digest.update(text)
    return digest.hexdigest()


@cache
def insert(
    table: str, columns: Sequence[str], *, key: Sequence[str] = (), keep: Sequence[str] = (), add: bool = False
) -> str:
    """Return the statement that inserts a row.

    With a ``key`` it replaces the row with the same one, but for the columns to ``keep``, or ``add``s to its columns.
    """
    sql = f"INSERT INTO main.{table} AS old ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
    if not key:
        return sql
    rest = [name for name in columns if name not in key and name not in keep]
    changes = ", ".join(f"{name} = {f'old.{name} + ' if add else ''}excluded.{name}" for name in rest)
    return f"{sql} ON CONFLICT ({', '.join(key)}) DO {f'UPDATE SET {changes}' if rest else 'NOTHING'}"


def insert_many(sql: str, rows: int) -> str:
    """Return the statement that inserts so many rows of that which inserts one.

    >>> insert_many("INSERT INTO main.lease (name, holder) VALUES (?, ?) ON CONFLICT DO NOTHING", 2)
    'INSERT INTO main.lease (name, holder) VALUES (?, ?), (?, ?) ON CONFLICT DO NOTHING'
    """
    before, values, after = sql.partition(" VALUES ")
    end = after.find("?)") + 2 if "(SELECT" not in after else len(after)
    return f"{before}{values}{', '.join([after[:end]] * rows)}{after[end:]}"


def where_clause(conditions: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the WHERE of a query and its values, of conditions by their SQL; those of a value None are left out.

    >>> where_clause({"agent = ?": "a", "day > ?": None})
    (' WHERE agent = ?', ['a'])
    """
    given = {sql: value for sql, value in conditions.items() if value is not None}
    return f" WHERE {' AND '.join(given)}" if given else "", list(given.values())


def condition_of_values(column: str, values: Iterable[Any]) -> tuple[str, list[Any]]:
    """Return the condition that a column has one of some values, and the values.

    >>> condition_of_values("kind", ["call", "load"])
    ('kind IN (?, ?)', ['call', 'load'])
    """
    given = list(values)
    return (f"{column} IN ({', '.join('?' * len(given))})" if given else "1 = 0"), given
