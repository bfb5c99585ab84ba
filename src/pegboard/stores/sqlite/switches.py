"""The switches set at run time, in the database: one by one, for one principal alone, and many together (P2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pegboard.ports import ACTIONS_KEPT, UNCHECKED, AuditRecord, SwitchAction, Unchecked
from pegboard.stores.rows.action_text import changes_from_text, changes_to_text
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.pins import count
from pegboard.stores.sqlite.sealed import SqliteSealed

if TYPE_CHECKING:
    import sqlite3


class SqliteSwitches(SqliteSealed):
    """The part of a store that keeps switches."""

    async def set_switch(
        self,
        agent: str,
        name: str,
        value: bool | None,
        *,
        expected: bool | Unchecked | None = UNCHECKED,
        replaces: Sequence[str] = (),
        principal: str | None = None,
        audit: Sequence[AuditRecord] = (),
    ) -> bool:
        """Store a boolean, or remove it (None), with its records, if what is stored is as expected; return whether."""
        whose = (agent,) if principal is None else (agent, principal)
        own, *others = (tuple(map(to_column, (*whose, each))) for each in (name, *replaces))
        sql = _OF_AGENTS if principal is None else _OF_PRINCIPALS

        def change(connection: sqlite3.Connection) -> bool:
            if expected is not UNCHECKED and _switch(connection, sql.select, own) is not expected:
                return False
            connection.executemany(sql.delete, others)
            _put(connection, sql, own, value)
            count(connection, "permissions")
            self._queue.write(connection, audit)
            return True

        return await self._write(change, permissions=True)

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches with their action and records, if all are as expected; return whether."""
        rows = [((to_column(one.agent), to_column(one.name)), one) for one in action.changes]
        changes = changes_to_text(action.changes)
        row = to_column(action.mark), to_column(action.subject), action.at, to_column(action.by), changes

        def change(connection: sqlite3.Connection) -> bool:
            if any(_switch(connection, _OF_AGENTS.select, own) is not one.expected for own, one in rows):
                return False
            for own, one in rows:
                _put(connection, _OF_AGENTS, own, one.value)
            connection.execute(
                "INSERT INTO switch_actions (mark, subject, at, by, changes) VALUES (?, ?, ?, ?, ?)", row
            )
            connection.execute(
                "DELETE FROM switch_actions WHERE id <= (SELECT max(id) FROM switch_actions) - ?", (ACTIONS_KEPT,)
            )
            count(connection, "permissions")
            self._queue.write(connection, audit)
            return True

        return await self._write(change, permissions=True)

    async def switch_actions(self) -> Sequence[SwitchAction]:
        """Return the newest actions first."""
        rows = await self._opened().read(
            lambda connection: connection.execute(
                "SELECT mark, subject, at, by, changes FROM switch_actions ORDER BY id DESC"
            ).fetchall()
        )
        return [
            SwitchAction(
                mark=from_column(mark),
                subject=from_column(subject),
                at=at,
                by=from_column(by),
                changes=changes_from_text(changes),
            )
            for mark, subject, at, by, changes in rows
        ]

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored booleans of every agent."""
        rows = await self._opened().read(
            lambda connection: connection.execute(
                "SELECT agent, name, value FROM switches ORDER BY agent, name"
            ).fetchall()
        )
        found: dict[str, dict[str, bool]] = {}
        for agent, name, value in rows:
            found.setdefault(from_column(agent), {})[from_column(name)] = bool(value)
        return found

    async def principal_switches(self) -> Mapping[str, Mapping[str, Mapping[str, bool]]]:
        """Return the stored booleans that count for one principal alone, by agent, principal and name."""
        rows = await self._opened().read(
            lambda connection: connection.execute(
                "SELECT agent, principal, name, value FROM principal_switches ORDER BY agent, principal, name"
            ).fetchall()
        )
        found: dict[str, dict[str, dict[str, bool]]] = {}
        for agent, principal, name, value in rows:
            of_agent = found.setdefault(from_column(agent), {})
            of_agent.setdefault(from_column(principal), {})[from_column(name)] = bool(value)
        return found


class _SwitchSql(NamedTuple):
    """The statements about one kind of switches."""

    select: str
    delete: str
    insert: str


_OF_AGENTS: Final = _SwitchSql(
    "SELECT value FROM switches WHERE agent = ? AND name = ?",
    "DELETE FROM switches WHERE agent = ? AND name = ?",
    "INSERT INTO switches VALUES (?, ?, ?)",
)
_OF_PRINCIPALS: Final = _SwitchSql(
    "SELECT value FROM principal_switches WHERE agent = ? AND principal = ? AND name = ?",
    "DELETE FROM principal_switches WHERE agent = ? AND principal = ? AND name = ?",
    "INSERT INTO principal_switches VALUES (?, ?, ?, ?)",
)


def _put(connection: sqlite3.Connection, sql: _SwitchSql, own: tuple[str | bytes, ...], value: bool | None) -> None:
    connection.execute(sql.delete, own)
    if value is not None:
        connection.execute(sql.insert, (*own, value))


def _switch(connection: sqlite3.Connection, query: str, columns: tuple[str | bytes, ...]) -> bool | None:
    """Return a stored boolean, or None where none is stored."""
    row = connection.execute(query, columns).fetchone()
    return bool(row[0]) if row else None
