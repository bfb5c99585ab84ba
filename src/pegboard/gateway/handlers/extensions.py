"""Requests of extensions, by clients of both eras: one handler for whatever the servers have (G7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from pegboard.errors import UpstreamError, UsageError
from pegboard.gateway.clients.handshake import HandshakeClient, OpenQuestions, connection_of, forwarder_of
from pegboard.gateway.clients.pending_calls import ModernClient
from pegboard.gateway.clients.sdk_stream import asker, notifier
from pegboard.gateway.handlers.answers import failed_upstream
from pegboard.gateway.handlers.turns import begin_request
from pegboard.ports import CallContext

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from pegboard.core.model.tools import JsonObject
    from pegboard.gateway.handlers.session_pool import SessionPool
    from pegboard.gateway.handlers.task_names import TaskNames
    from pegboard.gateway.handlers.turns import SessionTurns
    from pegboard.gateway.protocol.board_port import BoardPort
    from pegboard.gateway.protocol.request_identity import RequestIdentity
    from pegboard.ports import Client

_CACHED: Final = frozenset({"skills/list", "skills/get"})
"""The methods whose results say in the 2026 era for how long they are fresh."""
_MODERN: Final = frozenset({"resultType", "ttlMs", "cacheScope"})


class ExtensionHandlers:
    """The handler of every request that may be one of an extension."""

    def __init__(
        self, board: BoardPort, sessions: SessionPool, turns: SessionTurns, questions: OpenQuestions, tasks: TaskNames
    ) -> None:
        self._board = board
        self._sessions = sessions
        self._turns = turns
        self._questions = questions
        self._tasks = tasks

    async def answer(self, ctx: ServerRequestContext[Any, Any], _: types.RequestParams) -> dict[str, Any]:
        """Return the answer of whichever server has the method; as for any other method where none has."""
        request, session = await begin_request(ctx, self._sessions, self._turns)
        principal, params = request.caller.principal, self._params(ctx, request)
        reports = "progress_token" in (ctx.meta or {})
        context = CallContext(
            progress=ctx.session.report_progress if reports else None,
            meta=request.meta,
            client=self._client(ctx, request),
        )
        with self._turns.activity(session):
            try:
                result = await self._board.resources.ask_extension(session.info, ctx.method, params, context)
            except LookupError:
                raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method) from None
            except UpstreamError as error:
                raise failed_upstream(error) from None
            except UsageError as error:
                raise MCPError(types.INVALID_PARAMS, self._board.services.masker.text(str(error))) from None
        if result is None:
            raise self._unknown(params)
        return self._in_era(ctx.method, self._tasks.in_answer(result, principal), modern=request.modern)

    def _params(self, ctx: ServerRequestContext[Any, Any], request: RequestIdentity) -> dict[str, Any]:
        """Return the parameters of a request, with the id of a task as its server knows it; raises ``MCPError``."""
        params = {key: value for key, value in (ctx.params or {}).items() if key != "_meta"}
        if isinstance(number := params.get("taskId"), str):
            own = self._tasks.own(number, request.caller.principal)
            if own is None:
                raise self._unknown(params)
            params["taskId"] = own
        return params

    def _client(self, ctx: ServerRequestContext[Any, Any], request: RequestIdentity) -> Client:
        if request.modern:
            return ModernClient((ctx.params or {}).get("_meta") or {}, notifier(ctx))
        connection = connection_of(ctx.session)
        forwarder = forwarder_of(connection)
        return HandshakeClient(connection, request.caller, self._questions, forwarder, notifier(ctx), asker(ctx))

    def _unknown(self, params: Mapping[str, Any]) -> MCPError:
        """Return the error for what there is not, or not for this agent (P9)."""
        if "taskId" in params:
            return MCPError(types.INVALID_PARAMS, "Failed to retrieve task: Task not found")
        named = self._board.services.masker.text(str(params.get("uri") or params.get("name") or ""))
        return MCPError(types.INVALID_PARAMS, f"There is no such thing here: {named}")

    def _in_era(self, method: str, result: JsonObject, *, modern: bool) -> dict[str, Any]:
        """Return a result as the era of the client has it."""
        if modern:
            hints: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHED else {}
            passed = {**hints, **result}
        elif "resultType" in result:
            passed = {key: value for key, value in result.items() if key not in _MODERN}
        else:
            passed = dict(result)
        if "cacheScope" in passed and self._board.configuration.tokens:
            passed["cacheScope"] = "private"
        return passed
