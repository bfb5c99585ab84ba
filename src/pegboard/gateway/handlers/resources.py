"""Resources, prompts and completions of the servers behind the gateway, for both protocol eras (G7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from pegboard.core.access.listed_items import PAGE_KEYS
from pegboard.errors import UpstreamError
from pegboard.gateway.clients.handshake import connection_of
from pegboard.gateway.handlers.answers import failed_upstream, pass_on, unknown_resource
from pegboard.gateway.handlers.turns import begin_request
from pegboard.gateway.protocol import convert
from pegboard.gateway.protocol.board_port import CALLER
from pegboard.gateway.protocol.request_identity import RequestIdentity, request_of
from pegboard.ports import CallContext

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from pegboard.core.access.listed_items import ListKind
    from pegboard.gateway.handlers.prometheus import PrometheusMetrics
    from pegboard.gateway.handlers.session_pool import SessionPool
    from pegboard.gateway.handlers.turns import SessionTurns
    from pegboard.gateway.notifications.resource_lists import ResourceListNotifier
    from pegboard.gateway.protocol.board_port import BoardPort

_MODERN_ONLY: Final = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Keys of results that the handshake era does not have."""


class ResourceHandlers:
    """The handlers of lists, reads, prompts and completions."""

    def __init__(
        self,
        board: BoardPort,
        sessions: SessionPool,
        turns: SessionTurns,
        metrics: PrometheusMetrics,
        notifier: ResourceListNotifier,
    ) -> None:
        self._board = board
        self._sessions = sessions
        self._turns = turns
        self._metrics = metrics
        self._notifier = notifier

    # -- lists -------------------------------------------------------------------------------------

    async def list_resources(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        await self._list(ctx, params, "resources")
        return types.ListResourcesResult(resources=[])

    async def list_templates(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        await self._list(ctx, params, "templates")
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def list_prompts(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Answer ``prompts/list``."""
        await self._list(ctx, params, "prompts")
        return types.ListPromptsResult(prompts=[])

    async def _list(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None, kind: ListKind
    ) -> None:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "There is no such cursor: the list has one page.")
        request, session = await begin_request(ctx, self._sessions, self._turns)
        items = await self._board.resources.listed(session.info, kind)
        connection = None if request.modern else connection_of(ctx.session)
        self._notifier.note_list(request.caller, request.session, connection, kind, convert.digest(items))
        pass_on({PAGE_KEYS[kind]: items})

    # -- reads -------------------------------------------------------------------------------------

    async def read(
        self, ctx: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer ``resources/read``."""
        request, session = await begin_request(ctx, self._sessions, self._turns)
        self._metrics.asked["read"] += 1
        with self._turns.activity(session):
            try:
                result = await self._board.resources.read(session.info, params.uri, _context(ctx, request))
            except UpstreamError as error:
                raise failed_upstream(error) from None
        if result is None:
            raise unknown_resource(params.uri, self._board.services.masker, modern=request.modern)
        self._pass_result_on(result, modern=request.modern)
        return types.ReadResourceResult(contents=[])

    async def get_prompt(
        self, ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Answer ``prompts/get``."""
        request, session = await begin_request(ctx, self._sessions, self._turns)
        self._metrics.asked["prompt"] += 1
        with self._turns.activity(session):
            try:
                result = await self._board.resources.prompt(
                    session.info, params.name, params.arguments, _context(ctx, request)
                )
            except UpstreamError as error:
                raise failed_upstream(error) from None
        if result is None:
            raise MCPError(types.INVALID_PARAMS, self._board.services.masker.text(f"Unknown prompt: {params.name}"))
        self._pass_result_on(result, modern=request.modern)
        return types.GetPromptResult(messages=[])

    async def complete(
        self, ctx: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer ``completion/complete``."""
        request = request_of(CALLER.get(), ctx.protocol_version, ctx.params)
        session = await self._sessions.get(request.caller, request.session, modern=request.modern)
        try:
            result = await self._board.resources.complete(session.info, ctx.params or {}, _context(ctx, request))
        except UpstreamError as error:
            raise failed_upstream(error) from None
        if result is None and isinstance(params.ref, types.PromptReference):
            raise MCPError(types.INVALID_PARAMS, self._board.services.masker.text(f"Unknown prompt: {params.ref.name}"))
        if result is None:
            raise unknown_resource(
                str(getattr(params.ref, "uri", "")), self._board.services.masker, modern=request.modern
            )
        self._pass_result_on(result, modern=request.modern)
        return types.CompleteResult(completion=types.Completion(values=[]))

    def _pass_result_on(self, result: Mapping[str, Any], *, modern: bool) -> None:
        """Answer as the server did, in the era of the client."""
        passed = dict(result) if modern else {key: value for key, value in result.items() if key not in _MODERN_ONLY}
        if "cacheScope" in passed and self._board.configuration.tokens:
            passed["cacheScope"] = "private"
        pass_on(passed)


def _context(ctx: ServerRequestContext[Any, Any], request: RequestIdentity) -> CallContext:
    reports = "progress_token" in (ctx.meta or {})
    return CallContext(progress=ctx.session.report_progress if reports else None, meta=request.meta)
