"""What each configuration granted when its last edit was accepted (P10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pegboard.ports import AuditRecord
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import ChangedMeanwhileError, Transaction, insert
from pegboard.stores.sql.switches import PERMISSIONS

_SELECT: Final = "SELECT text FROM main.accepted WHERE configuration = ?"
_PUT: Final = insert("accepted", ("configuration", "text"), key=("configuration",))


class StoredGrants(StoreBase):
    """The part of the store that keeps what was accepted."""

    async def accepted(self, configuration: str) -> str | None:
        """Return what a configuration grants, as it was accepted last."""
        rows = await self._db.rows(_SELECT, configuration)
        return rows[0][0] if rows else None

    async def accept(
        self, configuration: str, text: str, *, expected: str | None, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store what a configuration grants, with its records, if what is stored is as expected; return whether."""

        async def change(transaction: Transaction) -> bool:
            rows = await transaction.rows(_SELECT, configuration)
            if (rows[0][0] if rows else None) != expected:
                raise ChangedMeanwhileError
            await transaction.run(_PUT, configuration, text)
            transaction.announce(permissions=True)
            return True

        return bool(await self._write_or_none(change, PERMISSIONS, audit=audit))
