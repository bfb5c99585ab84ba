"""The states of sessions: writers compare and swap (S2)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from pegboard.ports import UNREAD, AuditRecord, SessionKey, StateChange, StoredState, Unread
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Database, RaceLostError, Transaction, insert, key_of, where

SESSION: Final = ("principal", "agent", "session")
OF_SESSION: Final = "principal = ? AND agent = ? AND session = ?"
_LOAD: Final = f"SELECT text, version, updated_at FROM main.session WHERE {OF_SESSION}"  # noqa: S608 - constants
_VERSION: Final = f"SELECT version FROM main.session WHERE {OF_SESSION}"  # noqa: S608 - constants
_REMOVE: Final = f"DELETE FROM main.session WHERE {OF_SESSION}"  # noqa: S608 - constants
_PUT: Final = insert("session", (*SESSION, "version", "updated_at", "text"), key=SESSION)


def of_session(key: SessionKey) -> tuple[str, str, str]:
    """Return the values of the columns that name a session."""
    return key.principal, key.agent, key.session


class Sessions(StoreBase):
    """The part of the store that keeps the states of sessions.

    What was read is kept where changes of others are announced: until one is, it needs no statement.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._read: OrderedDict[str, StoredState | None] = OrderedDict()
        self._reading: dict[str, object] = {}  # what is read, or written, now: a change by others takes it out
        self._on_change.append(self._forget_state)

    def known_state(self, key: SessionKey) -> StoredState | Unread | None:
        """Return the stored state, where it was read and no change of it was announced since."""
        if not self._db.remembers or not self._db.hears:
            return UNREAD
        own = key_of(*of_session(key))
        found = self._read.get(own, UNREAD)
        if found is not UNREAD:
            self._read.move_to_end(own)
        return found

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or None where there is none."""
        if (known := self.known_state(key)) is not UNREAD:
            return known
        own, mark = key_of(*of_session(key)) if self._db.remembers else "", object()
        self._reading[own] = mark
        try:
            rows = await self._db.rows(_LOAD, *of_session(key))
        except BaseException:
            self._keep(own, None, None)
            raise
        state = StoredState(text=rows[0][0], version=rows[0][1], updated_at=rows[0][2]) if rows else None
        self._keep(own, mark, state)
        return state

    def _keep(self, own: str, mark: object | None, state: StoredState | None) -> None:
        """Keep what was read or written, unless another process has changed it meanwhile."""
        if self._reading.pop(own, None) is not mark or mark is None or not self._db.remembers or not self._db.hears:
            self._read.pop(own, None)
            return
        self._read[own] = state
        self._read.move_to_end(own)
        if len(self._read) > self._db.remembers:
            self._read.popitem(last=False)

    def _forget_state(self, kind: str, key: str | None) -> None:
        if kind != "s":
            return
        for kept in (self._read, self._reading):
            if key is None:
                kept.clear()
            else:
                kept.pop(key, None)

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
        keys = [key_of(*of_session(one.key)) for one in changes]
        states: list[StoredState | None] = []

        async def swap(transaction: Transaction) -> None:
            states.clear()
            for one in changes:
                rows = await transaction.rows(_VERSION, *of_session(one.key))
                if (rows[0][0] if rows else 0) != one.expected:
                    raise RaceLostError
            for one in changes:
                if one.text is None:
                    await transaction.run(_REMOVE, *of_session(one.key))
                    states.append(None)
                    continue
                state = StoredState(
                    text=one.text, version=self._next_version(one.expected), updated_at=self._db.clock()
                )
                await transaction.run(_PUT, *of_session(one.key), state.version, state.updated_at, one.text)
                states.append(state)
            transaction.announce(states=keys)

        mark = object()
        self._reading |= dict.fromkeys(keys, mark)
        try:
            await self._write(swap, *keys, audit=audit)
        except BaseException as error:  # where the connection was lost, it is not known whether it is stored
            for own in keys:
                self._keep(own, None, None)
            if isinstance(error, RaceLostError):
                return None
            raise
        for own, state in zip(keys, states, strict=True):
            self._keep(own, mark, state)
        return [0 if state is None else state.version for state in states]

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        wanted, values = where({"principal = ?": principal, "agent = ?": agent})
        columns = "principal, agent, session, text, version, updated_at"
        rows = await self._db.rows(f"SELECT {columns} FROM main.session{wanted} ORDER BY version DESC", *values)  # noqa: S608
        return [
            (
                SessionKey(principal=principal, agent=agent, session=session),
                StoredState(text=text, version=version, updated_at=updated_at),
            )
            for principal, agent, session, text, version, updated_at in rows
        ]
