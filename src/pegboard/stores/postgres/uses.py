"""Remembered use in the database: written in batches, read anew only where it has changed (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import USE_LIFETIME, USES_KEPT, UseRecord
from pegboard.stores.postgres.texts import from_column, key_of, to_column
from pegboard.stores.rows.waiting_uses import MOST_READ

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Statement

Stamp = tuple[int | None, int]
"""The newest id (never used twice) and how many there are."""

EXTENT: Final = "SELECT max(id), count(*) FROM {s}.uses WHERE of = %s"
SELECT: Final = "SELECT id, at, need, tool FROM {s}.uses WHERE of = %s ORDER BY id"
_NAMES: Final = "key, of, at, principal, agent, need, tool"
_ADD: Final = (
    f"INSERT INTO {{s}}.uses ({_NAMES}) SELECT {_NAMES} FROM unnest(%s::bytea[], %s::bytea[], %s::float8[], %s::text[],"  # noqa: S608
    f" %s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS given ({_NAMES}, place) ORDER BY place"
    " ON CONFLICT (key) DO UPDATE SET id = DEFAULT, at = excluded.at"
)
_TRIM: Final = (
    "DELETE FROM {s}.uses USING"
    " (SELECT mine, (SELECT id FROM {s}.uses WHERE of = mine ORDER BY id DESC OFFSET %s LIMIT 1) AS last"
    " FROM unnest(%s::bytea[]) AS mine) AS surplus WHERE of = mine AND id <= last"
)
OLD: Final = "DELETE FROM {s}.uses WHERE at < %s RETURNING of"


def writing(uses: Sequence[UseRecord]) -> list[Statement]:
    """Return the statements that store uses, and remove what is surplus; the last returns of whom some were too old."""
    newest: dict[bytes, UseRecord] = {}
    for use in uses:
        key = key_of(*use[1:])
        newest.pop(key, None)
        newest[key] = use
    rows = [(key, key_of(use.principal, use.agent), use.at, *map(to_column, use[1:])) for key, use in newest.items()]
    return [
        (_ADD, tuple(map(list, zip(*rows, strict=True)))),
        (_TRIM, (USES_KEPT, sorted({row[1] for row in rows}))),
        (OLD, (max(use.at for use in uses) - USE_LIFETIME,)),
    ]


class ReadUses:
    """What was read of some principals and agents, with what it is of; ``None`` where that may not hold any more."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Stamp, tuple[UseRecord, ...]]] = {}
        self._fresh: set[bytes] = set()
        self.forgotten = 0
        """How often something may have changed."""

    def fresh(self, of: bytes) -> tuple[UseRecord, ...] | None:
        """Return what was read, unless it may have changed."""
        return self._known[of][1] if of in self._fresh else None

    def same(self, of: bytes, stamp: Stamp, *, told: bool) -> tuple[UseRecord, ...] | None:
        """Return what was read under the same stamp, which holds until a change is ``told``."""
        known = self._known.get(of)
        if known is None or known[0] != stamp:
            return None
        if told:
            self._fresh.add(of)
        return known[1]

    def keep(self, of: bytes, stamp: Stamp, uses: tuple[UseRecord, ...]) -> None:
        """Keep what was read."""
        if len(self._known) >= MOST_READ:
            self._known.clear()
            self._fresh.clear()
        self._known[of] = stamp, uses

    def forget(self, of: bytes | None) -> None:
        """Take up that the uses of somebody, or of anybody, may have changed."""
        self.forgotten += 1
        if of is None:
            self._fresh.clear()
        else:
            self._fresh.discard(of)


def use_of(principal: str, agent: str, row: tuple[Any, ...]) -> UseRecord:
    """Return a use that was read."""
    at, need, tool = row
    return UseRecord(at, principal, agent, from_column(need), from_column(tool))
