"""A session as an operator looks at it: what it was opened with, where it is live here; nothing of that is noted."""

from __future__ import annotations

from dataclasses import replace

from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo, agent_of
from pegboard.board.snapshot import Snapshot, looked_at, narrowed_above_of, read, read_start, stored_state
from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.delivery import COMMAND
from pegboard.errors import board_closed
from pegboard.ports import SessionKey


async def look(services: Services, agent: str, *, principal: str, session: str) -> Snapshot:
    """Return a session as of now, with the answers that predicates gave before: none is asked.

    Args:
        services: the services of the board.
        agent: the agent's name.
        principal: whose session it is.
        session: its id, whether or not something is stored of it; nothing is a new one.

    Raises:
        StoreError: the stored state cannot be read.
        UnknownAgentError: there is no such agent.
    """
    info = _info(services, agent, principal, session)
    await services.compiler.refresh()
    state = (await stored_state(services, info))[0] if session else info.start
    return looked_at(services, info, state, narrowed_above=await narrowed_above_of(services, info))


async def read_session(
    services: Services, agent: str, *, principal: str, session: str, sub_app: str | None = None
) -> Snapshot:
    """Return a session as its own requests read it; the arguments and errors are those of :func:`look`.

    Args:
        services: the services of the board.
        agent: the agent's name.
        principal: whose session it is.
        session: its id; nothing is a new one.
        sub_app: what it is opened with, where it is not live here.
    """
    info = _info(services, agent, principal, session)
    if sub_app is not None:
        info = replace(info, constraints=replace(info.constraints, sub_app=sub_app))
    return await (read(services, info) if session else read_start(services, info))


def _info(services: Services, agent: str, principal: str, session: str) -> SessionInfo:
    if services.loader.closed:
        raise board_closed()
    key = SessionKey(principal=principal, agent=agent_of(services.world, agent).name, session=session)
    live = services.live.get(key) if session else None
    return live[0] if live is not None else SessionInfo(key=key, stable=True, host=COMMAND, constraints=_NOTHING_ADDED)


_NOTHING_ADDED = SessionConstraints()
