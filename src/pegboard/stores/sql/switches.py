"""Switches and pauses set at run time, one by one or together, and what agents set for themselves (P2, P4, P10)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pegboard.core.access.settings.own_settings import OwnSetting
from pegboard.core.access.switches import NOTHING_PAUSED, Pauses, with_pause
from pegboard.ports import (
    ACTIONS_KEPT,
    UNCHECKED,
    AuditRecord,
    StoredPermissions,
    SwitchAction,
    SwitchChange,
    Unchecked,
)
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import ChangedMeanwhileError, Transaction, insert

PERMISSIONS: Final = "permissions"
"""The lock of what changes what agents may."""
PINS_REVISION: Final = "SELECT value FROM main.counter WHERE name = 'pins'"
_ACTION: Final = ("mark", "subject", "at", "by", "changes")
_OWN_SETTING: Final = ("agent", "principal", "kind", "name")
_KEYS: Final = {
    "switch": ("agent", "name"),
    "principal_switch": ("agent", "principal", "name"),
    "paused_agent": ("agent",),
    "paused_plugin": ("agent", "plugin"),
}
"""The tables whose rows are set and removed: switches have a value, what is paused has a row."""

_READ: Final = (
    "SELECT agent, name, value FROM main.switch ORDER BY agent, name",
    "SELECT agent, principal, name, value FROM main.principal_switch ORDER BY agent, principal, name",
    "SELECT agent, principal, kind, name, value FROM main.own_setting ORDER BY agent, principal, kind, name",
    "SELECT agent, NULL FROM main.paused_agent UNION ALL SELECT agent, plugin FROM main.paused_plugin",
    PINS_REVISION,
)


class StoredSwitches(StoreBase):
    """The part of the store that keeps switches, pauses and own settings."""

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
                await _put_switch(transaction, table, (*owner, other), None)
            if principal is not None:
                for each in (name, *replaces):
                    await _put_own(transaction, (agent, principal, "off", each), None)
            await _put_switch(transaction, table, (*owner, name), value)
            transaction.announce(permissions=True)
            return True

        return bool(await self._write_or_none(change, PERMISSIONS, audit=audit))

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches with their action and records, if all are as expected; return whether."""
        changes = json.dumps([(one.agent, one.name, one.value, one.expected, one.kind) for one in action.changes])

        async def change(transaction: Transaction) -> bool:
            for one in action.changes:
                await _require(transaction, *_row_of(one), one.expected)
            for one in action.changes:
                await _put_switch(transaction, *_row_of(one), one.value)
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
                    SwitchChange(agent=agent, name=name, value=value, expected=expected, kind=kind)
                    for agent, name, value, expected, kind in json.loads(changes)
                ],
            )
            for mark, subject, at, by, changes in await self._db.rows(query)
        ]

    async def stored_permissions(self) -> StoredPermissions:
        """Return all that was set at run time, with one message to the database."""
        of_agents, of_principals, own, paused, revision = await self._db.read_together(_READ)
        switches: dict[str, dict[str, bool]] = {}
        for agent, name, value in of_agents:
            switches.setdefault(agent, {})[name] = bool(value)
        personal: dict[str, dict[str, dict[str, bool]]] = {}
        for agent, principal, name, value in of_principals:
            personal.setdefault(agent, {}).setdefault(principal, {})[name] = bool(value)
        settings: dict[str, dict[str, dict[OwnSetting, str]]] = {}
        for agent, principal, kind, name, value in own:
            settings.setdefault(agent, {}).setdefault(principal, {})[OwnSetting(kind, name)] = value
        pauses: dict[str, Pauses] = {}
        for agent, plugin in paused:
            pauses[agent] = with_pause(pauses.get(agent, NOTHING_PAUSED), plugin, on=True)
        return StoredPermissions(switches, personal, settings, pauses, revision[0])

    async def set_own(
        self,
        agent: str,
        principal: str,
        changes: Mapping[OwnSetting, str | None],
        *,
        audit: Sequence[AuditRecord] = (),
    ) -> None:
        """Store what an agent sets for itself for one principal, with its records."""

        async def change(transaction: Transaction) -> None:
            for (kind, name), value in changes.items():
                await _put_own(transaction, (agent, principal, kind, name), value)
            transaction.announce(permissions=True)

        await self._write(change, PERMISSIONS, audit=audit)


def _row_of(change: SwitchChange) -> tuple[str, Sequence[str]]:
    """Return the table of what is changed, and the key of its row."""
    match change.kind:
        case "switch":
            return "switch", (change.agent, change.name)
        case "agent_pause":
            return "paused_agent", (change.agent,)
        case "plugin_pause":
            return "paused_plugin", (change.agent, change.name)


def _where_keys(table: str) -> str:
    return " AND ".join(f"{name} = ?" for name in _KEYS[table])


def _has_value(table: str) -> bool:
    return table in ("switch", "principal_switch")


async def _require(transaction: Transaction, table: str, own: Sequence[str], expected: bool | Unchecked | None) -> None:
    """Give up unless a stored boolean (None where none is stored) is as expected; a pause is False."""
    value = "value" if _has_value(table) else "0"
    rows = await transaction.rows(f"SELECT {value} FROM main.{table} WHERE {_where_keys(table)}", *own)  # noqa: S608 - constants
    if (bool(rows[0][0]) if rows else None) is not expected:
        raise ChangedMeanwhileError


async def _put_switch(transaction: Transaction, table: str, own: Sequence[str], value: bool | None) -> None:
    keys = _KEYS[table]
    if value is None:
        await transaction.run(f"DELETE FROM main.{table} WHERE {_where_keys(table)}", *own)  # noqa: S608 - constants
    elif _has_value(table):
        await transaction.run(insert(table, (*keys, "value"), key=keys), *own, int(value))
    else:
        await transaction.run(insert(table, keys, key=keys), *own)


async def _put_own(transaction: Transaction, own: Sequence[str], value: str | None) -> None:
    if value is None:
        conditions = " AND ".join(f"{name} = ?" for name in _OWN_SETTING)
        await transaction.run(f"DELETE FROM main.own_setting WHERE {conditions}", *own)  # noqa: S608 - constants
    else:
        await transaction.run(insert("own_setting", (*_OWN_SETTING, "value"), key=_OWN_SETTING), *own, value)
