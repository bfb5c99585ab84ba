"""The gateway over HTTP: one app for every agent and both protocol eras (G1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pegboard.core.access.instances import may_see
from pegboard.core.model.naming import label_problem
from pegboard.core.principals.bearer_tokens import Token, may_use_agent
from pegboard.errors import PegboardError, StoreError
from pegboard.gateway.handlers.arrivals import note_arrival
from pegboard.gateway.handlers.prometheus import TYPE
from pegboard.gateway.handlers.server import Gateway
from pegboard.gateway.http.auth import Authenticator, HttpRefusal, OriginCheck, identify
from pegboard.gateway.http.connections import ConnectionLimits
from pegboard.gateway.http.draining import Drain, ReadinessEndpoint
from pegboard.gateway.http.open_requests import replay_body, too_late, whole_body
from pegboard.gateway.http.replica_routing import BODY_LIMIT, StateRouting
from pegboard.gateway.http.streams import OpenStreams
from pegboard.gateway.protocol.board_port import BoardPort, Caller
from pegboard.gateway.protocol.message_values import FEWEST_BYTES, has_too_many_values
from pegboard.gateway.protocol.request_identity import is_modern
from pegboard.gateway.replicas.sessions import NamedSessions
from pegboard.operators.login_standing import may_be_used, standings
from pegboard.support.mcp_constants import INTERNAL_ERROR, INVALID_PARAMS
from pegboard.support.version import __version__

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pegboard.gateway.protocol.early_answers import EarlyList
    from pegboard.gateway.replicas.peers import ReplicaPeers

_LISTEN: Final = "subscriptions/listen"


class App:
    """The ASGI app for every request over HTTP, while it is running; with the fast path in front of it, or not."""

    def __init__(
        self,
        authenticator: Authenticator,
        clock: Callable[[], float] = monotonic,
        peers: ReplicaPeers | None = None,
        drain: Drain | None = None,
        streams: OpenStreams | None = None,
    ) -> None:
        drain = drain or Drain()
        streams = streams or OpenStreams(ConnectionLimits().most_connections)
        gateway = self._gateway = Gateway(authenticator.board, clock, peers)
        self._manager = _sessions(gateway, peers)
        mcp = _McpEndpoint(gateway, authenticator, self._manager, drain, streams)
        routed = Starlette(
            routes=[
                Route("/mcp", mcp),
                Route("/mcp/{agent:path}", mcp),
                Route("/healthz", _Health(authenticator)),
                Route("/readyz", ReadinessEndpoint(authenticator, drain)),
                Route("/metrics", _Metrics(gateway, authenticator)),
                Route("/sessions/{session:path}/end-turn", _EndTurn(gateway, authenticator), methods=["POST"]),
            ],
            middleware=[Middleware(OriginCheck, host=authenticator.host)],
        )
        self._states = None if peers is None else StateRouting(routed, peers, authenticator)
        app: ASGIApp = routed if self._states is None else self._states
        self._app = app
        if authenticator.board.fast_path:
            from pegboard.gateway.fast.http_middleware import FastCallMiddleware

            identified = partial(
                identify, authenticator=authenticator, origins=OriginCheck(routed, host=authenticator.host)
            )
            self._app = FastCallMiddleware(app, gateway, identified)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve transport sessions and subscriptions while the context lasts."""
        started = asyncio.Event()
        task = asyncio.create_task(_run_manager(self._manager, started, self._gateway.closing))
        await started.wait()
        self._gateway.start()
        try:
            yield
        finally:
            await self._gateway.close()
            await task

    def take_early_list(self, early: EarlyList) -> None:
        """Take over what a client was listed before this app was there."""
        self._gateway.take_over(early, None)

    async def close(self, *, grace: float) -> None:
        """End every stream; calls that are in flight may go on for ``grace`` seconds."""
        await asyncio.gather(
            self._gateway.close(grace=grace), *([] if self._states is None else [self._states.close(grace=grace)])
        )


def _sessions(gateway: Gateway, peers: ReplicaPeers | None) -> StreamableHTTPSessionManager:
    """Return the transport sessions of the handshake era; each names its replica, where there may be others."""
    if peers is None:
        return StreamableHTTPSessionManager(app=gateway.server, max_request_body_size=BODY_LIMIT)
    return NamedSessions(gateway.server, peers.own, max_request_body_size=BODY_LIMIT)


async def _run_manager(manager: StreamableHTTPSessionManager, started: asyncio.Event, closing: asyncio.Event) -> None:
    """Run the transport sessions of the handshake era; their streams end with this."""
    async with manager.run():
        started.set()
        await closing.wait()


class _McpEndpoint:
    """The endpoint of the protocol: the caller is identified, then the SDK serves the request."""

    def __init__(
        self,
        gateway: Gateway,
        authenticator: Authenticator,
        manager: StreamableHTTPSessionManager,
        drain: Drain,
        streams: OpenStreams,
    ) -> None:
        self._gateway = gateway
        self._authenticator = authenticator
        self._manager = manager
        self._drain = drain
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        note_arrival(scope)
        ask = partial(
            self._authenticator.caller,
            request.headers.get("authorization"),
            scope["path_params"].get("agent"),
            request.query_params,
            request.headers.get(MCP_SESSION_ID_HEADER),
        )
        try:
            if self._gateway.closing.is_set() or (self._drain.begun and _begins_something(request)):
                raise too_late()
            caller = ask()
            self._authenticator.note_request(caller, scope, request.headers["host"])
            await self._gateway.schemas.prepare(caller)
            receive = await _receive_counting(scope, receive)
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
            return
        except PegboardError as error:
            message = self._gateway.board.services.masker.text(str(error))
            await HttpRefusal(500, message, code=INTERNAL_ERROR)(scope, receive, send)
            return
        scope["user"] = _user(caller)
        if request.method != "GET" and request.headers.get("mcp-method") != _LISTEN:
            await self._manager.handle_request(scope, receive, send)
            return
        stream = _NotificationStream(receive, send, partial(_is_still, caller, ask))
        try:
            with self._streams.count_stream(caller.principal):
                await self._manager.handle_request(scope, stream.receive, stream.send)
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)


async def _receive_counting(scope: Scope, receive: Receive) -> Receive:
    """Return what receives a request, whose values were counted where it may have too many; raises ``Refusal``."""
    length: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    if scope["method"] != "POST" or (length.isdigit() and not FEWEST_BYTES <= int(length[:12]) <= BODY_LIMIT):
        return receive
    too_large = HttpRefusal(413, "A request here has at most 4 MiB.", Connection="close")
    body = await whole_body(scope, receive, limit=BODY_LIMIT, too_large=too_large)
    if body is None:
        return receive
    if has_too_many_values(body):
        raise HttpRefusal(413, "A request here has at most 50,000 values; send them in several, or as one text.")
    return replay_body(body, receive)


def _begins_something(request: Request) -> bool:
    """Return whether a request begins what lasts: a session of the handshake era, or a stream to be notified on."""
    if request.headers.get("mcp-method") == _LISTEN or request.method == "GET":
        return True
    modern = is_modern(request.headers.get(MCP_PROTOCOL_VERSION_HEADER, ""))
    return not modern and MCP_SESSION_ID_HEADER not in request.headers


class _NotificationStream:
    """What a client is notified on, while its token opens the agent: with the first thing to send after that it ends.

    What would have been sent is not (G2).
    """

    def __init__(self, receive: Receive, send: Send, is_open: Callable[[], bool]) -> None:
        self._receive = receive
        self._send = send
        self._is_open = is_open
        self._ended = asyncio.Event()

    async def receive(self) -> Message:
        """Return what the client sends; that it has left where the stream has ended here."""
        received, ended = asyncio.ensure_future(self._receive()), asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait((received, ended), return_when=asyncio.FIRST_COMPLETED)
            return received.result() if received.done() else {"type": "http.disconnect"}
        finally:
            received.cancel()
            ended.cancel()

    async def send(self, message: Message) -> None:
        """Pass a message on, or end the stream."""
        if self._ended.is_set():
            return
        if message["type"] == "http.response.body" and not self._is_open():
            self._ended.set()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)


def _is_still(caller: Caller, ask: Callable[[], Caller]) -> bool:
    """Return whether a request would be of the same caller if it came now."""
    try:
        now = ask()
    except (HttpRefusal, PegboardError):
        return False
    return (now.principal, now.agent) == (caller.principal, caller.agent)


def _user(caller: Caller) -> AuthenticatedUser:
    """Return the owner of a transport session: it answers no one else, and under no other agent or sub-app."""
    subject = caller.agent if caller.sub_app is None else f"{caller.agent}/{caller.sub_app}"
    return AuthenticatedUser(AccessToken(token="", client_id=caller.principal, subject=subject, scopes=[]))


class _Health:
    """The endpoint that reports that the gateway is up, and the upstreams to those who may know them."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        board = self._authenticator.board
        health: dict[str, Any] = {"status": "ok", "version": __version__}
        try:
            token = self._authenticator.principal(Request(scope).headers.get("authorization"))
        except HttpRefusal:
            pass
        else:
            health["agents"] = [name for name in board.world.agents if may_use_agent(token, name)]
            health["waiting"] = len(board.waiting)
            health["needs_login"] = board.services.masker.value(await _servers_without_login(board, token))
            health["upstreams"] = board.services.masker.value([dict(state) for state in _states(board, token)])
        await JSONResponse(health)(scope, receive, send)


async def _servers_without_login(board: BoardPort, token: Token | None) -> list[str]:
    """Return the servers that want a login which no one has, of those that the owner of a token may use (G11)."""
    services = board.services
    agents = None if token is None else [name for name in board.world.agents if may_use_agent(token, name)]
    try:
        found = await standings(services)
    except StoreError:
        return []
    return [name for name, one in found.items() if one.login == "needed" and may_be_used(services, name, agents)]


def _states(board: BoardPort, token: Token | None) -> Iterator[Mapping[str, Any]]:
    """Yield the connections that the owner of a token may know: of servers that its agents may use, and not others'."""
    compiler, plugins = board.services.compiler, board.world.catalog.plugins
    opened = [compiler.permissions_of_agent(name) for name in board.world.agents if may_use_agent(token, name)]
    for state in board.upstream_states():
        plugin = plugins.get(state["name"])
        used = plugin is not None and any(permissions.may_have_tools_of(plugin) for permissions in opened)
        if token is None or (used and may_see(state["scope"], token.principal)):
            yield state


class _Metrics:
    """The endpoint of the metrics, for those who may use the gateway."""

    def __init__(self, gateway: Gateway, authenticator: Authenticator) -> None:
        self._gateway = gateway
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._authenticator.principal(Request(scope).headers.get("authorization"))
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
        else:
            text = self._gateway.board.services.masker.text(self._gateway.metrics.text())
            await Response(text, media_type=TYPE)(scope, receive, send)


class _EndTurn:
    """The endpoint that ends the turn of a session (G3)."""

    def __init__(self, gateway: Gateway, authenticator: Authenticator) -> None:
        self._gateway = gateway
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            response = await self._end_turn(request)
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
        except PegboardError as error:
            message = self._gateway.board.services.masker.text(str(error))
            await HttpRefusal(500, message, code=INTERNAL_ERROR)(scope, receive, send)
        else:
            await response(scope, receive, send)

    async def _end_turn(self, request: Request) -> Response:
        session_id = request.path_params["session"]
        query = request.query_params
        caller = self._authenticator.caller(request.headers.get("authorization"), query.get("agent"), {})
        if problem := label_problem(session_id):
            raise HttpRefusal(400, f"The session id {problem}", code=INVALID_PARAMS)
        session = await self._gateway.sessions.get(caller, session_id, modern=True)
        outcome = await session.end_turn()
        self._gateway.turns.note_ended(session.key)
        return JSONResponse(
            {
                "status": outcome.status,
                "agent": caller.agent,
                "session": session_id,
                "turn": outcome.turn,
                "removed": list(outcome.removed),
                "loaded": list(outcome.loaded),
            }
        )
