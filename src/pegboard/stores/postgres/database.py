"""Connections to one database, and short transactions over them.

Every message is a simple query with its values in it: it may hold several statements, nothing is prepared, and nothing
of a connection outlives a transaction. So all of it works behind a pooler that hands a connection on after each
transaction. A script is one message and one transaction. A transaction with decisions between its statements is two
or more; its last message writes what others order themselves by, and commits, so that no lock of those is held while
a message travels.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pegboard.stores.postgres.refusals import explained, not_opened, runs_again, unavailable
from pegboard.support.backoff import Backoff

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

    from pegboard.stores.postgres.address import PostgresAddress

T = TypeVar("T")
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
"""SQL with "{s}" for the schema and "%s" for each of the values."""
Connection = Any  # psycopg.AsyncConnection, which is imported late

CONNECTIONS: Final = 8
CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 10.0
"""How long the server may take to answer a message; then the connection is given up."""
_KEEPALIVE: Final = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
_log = logging.getLogger("psycopg.pool")
_LIMITS: Final = (
    "SELECT set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', %s, true)"
)


class RefusedError(Exception):
    """Raised by the work of a transaction that finds something else than it expected: nothing is stored."""


class Transaction:
    """A transaction that has begun; what it reads and writes is seen by others once it ends."""

    __slots__ = ("_connection", "_database", "begins", "last")

    def __init__(self, database: Database, connection: Connection, begins: list[Statement]) -> None:
        self._database = database
        self._connection = connection
        self.begins = begins
        """What goes with the first message."""
        self.last: list[Statement] = []
        """What is written in the message that commits."""

    async def run(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of one statement; of one that has none, nothing."""
        message, self.begins = [*self.begins, (query, values)], []
        return (await self._database.send(self._connection, message, locks=True))[-1]

    async def require(self, query: str, values: Sequence[Any] = ()) -> Row:
        """Return the first row of a statement; nothing is stored where it has none."""
        rows = await self.run(query, values)
        self.refuse_unless(bool(rows))
        return rows[0]

    def refuse_unless(self, expected: bool) -> None:
        """End the transaction, and store nothing, unless what was found is as expected."""
        if not expected:
            raise RefusedError


class Database:
    """One database that is open; ``patience`` is for how many seconds a transaction waits for others."""

    __slots__ = ("_address", "_opening", "_patience", "_pool", "_retired", "_spare")

    def __init__(self, address: PostgresAddress, *, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._pool: AsyncConnectionPool[Any] | None = None
        self._opening = asyncio.Lock()
        self._spare: Connection | None = None
        self._retired: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> PostgresAddress:
        """Return where it is."""
        return self._address

    async def connect_to_listen(self) -> Connection:
        """Return a connection as :meth:`connect` does; the first one was made with the pool."""
        spare, self._spare = self._spare, None
        if spare is not None and not _is_stale(spare):
            return spare
        if spare is not None:
            await spare.close()
        return await self.connect()

    async def connect(self) -> Connection:
        """Return a new connection, which the caller closes.

        Raises ``StoreUnavailableError`` where the server cannot be reached now, ``StoreError`` where it refuses.
        """
        import psycopg

        cancellations = _cancellations()
        try:
            async with asyncio.timeout(CONNECT_SECONDS + 1):
                connection = await psycopg.AsyncConnection.connect(**self._parameters())
                if _cancellations() > cancellations:
                    await connection.close()
                    raise asyncio.CancelledError
                return connection
        except TimeoutError as error:
            raise unavailable(self._address, f"it did not answer within {CONNECT_SECONDS} seconds") from error
        except psycopg.Error as error:
            raise not_opened(error, self._address) from None  # its traceback has the parameters

    def _parameters(self) -> dict[str, Any]:
        from psycopg import AsyncClientCursor

        own = {"connect_timeout": str(CONNECT_SECONDS), **_KEEPALIVE, **self._address.parameters}
        return {**own, "autocommit": True, "prepare_threshold": None, "cursor_factory": AsyncClientCursor}

    async def _opened(self) -> AsyncConnectionPool[Any]:
        """Return the pool; one connection is made before it, which says why there is none, and is kept to listen on."""
        async with self._opening:
            if self._pool is None:
                connection = await self.connect()
                if self._spare is not None:
                    await self._spare.close()
                self._spare = connection
                from psycopg_pool import AsyncConnectionPool

                _log.setLevel(logging.CRITICAL)  # what it says of a lost server, our errors say
                self._pool = AsyncConnectionPool(
                    kwargs=self._parameters(),
                    min_size=1,
                    max_size=CONNECTIONS,
                    open=False,
                    timeout=CONNECT_SECONDS,
                    reconnect_timeout=1.0,
                    name="pegboard",
                )
                await self._pool.open()
            return self._pool

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Connection]:
        """Borrow a connection; those that the server has closed meanwhile are thrown away."""
        from psycopg_pool import PoolClosed, PoolTimeout

        while True:
            pool = self._pool or await self._opened()
            try:
                connection = await _borrowed(pool)
            except PoolClosed:  # somebody else's connection was lost meanwhile
                continue
            except PoolTimeout as error:
                self._retire(pool)
                raise unavailable(self._address, f"no connection was free within {CONNECT_SECONDS} seconds") from error
            if not _is_stale(connection):
                break
            await connection.close()
            self._retire(pool)
            await pool.putconn(connection)
        try:
            yield connection
        finally:
            if connection.broken:
                self._retire(pool)
            await pool.putconn(connection)

    def _retire(self, pool: AsyncConnectionPool[Any]) -> None:
        """Begin with a new pool: a server that is gone is known at once, and not when the old one has waited for it."""
        if self._pool is pool:
            self._pool = None
            task = asyncio.get_running_loop().create_task(pool.close(timeout=0))
            self._retired.add(task)
            task.add_done_callback(self._retired.discard)

    async def send(
        self, connection: Connection, statements: Sequence[Statement], *, locks: bool = False
    ) -> list[list[Row]]:
        """Send one message; return the rows of each of its statements. It is one transaction, or part of the one begun.

        ``locks`` is whether it may wait for others, for as long as ``patience``. A server that does not answer in time
        is left: the connection is cut, which ends the waiting.
        """
        import psycopg

        cursor = connection.cursor()
        query = "; ".join(text for text, _ in statements).replace("{s}", self._address.quoted)
        timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS + locks * self._patience, _cut, connection)
        began, cancellations = time.monotonic(), _cancellations()
        try:
            await cursor.execute(query, [value for _, values in statements for value in values] or None)
            if _cancellations() > cancellations:
                raise asyncio.CancelledError
            rows: list[list[Row]] = [await cursor.fetchall() if cursor.description else []]
            while cursor.nextset():
                rows.append(await cursor.fetchall() if cursor.description else [])
            return rows
        except psycopg.OperationalError as error:
            if connection.broken and time.monotonic() - began >= ANSWER_SECONDS:
                raise unavailable(self._address, "it did not answer in time") from error
            raise
        finally:
            timer.cancel()
            with suppress(psycopg.Error):
                await cursor.close()

    def limits(self) -> Statement:
        """Return the statement that bounds how long its transaction waits for others, and how long it is waited for."""
        return _LIMITS, (f"{round(self._patience * 1000)}ms",)

    async def script(self, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement of one message, which is one transaction of its own.

        Raises ``RefusedError`` where one divides by nothing, as those do that found something else than expected.
        """
        import psycopg

        async def attempt(connection: Connection) -> list[list[Row]]:
            try:
                return await self.send(connection, statements, locks=True)
            except psycopg.errors.DivisionByZero:
                raise RefusedError from None

        return await self._again(attempt)

    async def read(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a statement that writes nothing; a connection that is lost meanwhile is replaced once."""
        import psycopg

        try:
            async with self._connection() as connection:
                return (await self.send(connection, [(query, values)]))[-1]
        except psycopg.Error as error:
            if error.sqlstate and not runs_again(error) and not error.sqlstate.startswith(("08", "57P")):
                raise explained(error, self._address) from None
        return (await self.script((query, values)))[-1]

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> tuple[T, list[Row]]:
        """Return what the work returns once all that it wrote is committed, and the rows of its last statement.

        The work may be run several times.

        Raises ``RefusedError`` where the work does: then nothing is stored.
        """
        import psycopg

        async def attempt(connection: Connection) -> tuple[T, list[Row]]:
            begins = ("BEGIN ISOLATION LEVEL READ COMMITTED", ()), self.limits()
            transaction = Transaction(self, connection, list(begins))
            try:
                result = await work(transaction)
            except BaseException:
                if not connection.broken and not transaction.begins:
                    with suppress(psycopg.Error):
                        await self.send(connection, [("ROLLBACK", ())])
                raise
            message = [*transaction.begins, *transaction.last, ("COMMIT", ())]
            told = await self.send(connection, message, locks=True)
            return result, told[-2] if transaction.last else []

        return await self._again(attempt)

    async def _again(self, attempt: Callable[[Connection], Awaitable[T]]) -> T:
        """Make the attempt, and again as long as it is undone for the sake of other transactions."""
        import psycopg

        started = time.monotonic()
        backoff = Backoff(first=0.001, longest=0.05, jitter=0.5)
        while True:
            try:
                async with self._connection() as connection:
                    return await attempt(connection)
            except psycopg.Error as error:
                if not runs_again(error):
                    raise explained(error, self._address) from None
                if time.monotonic() - started >= self._patience:
                    raise explained(error, self._address) from None
            await backoff.wait()

    async def close(self) -> None:
        """Let go of every connection."""
        if self._spare is not None:
            await self._spare.close()
            self._spare = None
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close(timeout=1.0)
        if self._retired:
            await asyncio.wait(self._retired)


async def _borrowed(pool: AsyncConnectionPool[Any]) -> Connection:
    """Return a connection of a pool, which has it back where the task is cancelled as it is handed over."""
    before = _cancellations()
    connection = await pool.getconn()
    if _cancellations() > before:
        await pool.putconn(connection)
        raise asyncio.CancelledError
    return connection


def _cancellations() -> int:
    """Return how often the running task was cancelled.

    psycopg waits with ``asyncio.wait_for``, which forgets on Python 3.11 a cancellation that comes as the wait ends:
    whoever cancelled the task, and waits for its end, would wait for ever.
    """
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _is_stale(connection: Connection) -> bool:
    """Return whether the server has closed a connection, or said something nobody asked for; nothing is sent."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def _cut(connection: Connection) -> None:
    with suppress(OSError, Exception), socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
        line.shutdown(socket.SHUT_RDWR)
