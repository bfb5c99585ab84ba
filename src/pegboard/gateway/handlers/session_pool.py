"""The sessions of a board that requests belong to, kept between requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from pegboard.board.session_info import open_sub_app
from pegboard.gateway.handlers.client_sessions import begin_client_session
from pegboard.gateway.protocol.request_identity import host_of

if TYPE_CHECKING:
    from pegboard.board import Session
    from pegboard.gateway.protocol.board_port import BoardPort, Caller

_MOST: Final = 1024
PoolKey = tuple[str, str | None, str, str, str, str, bool, bool]


class SessionPool:
    """Session objects by caller, session id and era."""

    def __init__(self, board: BoardPort) -> None:
        self._board = board
        self._clients = board.services.clients
        self._sessions: dict[PoolKey, Session] = {}

    def known(self, caller: Caller, session_id: str, *, modern: bool) -> Session | None:
        """Return what :meth:`get` would, where it is kept here; else None."""
        session = self._sessions.get(_key(caller, session_id, modern=modern))
        if session is not None:
            self._clients.note(session.key, caller.declared, caller.version, time.time())
        return session

    async def get(self, caller: Caller, session_id: str, *, modern: bool) -> Session:
        """Return the session that a request belongs to, on a host of its era.

        Raises ``UnknownAgentError``, and ``UsageError`` where the agent does not list the sub-app (any longer).
        """
        key = _key(caller, session_id, modern=modern)
        session = self._sessions.get(key)
        if session is None:
            if len(self._sessions) >= _MOST:
                self._sessions.clear()
            session = self._sessions[key] = await self._board.session(
                agent=caller.agent,
                session_id=session_id,
                principal=caller.principal,
                host=host_of(caller, modern=modern),
                sub_app=open_sub_app(self._board.world, caller.agent, caller.sub_app),
                client=caller.client,
            )
            await begin_client_session(self._board, session, caller)
        self._clients.note(session.key, caller.declared, caller.version, time.time())
        return session

    def clear(self) -> None:
        """Forget every session object: the configuration has changed."""
        self._sessions.clear()


def _key(caller: Caller, session_id: str, *, modern: bool) -> PoolKey:
    return (
        caller.agent,
        caller.sub_app,
        caller.principal,
        session_id,
        caller.client,
        caller.declared,
        modern,
        caller.draws_ui,
    )
