"""Open a connection to one server with the SDK, and listen for changes of its lists. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, cast

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, ToolsListChanged

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.connection.source_settings import SourceSettings
from pegboard.sources.mcp.connection.ways import UNASKED, ConnectionWay
from pegboard.sources.mcp.transports.http import HttpTransport
from pegboard.sources.mcp.transports.sse import SseTransport
from pegboard.sources.mcp.transports.stdio import StdioTransport
from pegboard.sources.mcp.wire.open_connection import OpenConnection
from pegboard.sources.mcp.wire.tapped_transport import TappedTransport
from pegboard.support.backoff import Backoff
from pegboard.support.version import __version__

_SAMPLING = types.SamplingCapability(context=types.SamplingContextCapability(), tools=types.SamplingToolsCapability())
_LISTS = ("tools", "prompts", "resources")
_LEVEL_WITHIN = 5.0
"""How long a server may take to note which log messages are wanted, in seconds."""


async def open_client(
    stack: AsyncExitStack,
    spec: ServerSpec,
    live: OpenConnection,
    settings: SourceSettings,
    way: ConnectionWay,
    *,
    limit: float,
    on_changed: Callable[[], None],
) -> None:
    """Open the connection in one way, which ends with the stack; raises ``TimeoutError`` after ``limit`` seconds."""

    async def handle_notification(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_changed()
        else:
            live.notify(message)

    callback: Any = _refuse if settings.asks else None  # the SDK declares what there is a callback for
    transport = _transport(spec, live, settings, way)
    client = Client(
        cast("Transport", TappedTransport(cast("Transport", transport), live)),
        mode="legacy" if way.handshake_only else "auto",
        message_handler=cast("Callable[[Any], Awaitable[None]]", handle_notification),  # type: ignore[arg-type]
        client_info=types.Implementation(name="pegboard", version=__version__),
        cache=None,  # manifests are kept by whoever asked
        elicitation_callback=callback,
        sampling_callback=callback,
        sampling_capabilities=_SAMPLING,
        list_roots_callback=callback,
    )
    async with asyncio.timeout(limit):
        await stack.enter_async_context(client)
    live.take_client(client)
    live.reached_by = _learnt_way(live, way)
    _begin_logs(live)
    if transport.fast_path is not None:
        transport.fast_path.open()


def _learnt_way(live: OpenConnection, way: ConnectionWay) -> dict[str, str]:
    """Return what the next start is to know: another version of a server is asked for its era again."""
    about = live.client.server_info
    name = f"{about.name} {about.version}" if about is not None else "unnamed"
    unasked = way.handshake_only in (name, UNASKED)
    asked_in_vain = not way.handshake_only and not live.modern and live.era_question is not None
    return replace(way, handshake_only=name if unasked or asked_in_vain else "").to_manifest


def _transport(
    spec: ServerSpec, live: OpenConnection, settings: SourceSettings, way: ConnectionWay
) -> StdioTransport | HttpTransport | SseTransport:
    if not spec.url:
        shared = settings.shared if live.shares_process else None
        return StdioTransport(spec, live, settings.launches, use_fast_path=settings.fast_path, shared=shared)
    if spec.transport == "sse" or way.sse:
        return SseTransport(spec, live)
    return HttpTransport(spec, live, use_fast_path=settings.fast_path)


async def _refuse(*_: Any) -> types.ErrorData:
    """Refuse: what a server asks is taken before the SDK sees it (:mod:`..wire.server_requests`)."""
    return types.ErrorData(code=types.INVALID_REQUEST, message="There is no one to ask.")


def _begin_logs(live: OpenConnection) -> None:
    """Take what the server logs, now that its era and what it can do are known."""
    logs = live.server_requests.logs
    logs.modern = live.modern
    logs.supported = live.client.server_capabilities.logging is not None

    async def set_level(level: str) -> None:
        request = types.Request[dict[str, Any], str](method="logging/setLevel", params={"level": level})
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with asyncio.timeout(_LEVEL_WITHIN):
                await live.client.session.send_request(request, types.EmptyResult)

    logs.set_level = set_level
    live.server_requests.watch_client()


async def listen(live: OpenConnection, changed: Callable[[], None]) -> None:
    """Call ``changed`` whenever the list of tools may have changed; in the handshake era that comes by itself."""
    try:
        declared = ((kind, getattr(live.client.server_capabilities, kind)) for kind in _LISTS)
        changing = frozenset(kind for kind, has in declared if has is not None and has.list_changed)
        if changing:
            await _subscribe(live, changing, changed)
    finally:
        live.subscribed.set()


async def _subscribe(live: OpenConnection, changing: frozenset[str], changed: Callable[[], None]) -> None:
    backoff, lost = Backoff(first=1.0, longest=30.0), False
    while live.is_open:
        try:
            async with live.client.listen(
                tools_list_changed="tools" in changing,
                prompts_list_changed="prompts" in changing,
                resources_list_changed="resources" in changing,
            ) as changes:
                honored = changes.honored.model_dump()
                live.announced = frozenset(kind for kind in changing if honored[f"{kind}_list_changed"])
                live.subscribed.set()
                if lost:  # changes may have been missed
                    changed()
                    live.notify(None)
                lost = False
                backoff.reset()
                async for change in changes:
                    if isinstance(change, ToolsListChanged):
                        changed()
            return
        except ListenNotSupportedError:
            return
        except SubscriptionLost:
            live.forget_list()
        except MCPError as error:
            if not lost and not error.data:  # the server does not have it
                return
        finally:
            live.announced = frozenset()
        live.subscribed.set()
        lost = True
        await backoff.wait()
