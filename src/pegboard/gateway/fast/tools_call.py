"""Calls that go around the SDK: what is plainly well-formed is run and answered here, all else goes by the SDK.

The SDK's pipeline costs some 0.3 ms a call (docs/decisions/0004-calls-leave-the-sdk.md). Whatever this
module accepts, it answers as the SDK does; what it is not sure of, it does not accept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from mcp_types import methods
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from pegboard.core.model.tools import JsonObject
from pegboard.gateway.clients.handshake import Notify
from pegboard.gateway.fast.questions import FastQuestions, OnGone
from pegboard.gateway.handlers.answers import client_error
from pegboard.gateway.handlers.tool_calls import ClientChannels, IncomingCall
from pegboard.gateway.protocol.jsonrpc import Message, dump_message
from pegboard.gateway.protocol.request_identity import RequestIdentity, on_connection, request_of
from pegboard.support.mcp_constants import CAPABILITIES_KEY, CLIENT_KEY, META_PREFIX, SERVER_KEY, VERSION_KEY
from pegboard.support.tracing import tracing

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.shared.exceptions import MCPError

    from pegboard.gateway.handlers.server import Gateway
    from pegboard.gateway.protocol.board_port import Caller

_ENVELOPE: Final = frozenset({VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY})
_RESERVED: Final = (META_PREFIX, META_PREFIX.replace("/", "."))
_TRACE: Final = ("traceparent", "tracestate", "baggage")
_REQUEST: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_MOST_ENVELOPES: Final = 256
_TRACING_INTERVAL: Final = 1.0
"""How old an answer to whether the process traces requests may be, in seconds."""
_NONE: Final[Message] = {}


class FastCall(NamedTuple):
    """A call that may go around the SDK, and when it came (``time.monotonic()``)."""

    number: str | int
    name: str
    arguments: Message
    params: Message
    progress_token: str | int | None
    arrived: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewestCall:
    """What the newest call belongs to, and what that was decided by."""

    caller: Caller
    declared: object
    version: str
    meta: Message
    request: RequestIdentity


class FastToolCalls:
    """The reading and answering of plain calls, for one way in."""

    def __init__(self, gateway: Gateway) -> None:
        self.questions = FastQuestions()
        self._gateway = gateway
        self._stamp: Message = {SERVER_KEY: gateway.server.server_info_stamp}
        self._metas = _KnownPlainMetas()
        self._newest: _NewestCall | None = None

    def ways_back(self, caller: Caller, notify: Notify, on_gone: OnGone | None = None) -> ClientChannels:
        """Return the ways back to the caller, on the stream that ``notify`` writes to."""

        async def ask(method: str, params: JsonObject) -> JsonObject:
            return await self.questions.ask(caller, notify, on_gone, method, params)

        async def notify_list_changed() -> None:
            await notify({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

        return ClientChannels(notify=notify, ask=ask, notify_list_changed=notify_list_changed)

    def parse(self, message: Message | None, *, modern: bool) -> FastCall | None:
        """Return the call in a message, or None where the SDK is to judge it."""
        if message is None or message.keys() != _REQUEST or message["jsonrpc"] != "2.0":
            return None
        number: str | int = message["id"]
        params: Message = message["params"]
        if message["method"] != "tools/call" or type(number) not in (int, str) or type(params) is not dict:
            return None
        arguments: Message = params.get("arguments", _NONE)
        meta: Message = params.get("_meta", _NONE)
        name = params.get("name")
        if not (type(name) is str and type(arguments) is dict and type(meta) is dict) or not params.keys() <= _PARAMS:
            return None
        arrived = monotonic()
        if not self._metas.is_plain_meta(meta, modern=modern):
            return None
        if tracing.tracer(arrived - _TRACING_INTERVAL) is not None:  # the SDK makes the spans
            return None
        return FastCall(number, name, arguments, params, meta.get("progressToken"), arrived)

    async def answer(
        self, caller: Caller, call: FastCall, connection: Connection | None, back: ClientChannels
    ) -> Message:
        """Return the whole answer to a call; ``connection`` is that of the handshake era.

        The result is decided where the SDK's handler decides it: in ``ToolCalls``.
        """
        gateway = self._gateway
        gateway.metrics.routes["direct"] += 1
        _, name, arguments, params, token, arrived = call
        progress = None if token is None else _progress(token, back.notify)
        try:
            request = self._identity(caller, connection, params)
            incoming = IncomingCall(request, name, arguments, params, connection, progress, back, arrived)
            result = await gateway.calls.run(incoming)
        except Exception as error:
            return error_response(call.number, client_error(error, "tools/call", gateway.board.services.masker))
        if connection is None:
            result.setdefault("resultType", "complete")
            result["_meta"] = {**self._stamp, **result.get("_meta", _NONE)}
        return {"jsonrpc": "2.0", "id": call.number, "result": result}

    def _identity(self, caller: Caller, connection: Connection | None, params: Message) -> RequestIdentity:
        """Return what a call belongs to; the newest is used again where nothing of its ``_meta`` is passed on.

        Equal is not the same there: 1 equals true.
        """
        meta: Message = params.get("_meta", _NONE)
        if connection is None:
            version, declared = LATEST_MODERN_VERSION, None
        else:
            version, declared = connection.protocol_version, connection.client_capabilities
        newest = self._newest
        if newest is not None and newest.declared is declared and newest.version == version and newest.meta == meta:
            known = newest.caller
            if known is caller or known == caller:
                return newest.request
        request = request_of(on_connection(caller, connection), version, params)
        if not request.meta:
            self._newest = _NewestCall(caller=caller, declared=declared, version=version, meta=meta, request=request)
        return request


class _KnownPlainMetas:
    """The ``_meta`` of calls that hold nothing that only the SDK understands, and a right envelope where one belongs.

    Each envelope of the 2026 era is judged by the SDK's own models, once.
    """

    def __init__(self) -> None:
        self._envelopes: set[bytes] = set()
        self._newest: dict[bool, Message] = {}

    def is_plain_meta(self, meta: Message, *, modern: bool) -> bool:
        """Return whether a ``_meta`` is one of them; clients send the same with every call."""
        if self._newest.get(modern) == meta:
            return True
        if not self._is_plain(meta, modern=modern):
            return False
        if not _has_numbers(meta):  # to Python 1 equals true
            self._newest[modern] = meta
        return True

    def _is_plain(self, meta: Message, *, modern: bool) -> bool:
        for key, value in meta.items():
            if key.startswith(_RESERVED) and not (modern and key in _ENVELOPE):
                return False
            if key in _TRACE or (key == "progressToken" and type(value) not in (int, str)):
                return False
        return not modern or self._has_envelope(meta)

    def _has_envelope(self, meta: Message) -> bool:
        if meta.get(VERSION_KEY) != LATEST_MODERN_VERSION or CAPABILITIES_KEY not in meta:
            return False
        envelope = {key: meta[key] for key in _ENVELOPE if key in meta}
        text = dump_message(envelope)
        if text in self._envelopes:
            return True
        try:
            methods.validate_client_request("tools/call", LATEST_MODERN_VERSION, {"name": "any", "_meta": envelope})
        except ValidationError:
            return False
        if len(self._envelopes) >= _MOST_ENVELOPES:
            self._envelopes.clear()
        self._envelopes.add(text)
        return True


def _has_numbers(value: object) -> bool:
    """Return whether a number or a truth value stands somewhere in a value of JSON."""
    if isinstance(value, dict):
        return any(map(_has_numbers, cast("Message", value).values()))
    if isinstance(value, list):
        return any(map(_has_numbers, cast("list[Any]", value)))
    return isinstance(value, int | float)


def error_response(number: str | int, error: MCPError) -> Message:
    """Return the answer that is an error."""
    body: Message = {"code": error.error.code, "message": error.error.message}
    if error.error.data is not None:
        body["data"] = error.error.data
    return {"jsonrpc": "2.0", "id": number, "error": body}


def _progress(token: str | int, notify: Notify) -> Callable[[float, float | None, str | None], Awaitable[None]]:
    async def report(progress: float, total: float | None = None, message: str | None = None) -> None:
        params: Message = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await notify({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    return report
