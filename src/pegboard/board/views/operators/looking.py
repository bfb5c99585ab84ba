"""A session as an operator looks at it: read as its own requests read it, and nothing of that is noted."""

from __future__ import annotations

from pegboard.board.observability.conversations import Conversation
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo, agent_of
from pegboard.board.snapshot import Snapshot, read, read_start
from pegboard.board.views.session_reads import OPEN
from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.delivery import COMMAND
from pegboard.errors import board_closed
from pegboard.ports import SessionKey


async def look(services: Services, agent: str, *, principal: str, session: str, sub_app: str | None = None) -> Snapshot:
    """Return a session as of now; one without a name is new.

    Args:
        services: the services of the board.
        agent: the agent's name.
        principal: whose session it is.
        session: its id, whether or not something is stored of it; nothing is a new one.
        sub_app: what it was opened with.

    Raises:
        StoreError: the stored state cannot be read.
        UnknownAgentError: there is no such agent.
    """
    if services.loader.closed:
        raise board_closed(OPEN)
    key = SessionKey(principal=principal, agent=agent_of(services.world, agent).name, session=session)
    info = SessionInfo(
        key=key,
        stable=True,
        host=COMMAND,
        constraints=SessionConstraints(sub_app=sub_app),
        conversation=services.conversations.known(key) or Conversation(),
    )
    return await (read(services, info) if session else read_start(services, info))
