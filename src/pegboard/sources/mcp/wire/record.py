"""What is known of one connection from its start to its end. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.wire.diagnostics import Diagnostics, Keep
from pegboard.sources.mcp.wire.request_outcomes import InFlight, too_large
from pegboard.sources.mcp.wire.server_requests import ServerRequests


@dataclass(slots=True)
class HttpSession:
    """The session of the handshake era over HTTP, as the SDK has opened it."""

    id: str = ""
    initialized: bool = False


class ConnectionRecord:
    """One connection to a server, from its start to its end.

    ``closed`` is set when no request can be answered any more, ``ended`` when all that belonged to
    it has been stopped; ``reason`` says why. ``subscribed`` is set once no change can be missed.
    ``envelope`` is what the SDK sends of this client with every request of the 2026 era. ``notify``
    takes the notifications about lists other than that of tools, ``on_progress`` the progress of calls
    that are not the SDK's; ``announced`` are the lists of which a stream reports changes. ``oversized``:
    it ended because of a message over the limit.
    """

    def __init__(self, spec: ServerSpec, keep: Keep, report_invalid: Callable[[str], None] | None = None) -> None:
        self.name = spec.name
        self.message_limit = spec.message_limit
        self.diagnostics = Diagnostics(spec.name, lambda kind, text: keep(kind, text, self.pid), report_invalid)
        self.server_requests = ServerRequests(spec.name)
        self.http = HttpSession()
        self.closed = asyncio.Event()
        self.ended = asyncio.Event()
        self.subscribed = asyncio.Event()
        self.reason = ""
        self.oversized = False
        self.up = False
        self.stopped = False
        self.pid: int | None = None
        self.version = ""
        self.envelope: dict[str, Any] = {}
        self.announced: frozenset[str] = frozenset()
        self.in_flight: dict[int | str, InFlight] = {}
        self.notify: Callable[[Any], None] = _ignore
        self.on_progress: Callable[[object], object] = _ignore
        self.alive_check: Callable[[], bool] | None = None

    @property
    def modern(self) -> bool:
        """Return whether the connection is of the 2026 era."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def close(self, reason: str) -> None:
        """End the connection; the first reason stands."""
        if not self.closed.is_set():
            self.reason = self.reason or reason
            self.closed.set()

    def close_oversized(self) -> None:
        """End the connection because of a message over the limit that no request can be blamed for."""
        self.oversized = True
        self.close(too_large(self.message_limit))

    def stop(self, reason: str) -> None:
        """End the connection because nobody needs it any more."""
        self.stopped = True
        self.close(reason)

    def alive(self) -> bool:
        """Return whether a request that is sent now can be answered."""
        return not self.closed.is_set() and (self.alive_check is None or self.alive_check())


def _ignore(_: object) -> None:
    """Do nothing."""
