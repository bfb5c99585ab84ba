"""One request over an open connection: the raw answer, or how it failed. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp import Client, MCPError
from pydantic import ValidationError

from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.ports import Progress
from pegboard.sources.mcp.connection.connection import Live
from pegboard.sources.mcp.connection.open_client import status_of
from pegboard.sources.mcp.fast.fast_path import UseSdkError
from pegboard.sources.mcp.requests.input_required import settled
from pegboard.sources.mcp.transports.http import BROKEN, SESSION, UNREACHED
from pegboard.sources.mcp.wire.malformed import UNPARSED
from pegboard.sources.mcp.wire.observed import (
    IN_FLIGHT,
    NO_MESSAGE,
    ConnectionRecord,
    GoneError,
    InFlight,
    InvalidAnswerError,
)
from pegboard.sources.mcp.wire.server_requests import Call

T = TypeVar("T")

_PAGES = 1000
_SUBSCRIBED_WITHIN = 1.0
_UNPARSED = (UNPARSED, "Failed to parse SSE message: ")
_STREAM_ENDED = "SSE stream ended"


class InOrder:
    """Pass progress on one report at a time, in the order of arrival, before the answer."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self._turn = asyncio.Lock()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass on one report."""
        async with self._turn:
            await self._inner(progress, total, message)

    async def settle(self) -> None:
        """Wait for the reports that came before."""
        async with self._turn:
            pass


async def call_tool(call: Call, live: Live) -> dict[str, Any]:
    """Return the raw result of a tool; what the server asks and says meanwhile is passed on to its client.

    Not ``Client.call_tool``: that lists every tool once more for one it has not listed, and makes an
    error of structured content that does not fit the output schema. Raises ``GoneError``,
    ``InvalidAnswerError``, ``MCPError``.
    """
    talk = live.link.talk
    talk.begin(call)
    try:
        if talk.logs and call.client is not None:
            await talk.tell_level(call.client)
        raw = await _answered(call, live)
        if raw.get("resultType") == "input_required":
            raw = await settled(raw, call, partial(_call_by_sdk, call, live))
        await call.settle()
    finally:
        if talk.end(call):
            await call.ended()
    content: object = raw.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in cast("list[Any]", content)):
        raise InvalidAnswerError("its result has no list of content blocks")
    return raw


async def _answered(call: Call, live: Live) -> dict[str, Any]:
    """Return the first answer to a call, around the SDK where that can be."""
    lane = live.link.lane
    if lane is not None and lane.takes(call.name):
        try:
            return await lane.call(call)
        except UseSdkError:
            pass
    return await _call_by_sdk(call, live, EMPTY)


async def _call_by_sdk(call: Call, live: Live, more: JsonObject) -> dict[str, Any]:
    client, link, meta = live.client, live.link, live.link.talk.meta(call)
    about = {"_meta": dict(meta)} if meta else {}
    params = {"name": call.name, "arguments": dict(call.arguments), **more, **about}
    request = types.Request[dict[str, Any], str](method="tools/call", params=params)
    ordered = None if call.progress is None else InOrder(call.progress)

    async def send() -> Any:
        return await client.session.send_request(request, types.EmptyResult, progress_callback=ordered)

    try:
        raw, _ = await _ask(link, InFlight(), send)
    except MCPError as error:
        if error.code != types.HEADER_MISMATCH:
            raise
        await list_tools(client, link)  # the server wants headers that follow from the listed schema
        raw, _ = await _ask(link, InFlight(), send)
    if ordered is not None:
        await ordered.settle()
    return raw


async def list_tools(client: Client, link: ConnectionRecord) -> list[dict[str, Any]]:
    """Return every tool that the server lists, page by page, as it stands on the wire.

    Tools that are not valid, or listed twice, are left out and stand in ``link.dropped``.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_SUBSCRIBED_WITHIN):
            await link.subscribed.wait()
    link.dropped.clear()
    found: dict[str, dict[str, Any]] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        flight = InFlight(listing=True)
        params = types.PaginatedRequestParams(cursor=cursor)

        async def send(params: types.PaginatedRequestParams = params) -> types.ListToolsResult:
            return await client.session.list_tools(params=params)

        raw, page = await _ask(link, flight, send)
        assert page is not None  # a list that the SDK refuses is refused
        usable = {tool.name for tool in page.tools}
        for tool in cast("list[dict[str, Any]]", raw["tools"]):
            name = tool["name"]
            if name in found:
                link.drop(name, "it is listed twice; the first stands")
            elif name not in usable:
                link.drop(name, "its x-mcp-header annotation is not valid")
            else:
                found[name] = tool
                if link.lane is not None and "x-mcp-header" in str(tool["inputSchema"]):
                    link.lane.by_sdk.add(name)
        if page.next_cursor is None or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    return list(found.values())


async def _ask(
    link: ConnectionRecord, flight: InFlight, send: Callable[[], Awaitable[T]]
) -> tuple[dict[str, Any], T | None]:
    """Send one request and return the answer as it stood on the wire, and as the SDK made of it.

    That is None where a call's result has what this version of the SDK does not know: it passes through.
    """
    token = IN_FLIGHT.set(flight)
    try:
        result = await send()
    except MCPError as error:
        if error.code == types.PARSE_ERROR and error.message.startswith(_UNPARSED):
            raise InvalidAnswerError(NO_MESSAGE) from None
        raise _gone(error, flight) or error from None
    except ValidationError as error:
        if flight.raw is None or flight.listing:
            raise InvalidAnswerError(f"its answer is not valid: {_first(error)}") from None
        return flight.raw, None
    except RuntimeError as error:
        if link.alive():
            raise
        raise GoneError(link.reason, flight, dead=True) from error
    finally:
        IN_FLIGHT.reset(token)
    if flight.raw is None:
        raise InvalidAnswerError("its answer has no result")
    return flight.raw, result


async def answer_to(
    client: Client, link: ConnectionRecord, request: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Return the raw result of a request other than a call; raises as :func:`call_tool` does."""
    ordered = None if progress is None else InOrder(progress)

    async def send() -> Any:
        return await client.session.send_request(request, types.EmptyResult, progress_callback=ordered)

    raw, _ = await _ask(link, InFlight(), send)
    if ordered is not None:
        await ordered.settle()
    return raw


def _gone(error: MCPError, flight: InFlight) -> GoneError | None:
    """Return the end of the connection that an error stands for, or None."""
    # The SDK's own code for an end is one that many servers use too.
    if error.code == types.CONNECTION_CLOSED and (not flight.refused or error.message.startswith(_STREAM_ENDED)):
        return GoneError(one_line(error.message), flight, dead=not flight.sent)
    match status_of(error):
        case (kind, _) if kind == SESSION:
            flight.unread = True
            return GoneError(error.message, flight, dead=True)
        case (kind, _) if kind == BROKEN:
            return GoneError(error.message, flight)
        case _:
            return None


def unreached(error: MCPError) -> bool:
    """Return whether nothing of the request arrived."""
    marked = status_of(error)
    return marked is not None and marked[0] == UNREACHED


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return one_line(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}", limit=300)
