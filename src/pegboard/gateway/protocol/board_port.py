"""What the gateway needs of a board, and who is calling right now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from pegboard.core.model.naming import one_line
from pegboard.errors import UnknownAgentError

if TYPE_CHECKING:
    from pegboard.board import Session
    from pegboard.board.resources.aggregator import ResourceAggregator
    from pegboard.board.services import Services
    from pegboard.core.model.agents import World
    from pegboard.core.model.delivery import Host
    from pegboard.ports.configuration import ServedConfiguration

LOCAL = "local"
"""The principal on stdio, and on loopback where no tokens are configured (G2)."""


class BoardPort(Protocol):
    """A board with its configuration, as the assembly makes it."""

    @property
    def world(self) -> World:
        """Return the current picture; replaced whole on every change."""
        ...

    @property
    def configuration(self) -> ServedConfiguration:
        """Return the current configuration."""
        ...

    @property
    def waiting(self) -> Sequence[object]:
        """Return what of the newest edits waits for a person (P10)."""
        ...

    @property
    def quickstart(self) -> bool:
        """Return whether the packaged configuration is in use."""
        ...

    @property
    def services(self) -> Services:
        """Return the services of a board: store, masker, counts."""
        ...

    @property
    def resources(self) -> ResourceAggregator:
        """Return what servers list besides tools."""
        ...

    @property
    def fast_path(self) -> bool:
        """Return whether calls and first lists may go around the SDK."""
        ...

    async def session(
        self,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        principal: str = LOCAL,
        host: Host = ...,
        sub_app: str | None = None,
        client: str = "",
    ) -> Session:
        """Return the session; raises ``UnknownAgentError`` and ``UsageError``."""
        ...

    def on(self, event: str, callback: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call back on an event; returns what ends that."""
        ...

    def upstream_states(self) -> Sequence[Mapping[str, Any]]:
        """Return one mapping per known connection to an upstream."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The principal and the agent of a request; ``session`` is what the URL or the command names, if they do.

    ``sub_app`` is what the URL or the command opens besides (T9). ``draws_ui`` is whether the client has declared that
    it draws the user interfaces of tools (G4). ``client`` names a connection that one client alone has, "" is none
    (G9). ``folder`` is the digest of the folder in which the client has started this process, for requests
    over stdio alone (G1). ``declared`` is the name that the client gives itself, ``version`` its version.
    """

    agent: str
    principal: str = LOCAL
    session: str | None = None
    transport_session: str | None = None
    sub_app: str | None = None
    draws_ui: bool = False
    client: str = ""
    folder: str = ""
    declared: str = ""
    version: str = ""

    @property
    def usual_session(self) -> str:
        """Return the session of requests that name none: on stdio that of the client and the folder (G1)."""
        if self.session is not None:
            return self.session
        return f"{self.declared or UNNAMED}:{self.folder}" if self.folder else DEFAULT_SESSION


ONLY_CLIENT: Final = "stdio"
"""How a caller names the connection of the client that has started this process."""
DEFAULT_SESSION: Final = "default"
UNNAMED: Final = "client"
"""What a client is called that gives itself no name."""
_LONGEST_NAME: Final = 40


def declared_name(name: object) -> str:
    """Return the name that a client gives itself, as it may stand in the name of a session.

    >>> declared_name("Claude Code "), declared_name(None)
    ('Claude Code', '')
    """
    if not isinstance(name, str):
        return ""
    return one_line(name.encode(errors="replace").decode(), limit=_LONGEST_NAME).strip()


CALLER: ContextVar[Caller] = ContextVar("pegboard_caller")
"""Set by the transport around every request; the SDK carries it into the handlers."""


def chosen_agent(board: BoardPort, agent: str | None) -> str | None:
    """Return the agent that is served where a request names none; raises ``UnknownAgentError``."""
    if agent is not None and agent not in board.world.agents:
        known = ", ".join(board.world.agents)
        raise UnknownAgentError(f"There is no agent '{agent}'.", hint=f"There are: {known}." if known else "")
    return agent or board.world.default_agent()
