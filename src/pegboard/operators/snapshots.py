"""What operators read once for each answer: the sessions that there are, and one of them as of now."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo, agent_of
from pegboard.board.snapshot import (
    Snapshot,
    narrowed_above_of,
    read_snapshot,
    read_start,
    snapshot_without_refresh,
    stored_state,
)
from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.delivery import COMMAND, LIBRARY
from pegboard.core.state.sessions import State, from_text
from pegboard.errors import board_closed
from pegboard.ports import SessionKey, StoredState

_NOTHING_ADDED = SessionConstraints()


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


async def known_sessions(
    services: Services, *, agent: str | None = None, principal: str | None = None
) -> tuple[KnownSession, ...]:
    """Return the sessions of an agent and a principal, None being every one; the newest change first."""
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
    """Return the session of a key, or None where nothing is stored of it and it had no surface here."""
    stored = await services.store.load(key)
    if stored is not None:
        return known_session(services, key, stored)
    live = services.live.get(key)
    return KnownSession(info=live[0], text=None, updated_at=live[1]) if live is not None else None


async def look(services: Services, agent: str, *, principal: str, session: str) -> Snapshot:
    """Return a session as of now, with the answers that predicates gave before: none is asked.

    Args:
        session: its id, whether or not something is stored of it; nothing is a new one.
    """
    info = _info(services, agent, principal, session)
    await services.compiler.refresh()
    state = (await stored_state(services, info))[0] if session else info.start
    return snapshot_without_refresh(services, info, state, narrowed_above=await narrowed_above_of(services, info))


async def read_session(
    services: Services, agent: str, *, principal: str, session: str, sub_app: str | None = None
) -> Snapshot:
    """Return a session as its own requests read it; the arguments and errors are those of :func:`look`.

    Args:
        session: its id; nothing is a new one.
    """
    info = _info(services, agent, principal, session)
    if sub_app is not None:
        info = replace(info, constraints=replace(info.constraints, sub_app=sub_app))
    return await (read_snapshot(services, info) if session else read_start(services, info))


def _info(services: Services, agent: str, principal: str, session: str) -> SessionInfo:
    if services.loader.closed:
        raise board_closed()
    key = SessionKey(principal=principal, agent=agent_of(services.world, agent).name, session=session)
    live = services.live.get(key) if session else None
    return live[0] if live is not None else SessionInfo(key=key, stable=True, host=COMMAND, constraints=_NOTHING_ADDED)


async def looked_at_now(services: Services, known: KnownSession, state: State) -> Snapshot:
    """Return a session as of the last refresh; nothing is asked for, started or stored."""
    above = await narrowed_above_of(services, known.info) if known.info.parent is not None else ()
    return snapshot_without_refresh(services, known.info, state, narrowed_above=above)
