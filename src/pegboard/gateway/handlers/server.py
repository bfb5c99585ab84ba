"""The MCP server in front of a board, for both protocol eras (G4, G5)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    SetLevelRequestParams,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from pegboard.core.model.delivery import GATEWAY, GATEWAY_HANDSHAKE
from pegboard.errors import PegboardError
from pegboard.gateway.clients.connections import Connections, connection_of
from pegboard.gateway.clients.handshake import Ask, HandshakeClient, Notify, OpenQuestions
from pegboard.gateway.clients.pending_calls import ModernClient, Owner, PendingCalls
from pegboard.gateway.clients.sdk_stream import asker, notifier
from pegboard.gateway.fast.first_responses import TTL_MS
from pegboard.gateway.handlers.prometheus import PrometheusMetrics
from pegboard.gateway.handlers.resources import ResourceHandlers
from pegboard.gateway.handlers.turns import Activity, Turns
from pegboard.gateway.notifications.tool_list import CALLING, Tell, ToolListNotifier
from pegboard.gateway.protocol import convert
from pegboard.gateway.protocol.board_port import CALLER, BoardPort, Caller
from pegboard.gateway.protocol.log_levels import forwarder_of
from pegboard.gateway.protocol.request_identity import DEFAULT_SESSION, RequestIdentity, request_of
from pegboard.version import __version__

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from pegboard.board import Session
    from pegboard.core.model.tools import Tool
    from pegboard.ports import Client, Progress

_logger = logging.getLogger("mcp.pegboard")
_SESSIONS: Final = 1024
LISTS: Final[tuple[CacheableMethod, ...]] = (
    "tools/list",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
)
"""What a client may take as fresh for a while."""
_RAW: ContextVar[dict[str, Any]] = ContextVar("pegboard_raw")
"""What a handler answers, past the models of the SDK: they drop keys that they do not know."""


class _Server(Server[Any]):
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options of the handshake era, in which lists change (G5)."""
        options = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)


@dataclass(slots=True, kw_only=True)
class CallMade:
    """Hold one call of a tool as a client made it, and the ways back to that client.

    ``params`` is as it was sent; ``connection`` is that of the handshake era, None in the other; ``tell``
    says on it that its list has changed. On the stream of the call ``notify`` sends a notification,
    and in the handshake era ``ask`` a request. ``arrived`` is when it came (``time.monotonic()``).
    """

    request: RequestIdentity
    name: str
    arguments: dict[str, Any]
    params: Mapping[str, Any]
    connection: Connection | None
    progress: Progress | None
    tell: Tell
    notify: Notify
    ask: Ask
    arrived: float | None = None


class Gateway:
    """Answer the requests of every client of one board."""

    def __init__(self, board: BoardPort, clock: Callable[[], float] = monotonic) -> None:
        self.board = board
        self.turns = Turns(clock)
        self.closing = asyncio.Event()
        self.connections = Connections()
        self.metrics = PrometheusMetrics(board)
        self.asks = OpenQuestions()
        self.suspended = PendingCalls(self.asks)
        self._offs: list[Callable[[], None]] = []
        self._sessions: dict[tuple[str, str, str, bool], Session] = {}
        self._headed: dict[str, tuple[Tool, bool]] = {}
        self.changes = ToolListNotifier(board, self._digest)
        self.offering = ResourceHandlers(self, lambda raw: _RAW.get().update(raw))
        scope = "private" if board.configuration.tokens else "public"
        hint = CacheHint(ttl_ms=TTL_MS, scope=scope)
        self.server: Server[Any] = _Server(
            "pegboard",
            version=__version__,
            title="Pegboard",
            cache_hints=dict.fromkeys(LISTS, hint),
            get_tool_input_schema=self._schema_of,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self.offering.list_resources,
            on_list_resource_templates=self.offering.list_templates,
            on_read_resource=self.offering.read,
            on_subscribe_resource=self.offering.subscribe,
            on_unsubscribe_resource=self.offering.unsubscribe,
            on_list_prompts=self.offering.list_prompts,
            on_get_prompt=self.offering.get_prompt,
            on_completion=self.offering.complete,
            on_subscriptions_listen=self.offering.listen,
        )
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        self.server.middleware.append(self._around)

    def start(self) -> None:
        """Listen to the board; call it on the loop that serves."""
        self.changes.start()
        self._offs += [*self.metrics.start(), *self.offering.start()]
        self._offs.append(self.board.on("configuration_changed", lambda _: self._sessions.clear()))

    async def close(self, *, grace: float = 0) -> None:
        """End every stream; calls that are in flight may go on for ``grace`` seconds."""
        self.changes.close()
        for off in self._offs:
            off()
        self._offs.clear()
        await self.suspended.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.turns.idle.wait()
        self.closing.set()

    # -- around every request ----------------------------------------------------------------------

    async def _around(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Put instructions and raw answers in, and let no other error out than one for the client."""
        raw: dict[str, Any] = {}
        token = _RAW.set(raw)
        try:
            result = await call_next(ctx)
            if ctx.method == "initialize":
                self.connections.opened(connection_of(ctx.session), CALLER.get())
            if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
                return {**result, "instructions": await self._instructions(ctx)}
            if not raw or not isinstance(result, dict):
                return result
            meta = {**result.get("_meta", {}), **raw.get("_meta", {})}
            return {**result, **raw, **({"_meta": meta} if meta else {})}
        except ValidationError:
            raise
        except Exception as error:
            raise self.fault(error, ctx.method) from None
        finally:
            _RAW.reset(token)

    def fault(self, error: Exception, method: str) -> MCPError:
        """Return what a client is told of an error; what nobody foresaw is logged."""
        match error:
            case MCPError():
                return error
            case PegboardError():
                return MCPError(INTERNAL_ERROR, self.board.services.masker.text(str(error)), {"code": error.code})
            case _:
                _logger.error("%s failed", method, exc_info=error)
                return MCPError(INTERNAL_ERROR, f"Pegboard failed here: {type(error).__name__}.")

    async def _instructions(self, ctx: ServerRequestContext[Any, Any]) -> str:
        caller = CALLER.get()
        session = await self.session(caller, caller.session or DEFAULT_SESSION, modern=ctx.method != "initialize")
        return await session.instructions()

    # -- requests ----------------------------------------------------------------------------------

    async def _list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "There is no such cursor: the list has one page.")
        request = request_of(CALLER.get(), ctx.protocol_version, ctx.params)
        session = await self.session(request.caller, request.session, modern=request.modern)
        await self.turns.begin(session, request.turn)
        tools = await self._listed(session, modern=request.modern)
        if not request.modern:
            joined = self.changes.join(connection_of(ctx.session), request.caller, session.key)
            joined.digest = convert.digest(tools)
        _RAW.get()["tools"] = tools
        return ListToolsResult(tools=[])

    async def _set_level(self, ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
        forwarder_of(connection_of(ctx.session)).choose(params.level)
        return EmptyResult()

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        self.metrics.routed("sdk")
        request = request_of(CALLER.get(), ctx.protocol_version, ctx.params)

        async def tell() -> None:
            await ctx.session.send_notification(ToolListChangedNotification(), related_request_id=ctx.request_id)

        wanted = "progress_token" in (ctx.meta or {})
        raw = await self.call(
            CallMade(
                request=request,
                name=params.name,
                arguments=params.arguments or {},
                params=ctx.params or {},
                connection=None if request.modern else connection_of(ctx.session),
                progress=ctx.session.report_progress if wanted else None,
                tell=tell,
                notify=notifier(ctx),
                ask=asker(ctx),
            )
        )
        _RAW.get().update(raw)
        if raw.get("resultType") == "input_required":
            return InputRequiredResult(request_state=raw["requestState"])
        return CallToolResult(content=[])

    async def call(self, made: CallMade) -> dict[str, Any]:
        """Return the raw result of a call, or what its client is asked; raises ``MCPError`` for an unknown tool."""
        request = made.request
        session = await self.session(request.caller, request.session, modern=request.modern)
        activity = await self.turns.begin(session, request.turn)
        if made.connection is None:
            modern = ModernClient(made.params.get("_meta") or {}, made.notify)
            if modern.askable or made.params.get("requestState") is not None:
                return await self._waiting_call(session, activity, made, modern)
            with activity:
                return await self._run(session, made, made.progress, modern)
        listener = forwarder_of(made.connection)
        client = HandshakeClient(made.connection, request.caller, self.asks, listener, made.notify, made.ask)
        with activity:
            joined = self.changes.join(made.connection, request.caller, session.key)
            token = CALLING.set(joined)
            try:
                return await self._run(session, made, made.progress, client)
            finally:
                CALLING.reset(token)
                await self.changes.settle(joined, made.tell)

    async def _waiting_call(
        self, session: Session, activity: Activity, made: CallMade, client: ModernClient
    ) -> dict[str, Any]:
        """Make a call that may wait for its client, or go on with one (MRTR)."""
        state = made.params.get("requestState")
        owner = Owner(key=session.key, name=made.name, arguments=made.arguments)
        if state is not None:
            return await self.suspended.resume(
                state, made.params.get("inputResponses") or {}, owner, client, made.progress
            )

        async def work(client: Client, progress: Progress | None) -> dict[str, Any]:
            with activity:
                return await self._run(session, made, progress, client)

        return await self.suspended.begin(owner, client, made.progress, work)

    async def _run(self, session: Session, made: CallMade, progress: Progress | None, client: Client) -> dict[str, Any]:
        request = made.request
        answer = await session.call(
            made.name,
            made.arguments,
            progress=progress,
            request_meta=request.meta,
            client=client,
            arrived=made.arrived,
        )
        if answer.status == "not_found" and session.known_tool(made.name) is None:
            raise MCPError(INVALID_PARAMS, self.board.services.masker.text(answer.message))
        return convert.result_of(answer.result, modern=request.modern)

    # -- sessions and lists ------------------------------------------------------------------------

    async def session(self, caller: Caller, session_id: str, *, modern: bool) -> Session:
        """Return the session that a request belongs to, on a host of its era."""
        key = caller.agent, caller.principal, session_id, modern
        known = self._sessions.get(key)
        if known is None:
            if len(self._sessions) >= _SESSIONS:
                self._sessions.clear()
            known = self._sessions[key] = await self.board.session(
                agent=caller.agent,
                session_id=session_id,
                principal=caller.principal,
                host=GATEWAY if modern else GATEWAY_HANDSHAKE,
            )
        return known

    @staticmethod
    async def _listed(session: Session, *, modern: bool) -> list[dict[str, Any]]:
        """Return what is listed: what is fixed (G4), or also what is loaded (G5)."""
        return convert.tools_of(await session.surface(loaded=not modern), modern=modern)

    async def _digest(self, caller: Caller, session_id: str | None) -> str:
        modern = session_id is None
        session = await self.session(caller, session_id or DEFAULT_SESSION, modern=modern)
        return convert.digest(await self._listed(session, modern=modern))

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema against which the SDK checks ``Mcp-Param-*`` headers before a call."""
        session = SCHEMAS.get(None)
        tool = session.known_tool(name) if session is not None else None
        return tool.input_schema if tool is not None else None

    def in_headers(self, session: Session, name: str) -> bool:
        """Return whether the schema of a tool puts arguments of it in headers (``x-mcp-header``)."""
        tool = session.known_tool(name)
        if tool is None:
            return False
        known = self._headed.get(tool.id)
        if known is None or known[0] is not tool:
            known = self._headed[tool.id] = (tool, "x-mcp-header" in json.dumps(tool.input_schema, default=str))
        return known[1]

    async def prepare(self, caller: Caller) -> None:
        """Set what the SDK asks for without a way to wait; call it in the context of the request."""
        CALLER.set(caller)
        SCHEMAS.set(await self.session(caller, caller.session or DEFAULT_SESSION, modern=True))


SCHEMAS: ContextVar[Session | None] = ContextVar("pegboard_schemas")
"""A session of the caller, for the lookup of schemas."""
