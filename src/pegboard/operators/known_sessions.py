"""The sessions that there are: those that are stored, whoever stored them, and those of this process beside them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.delivery import LIBRARY
from pegboard.core.state.session_text import from_text
from pegboard.core.state.sessions import State
from pegboard.ports import SessionKey, StoredState

MOST_PARSED: Final = 10_000
"""Of how many sessions what is loaded is kept as it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSession:
    """A session that is stored, or had a surface in this process.

    ``info`` is what it was opened with here; of one of another process it is what the library's host would open.
    ``text`` is its state as it is stored under ``version``, None where nothing is; ``updated_at`` is when it changed
    last, or had a surface, in seconds since the epoch.
    """

    info: SessionInfo
    text: str | None
    version: int = 0
    updated_at: float

    @property
    def key(self) -> SessionKey:
        """Return principal, agent and session id."""
        return self.info.key

    @property
    def stored(self) -> bool:
        """Return whether something is stored of it."""
        return self.text is not None

    def state(self) -> State:
        """Return its state; raises ``ValueError`` where what is stored is damaged."""
        return self.info.start if self.text is None else from_text(self.text)


class ParsedLeases:
    """The turns, leases and loadouts of a board's sessions as they were read last: reading a thousand takes long."""

    def __init__(self) -> None:
        self._known: OrderedDict[SessionKey, tuple[int, State]] = OrderedDict()

    def of(self, session: KnownSession) -> State:
        """Return what is loaded in a session, without anything else; raises ``ValueError`` where that is damaged."""
        if session.text is None:
            return session.info.start
        known = self._known.get(session.key)
        if known is None or known[0] != session.version:
            state = session.state()
            state = State(turn=state.turn, leases=state.leases, loadout=state.loadout)
            known = self._known[session.key] = session.version, state
            if len(self._known) > MOST_PARSED:
                self._known.popitem(last=False)
        return known[1]


async def known_sessions(
    services: Services, *, agent: str | None = None, principal: str | None = None
) -> tuple[KnownSession, ...]:
    """Return the sessions of an agent and a principal, None being every one; the newest change first.

    Raises:
        StoreError: they cannot be read.
    """
    rows = await services.store.sessions(principal=principal, agent=agent)
    found = {key: known_session(services, key, stored) for key, stored in rows}
    for info, at in services.live:
        key = info.key
        if key not in found and principal in (None, key.principal) and agent in (None, key.agent):
            found[key] = KnownSession(info=info, text=None, updated_at=at)
    return tuple(sorted(found.values(), key=lambda known: known.updated_at, reverse=True))


def known_session(services: Services, key: SessionKey, stored: StoredState) -> KnownSession:
    """Return a session that is stored."""
    live = services.live.get(key)
    if live is not None:
        info = live[0]
    else:
        info = SessionInfo(key=key, stable=True, host=LIBRARY, constraints=SessionConstraints())
    return KnownSession(info=info, text=stored.text, version=stored.version, updated_at=stored.updated_at)


async def known_by_key(services: Services, key: SessionKey) -> KnownSession | None:
    """Return the session of a key, or None where nothing is stored of it and it had no surface here.

    Raises:
        StoreError: it cannot be read.
    """
    stored = await services.store.load(key)
    if stored is not None:
        return known_session(services, key, stored)
    live = services.live.get(key)
    return KnownSession(info=live[0], text=None, updated_at=live[1]) if live is not None else None
