"""Where people hear of what waits for them, outside of the console: addresses that are sent a message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from pegboard.problems import Place

HookShape = Literal["json", "ntfy", "slack"]
"""The form of a message: a JSON object of our own, or what ntfy or Slack takes."""
HookEvent = Literal["approval", "attention"]
"""A call that waits for a person, or something else that needs one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """An address that is sent a message; ``url`` may hold a secret in any part but its host (X5).

    ``written`` is the address in the text of the configuration where that refers to variables.
    """

    url: str = field(repr=False)
    shape: HookShape = "json"
    events: tuple[HookEvent, ...] = ("approval", "attention")
    arguments: bool = False
    written: str = field(default="", repr=False)
    place: Place | None = None

    @property
    def host(self) -> str:
        """Return the host with its port, by which messages name it."""
        return urlsplit(self.url).netloc.rpartition("@")[2]
