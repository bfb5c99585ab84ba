"""What all connections of one source share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pegboard.core.access.instances import client_in
from pegboard.core.model.specs import ServerSpec
from pegboard.ports.sealed import SealedStore
from pegboard.sources.mcp.connection.start_turns import StartTurns
from pegboard.sources.mcp.connection.ways import ConnectionWay
from pegboard.sources.mcp.transports.launch import Launches
from pegboard.sources.mcp.wire.only_client import ClientsOfUser, ProcessClient

if TYPE_CHECKING:
    from pegboard.sources.mcp.transports.shared_processes import SharedProcesses


@dataclass(slots=True, kw_only=True)
class SourceSettings:
    """What all connections of one source share; times are in seconds.

    ``fast_path``: calls go around the SDK where they can. ``asks``: servers may ask the clients of calls.
    ``ways`` is how servers were reached last, by their fingerprints, ``reported`` the names
    of those that have been reported to print what is no message, ``launches`` is how
    processes are started. ``start_timeout`` goes before the time that each server may take to start; ``patience`` is
    how long a request waits for a start that goes on. ``spawns`` servers begin to start at once, before others those
    that are ``needed``, by name: a request waits for them. ``learn`` is handed each value that is read for a server, to
    be masked from then on. ``only_client`` is the one that has started this process, where there is no other; else
    ``clients`` are those that may have connections of their own, by name; ``all_clients`` are these where all are one
    user's. ``store`` has sealed values, ``shared`` the
    processes that other boards may use, too.
    """

    mask: Callable[[str], str]
    learn: Callable[[str, str], None]
    start_timeout: float | None = None
    patience: float = 45.0
    spawns: int = 4
    needed: set[str] = field(default_factory=set[str])
    turns: StartTurns = field(init=False)
    monotonic: Callable[[], float] = time.monotonic
    fast_path: bool = True
    asks: bool = True
    only_client: ProcessClient | None = None
    clients: dict[str, ProcessClient] = field(default_factory=dict[str, ProcessClient])
    all_clients: ClientsOfUser | None = None
    ways: dict[str, ConnectionWay] = field(default_factory=dict[str, ConnectionWay])
    reported: set[str] = field(default_factory=set[str])
    launches: Launches = field(default_factory=Launches)
    store: SealedStore | None = None
    shared: SharedProcesses | None = None

    def __post_init__(self) -> None:
        """Begin without a server that starts."""
        self.turns = StartTurns(self.spawns, self.needed)

    def client_called(self, name: str) -> ProcessClient:
        """Return a client by the name of its connection; in a process with one client, that one."""
        return self.only_client or self.clients.setdefault(name, ProcessClient())

    def client_of(self, scope: str) -> ProcessClient | None:
        """Return whom the server of a connection means outside of calls, where it is one client or user alone (G9)."""
        if self.only_client is not None:
            return self.only_client
        name = client_in(scope)
        return self.clients.get(name) if name else self.all_clients

    def start_limit(self, spec: ServerSpec) -> float:
        """Return how long the start of a server may take, in seconds."""
        return spec.start if self.start_timeout is None else self.start_timeout
