"""What plugins keep for sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pegboard.ports import SessionKey
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Transaction, insert
from pegboard.stores.sql.sessions import OF_SESSION, SESSION, of_session

_SELECT: Final = f"SELECT name, text FROM main.session_data WHERE {OF_SESSION}"  # noqa: S608 - constants
_DELETE: Final = f"DELETE FROM main.session_data WHERE {OF_SESSION}"  # noqa: S608 - constants
_PUT: Final = insert("session_data", (*SESSION, "name", "text"), key=(*SESSION, "name"))


class SessionData(StoreBase):
    """The part of the store that keeps what plugins keep for sessions."""

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return the texts of a session by name."""
        return dict(await self._db.rows(_SELECT, *of_session(key)))

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session; None removes one."""

        async def keep(transaction: Transaction) -> None:
            for name, text in sorted(changes.items()):
                if text is None:
                    await transaction.run(f"{_DELETE} AND name = ?", *of_session(key), name)
                else:
                    await transaction.run(_PUT, *of_session(key), name, text)

        await self._write(keep)

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove what is kept for a session; return whether there was anything."""

        async def forget(transaction: Transaction) -> int:
            return await transaction.changed(_DELETE, *of_session(key))

        return await self._write(forget) > 0
