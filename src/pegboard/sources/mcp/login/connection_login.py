"""What the requests of one connection show of a login."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from pegboard.sources.mcp.login.challenge import Challenge, challenge_of

if TYPE_CHECKING:
    from pegboard.core.access.instances import LoginOwner
    from pegboard.core.model.specs import ServerSpec
    from pegboard.sources.mcp.login.keeper import GrantKeeper, LoginGrantKey


class ConnectionLogin:
    """The login of one connection: its owner's, or none yet (``owner`` None)."""

    def __init__(
        self,
        spec: ServerSpec,
        owner: LoginOwner | None,
        keeper: GrantKeeper,
        key: LoginGrantKey | None,
        note: Callable[[ServerSpec, Challenge], Awaitable[bool]],
    ) -> None:
        self.owner = owner
        self._note = note
        self._spec = spec
        self._keeper = keeper
        self._key = key

    def header_if_at_hand(self) -> str | None:
        """Return the value of the header, if nothing has to be awaited for it."""
        held = None if self._key is None else self._keeper.grant_if_at_hand(self._key)
        return None if held is None else held.grant.header

    async def header(self) -> str | None:
        """Return the value of the header, renewed where it has ended; None without a login that counts.

        Raises ``PegboardError`` where it cannot be renewed for now.
        """
        held = None if self._key is None else await self._keeper.current_grant(self._key)
        return None if held is None else held.grant.header

    async def header_after_refusal(self, shown: str) -> str | None:
        """Return another value than the one that the server refused, or None where a login is needed.

        Raises ``PegboardError`` where it cannot be renewed for now.
        """
        if self._key is None:
            return None
        held = await self._keeper.grant_after_refusal(self._key, shown.removeprefix("Bearer "))
        return None if held is None else held.grant.header

    def reject_login(self, shown: str) -> None:
        """Take the login for one that does not count: its server refuses it though it was renewed for it."""
        if self._key is not None:
            self._keeper.reject_grant(self._key, shown.removeprefix("Bearer "))

    async def refused(self, status: int, headers: Mapping[str, str]) -> Challenge | None:
        """Return what an answer says that refuses a request for want of a login; None for any other answer."""
        found = challenge_of(status, headers, self._spec) if status in (401, 403) else None
        return found if found is not None and await self._note(self._spec, found) else None
