"""Open a connection to one server with the SDK, and say why it failed. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, cast

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import Transport
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.transports.http import MARK, STATUS, describe, http_transport
from pegboard.sources.mcp.transports.stdio import StdioTransport
from pegboard.sources.mcp.wire.observed import ConnectionRecord, ObservedTransport

_SAMPLING = types.SamplingCapability(context=types.SamplingContextCapability(), tools=types.SamplingToolsCapability())
_LEVEL_WITHIN = 5.0
"""How long a server may take to note which log messages are wanted, in seconds."""


def open_client(
    spec: ServerSpec, link: ConnectionRecord, *, legacy: bool, on_changed: Callable[[], None], asks: bool = True
) -> Client:
    """Return a client that is yet to be entered; with ``asks`` it says that the server may ask it (G9)."""

    async def notified(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_changed()
        else:
            link.notice(message)

    callback: Any = _never if asks else None  # the SDK declares what there is a callback for
    transport = http_transport(spec, link) if spec.url else cast("Transport", StdioTransport(spec, link))
    return Client(
        cast("Transport", ObservedTransport(transport, link)),
        mode="legacy" if legacy else "auto",
        message_handler=cast("Callable[[Any], Awaitable[None]]", notified),  # type: ignore[arg-type]
        client_info=types.Implementation(name="pegboard", version=_version()),
        cache=None,  # manifests are kept by whoever asked
        elicitation_callback=callback,
        sampling_callback=callback,
        sampling_capabilities=_SAMPLING,
        list_roots_callback=callback,
    )


async def _never(*_: Any) -> types.ErrorData:
    """Refuse: what a server asks is taken before the SDK sees it (:mod:`.talk`)."""
    return types.ErrorData(code=types.INVALID_REQUEST, message="There is nobody to ask.")


def begin_talk(client: Client, link: ConnectionRecord, ambiguous: Callable[[], None]) -> None:
    """Take what the server asks and says, now that its era and what it can do are known."""
    talk = link.talk
    talk.modern = link.version in MODERN_PROTOCOL_VERSIONS
    talk.logs = client.server_capabilities.logging is not None
    talk.ambiguous = ambiguous

    async def set_level(level: str) -> None:
        request = types.Request[dict[str, Any], str](method="logging/setLevel", params={"level": level})
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with asyncio.timeout(_LEVEL_WITHIN):
                await client.session.send_request(request, types.EmptyResult)

    talk.set_level = set_level


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pegboard")
    except PackageNotFoundError:
        return "0"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def status_of(error: MCPError) -> tuple[str, int] | None:
    """Return the kind and the status of an error that :mod:`.http` marked."""
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
            return _refusal(leaf)
        case httpx2.HTTPStatusError():
            return _status(leaf.response.status_code, leaf.response.reason_phrase)
        case httpx2.TransportError():
            return describe(leaf), "Start the server, or correct `url`."
        case OSError() | ValueError():
            return one_line(str(leaf), limit=300), ""
        case _:
            return one_line(f"{type(leaf).__name__}: {leaf}", limit=300), ""


def _refusal(error: MCPError) -> tuple[str, str]:
    match status_of(error):
        case (kind, status) if kind == STATUS:
            return _status(status, error.message)
        case None if error.code == types.CONNECTION_CLOSED:
            return "", ""
        case None:
            return f"it answered: {one_line(error.message, limit=300)}", ""
        case _:
            return error.message, "Start the server, or correct `url`."


def _status(status: int, text: str) -> tuple[str, str]:
    said = f"it answered HTTP {status} ({one_line(text, limit=200)})" if text else f"it answered HTTP {status}"
    match status:
        case 401 | 403:
            return f"{said}: the credentials are missing or refused", "Correct `headers`."
        case 404:
            return said, "Correct `url`: no MCP endpoint stands there."
        case 405:
            return said, "Correct `url`, or set `type: sse` if the server is of the older kind."
        case _:
            return said, "See the server's own log."
