"""The texts that each configuration had, the newest of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pegboard.ports import ConfigurationText
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Transaction, insert

_COLUMNS: Final = ("configuration", "at", "by", "what", "digest", "text")
_PUT: Final = insert("configuration_text", _COLUMNS)
_SELECT: Final = "SELECT id, at, by, what, digest, text FROM main.configuration_text WHERE configuration = ?"
_NEWEST: Final = "SELECT digest FROM main.configuration_text WHERE configuration = ? ORDER BY id DESC LIMIT 1"
_KEPT: Final = "SELECT id FROM main.configuration_text WHERE configuration = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
_OLD: Final = "DELETE FROM main.configuration_text WHERE configuration = ? AND id <= ?"


class ConfigurationTexts(StoreBase):
    """The part of the store that keeps what configurations were."""

    async def note_configuration(
        self, configuration: str, *, at: float, by: str, what: str, digest: str, text: str, keep: int
    ) -> None:
        """Keep a text where it is not the newest, and of the others the newest ``keep``."""

        async def note(transaction: Transaction) -> None:
            newest = await transaction.rows(_NEWEST, configuration)
            if newest and newest[0][0] == digest:
                return
            await transaction.run(_PUT, configuration, at, by, what, digest, text)
            old = await transaction.rows(_KEPT, configuration, keep)
            if old:
                await transaction.run(_OLD, configuration, old[0][0])

        await self._write(note)

    async def configuration_texts(self, configuration: str) -> Sequence[ConfigurationText]:
        """Return the texts of a configuration, the newest first."""
        rows = await self._db.rows(f"{_SELECT} ORDER BY id DESC", configuration)
        return [ConfigurationText(*row) for row in rows]
