"""Open a connection to one server with the SDK, and say why it failed. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any, cast

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import Transport

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.connection.live import Live, SourceSettings
from pegboard.sources.mcp.transports.http import HttpTransport
from pegboard.sources.mcp.transports.sse import SseTransport
from pegboard.sources.mcp.transports.stdio import StdioTransport
from pegboard.sources.mcp.wire.http_client import MARK, STATUS, TOO_LARGE, describe
from pegboard.sources.mcp.wire.messages import EVENT_TOO_LARGE
from pegboard.sources.mcp.wire.record import ConnectionRecord
from pegboard.sources.mcp.wire.request_outcomes import too_large
from pegboard.sources.mcp.wire.tapped_transport import TappedTransport
from pegboard.support.version import __version__

_SAMPLING = types.SamplingCapability(context=types.SamplingContextCapability(), tools=types.SamplingToolsCapability())
_LEVEL_WITHIN = 5.0
"""How long a server may take to note which log messages are wanted, in seconds."""


async def open_client(
    stack: AsyncExitStack,
    spec: ServerSpec,
    record: ConnectionRecord,
    settings: SourceSettings,
    *,
    legacy: bool,
    on_changed: Callable[[], None],
) -> Live:
    """Return the connection, which ends with the stack; raises ``TimeoutError`` after ``start_timeout`` seconds."""

    async def notified(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_changed()
        else:
            record.notify(message)

    callback: Any = _refuse if settings.asks else None  # the SDK declares what there is a callback for
    transport = _transport(spec, record, settings)
    client = Client(
        cast("Transport", TappedTransport(cast("Transport", transport), record)),
        mode="legacy" if legacy else "auto",
        message_handler=cast("Callable[[Any], Awaitable[None]]", notified),  # type: ignore[arg-type]
        client_info=types.Implementation(name="pegboard", version=__version__),
        cache=None,  # manifests are kept by whoever asked
        elicitation_callback=callback,
        sampling_callback=callback,
        sampling_capabilities=_SAMPLING,
        list_roots_callback=callback,
    )
    async with asyncio.timeout(settings.start_timeout):
        await stack.enter_async_context(client)
    record.version = client.protocol_version
    record.up = True
    _begin_logs(client, record)
    if transport.fast_path is not None:
        transport.fast_path.open()
    return Live(client, record, transport.fast_path)


def _transport(
    spec: ServerSpec, record: ConnectionRecord, settings: SourceSettings
) -> StdioTransport | HttpTransport | SseTransport:
    if not spec.url:
        return StdioTransport(spec, record, use_fast_path=settings.fast_path)
    if spec.transport == "sse":
        return SseTransport(spec, record)
    return HttpTransport(spec, record, use_fast_path=settings.fast_path)


async def _refuse(*_: Any) -> types.ErrorData:
    """Refuse: what a server asks is taken before the SDK sees it (:mod:`..wire.server_requests`)."""
    return types.ErrorData(code=types.INVALID_REQUEST, message="There is nobody to ask.")


def _begin_logs(client: Client, record: ConnectionRecord) -> None:
    """Take what the server logs, now that its era and what it can do are known."""
    logs = record.server_requests.logs
    logs.modern = record.modern
    logs.supported = client.server_capabilities.logging is not None

    async def set_level(level: str) -> None:
        request = types.Request[dict[str, Any], str](method="logging/setLevel", params={"level": level})
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with asyncio.timeout(_LEVEL_WITHIN):
                await client.session.send_request(request, types.EmptyResult)

    logs.set_level = set_level


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def status_of(error: MCPError) -> tuple[str, int] | None:
    """Return the kind and the status of an error that :mod:`..wire.http_client` marked."""
    data: Any = error.data
    if isinstance(data, dict) and MARK in data:
        marked = cast("dict[str, Any]", data)
        return str(marked[MARK]), int(marked.get("status", 0))
    return None


def reason_of(error: BaseException, spec: ServerSpec) -> tuple[str, str]:
    """Return why a connection could not be opened, and what to do."""
    leaf = next(_leaves(error))
    match leaf:
        case FileNotFoundError() | NotADirectoryError() if spec.cwd and not os.path.isdir(spec.cwd):  # noqa: PTH112
            return f"its folder {spec.cwd!r} does not exist", "Correct `cwd`."
        case FileNotFoundError():
            return f"the command {spec.command!r} was not found", "Install it, or correct `command`."
        case PermissionError():
            return f"the command {spec.command!r} may not be executed", "Make it executable, or correct `command`."
        case MCPError():
            return _refusal(leaf, spec)
        case httpx2.HTTPStatusError():
            return _status(leaf.response.status_code, leaf.response.reason_phrase)
        case httpx2.TransportError():
            return describe(leaf), "Start the server, or correct `url`."
        case OSError() | ValueError():
            return one_line(str(leaf), limit=300), ""
        case _:
            return one_line(f"{type(leaf).__name__}: {leaf}", limit=300), ""


def _refusal(error: MCPError, spec: ServerSpec) -> tuple[str, str]:
    match status_of(error):
        case (kind, status) if kind == STATUS:
            return _status(status, error.message)
        case (kind, _) if kind == TOO_LARGE:
            return error.message, limit_hint(spec)
        case None if error.message.startswith(EVENT_TOO_LARGE):
            return too_large(spec.message_limit), limit_hint(spec)
        case None if error.code == types.CONNECTION_CLOSED:
            return "", ""
        case None:
            return f"it answered: {one_line(error.message, limit=300)}", ""
        case _:
            return error.message, "Start the server, or correct `url`."


def limit_hint(spec: ServerSpec) -> str:
    """Return which key raises the limit of a message."""
    return f"Raise `limits: {{message: ...}}` in `{spec.section}` if its messages have to be larger."


def _status(status: int, text: str) -> tuple[str, str]:
    answer = f"it answered HTTP {status} ({one_line(text, limit=200)})" if text else f"it answered HTTP {status}"
    match status:
        case 401 | 403:
            return f"{answer}: the credentials are missing or refused", "Correct `headers`."
        case 404:
            return answer, "Correct `url`: no MCP endpoint stands there."
        case 405:
            return answer, "Correct `url`, or set `type: sse` if the server is of the older kind."
        case _:
            return answer, "See the server's own log."
