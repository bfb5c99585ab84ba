"""What the gateway and the console read of a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.core.model.hooks import Hook
    from pegboard.core.model.specs import PluginSpec
    from pegboard.core.principals.bearer_tokens import Token


class ServedConfiguration(Protocol):
    """The part of a configuration that says who may enter, what is confined, and which one it is."""

    @property
    def tokens(self) -> Sequence[Token]:
        """Return the tokens; none where everyone on loopback may enter."""
        ...

    @property
    def specs(self) -> Mapping[str, PluginSpec]:
        """Return what it says of each plugin."""
        ...

    @property
    def notify(self) -> Sequence[Hook]:
        """Return who is told outside of the console what waits for a person."""
        ...

    @property
    def console_url(self) -> str:
        """Return the address of the console as people reach it, or nothing."""
        ...

    @property
    def path(self) -> Path:
        """Return the file that was read."""
        ...
