"""The database of a store: session states, and what waits to be written (S2)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pegboard.errors import StoreError
from pegboard.ports import (
    UNREAD,
    AuditRecord,
    CallDetails,
    ChangeToken,
    SessionKey,
    StateChange,
    StoredState,
    Unread,
)
from pegboard.stores.postgres.address import address_of
from pegboard.stores.postgres.batches import Batches
from pegboard.stores.postgres.schema import STEPS, Step
from pegboard.stores.postgres.texts import from_column, key_of, to_column

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Database, Row, Statement, Transaction
    from pegboard.stores.postgres.pulse import Pulse

T = TypeVar("T")

MOST_READ: Final = 10_000
"""Of how many sessions what was read is kept."""
_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_VERSION: Final = "greatest(nextval('{s}.versions'), %s + 1)"
_ADD: Final = (
    f"INSERT INTO {{s}}.sessions VALUES (%s, %s, %s, %s, {_VERSION}, {_NOW}, %s) ON CONFLICT DO NOTHING"  # noqa: S608
    " RETURNING version, updated_at"
)
_CHANGE: Final = (
    f"UPDATE {{s}}.sessions SET version = {_VERSION}, updated_at = {_NOW}, text = %s WHERE key = %s AND version = %s"  # noqa: S608
    " RETURNING version, updated_at"
)
_REMOVE: Final = (
    "DELETE FROM {s}.sessions WHERE key = %s AND version = %s RETURNING 0::bigint AS version, 0::float8 AS updated_at"
)
_ABSENT: Final = (
    "SELECT 0::bigint AS version, 0::float8 AS updated_at WHERE NOT EXISTS (SELECT FROM {s}.sessions WHERE key = %s)"
)


class PostgresStates:
    """A database with session states, opened, written in transactions and closed; one event loop uses one store.

    ``audit_keep`` is about how many of the newest audit entries are kept, ``patience`` for how many seconds a change
    waits for other writers before it raises ``StoreBusyError``.
    """

    def __init__(
        self, url: str, *, audit_keep: int = 100_000, patience: float = 5.0, steps: tuple[Step, ...] = STEPS
    ) -> None:
        self.address: Final = address_of(url)
        self._patience = patience
        self._steps = steps
        self._database: Database | None = None
        self._pulse: Pulse | None = None
        self._batches = Batches(self._flush, keep=audit_keep)
        self._secrets: dict[str, bytes] = {}
        self._reading_secret = asyncio.Lock()
        self._read: OrderedDict[bytes, StoredState | None] = OrderedDict()
        self._reading: dict[bytes, object] = {}  # what is read, or written, now: a change by others takes it out

    async def open(self) -> None:
        """Make the schema and tables where they are missing, and begin to listen for changes.

        Raises ``StoreUnavailableError`` where the server cannot be reached, ``StoreError`` where the database cannot be
        used, ``StoreSchemaError`` where its tables are newer or not ours.
        """
        if self._database is not None:
            return
        from pegboard.stores.postgres.database import Database
        from pegboard.stores.postgres.opening import prepare
        from pegboard.stores.postgres.pulse import Pulse
        from pegboard.stores.postgres.refusals import require_packages

        require_packages()
        database = Database(self.address, patience=self._patience)
        pulse = Pulse(database, self._forget)
        try:
            await prepare(database, self._steps)
            await pulse.catch_up()  # with it the clock of the server is known
        except BaseException:
            await database.close()
            raise
        self._database, self._pulse = database, pulse
        self._pulse.start()

    async def aclose(self) -> None:
        """Write what still waits and let go of the database."""
        if self._database is None or self._pulse is None:
            return
        try:
            self._batches.stop()
            await self._flush()
        finally:
            database, self._database = self._database, None
            await self._pulse.stop()
            await database.close()
            self._forget("s", None)
            self._secrets.clear()

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return the stored state, where it was read and no change of it was told since."""
        own = _own(key)
        if not self._opened()[1].hears or own not in self._read:
            return UNREAD
        self._read.move_to_end(own)
        return self._read[own]

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or None where there is none; what was read stays until a change of it is told."""
        if (known := self.known_state(key)) is not UNREAD:
            return known
        own, mark = _own(key), object()
        self._reading[own] = mark
        query = "SELECT text, version, updated_at FROM {s}.sessions WHERE key = %s"
        try:
            rows = await self._rows(query, (own,))
        except BaseException:
            self._keep(own, None, None)
            raise
        state = StoredState(text=from_column(rows[0][0]), version=rows[0][1], updated_at=rows[0][2]) if rows else None
        self._keep(own, mark, state)
        return state

    def _keep(self, own: bytes, mark: object | None, state: StoredState | None) -> None:
        """Keep what was read or written, unless another process has changed it meanwhile."""
        if self._reading.pop(own, None) is not mark or mark is None or self._pulse is None or not self._pulse.hears:
            self._read.pop(own, None)
            return
        self._read[own] = state
        self._read.move_to_end(own)
        if len(self._read) > MOST_READ:
            self._read.popitem(last=False)

    def _forget(self, kind: str, key: bytes | None) -> None:
        """Take up that another process has changed something, None for all of a kind."""
        if kind == "u":
            self._batches.forget_uses(key)
        elif key is None:
            self._read.clear()
            self._reading.clear()
        else:
            self._read.pop(key, None)
            self._reading.pop(key, None)

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store the text if the stored version is still ``expected``; return the new version or None (S2)."""
        versions = await self.save_together([StateChange(key=key, text=text, expected=expected)], audit=audit)
        return None if versions is None else versions[0]

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store several states if all are of the expected versions; return the new ones or None (S2)."""
        from pegboard.stores.postgres.database import RefusedError

        database, pulse = self._opened()
        if audit:
            await self._batches.flush(database, pulse)
        keys, mark = [_own(one.key) for one in changes], object()
        in_order = sorted(range(len(changes)), key=keys.__getitem__)  # two writers lock the same rows in the same order
        self._reading |= dict.fromkeys(keys, mark)
        try:
            answers = await database.script(
                database.limits(),
                *(_swap(keys[at], changes[at]) for at in in_order),
                *self._batches.inserting(pulse, audit),
                *pulse.telling(states=keys, others=bool(audit)),
            )
        except BaseException as error:  # whether it is stored is not known where the connection was lost
            for own in keys:
                self._keep(own, None, None)
            if isinstance(error, RefusedError):
                return None
            raise
        pulse.told(answers[-1][0], states=True)
        stored = {at: answers[place][0] for place, at in enumerate(in_order, 1)}
        for at, (own, one) in enumerate(zip(keys, changes, strict=True)):
            version, updated_at, _ = stored[at]
            state = None if one.text is None else StoredState(text=one.text, version=version, updated_at=updated_at)
            self._keep(own, mark, state)
        return [stored[at][0] for at in range(len(changes))]

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        given = {
            name: to_column(value) for name, value in (("principal", principal), ("agent", agent)) if value is not None
        }
        where = " AND ".join(f"{name} = %s" for name in given) or "true"
        query = (
            f"SELECT principal, agent, session, text, version, updated_at FROM {{s}}.sessions WHERE {where}"  # noqa: S608
            " ORDER BY version DESC"
        )
        return [
            (
                SessionKey(principal=from_column(row[0]), agent=from_column(row[1]), session=from_column(row[2])),
                StoredState(text=from_column(row[3]), version=row[4], updated_at=row[5]),
            )
            for row in await self._rows(query, tuple(given.values()))
        ]

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the database stands at: without a statement, while changes are told."""
        return await self._opened()[1].token(since)

    async def catch_up(self) -> bool:
        """Take up what other processes had stored by now and nobody has told yet; return whether there was anything."""
        return await self._opened()[1].catch_up()

    def known_token(self, since: float) -> ChangeToken | None:
        """Return the same, where it is known without a statement."""
        return None if self._pulse is None or self._database is None else self._pulse.known(since)

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return as soon as another process may have changed something, at the latest after ``timeout`` seconds."""
        if self._pulse is None or self._database is None:
            await asyncio.sleep(timeout)
        else:
            await self._pulse.changed(token, timeout)

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, in a batch; where no loop runs, with the next operation that writes."""
        self._opened()
        self._batches.records.add_later(entry, details)

    def _opened(self) -> tuple[Database, Pulse]:
        if self._database is None or self._pulse is None:
            raise StoreError(
                f"{self.address.shown} is not open.", hint="Await `open()` before, and nothing after `aclose()`."
            )
        return self._database, self._pulse

    async def _rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement that only reads."""
        return await self._opened()[0].read(query, values)

    async def _write(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        *,
        audit: Sequence[AuditRecord] = (),
        permissions: bool = False,
        others: bool = False,
    ) -> T:
        """Return what the work returns once it is committed with its records, after the calls that waited.

        ``permissions`` is whether it changes what agents may, ``others`` whether it changes what others may show.
        """
        database, pulse = self._opened()
        if audit:
            await self._batches.flush(database, pulse)

        async def with_records(transaction: Transaction) -> T:
            result = await work(transaction)
            transaction.last = [
                *self._batches.inserting(pulse, audit),
                *pulse.telling(permissions=permissions, others=others or bool(audit)),
            ]
            return result

        result, told = await database.transact(with_records)
        pulse.told(told[0] if told else None, permissions=permissions)
        return result

    async def _write_or_none(self, work: Callable[[Transaction], Awaitable[T]], **more: Any) -> T | None:
        """Return what :meth:`_write` does, or None where the work found something else than expected."""
        from pegboard.stores.postgres.database import RefusedError

        try:
            return await self._write(work, **more)
        except RefusedError:
            return None

    async def _write_or_not(self, work: Callable[[Transaction], Awaitable[None]], **more: Any) -> bool:
        """Return whether it is stored: the work found what it expected."""

        async def stored(transaction: Transaction) -> bool:
            await work(transaction)
            return True

        return bool(await self._write_or_none(stored, **more))

    async def _alone(self, transaction: Transaction) -> None:
        """Let one transaction after the other change what agents may: what is not there yet cannot be locked itself."""
        await transaction.run("SELECT pg_advisory_xact_lock(%s)", (self.address.number + 1,))

    async def _flush(self) -> None:
        if self._batches:
            database, pulse = self._opened()
            await self._batches.flush(database, pulse)


def _swap(own: bytes, one: StateChange) -> Statement:
    """Return the statement that stores or removes a state and returns its version and time; else it divides by 0."""
    if one.text is None and one.expected == 0:
        query, values = _ABSENT, (own,)
    elif one.text is None:
        query, values = _REMOVE, (own, one.expected)
    elif one.expected == 0:
        names = map(to_column, (one.key.principal, one.key.agent, one.key.session))
        query, values = _ADD, (own, *names, 0, to_column(one.text))
    else:
        query, values = _CHANGE, (one.expected, to_column(one.text), own, one.expected)
    swapped = f"WITH stored AS ({query}) SELECT max(version), max(updated_at), 1 / count(*) FROM stored"  # noqa: S608
    return swapped, values


def _own(key: SessionKey) -> bytes:
    return key_of(key.principal, key.agent, key.session)
