"""Who is connected: the clients that reached this process (G1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from pegboard.board.services import Services
from pegboard.operators.masked import Name, mask_value, shown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOverview:
    """A client that reached this process since it was started.

    Attributes:
        principal: whose it is.
        agent: the agent that it works with.
        name: what it calls itself; nothing where it does not.
        version: its version, as it says.
        session: its newest session.
        first_at: when it was heard of first, in seconds since the epoch.
        last_at: when it was heard of last.
        requests: how many of its requests had a session.
    """

    principal: Name
    agent: Name
    name: str
    version: str
    session: Name
    first_at: float
    last_at: float
    requests: int


async def connected_clients(services: Services, sees: Callable[[str], bool]) -> tuple[ClientOverview, ...]:
    """Return the clients of the agents that an operator sees, the one heard of last first."""
    seen = [one for one in services.clients if sees(one.agent)]
    named = {(one.principal, one.agent) for one in seen if one.name}
    # A client that has a name sends requests without it, too.
    kept = (one for one in seen if one.name or (one.principal, one.agent) not in named)
    found = tuple(ClientOverview(**asdict(one)) for one in kept)
    return mask_value(found, await shown_names(services))
