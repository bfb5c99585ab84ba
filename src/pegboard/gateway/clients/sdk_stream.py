"""What goes to a client on the stream of one request, by way of the SDK: notifications, and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from pegboard.core.model.tools import JsonObject
from pegboard.gateway.clients.handshake import AskClient, HandshakeClient, Notify, OpenQuestions, forwarder_of
from pegboard.gateway.protocol.jsonrpc import Message
from pegboard.ports import AskRefusedError

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from pegboard.gateway.protocol.board_port import Caller

    Context = ServerRequestContext[Any, Any]


def outside_calls(connection: Connection, caller: Caller, questions: OpenQuestions) -> HandshakeClient:
    """Return a client that is asked and told things outside of any call of its."""

    async def notify(message: Message) -> None:
        await connection.notify(message["method"], message["params"])

    async def ask(method: str, params: JsonObject) -> JsonObject:
        try:
            return await connection.send_raw_request(method, params)
        except MCPError as error:
            raise AskRefusedError(error.error.message, code=error.error.code, data=error.error.data) from None

    return HandshakeClient(connection, caller, questions, forwarder_of(connection), notify, ask)


def notifier(ctx: Context) -> Notify:
    """Return what sends a notification."""

    async def notify(message: Message) -> None:
        notification: Any = types.Notification[dict[str, Any], str](method=message["method"], params=message["params"])
        await ctx.session.send_notification(notification, related_request_id=ctx.request_id)

    return notify


def asker(ctx: Context) -> AskClient:
    """Return what sends a request and returns its answer."""

    async def ask(method: str, params: JsonObject) -> JsonObject:
        stream = ctx.session._request_outbound  # noqa: SLF001 - an answer may be a task, which its models refuse
        try:
            return await stream.send_raw_request(method, params)
        except MCPError as error:
            raise AskRefusedError(error.error.message, code=error.error.code, data=error.error.data) from None

    return ask
