"""The MCP server in front of a board, for both protocol eras (G4, G5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import HandlerEntry, NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParams,
    SetLevelRequestParams,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from pegboard.core.access.extensions import TASK_STATUS, is_extension
from pegboard.gateway.clients.handshake import (
    HandshakeConnections,
    OpenQuestions,
    capabilities_of,
    connection_of,
    forwarder_of,
)
from pegboard.gateway.clients.only_client import asking_sources
from pegboard.gateway.clients.pending_calls import PendingCalls
from pegboard.gateway.clients.sdk_stream import asker, notifier, outside_calls
from pegboard.gateway.handlers.answers import client_error, collect_raw_results, merge_results, pass_on
from pegboard.gateway.handlers.arrivals import arrival_of
from pegboard.gateway.handlers.extensions import ExtensionHandlers
from pegboard.gateway.handlers.header_schemas import HeaderSchemas
from pegboard.gateway.handlers.prometheus import PrometheusMetrics
from pegboard.gateway.handlers.resources import ResourceHandlers
from pegboard.gateway.handlers.session_pool import SessionPool
from pegboard.gateway.handlers.subscriptions import SubscriptionHandlers
from pegboard.gateway.handlers.task_names import TaskNames
from pegboard.gateway.handlers.tool_calls import ClientChannels, IncomingCall, ToolCalls
from pegboard.gateway.handlers.turns import SessionTurns, begin_request
from pegboard.gateway.notifications.resource_lists import ResourceListNotifier
from pegboard.gateway.notifications.tool_list import ToolListNotifier
from pegboard.gateway.protocol import convert
from pegboard.gateway.protocol.board_port import CALLER, ONLY_CLIENT, BoardPort
from pegboard.gateway.protocol.request_identity import TTL_MS, on_connection, request_of
from pegboard.gateway.replicas.request_state import StateSeal
from pegboard.support.mcp_constants import CAPABILITIES_KEY
from pegboard.support.version import __version__

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from pegboard.gateway.protocol.early_answers import EarlyList
    from pegboard.gateway.replicas.peers import ReplicaPeers

LISTS: Final[tuple[CacheableMethod, ...]] = (
    "tools/list",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
)
"""What a client may take as fresh for a while."""
TO_SERVERS: Final = frozenset({"notifications/roots/list_changed", TASK_STATUS})
"""The notifications of a client that go to the servers which have it for their only one."""


class _Server(Server[Any]):
    """The SDK's server, with one handler for whatever may be a request of an extension."""

    extension: HandlerEntry[Any] | None = None

    def get_request_handler(self, method: str) -> HandlerEntry[Any] | None:
        """Return the handler of a method, or None."""
        return super().get_request_handler(method) or (self.extension if is_extension(method) else None)

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


class Gateway:
    """The SDK's server with a handler for every request, and what the handlers share.

    ``early_lists`` is what was listed on stdio to the client whose handshake is still to come.
    """

    def __init__(
        self, board: BoardPort, clock: Callable[[], float] = monotonic, peers: ReplicaPeers | None = None
    ) -> None:
        self.board = board
        self.early_lists: list[EarlyList] = []
        self.closing = asyncio.Event()
        self.connections = HandshakeConnections()
        self.questions = OpenQuestions()
        self.sessions = SessionPool(board)
        self.schemas = HeaderSchemas(self.sessions)
        self.turns = SessionTurns(board.services.store, clock)
        self.metrics = PrometheusMetrics(board)
        self.tool_list = ToolListNotifier(board, self.sessions.get)
        seal = StateSeal() if peers is None else peers.seal
        pending, tasks = PendingCalls(self.questions, seal, peers), TaskNames(seal)
        self.calls = ToolCalls(board, self.sessions, self.turns, self.tool_list, pending, self.questions, tasks)
        self._extensions = ExtensionHandlers(board, self.sessions, self.turns, self.questions, tasks)
        lists = ResourceListNotifier(board, self.tool_list, self.sessions.get)
        self._lists = lists
        self._resources = ResourceHandlers(board, self.sessions, self.turns, self.metrics, lists)
        self._subscriptions = SubscriptionHandlers(board, self.sessions, self.turns, self.tool_list, lists)
        self._unsubscribe: list[Callable[[], None]] = []
        self.server = self._build_server()

    def _build_server(self) -> Server[Any]:
        scope = "private" if self.board.configuration.tokens else "public"
        resources, subscriptions = self._resources, self._subscriptions
        server = _Server(
            "pegboard",
            version=__version__,
            title="Pegboard",
            cache_hints=dict.fromkeys(LISTS, CacheHint(ttl_ms=TTL_MS, scope=scope)),
            get_tool_input_schema=self.schemas.find,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list_resources,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_subscribe_resource=subscriptions.subscribe,
            on_unsubscribe_resource=subscriptions.unsubscribe,
            on_list_prompts=resources.list_prompts,
            on_get_prompt=resources.get_prompt,
            on_completion=resources.complete,
            on_subscriptions_listen=subscriptions.listen,
        )
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        server.extension = HandlerEntry(RequestParams, self._extensions.answer)
        server.middleware.append(self._handle_request)
        return server

    def start(self) -> None:
        """Listen to the board; call it on the loop that serves."""
        self.tool_list.start()
        self._lists.start()
        self._unsubscribe += [
            *self.metrics.start(),
            *self._subscriptions.start(),
            self._lists.close,
            self.board.on("configuration_changed", lambda _: self.sessions.clear()),
        ]

    async def close(self, *, grace: float = 0) -> None:
        """End every stream; calls that are in flight may go on for ``grace`` seconds."""
        self.tool_list.close()
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        await self.calls.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.turns.idle.wait()
        self.closing.set()

    # -- around every request ----------------------------------------------------------------------

    async def _handle_request(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Add instructions and raw results, and let no error out but one for the client."""
        try:
            with collect_raw_results() as raw:
                result = await call_next(ctx)
            if ctx.method == "initialize":
                self.connections.add(connection_of(ctx.session), CALLER.get())
                while self.early_lists:
                    self.take_over(self.early_lists.pop(), connection_of(ctx.session))
            if ctx.method.startswith("notifications/"):
                self._take_notification(ctx)
            if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
                return await self._describe_server(ctx, result)
            if not raw or not isinstance(result, dict):
                return result
            return merge_results(result, raw)
        except ValidationError:
            raise
        except Exception as error:
            raise client_error(error, ctx.method, self.board.services.masker) from None

    def _take_notification(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Note what a client says that servers may have for their only one: that it is there, what has changed."""
        caller, sources = CALLER.get(), list(asking_sources(self.board))
        name, connection = caller.client, connection_of(ctx.session)
        if not name:
            return
        if ctx.method == "notifications/initialized":
            client = outside_calls(connection, caller, self.questions)
            for source in sources:
                source.introduce_client(name, capabilities_of(connection), modern=False)
                source.meet_client(name, client)
                if name != ONLY_CLIENT:
                    connection.exit_stack.callback(source.forget_client, name)
        elif ctx.method in TO_SERVERS:
            for source in sources:
                source.tell_servers(name, ctx.method, ctx.params or {})

    def take_over(self, early: EarlyList, connection: Connection | None) -> None:
        """Notify a client of changes of what it was listed before the SDK was there; with its handshake, or without."""
        notifier = self.tool_list if early.kind is None else self._lists
        notifier.take_over(early, connection)

    async def _describe_server(self, ctx: ServerRequestContext[Any, Any], result: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a client's first request with what its agent's servers say and can do."""
        caller = on_connection(CALLER.get(), connection_of(ctx.session))
        modern, params = ctx.method != "initialize", ctx.params or {}
        if caller.client == ONLY_CLIENT:
            own = (params.get("_meta") or {}).get(CAPABILITIES_KEY) if modern else params.get("capabilities")
            for source in asking_sources(self.board):
                source.introduce_client(caller.client, own or {}, modern=modern)
        session = await self.sessions.get(caller, caller.usual_session, modern=modern)
        more = await self.board.resources.capabilities(session.info, modern=modern)
        instructions = await session.instructions()
        return {**result, "capabilities": {**result["capabilities"], **more}, "instructions": instructions}

    # -- tools -------------------------------------------------------------------------------------

    async def _list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "There is no such cursor: the list has one page.")
        request, session = await begin_request(ctx, self.sessions, self.turns)
        surface = await session.surface(loaded=not request.modern)  # what is fixed (G4), or also what is loaded (G5)
        digest = self.tool_list.digests.digest_of(surface, modern=request.modern)
        if request.modern:
            self.tool_list.note_list(request.caller, digest)
        else:
            self.tool_list.join(connection_of(ctx.session), request.caller, session.key).digest = digest
        pass_on({"tools": convert.tools_of(surface, modern=request.modern)})
        return ListToolsResult(tools=[])

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        self.metrics.routes["sdk"] += 1
        result = await self.calls.run(self._incoming_call(ctx, params))
        pass_on(result)
        if result.get("resultType") == "input_required":
            return InputRequiredResult(request_state=result["requestState"])
        return CallToolResult(content=[])

    def _incoming_call(self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> IncomingCall:
        connection = connection_of(ctx.session)
        request = request_of(on_connection(CALLER.get(), connection), ctx.protocol_version, ctx.params)

        async def notify_list_changed() -> None:
            await ctx.session.send_notification(ToolListChangedNotification(), related_request_id=ctx.request_id)

        return IncomingCall(
            request=request,
            name=params.name,
            arguments=params.arguments or {},
            params=ctx.params or {},
            connection=None if request.modern else connection,
            progress=ctx.session.report_progress if "progress_token" in (ctx.meta or {}) else None,
            back=ClientChannels(notify=notifier(ctx), ask=asker(ctx), notify_list_changed=notify_list_changed),
            arrived=arrival_of(ctx.request),
        )

    async def _set_level(self, ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
        forwarder_of(connection_of(ctx.session)).choose(params.level)
        return EmptyResult()
