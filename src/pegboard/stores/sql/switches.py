"""The switches set at run time: one by one, for one principal alone, and many together (P2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pegboard.ports import ACTIONS_KEPT, UNCHECKED, AuditRecord, SwitchAction, SwitchChange, Unchecked
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import RaceLostError, Transaction, insert

PERMISSIONS: Final = "permissions"
"""The lock of what changes what agents may."""
_ACTION: Final = ("mark", "subject", "at", "by", "changes")
_COLUMNS: Final = {"switch": ("agent", "name"), "principal_switch": ("agent", "principal", "name")}


class Switches(StoreBase):
    """The part of the store that keeps switches."""

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
        table, owner = ("switch", (agent,)) if principal is None else ("principal_switch", (agent, principal))

        async def change(transaction: Transaction) -> bool:
            if expected is not UNCHECKED:
                await _require(transaction, table, (*owner, name), expected)
            for other in replaces:
                await _put(transaction, table, (*owner, other), None)
            await _put(transaction, table, (*owner, name), value)
            transaction.announce(permissions=True)
            return True

        return bool(await self._write_or_none(change, PERMISSIONS, audit=audit))

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches with their action and records, if all are as expected; return whether."""
        changes = json.dumps([(one.agent, one.name, one.value, one.expected) for one in action.changes])

        async def change(transaction: Transaction) -> bool:
            for one in action.changes:
                await _require(transaction, "switch", (one.agent, one.name), one.expected)
            for one in action.changes:
                await _put(transaction, "switch", (one.agent, one.name), one.value)
            row = action.mark, action.subject, action.at, action.by, changes
            await transaction.run(insert("switch_action", _ACTION), *row)
            surplus = "DELETE FROM main.switch_action WHERE id <= (SELECT max(id) FROM main.switch_action) - ?"
            await transaction.run(surplus, ACTIONS_KEPT)
            transaction.announce(permissions=True)
            return True

        return bool(await self._write_or_none(change, PERMISSIONS, audit=audit))

    async def switch_actions(self) -> Sequence[SwitchAction]:
        """Return the newest actions first."""
        query = "SELECT mark, subject, at, by, changes FROM main.switch_action ORDER BY id DESC"
        return [
            SwitchAction(
                mark=mark,
                subject=subject,
                at=at,
                by=by,
                changes=[
                    SwitchChange(agent=agent, name=name, value=value, expected=expected)
                    for agent, name, value, expected in json.loads(changes)
                ],
            )
            for mark, subject, at, by, changes in await self._db.rows(query)
        ]

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored booleans of every agent."""
        found: dict[str, dict[str, bool]] = {}
        for agent, name, value in await self._db.rows(
            "SELECT agent, name, value FROM main.switch ORDER BY agent, name"
        ):
            found.setdefault(agent, {})[name] = bool(value)
        return found

    async def principal_switches(self) -> Mapping[str, Mapping[str, Mapping[str, bool]]]:
        """Return the stored booleans that count for one principal alone, by agent, principal and name."""
        query = "SELECT agent, principal, name, value FROM main.principal_switch ORDER BY agent, principal, name"
        found: dict[str, dict[str, dict[str, bool]]] = {}
        for agent, principal, name, value in await self._db.rows(query):
            found.setdefault(agent, {}).setdefault(principal, {})[name] = bool(value)
        return found


def _own(table: str) -> str:
    return " AND ".join(f"{name} = ?" for name in _COLUMNS[table])


async def _require(transaction: Transaction, table: str, own: Sequence[str], expected: bool | Unchecked | None) -> None:
    """Give up unless a stored boolean (None where none is stored) is as expected."""
    rows = await transaction.rows(f"SELECT value FROM main.{table} WHERE {_own(table)}", *own)  # noqa: S608 - constants
    if (bool(rows[0][0]) if rows else None) is not expected:
        raise RaceLostError


async def _put(transaction: Transaction, table: str, own: Sequence[str], value: bool | None) -> None:
    if value is None:
        await transaction.run(f"DELETE FROM main.{table} WHERE {_own(table)}", *own)  # noqa: S608 - constants
    else:
        names = _COLUMNS[table]
        await transaction.run(insert(table, (*names, "value"), key=names), *own, int(value))
