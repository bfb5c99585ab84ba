"""The pins of servers' tools, in the database (A4, G6)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.core.access.pins import Pin, ServerPins
from pegboard.stores.postgres.approvals import PostgresApprovals
from pegboard.stores.postgres.texts import from_column, key_of, to_column
from pegboard.stores.rows.pin_columns import claims_of, flags_of, pin_of

if TYPE_CHECKING:
    from pegboard.ports import AuditRecord, PinChange
    from pegboard.stores.postgres.database import Transaction

_NAMES: Final = "server, key, tool, digest, waiting, flags, by, definition"
_KEEP: Final = (
    f"INSERT INTO {{s}}.pins AS mine ({_NAMES}) SELECT server, key, tool, digest, waiting, flags, by,"  # noqa: S608
    " coalesce(definition, '')"
    " FROM unnest(%s::bytea[], %s::bytea[], %s::text[], %s::text[], %s::text[], %s::int[], %s::text[], %s::text[])"
    f" AS given ({_NAMES}) ON CONFLICT (server, key) DO UPDATE SET digest = excluded.digest,"
    " waiting = excluded.waiting, flags = excluded.flags,"
    " by = excluded.by, definition = coalesce(nullif(excluded.definition, ''), mine.definition)"
)
_SERVER: Final = (
    "INSERT INTO {s}.pinned_servers (key, plugin, version, revision, claims)"
    " VALUES (%s, %s, %s, nextval('{s}.versions'), '')"
    " ON CONFLICT (key) DO UPDATE SET version = excluded.version, revision = excluded.revision, claims = ''"
    " RETURNING revision"
)


class PostgresPins(PostgresApprovals):
    """The part of a store that keeps pins."""

    async def pins_revision(self) -> Hashable:
        """Return what differs after every change of a pin by any process."""
        return (await self._rows("SELECT max(revision) FROM {s}.pinned_servers"))[0][0]

    async def pins(self) -> Mapping[str, ServerPins]:
        """Return the pins of every server that has been seen, without the definitions (A4)."""
        rows: list[Any] = await self._rows(
            "SELECT s.plugin, version, revision, claims, tool, digest, waiting, flags, by FROM {s}.pinned_servers AS s"
            " LEFT JOIN {s}.pins AS p ON p.server = s.key ORDER BY s.plugin, tool"
        )
        pins: dict[str, dict[str, Pin]] = {row[0]: {} for row in rows}
        for plugin, _, _, _, tool, digest, waiting, flags, by in rows:
            if tool is not None:
                pin = pin_of(from_column(tool), digest, waiting, flags, from_column(by))
                pins[plugin][pin.tool] = pin
        return {
            from_column(plugin): ServerPins(version, revision, pins[plugin], claims_of(claims))
            for plugin, version, revision, claims, *_ in rows
        }

    async def pinned_definitions(self, plugin: str, tools: Collection[str]) -> Mapping[str, str]:
        """Return the definitions that count, as canonical JSON."""
        rows = await self._rows(
            "SELECT tool, definition FROM {s}.pins WHERE server = %s AND key = ANY(%s::bytea[]) AND definition <> ''",
            (key_of(plugin), [key_of(name) for name in tools]),
        )
        return {from_column(tool): from_column(text) for tool, text in rows}

    async def change_pins(
        self,
        plugin: str,
        changes: Sequence[PinChange],
        *,
        expected: int | None,
        version: int,
        anew: bool = False,
        forget: Collection[str] = (),
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store pins of a server, with their records, if they are as expected; return the new revision or None."""
        own = key_of(plugin)
        rows = {
            key_of(pin.tool): (
                own, key_of(pin.tool), to_column(pin.tool), pin.digest, pin.waiting, flags_of(pin), to_column(pin.by),
                None if text is None else to_column(text),
            )
            for pin, text in changes
        }  # fmt: skip

        async def change(transaction: Transaction) -> int:
            await self._alone(transaction)
            found = await transaction.run("SELECT revision FROM {s}.pinned_servers WHERE key = %s", (own,))
            transaction.refuse_unless((found[0][0] if found else None) == expected)
            if anew:
                await transaction.run("DELETE FROM {s}.pins WHERE server = %s", (own,))
            if rows:
                await transaction.run(_KEEP, tuple(map(list, zip(*rows.values(), strict=True))))
            if forget:
                gone = [key_of(name) for name in forget]
                await transaction.run("DELETE FROM {s}.pins WHERE server = %s AND key = ANY(%s::bytea[])", (own, gone))
            return (await transaction.run(_SERVER, (own, to_column(plugin), version)))[0][0]

        return await self._write_or_none(change, audit=audit, permissions=True)
