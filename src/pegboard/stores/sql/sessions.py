"""The states of sessions, whose writers compare and swap (S2), and what plugins keep for sessions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from pegboard.ports import UNREAD, AuditRecord, SessionKey, StateChange, StoredState, Unread
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import ChangedMeanwhileError, Database, Row, Transaction, insert, key_of, where_clause

SESSION: Final = ("principal", "agent", "session")
OF_SESSION: Final = "principal = ? AND agent = ? AND session = ?"
_LOAD: Final = f"SELECT version, updated_at, text FROM main.session WHERE {OF_SESSION}"  # noqa: S608 - constants
_ADD: Final = f"{insert('session', (*SESSION, 'version', 'updated_at', 'text'))} ON CONFLICT DO NOTHING"
_CHANGE: Final = f"UPDATE main.session SET version = ?, updated_at = ?, text = ? WHERE {OF_SESSION} AND version = ?"  # noqa: S608
_REMOVE: Final = f"DELETE FROM main.session WHERE {OF_SESSION} AND version = ?"  # noqa: S608 - constants

_StateRow = tuple[int, float, str]
"""Version, time of the change, text."""


def columns_of_session(key: SessionKey) -> tuple[str, str, str]:
    """Return the values of the columns that name a session."""
    return key.principal, key.agent, key.session


class _RememberedStates:
    """States that were read or written, by key, until a change of them by another process is announced."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._states: OrderedDict[str, StoredState | None] = OrderedDict()
        self._underway: dict[str, object] = {}  # what is read, or written, now: a change by others takes it out

    def get(self, key: str) -> StoredState | Unread | None:
        """Return a state, ``UNREAD`` where it is not known."""
        found = self._states.get(key, UNREAD)
        if found is not UNREAD:
            self._states.move_to_end(key)
        return found

    def begin(self, keys: Iterable[str]) -> object:
        """Return the mark of a reading or writing that begins."""
        mark = object()
        self._underway |= dict.fromkeys(keys, mark)
        return mark

    def end(self, key: str, mark: object | None, state: StoredState | None) -> None:
        """Keep what was read or written, unless it was changed meanwhile, or nothing is known of it (no mark)."""
        if self._underway.pop(key, None) is not mark or mark is None:
            self._states.pop(key, None)
            return
        self._states[key] = state
        self._states.move_to_end(key)
        if len(self._states) > self._most:
            self._states.popitem(last=False)

    def forget(self, kind: str, key: str | None) -> None:
        """Take up that another process may have changed a state, or all."""
        if kind != "s":
            return
        for kept in (self._states, self._underway):
            if key is None:
                kept.clear()
            else:
                kept.pop(key, None)


class Sessions(StoreBase):
    """The part of the store that keeps the states of sessions.

    What was read is remembered where changes of others are announced: until one is, it needs no statement.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._remembered = _RememberedStates(database.remembers) if database.remembers else None
        if self._remembered is not None:
            self._on_change.append(self._remembered.forget)

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return the stored state, where it was read and no change of it was announced since."""
        if self._remembered is None or not self._db.hears:
            return UNREAD
        return self._remembered.get(key_of(key.principal, key.agent, key.session))

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or None where there is none."""
        if self._remembered is None:
            return _state(await self._db.rows(_LOAD, key.principal, key.agent, key.session))
        if (known := self.known_state(key)) is not UNREAD:
            return known
        own = key_of(*columns_of_session(key))
        mark = self._remembered.begin([own])
        try:
            state = _state(await self._db.rows(_LOAD, *columns_of_session(key)))
        except BaseException:
            self._remembered.end(own, None, None)
            raise
        self._remembered.end(own, mark if self._db.hears else None, state)
        return state

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store the text if the stored version is still ``expected``; return the new version or None (S2)."""
        state = None if text is None else self._next_state(text, expected)
        own = key_of(key.principal, key.agent, key.session)

        async def swap(transaction: Transaction) -> None:
            if not await _swap_state(transaction, key, state, expected):
                raise ChangedMeanwhileError
            transaction.announce(states=[own])

        return (0 if state is None else state[0]) if await self._save(swap, [own], [state], audit) else None

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store several states if all are of the expected versions; return the new ones or None (S2)."""
        states = [None if one.text is None else self._next_state(one.text, one.expected) for one in changes]
        keys = [key_of(*columns_of_session(one.key)) for one in changes]
        order = sorted(range(len(changes)), key=keys.__getitem__)  # two writers lock the same rows in the same order

        async def swap(transaction: Transaction) -> None:
            for at in order:
                if not await _swap_state(transaction, changes[at].key, states[at], changes[at].expected):
                    raise ChangedMeanwhileError
            transaction.announce(states=keys)

        if not await self._save(swap, keys, states, audit):
            return None
        return [0 if state is None else state[0] for state in states]

    async def _save(
        self,
        swap: Callable[[Transaction], Awaitable[None]],
        keys: Sequence[str],
        states: Sequence[_StateRow | None],
        audit: Sequence[AuditRecord],
    ) -> bool:
        """Return whether the states are stored; remember them."""
        mark = self._remembered.begin(keys) if self._remembered is not None else None
        try:
            await self._write(swap, audit=audit)
        except BaseException as error:  # where the connection was lost, it is not known whether it is stored
            self._remember_states(keys, states, None)
            if isinstance(error, ChangedMeanwhileError):
                return False
            raise
        if self._remembered is not None:
            self._remember_states(keys, states, mark if self._db.hears else None)
        return True

    def _next_state(self, text: str, found: int) -> _StateRow:
        now = self._db.clock()
        return self._next_version(found, now), now, text

    def _remember_states(self, keys: Sequence[str], states: Sequence[_StateRow | None], mark: object | None) -> None:
        if self._remembered is not None:
            for key, state in zip(keys, states, strict=True):
                self._remembered.end(key, mark, None if state is None else _stored_state(*state))

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        wanted, values = where_clause({"principal = ?": principal, "agent = ?": agent})
        columns = "principal, agent, session, text, version, updated_at"
        rows = await self._db.rows(f"SELECT {columns} FROM main.session{wanted} ORDER BY version DESC", *values)  # noqa: S608
        return [
            (
                SessionKey(principal=principal, agent=agent, session=session),
                StoredState(text=text, version=version, updated_at=updated_at),
            )
            for principal, agent, session, text, version, updated_at in rows
        ]


def _state(rows: Sequence[Row]) -> StoredState | None:
    return _stored_state(*rows[0]) if rows else None


def _stored_state(version: int, updated_at: float, text: str) -> StoredState:
    return StoredState(text=text, version=version, updated_at=updated_at)


async def _swap_state(transaction: Transaction, key: SessionKey, state: _StateRow | None, expected: int) -> bool:
    """Return whether the state was of the expected version (0: not stored), and is stored or removed now."""
    own = key.principal, key.agent, key.session
    if state is None and not expected:
        return not await transaction.rows(_LOAD, *own)
    if state is None:
        return await transaction.changed(_REMOVE, *own, expected) == 1
    if not expected:
        return await transaction.changed(_ADD, *own, *state) == 1
    return await transaction.changed(_CHANGE, *state, *own, expected) == 1


_SELECT: Final = f"SELECT name, text FROM main.session_data WHERE {OF_SESSION}"  # noqa: S608 - constants
_DELETE: Final = f"DELETE FROM main.session_data WHERE {OF_SESSION}"  # noqa: S608 - constants
_PUT: Final = insert("session_data", (*SESSION, "name", "text"), key=(*SESSION, "name"))


class SessionData(StoreBase):
    """The part of the store that keeps what plugins keep for sessions."""

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return the texts of a session by name."""
        return dict(await self._db.rows(_SELECT, *columns_of_session(key)))

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session; None removes one."""

        async def keep(transaction: Transaction) -> None:
            for name, text in sorted(changes.items()):
                if text is None:
                    await transaction.run(f"{_DELETE} AND name = ?", *columns_of_session(key), name)
                else:
                    await transaction.run(_PUT, *columns_of_session(key), name, text)

        await self._write(keep)

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove what is kept for a session; return whether there was anything."""

        async def forget(transaction: Transaction) -> int:
            return await transaction.changed(_DELETE, *columns_of_session(key))

        return await self._write(forget) > 0
