"""What the console needs of a board, as the assembly makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.board.board import Permissions
    from pegboard.board.calls.approvals import Approvals
    from pegboard.board.services import Services
    from pegboard.board.session import Session
    from pegboard.core.model.agents import World
    from pegboard.core.principals.bearer_tokens import Token
    from pegboard.operators.configuration import ConfigurationState


class ConsoleSettings(Protocol):
    """The part of a configuration that the console reads."""

    @property
    def tokens(self) -> Sequence[Token]:
        """Return the tokens; none where everyone on loopback may enter."""
        ...

    @property
    def path(self) -> Path:
        """Return the file that was read."""
        ...


class ConsoleBoard(Protocol):
    """A board with its configuration."""

    permissions: Permissions
    approvals: Approvals
    services: Services

    @property
    def world(self) -> World:
        """Return the current picture; replaced whole on every change."""
        ...

    @property
    def configuration(self) -> ConsoleSettings:
        """Return the current configuration."""
        ...

    @property
    def configuration_state(self) -> ConfigurationState:
        """Return what became of the newest reading of the configuration."""
        ...

    async def session(
        self, *, agent: str | None = None, session_id: str | None = None, principal: str = ...
    ) -> Session:
        """Return a session; raises ``UnknownAgentError``."""
        ...

    def on(self, event: str, callback: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call back on an event; returns what ends that."""
        ...
