"""The tables of the store, one text for every kind of database; all that goes over every table is derived from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pegboard.ports import Counts

VERSION: Final = 1


def _counts(names: Sequence[str]) -> str:
    return ", ".join(f"{name} int" for name in names)


_SESSION: Final = "principal text, agent text, session text"

# A column is "NAME TYPE": int, real, text and bytes are never NULL, those with "?" may be; "id" is a number that the
# database gives and never gives twice. Only WITHOUT ROWID is for SQLite alone. Counters start at the time in
# microseconds, which they never outrun: tables that were removed and made again repeat no number.
_TABLES: Final = {
    "counter": "name text, value int, PRIMARY KEY (name)",
    "secret": "name text, value bytes, PRIMARY KEY (name)",
    "session": f"{_SESSION}, version int, updated_at real, text text, PRIMARY KEY (principal, agent, session)",
    "session_data": f"{_SESSION}, name text, text text, PRIMARY KEY (principal, agent, session, name)",
    "switch": "agent text, name text, value int, PRIMARY KEY (agent, name)",
    "principal_switch": "agent text, principal text, name text, value int, PRIMARY KEY (agent, principal, name)",
    "paused_agent": "agent text, PRIMARY KEY (agent)",
    "paused_plugin": "agent text, plugin text, PRIMARY KEY (agent, plugin)",
    "own_setting": (
        "agent text, principal text, kind text, name text, value text, PRIMARY KEY (agent, principal, kind, name)"
    ),
    "switch_action": "id id, mark text, subject text, at real, by text, changes text",
    "manifest": "id id, plugin text, fingerprint text, scope text, text text, UNIQUE (plugin, fingerprint, scope)",
    "pinned_server": "plugin text, version int, revision int, PRIMARY KEY (plugin)",
    "pin": (
        "plugin text, kind text, tool text, digest text, waiting text, flags int, by text, definition text,"
        " PRIMARY KEY (plugin, kind, tool)"
    ),
    "approval": (
        f"number id, id text, {_SESSION}, tool text, asked text, status text, lasts text, asked_at real,"
        " expires_at real?, text text, UNIQUE (id)"
    ),
    "accepted": "configuration text, text text, PRIMARY KEY (configuration)",
    "configuration_text": "id id, configuration text, at real, by text, what text, digest text, text text",
    "sealed": "kind text, key text, version int, expires_at real?, sealed bytes, place text, PRIMARY KEY (kind, key)",
    "use": "id id, at real, principal text, agent text, need text, tool text, UNIQUE (principal, agent, need, tool)",
    "request_session": f"id id, key bytes, {_SESSION}, UNIQUE (key)",
    "request_names": "id id, key bytes, kind text, subject text, decision text, outcome text, by text, UNIQUE (key)",
    "request": (
        "id id, of_session int, of_names int, at int, days int, turn int, reason text, arguments bytes, duration int?,"
        " queued int?, waited int?, upstream int?, sent int?, received int?, size int?, details text?"
    ),
    "request_count": (
        f"unit int, start int, key int, {_SESSION}, server text, tool text, outcome text, {_counts(Counts._fields)},"
        " durations text, PRIMARY KEY (unit, start, key)"
    ),
    "lease": "name text, holder text, until real, PRIMARY KEY (name)",
    "replica": "id text, address text, version text, seen_at real, until real, PRIMARY KEY (id)",
    "batch": "writer text, number int, at real, PRIMARY KEY (writer)",
}
INDEXES: Final = {
    "approval_by_call": "approval (principal, agent, tool)",
    "approval_open": "approval (expires_at) WHERE status IN ('waiting', 'allowed')",
    "use_by_time": "use (at)",
    "text_of_configuration": "configuration_text (configuration)",
    "request_of_session": "request (of_session)",
}
COUNTERS: Final = ("others", "permissions", "pins", "states")
NOT_COPIED: Final = frozenset({"lease", "replica", "batch"})
"""Tables of what ends by itself within seconds, or with a process."""
_LONG_ROWS: Final = frozenset({"session"})


class Table(NamedTuple):
    """A table: its columns with their types, and what is said of several columns."""

    columns: Mapping[str, str]
    constraints: Sequence[str]

    @property
    def number(self) -> str | None:
        """Return the column of the number that the database gives each row, None without one."""
        return next((name for name, kind in self.columns.items() if kind == "id"), None)

    @property
    def order(self) -> str:
        """Return the columns by which rows are in the order of their making, or of their key."""
        return self.number or self.constraints[0].partition("(")[2].rstrip(")")


def _table(text: str) -> Table:
    parts = re.split(r", (?![^(]*\))", text)
    columns = dict(part.split(" ") for part in parts if not part.startswith(("PRIMARY", "UNIQUE")))
    return Table(columns, parts[len(columns) :])


TABLES: Final[Mapping[str, Table]] = {name: _table(text) for name, text in _TABLES.items()}


def statements(types: Mapping[str, str], *, sqlite: bool) -> list[str]:
    """Return the statements that make the tables, with the types of a database in place of those of the schema."""
    made: list[str] = []
    for name, table in TABLES.items():
        columns = [f'"{column}" {types[kind]}' for column, kind in table.columns.items()]
        ending = " WITHOUT ROWID" if sqlite and not table.number and name not in _LONG_ROWS else ""
        made.append(f"CREATE TABLE main.{name} ({', '.join([*columns, *table.constraints])}){ending}")
    for name, what in INDEXES.items():
        made.append(f"CREATE INDEX {'main.' if sqlite else ''}{name} ON {'' if sqlite else 'main.'}{what}")
    return made
