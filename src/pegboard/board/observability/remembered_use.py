"""What was called after which need: remembered for each principal and agent, where the agent may (S1, X5, P9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import one_line
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import excluded_by_loadout
from pegboard.ports import USE_LIFETIME, PastUse, SessionKey, UseRecord, UseStore

LONGEST_NEED: Final = 300
_MOST: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithinReach:
    """The uses that count for a session: of which records, under which permissions and loadout, and until when."""

    records: Sequence[UseRecord]
    permissions: CompiledPermissions
    loadout: str | None
    until: float
    uses: tuple[PastUse, ...]


class RememberedUse:
    """What was called after which need, in the store; ``clock`` gives seconds since the epoch."""

    def __init__(self, store: UseStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[tuple[str, str], _WithinReach] = {}

    def remember(self, key: SessionKey, needs: Sequence[str], tool: str) -> None:
        """Store within 50 ms that a tool was called for these needs, whose secrets are masked already (S2, X5)."""
        now, texts = self._clock(), dict.fromkeys(one_line(need, limit=LONGEST_NEED) for need in needs)
        self._store.remember_later(
            *(
                UseRecord(now, key.principal, key.agent, text, tool)
                for text in texts
                if any(character.isalnum() for character in text)
            )
        )

    async def within_reach(
        self, key: SessionKey, permissions: CompiledPermissions, state: State
    ) -> tuple[PastUse, ...]:
        """Return what counts now: of tools within the session's reach, and not too old; the newest last (P9).

        The same object as long as nothing has changed.
        """
        who, now = (key.principal, key.agent), self._clock()
        records = await self._store.uses(*who)
        known = self._known.get(who)
        if known is None or known.records is not records or known.permissions is not permissions or now >= known.until:
            known = None
        if known is None or known.loadout != state.loadout:
            known = _within_reach(records, permissions, state, now)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[who] = known
        return known.uses

    async def forget(self, principal: str | None, agent: str | None) -> int:
        """Remove what is remembered of a principal and agent (None: any); return how many uses there were."""
        return await self._store.forget_uses(principal=principal, agent=agent)


def _within_reach(
    records: Sequence[UseRecord], permissions: CompiledPermissions, state: State, now: float
) -> _WithinReach:
    reached = {tool for tool in {record.tool for record in records} if _reaches(permissions, state, tool)}
    kept = [record for record in records if record.at > now - USE_LIFETIME and record.tool in reached]
    return _WithinReach(
        records=records,
        permissions=permissions,
        loadout=state.loadout,
        until=min((record.at for record in kept), default=now) + USE_LIFETIME,
        uses=tuple(PastUse(need=record.need, tool=record.tool) for record in kept),
    )


def _reaches(permissions: CompiledPermissions, state: State, tool_id: str) -> bool:
    tool = permissions.world.catalog.by_id(tool_id)
    return tool is not None and permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
