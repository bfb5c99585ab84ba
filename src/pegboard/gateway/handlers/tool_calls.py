"""Calls of tools by clients of both eras, whichever way they come in (G3, G5, G7)."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.shared.exceptions import MCPError

from pegboard.core.access.extensions import is_task
from pegboard.gateway.clients.handshake import AskClient, HandshakeClient, Notify, OpenQuestions, forwarder_of
from pegboard.gateway.clients.pending_calls import CallOwner, ModernClient, PendingCalls
from pegboard.gateway.handlers.answers import server_error
from pegboard.gateway.notifications.tool_list import CALLING, NotifyListChanged, ToolListNotifier
from pegboard.gateway.protocol import convert
from pegboard.support.mcp_constants import INVALID_PARAMS, URL_ELICITATION_REQUIRED

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from pegboard.board import Session
    from pegboard.core.state.call_plans import CallAnswer
    from pegboard.gateway.handlers.session_pool import SessionPool
    from pegboard.gateway.handlers.task_names import TaskNames
    from pegboard.gateway.handlers.turns import SessionActivity, SessionTurns
    from pegboard.gateway.protocol.board_port import BoardPort
    from pegboard.gateway.protocol.request_identity import RequestIdentity
    from pegboard.ports import Client, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChannels:
    """The ways back to the client of a call, on its stream.

    ``notify`` sends a notification, and in the handshake era ``ask`` a request; ``notify_list_changed`` notifies it
    that its list of tools has changed.
    """

    notify: Notify
    ask: AskClient
    notify_list_changed: NotifyListChanged


class IncomingCall(NamedTuple):
    """One call of a tool as a client made it, and the ways back to that client.

    ``params`` is as it was sent; ``connection`` is that of the handshake era, None in the other. ``arrived`` is when
    it came (``time.monotonic()``).
    """

    request: RequestIdentity
    name: str
    arguments: dict[str, Any]
    params: Mapping[str, Any]
    connection: Connection | None
    progress: Progress | None
    back: ClientChannels
    arrived: float | None = None


class ToolCalls:
    """The one place where calls run, for the SDK's handlers and for the fast path alike."""

    def __init__(
        self,
        board: BoardPort,
        sessions: SessionPool,
        turns: SessionTurns,
        tool_list: ToolListNotifier,
        pending: PendingCalls,
        questions: OpenQuestions,
        tasks: TaskNames,
    ) -> None:
        self._board = board
        self._sessions = sessions
        self._turns = turns
        self._tool_list = tool_list
        self._questions = questions
        self._pending = pending
        self._tasks = tasks

    async def close(self) -> None:
        """End every call that waits for its client."""
        await self._pending.close()

    async def run(self, call: IncomingCall) -> dict[str, Any]:
        """Return the raw result of a call, or what its client is asked.

        Raises ``MCPError`` for an unknown tool, and where its server demands that the client opens a URL.
        """
        request, connection, sessions, turns = call.request, call.connection, self._sessions, self._turns
        session = sessions.known(request.caller, request.session, modern=request.modern)
        if session is None:
            session = await sessions.get(request.caller, request.session, modern=request.modern)
        key = session.key
        activity = turns.under_way(key, request.turn) or await turns.begin(session, request.turn)
        if connection is None:
            return await self._run_modern(session, activity, call)
        back, listener = call.back, self._tool_list.join(connection, request.caller, key)
        forwarder = forwarder_of(connection)
        task = call.params.get("task")
        client = HandshakeClient(
            connection,
            request.caller,
            self._questions,
            forwarder,
            back.notify,
            back.ask,
            task if isinstance(task, dict) else None,
        )
        with activity:
            listener.calls += 1
            token = CALLING.set(listener)
            try:
                return self._result(session, call, await _call_session(session, activity, call, call.progress, client))
            finally:
                CALLING.reset(token)
                try:
                    if listener.changed_by_call:
                        await self._tool_list.notify_caller(listener, back.notify_list_changed)
                finally:
                    listener.calls -= 1

    async def _run_modern(self, session: Session, activity: SessionActivity, call: IncomingCall) -> dict[str, Any]:
        client = ModernClient(call.params.get("_meta") or {}, call.back.notify)
        if client.askable or call.params.get("requestState") is not None:
            return await self._run_pending(session, activity, call, client)
        with activity:
            return self._result(session, call, await _call_session(session, activity, call, call.progress, client))

    async def _run_pending(
        self, session: Session, activity: SessionActivity, call: IncomingCall, client: ModernClient
    ) -> dict[str, Any]:
        """Make a call that may wait for its client, or go on with one (MRTR)."""
        state = call.params.get("requestState")
        owner = CallOwner(key=session.key, name=call.name, arguments=call.arguments)

        async def work(client: Client, progress: Progress | None) -> dict[str, Any]:
            with activity:
                return self._result(session, call, await _call_session(session, activity, call, progress, client))

        if state is None:
            return await self._pending.begin(owner, client, call.progress, work)
        answers: dict[str, Any] = call.params.get("inputResponses") or {}
        return await self._pending.resume(state, answers, owner, client, call.progress, work)

    def _result(self, session: Session, call: IncomingCall, answer: CallAnswer) -> dict[str, Any]:
        """Return the raw result of an answer; raises what a client has to read as an error of the protocol."""
        if answer.status == "not_found" and session.known_tool(call.name) is None:
            raise MCPError(INVALID_PARAMS, self._board.services.masker.text(answer.message))
        error = answer.server_error
        if error is not None and error["code"] == URL_ELICITATION_REQUIRED:
            raise server_error(error)
        result = convert.result_of(answer.result, modern=call.request.modern)
        if not answer.result.more or not is_task(result):
            return result
        return self._tasks.begin_task(result, call.request.caller.principal, call.connection)


def _call_session(
    session: Session, activity: SessionActivity, call: IncomingCall, progress: Progress | None, client: Client
) -> Coroutine[Any, Any, CallAnswer]:
    return session.call(
        call.name,
        call.arguments,
        progress=progress,
        request_meta=call.request.meta,
        client=client,
        arrived=call.arrived,
        waiting=activity.waiting,
    )
