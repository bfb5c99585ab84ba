"""What the console needs of a board, as the assembly makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pegboard.board.calls.approvals import Approvals
    from pegboard.board.services import Services
    from pegboard.board.session import Session
    from pegboard.core.access.grants import GrantChange
    from pegboard.core.model.agents import World
    from pegboard.operators.adding_servers import ServerFinder
    from pegboard.operators.configuration import ConfigurationState
    from pegboard.operators.editable import EditableConfiguration
    from pegboard.ports.configuration import ServedConfiguration


class ConsoleBoard(Protocol):
    """A board with its configuration."""

    approvals: Approvals
    services: Services
    quickstart: bool

    @property
    def world(self) -> World:
        """Return the current picture; replaced whole on every change."""
        ...

    @property
    def configuration(self) -> ServedConfiguration:
        """Return the current configuration."""
        ...

    @property
    def configuration_state(self) -> ConfigurationState:
        """Return what became of the newest reading of the configuration."""
        ...

    @property
    def waiting(self) -> Sequence[GrantChange]:
        """Return what the newest edits of the configuration would widen, which waits for a person."""
        ...

    @property
    def editable(self) -> EditableConfiguration:
        """Return the file of the configuration, for who may edit it."""
        ...

    @property
    def servers_to_add(self) -> ServerFinder:
        """Return what finds and tries servers, for who adds them."""
        ...

    async def create_configuration(self, *, by: str) -> str:
        """Write ``pegboard.yaml`` in place of the quickstart, take it up, and return its name."""
        ...

    async def accept(self, shown: Sequence[GrantChange], *, by: str) -> Sequence[GrantChange]:
        """Accept changes that wait, as they were shown; return them."""
        ...

    async def session(
        self, *, agent: str | None = None, session_id: str | None = None, principal: str = ...
    ) -> Session:
        """Return a session; raises ``UnknownAgentError``."""
        ...

    def on(self, event: str, callback: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call back on an event; returns what ends that."""
        ...
