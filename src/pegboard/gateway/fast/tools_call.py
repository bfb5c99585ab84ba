"""Calls that go around the SDK: what is plainly well-formed is run and answered here, all else goes by the SDK.

The SDK's pipeline costs some 0.3 ms a call (docs/decisions/0004-calls-leave-the-sdk.md). Whatever this
module takes, it answers as the SDK does; what it is not sure of, it does not take.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from mcp_types import methods
from mcp_types.version import LATEST_MODERN_VERSION
from opentelemetry import trace
from pydantic import ValidationError

from pegboard.core.model.tools import JsonObject
from pegboard.gateway.clients.handshake import Notify, WhenGone
from pegboard.gateway.fast.first_responses import CAPABILITIES, CLIENT, SERVER, VERSION
from pegboard.gateway.handlers.server import CallMade
from pegboard.gateway.protocol.jsonrpc import Message, dumped
from pegboard.gateway.protocol.request_identity import RequestIdentity, request_of

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.shared.exceptions import MCPError

    from pegboard.gateway.handlers.server import Gateway
    from pegboard.gateway.protocol.board_port import Caller

_ENVELOPE: Final = frozenset({VERSION, CAPABILITIES, CLIENT})
_RESERVED: Final = ("io.modelcontextprotocol/", "io.modelcontextprotocol.")
_TRACE: Final = ("traceparent", "tracestate", "baggage")
_REQUEST: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_KNOWN: Final = 256
_NONE: Final[Message] = {}


@dataclass(slots=True, kw_only=True)
class FastCall:
    """Hold a call that may go around the SDK, and when it came (``time.monotonic()``)."""

    number: str | int
    name: str
    arguments: Message
    params: Message
    token: str | int | None
    arrived: float


class FastToolCalls:
    """Take calls for a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._stamp: Message = {SERVER: gateway.server.server_info_stamp}
        self._envelopes: set[bytes] = set()
        self._judged: dict[bool, Message] = {}
        self._asked: tuple[Caller, str, Message, RequestIdentity] | None = None
        self._traced = False
        self._look_at = 0.0

    def wanted(self, message: Message | None, *, modern: bool) -> FastCall | None:
        """Return the call in a message, or None where the SDK is to judge it."""
        if message is None or message.keys() != _REQUEST or message["jsonrpc"] != "2.0":
            return None
        number, given = message["id"], message["params"]
        if message["method"] != "tools/call" or type(number) not in (int, str) or type(given) is not dict:
            return None
        params = cast("Message", given)
        name, arguments, meta = params.get("name"), params.get("arguments", _NONE), params.get("_meta", _NONE)
        if not (type(name) is str and type(arguments) is dict and type(meta) is dict) or params.keys() - _PARAMS:
            return None
        meta = cast("Message", meta)
        token = meta.get("progressToken")
        if token is not None and type(token) not in (int, str):
            return None
        arrived = monotonic()
        if self._judged.get(modern) != meta:  # clients send the same with every call
            if not self._plain(meta, modern=modern):
                return None
            self._judged[modern] = meta
        if self._is_traced(arrived):
            return None
        return FastCall(
            number=number,
            name=name,
            arguments=cast("Message", arguments),
            params=params,
            token=token,
            arrived=arrived,
        )

    def _plain(self, meta: Message, *, modern: bool) -> bool:
        """Return whether nothing stands in ``_meta`` that only the SDK knows, and the envelope is right."""
        for key in meta:
            if key.startswith(_RESERVED) and not (modern and key in _ENVELOPE):
                return False
            if key in _TRACE or (key == "progressToken" and meta[key] is None):
                return False
        return not modern or (meta.get(VERSION) == LATEST_MODERN_VERSION and self._fits(meta))

    def _fits(self, meta: Message) -> bool:
        """Return whether an envelope is valid; each is judged by the SDK's own models once."""
        if CAPABILITIES not in meta:
            return False
        envelope = {key: meta[key] for key in _ENVELOPE if key in meta}
        known = dumped(envelope)
        if known in self._envelopes:
            return True
        try:
            params = {"name": "any", "_meta": envelope}
            methods.validate_client_request("tools/call", LATEST_MODERN_VERSION, params)
        except ValidationError:
            return False
        if len(self._envelopes) >= _KNOWN:
            self._envelopes.clear()
        self._envelopes.add(known)
        return True

    def _is_traced(self, now: float) -> bool:
        """Return whether the process traces requests: the SDK makes the spans. It is asked once a second."""
        if now >= self._look_at:
            self._traced = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
            self._look_at = now + 1
        return self._traced

    async def answer(
        self,
        caller: Caller,
        wanted: FastCall,
        connection: Connection | None,
        notify: Notify,
        when_gone: WhenGone | None = None,
    ) -> Message:
        """Return the whole answer to a call; ``connection`` is that of the handshake era.

        What it comes to is decided where the SDK's handler decides it: in the gateway.
        """
        self.gateway.metrics.routed("direct")
        modern = connection is None

        async def ask(method: str, params: JsonObject) -> JsonObject:
            return await self.gateway.asks.ask(caller, notify, when_gone, method, params)

        async def tell() -> None:
            await notify({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

        version = LATEST_MODERN_VERSION if connection is None else connection.protocol_version
        try:
            result = await self.gateway.call(
                CallMade(
                    request=self._request(caller, version, wanted.params),
                    name=wanted.name,
                    arguments=wanted.arguments,
                    params=wanted.params,
                    connection=connection,
                    progress=_progress(wanted.token, notify) if wanted.token is not None else None,
                    tell=tell,
                    notify=notify,
                    ask=ask,
                    arrived=wanted.arrived,
                )
            )
        except Exception as error:
            return refusal(wanted.number, self.gateway.fault(error, "tools/call"))
        if modern:
            result.setdefault("resultType", "complete")
            result["_meta"] = {**self._stamp, **result.get("_meta", _NONE)}
        return {"jsonrpc": "2.0", "id": wanted.number, "result": result}

    def _request(self, caller: Caller, version: str, params: Message) -> RequestIdentity:
        """Return what a call belongs to; the newest is remembered where nothing of its ``_meta`` goes on.

        Equal is not the same there: 1 equals true.
        """
        meta = params.get("_meta", _NONE)
        last = self._asked
        if last is not None and last[2] == meta and last[1] == version and last[0] == caller:
            return last[3]
        request = request_of(caller, version, params)
        if not request.meta:
            self._asked = caller, version, meta, request
        return request


def refusal(number: str | int, error: MCPError) -> Message:
    """Return the answer that is an error."""
    found: Message = {"code": error.error.code, "message": error.error.message}
    if error.error.data is not None:
        found["data"] = error.error.data
    return {"jsonrpc": "2.0", "id": number, "error": found}


def _progress(token: str | int, notify: Notify) -> Callable[[float, float | None, str | None], Awaitable[None]]:
    async def report(progress: float, total: float | None = None, message: str | None = None) -> None:
        params: Message = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await notify({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    return report
