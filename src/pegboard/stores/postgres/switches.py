"""The switches set at run time, in the database: one by one, for one principal alone, and many together (P2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pegboard.ports import ACTIONS_KEPT, UNCHECKED, AuditRecord, SwitchAction, Unchecked
from pegboard.stores.postgres.sealed import PostgresSealed
from pegboard.stores.postgres.texts import from_column, key_of, to_column
from pegboard.stores.rows.action_text import changes_from_text, changes_to_text

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Transaction

_ADD_ACTION: Final = "INSERT INTO {s}.switch_actions (mark, subject, at, by, changes) VALUES (%s, %s, %s, %s, %s)"
_TRIM_ACTIONS: Final = (
    "DELETE FROM {s}.switch_actions WHERE id <= (SELECT id FROM {s}.switch_actions ORDER BY id DESC OFFSET %s LIMIT 1)"
)


class PostgresSwitches(PostgresSealed):
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
        table = "switches" if principal is None else "principal_switches"

        async def change(transaction: Transaction) -> None:
            await self._alone(transaction)
            if expected is not UNCHECKED:
                transaction.refuse_unless(await _switch(transaction, table, (*whose, name)) is expected)
            if replaces:
                others = [key_of(*whose, other) for other in replaces]
                await transaction.run(f"DELETE FROM {{s}}.{table} WHERE key = ANY(%s::bytea[])", (others,))  # noqa: S608
            await _put(transaction, table, (*whose, name), value)

        return await self._write_or_not(change, audit=audit, permissions=True)

    async def set_together(self, action: SwitchAction, *, audit: Sequence[AuditRecord] = ()) -> bool:
        """Store switches with their action and records, if all are as expected; return whether."""
        texts = to_column(action.mark), to_column(action.subject), action.at, to_column(action.by)
        row = *texts, to_column(changes_to_text(action.changes))

        async def change(transaction: Transaction) -> None:
            await self._alone(transaction)
            for one in action.changes:
                found = await _switch(transaction, "switches", (one.agent, one.name))
                transaction.refuse_unless(found is one.expected)
            for one in action.changes:
                await _put(transaction, "switches", (one.agent, one.name), one.value)
            await transaction.run(_ADD_ACTION, row)
            await transaction.run(_TRIM_ACTIONS, (ACTIONS_KEPT,))

        return await self._write_or_not(change, audit=audit, permissions=True)

    async def switch_actions(self) -> Sequence[SwitchAction]:
        """Return the newest actions first."""
        rows = await self._rows("SELECT mark, subject, at, by, changes FROM {s}.switch_actions ORDER BY id DESC")
        return [
            SwitchAction(
                mark=from_column(mark),
                subject=from_column(subject),
                at=at,
                by=from_column(by),
                changes=changes_from_text(from_column(changes)),
            )
            for mark, subject, at, by, changes in rows
        ]

    async def all_switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the stored booleans of every agent."""
        found: dict[str, dict[str, bool]] = {}
        for agent, name, value in await self._rows("SELECT agent, name, value FROM {s}.switches ORDER BY agent, name"):
            found.setdefault(from_column(agent), {})[from_column(name)] = value
        return found

    async def principal_switches(self) -> Mapping[str, Mapping[str, Mapping[str, bool]]]:
        """Return the stored booleans that count for one principal alone, by agent, principal and name."""
        found: dict[str, dict[str, dict[str, bool]]] = {}
        rows = await self._rows(
            "SELECT agent, principal, name, value FROM {s}.principal_switches ORDER BY agent, principal, name"
        )
        for agent, principal, name, value in rows:
            of_agent = found.setdefault(from_column(agent), {})
            of_agent.setdefault(from_column(principal), {})[from_column(name)] = value
        return found


async def _switch(transaction: Transaction, table: str, own: tuple[str, ...]) -> bool | None:
    """Return a stored boolean, or None where none is stored."""
    rows = await transaction.run(f"SELECT value FROM {{s}}.{table} WHERE key = %s", (key_of(*own),))  # noqa: S608
    return rows[0][0] if rows else None


async def _put(transaction: Transaction, table: str, own: tuple[str, ...], value: bool | None) -> None:
    if value is None:
        await transaction.run(f"DELETE FROM {{s}}.{table} WHERE key = %s", (key_of(*own),))  # noqa: S608 - a constant
        return
    given = (key_of(*own), *map(to_column, own), value)
    await transaction.run(
        f"INSERT INTO {{s}}.{table} VALUES ({', '.join(['%s'] * len(given))})"  # noqa: S608 - a constant
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        given,
    )
