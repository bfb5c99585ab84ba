"""The gateway over HTTP, served until it is stopped (G1)."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import uvicorn

from pegboard.board.login_addresses import PAGES
from pegboard.board.session_info import open_sub_app
from pegboard.errors import PegboardError, UsageError
from pegboard.gateway.http.accepting import accept_connections
from pegboard.gateway.http.addresses import bind, reached_at, url_of
from pegboard.gateway.http.auth import (
    Authenticator,
    OriginCheck,
    demand_user_token,
    identify,
    require_tokens,
)
from pegboard.gateway.http.connections import ConnectionLimits, LimitedProtocol, OpenConnections
from pegboard.gateway.http.draining import Drain, DrainingApp
from pegboard.gateway.http.streams import OpenStreams
from pegboard.gateway.http.wrong_tokens import WrongTokenDelay, WrongTokens
from pegboard.gateway.process.setup import allow_more_files, quiet, stop_on_signals
from pegboard.gateway.protocol.board_port import BoardPort, chosen_agent
from pegboard.gateway.replicas.owners import owning_servers
from pegboard.gateway.replicas.peers import among_replicas, require_address
from pegboard.support.hosts import is_loopback
from pegboard.support.user_token import UserToken

if TYPE_CHECKING:
    from pegboard.gateway.http.asgi import App
    from pegboard.gateway.http.mounts import GatewayApp, Mount, MountedApp
    from pegboard.gateway.replicas.owners import ReplicaOwners
    from pegboard.gateway.replicas.peers import ReplicaPeers

HOST = "127.0.0.1"
PORT = 8321
GRACE = 2
"""How long requests may go on after the gateway was stopped, in seconds."""
DRAIN = 5.0
"""For how long a gateway that others reach is no longer ready before it stops, in seconds."""
LONGEST_DRAIN = 3600.0


class _Uvicorn(uvicorn.Server):
    """A server whose connections are taken here, so that there are never more than there may be."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits) -> None:
        super().__init__(config)
        self._connections = OpenConnections(limits)
        self._accepting: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to the user who runs the gateway."""
        yield

    async def run_on(self, listening: socket.socket) -> None:
        """Serve until ``should_exit`` is set; a start that fails ends here instead of ending the process."""
        with contextlib.suppress(SystemExit):
            await self.serve(sockets=[listening])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, and take connections."""
        await super().startup(sockets=[])
        if self.started and sockets:
            accepted = accept_connections(sockets[0], self._connections, self._protocol)
            self._accepting = asyncio.create_task(accepted, name="gateway: connections")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait({self._accepting})
        await super().shutdown(sockets)

    def _protocol(self, served: bool) -> LimitedProtocol:
        state: Any = {"server_state": self.server_state, "app_state": self.lifespan.state}
        return LimitedProtocol(self._connections, served=served, config=self.config, **state)


@contextlib.asynccontextmanager
async def serving(
    board: BoardPort,
    *,
    host: str = HOST,
    port: int = PORT,
    agent: str | None = None,
    session: str | None = None,
    sub_app: str | None = None,
    mounts: Sequence[Mount] = (),
    clock: Callable[[], float] = monotonic,
    limits: ConnectionLimits | None = None,
    address: str | None = None,
) -> AsyncGenerator[str]:
    """Serve while the context lasts; yields the URL of the default agent. ``port`` 0 takes a free one.

    Each of ``mounts`` is served under its paths. Turns end after ``turn_gap`` seconds of ``clock``. ``limits`` bounds
    connections without a call or stream. At ``address`` other processes on the same store reach this one; None is
    where it is bound.

    Raises ``UsageError`` where other machines would come in without a token, ``UnknownAgentError``,
    and ``PegboardError`` (``port_in_use``, ``address_unavailable``).
    """
    given: dict[str, Any] = {"host": host, "port": port, "agent": agent, "session": session, "sub_app": sub_app}
    more: dict[str, Any] = {"mounts": mounts, "clock": clock, "limits": limits, "address": address}
    async with _serving_http(board, _do_nothing, **given, **more) as (url, _, _):
        yield url


def _do_nothing() -> None:
    """Do nothing."""


@contextlib.asynccontextmanager
async def _serving_http(
    board: BoardPort,
    settled: Callable[[], None],
    *,
    host: str,
    port: int,
    agent: str | None,
    session: str | None,
    sub_app: str | None,
    mounts: Sequence[Mount],
    clock: Callable[[], float] = monotonic,
    limits: ConnectionLimits | None = None,
    address: str | None = None,
) -> AsyncGenerator[tuple[str, asyncio.Event, Drain]]:
    """Serve while the context lasts; yields the URL, what is set where the app cannot be loaded, and how to drain."""
    require_tokens(board, host)
    if (chosen := chosen_agent(board, agent)) is not None:
        open_sub_app(board.world, chosen, sub_app)
    with contextlib.closing(bind(host, port)) as listening:
        bound_to = listening.getsockname()[1]
        demand_user_token(board, host, bound_to)
        url = url_of(host, bound_to)
        authenticator = Authenticator(
            board=board, host=host, default_agent=agent, default_session=session, default_sub_app=sub_app,
            user_token=UserToken(bound_to),
        )  # fmt: skip
        own = require_address(address) if address is not None else reached_at(url)
        async with among_replicas(board.services.store, own) as peers, owning_servers(board.services, peers) as owners:
            failed, drain = asyncio.Event(), Drain()
            limits = limits or ConnectionLimits()
            load = partial(_load_whole_app, authenticator, clock, peers, drain, OpenStreams(limits.most_connections))
            app = _app(authenticator, load, settled, failed)
            mounted = _with_mounts(app, authenticator, mounts, peers, owners)
            app = DrainingApp(WrongTokenDelay(mounted, WrongTokens()), drain)
            async with _listening_on(app, listening, limits):
                yield url, failed, drain
        authenticator.origins.clear()  # no one logs in here any longer


@contextlib.asynccontextmanager
async def _listening_on(app: GatewayApp, listening: socket.socket, limits: ConnectionLimits) -> AsyncGenerator[None]:
    """Serve an app on a socket while the context lasts; its requests may end after that."""
    server = _Uvicorn(
        uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=GRACE + 1,
            server_header=False, http="httptools", timeout_keep_alive=math.ceil(limits.idle),
        ),
        limits,
    )  # fmt: skip
    task = asyncio.create_task(server.run_on(listening))
    try:
        while not server.started:
            if task.done():
                await task
                raise _start_failed_error()
            await asyncio.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        await asyncio.shield(_stop_app(app, task))


def _with_mounts(
    app: GatewayApp,
    authenticator: Authenticator,
    mounts: Sequence[Mount],
    peers: ReplicaPeers | None,
    owners: ReplicaOwners | None,
) -> GatewayApp:
    """Return an app that serves the mounts, too, and the pages where principals log in to servers (G11).

    These are imported when someone opens one. What belongs to one of ``peers`` is sent on to it, and what
    they ask the servers of this one is answered (G14).
    """
    from pegboard.gateway.http.mounts import Mount, MountingApp

    board = authenticator.board
    board.services.login_addresses.gateway = authenticator.origin

    def build() -> MountedApp:
        from pegboard.gateway.http.login_pages import LoginPages

        return LoginPages(board)

    every = (*mounts, Mount(prefixes=(PAGES,), build=build))
    mounted = MountingApp(app, every, host=authenticator.host)
    if peers is None:
        return mounted
    from pegboard.gateway.http.console_routing import ConsoleRouting
    from pegboard.gateway.http.replica_routing import SessionRouting

    prefixes = [prefix for mount in every for prefix in mount.prefixes]
    routed: GatewayApp = ConsoleRouting(mounted, prefixes, peers, authenticator)
    if owners is not None:
        from pegboard.gateway.http.replica_servers import ReplicaServers

        routed = ReplicaServers(routed, owners, peers.own)
    return SessionRouting(routed, peers, authenticator)


def _load_whole_app(
    authenticator: Authenticator,
    clock: Callable[[], float],
    peers: ReplicaPeers | None,
    drain: Drain,
    streams: OpenStreams,
) -> App:
    """Return the whole app of what belongs to this process; it brings the SDK."""
    from pegboard.gateway.http.asgi import App

    return App(authenticator, clock, peers, drain, streams)


def _app(
    authenticator: Authenticator, load: Callable[[], App], settled: Callable[[], None], failed: asyncio.Event
) -> GatewayApp:
    """Return the app of the protocol, loaded late where the fast path is on."""
    if not authenticator.board.fast_path:
        app = load()
        settled()
        return app
    from pegboard.gateway.fast.lazy_app import LazyApp

    origins = OriginCheck(_ignore_request, host=authenticator.host)
    identified = partial(identify, authenticator=authenticator, origins=origins)
    return LazyApp(authenticator.board, identified, load, settled, failed)


async def _ignore_request(scope: Any, receive: Any, send: Any) -> None:
    """Do nothing: where only the origin is judged."""


async def _stop_app(app: GatewayApp, task: asyncio.Task[None]) -> None:
    await app.close(grace=GRACE)
    await task


async def run_http(
    board: BoardPort,
    *,
    host: str = HOST,
    port: int = PORT,
    agent: str | None = None,
    session: str | None = None,
    sub_app: str | None = None,
    mounts: Sequence[Mount] = (),
    ready: Callable[[str], None] | None = None,
    settled: Callable[[], None] = _do_nothing,
    address: str | None = None,
    drain: float | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    ``ready`` is called with the URL once requests are accepted, ``settled`` once all that calls need is imported.
    At ``address`` other processes on the same store reach this one. After SIGTERM requests are served for ``drain``
    seconds, while ``/readyz`` says that no more are to come; None is none on loopback, else ``DRAIN``.

    Raises ``UsageError`` where ``drain`` cannot be meant.
    """
    seconds = require_drain(drain, host)
    allow_more_files()
    quiet(board.services.masker)
    given: dict[str, Any] = {"host": host, "port": port, "agent": agent, "session": session, "sub_app": sub_app}
    at_once = asyncio.Event()
    async with _serving_http(board, settled, **given, mounts=mounts, address=address) as (url, failed, draining):
        with stop_on_signals(at_once) as stop:
            if ready is not None:
                ready(url)
            await _first_of(stop, failed)
            if failed.is_set():
                raise _start_failed_error()
            if seconds and not at_once.is_set():
                draining.begun = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await _first_of(at_once, failed)


def require_drain(seconds: float | None, host: str) -> float:
    """Return for how long a gateway drains; raises ``UsageError`` for what cannot be meant.

    >>> require_drain(None, "127.0.0.1"), require_drain(None, "0.0.0.0"), require_drain(30, "127.0.0.1")
    (0.0, 5.0, 30)
    """
    if seconds is None:
        return 0.0 if is_loopback(host) else DRAIN
    if not 0 <= seconds <= LONGEST_DRAIN:
        raise UsageError(
            f"{seconds:g} seconds is not a time to drain.", hint=f"Give --drain a number from 0 to {LONGEST_DRAIN:g}."
        )
    return seconds


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of some events is set."""
    ends = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()


def _start_failed_error() -> PegboardError:
    return PegboardError("The HTTP server did not start.", code="server_failed")
