"""One request over an open connection: the raw answer, or how it failed. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.core.access.listed_items import alias
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY, CallResult, JsonObject
from pegboard.ports import Client, Progress
from pegboard.sources.mcp.connection.failure_reasons import http_failure
from pegboard.sources.mcp.requests.input_required import final_result
from pegboard.sources.mcp.wire.convert import result_of
from pegboard.sources.mcp.wire.http_client import BROKEN, SESSION, TOO_LARGE
from pegboard.sources.mcp.wire.messages import (
    EVENT_TOO_LARGE,
    STREAM_ENDED,
    UNPARSED,
    UNPARSED_EVENT,
    unreadable_answer_text,
)
from pegboard.sources.mcp.wire.open_connection import OpenConnection
from pegboard.sources.mcp.wire.request_outcomes import (
    IN_FLIGHT,
    ConnectionEndedError,
    InFlight,
    InvalidAnswerError,
    TooLargeError,
    UseSdkError,
)
from pegboard.sources.mcp.wire.upstream_call import CURRENT_CALL, Call

T = TypeVar("T")

_PAGES = 1000
_SUBSCRIBED_WITHIN = 1.0
_UNPARSED = (UNPARSED, UNPARSED_EVENT)


class OrderedProgress:
    """Progress that is passed on one report at a time, in the order of arrival, before the answer."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self._turn = asyncio.Lock()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass on one report."""
        async with self._turn:
            await self._inner(progress, total, message)

    async def wait_until_reported(self) -> None:
        """Wait for the reports that came before."""
        async with self._turn:
            pass


async def call_tool(call: Call, live: OpenConnection) -> CallResult:
    """Return the result of a tool; what the server asks and logs meanwhile is passed on to its client.

    Not ``Client.call_tool``: that lists every tool once more for one it has not listed, and makes an
    error of structured content that does not fit the output schema. Raises ``GoneError``,
    ``InvalidAnswerError``, ``TooLargeError``, ``MCPError``.
    """
    requests = live.server_requests
    requests.begin(call)
    try:
        if requests.logs.supported and call.client is not None:
            await requests.logs.set_log_level_for(call.client)
        try:
            raw = await (_call_by_sdk(call, live, EMPTY) if live.fast_call is None else live.fast_call(call))
        except UseSdkError:
            raw = await _call_by_sdk(call, live, EMPTY)
        if raw.get("resultType") == "input_required":
            raw = await final_result(raw, call, partial(_call_by_sdk, call, live))
        if call.passes_on:
            await call.wait_until_passed_on()
    finally:
        if live.http_closes:  # the next call has a connection of its own
            live.listed = None
        if requests.end(call):
            await call.finish_asking()
    return result_of(raw, partial(alias, live.name))


def task_of(call: Call, live: OpenConnection) -> dict[str, Any]:
    """Return what makes a task of a call, where its client wants one and the server is of the era that has it there."""
    task = call.client.wanted_task if call.client is not None and not live.modern else None
    return {} if task is None else {"task": dict(task)}


async def _call_by_sdk(call: Call, live: OpenConnection, more: JsonObject) -> dict[str, Any]:
    meta = live.server_requests.logs.meta(call)
    about = {"_meta": dict(meta)} if meta else {}
    params = {"name": call.name, "arguments": dict(call.arguments), **task_of(call, live), **more, **about}
    request = types.Request[dict[str, Any], str](method="tools/call", params=params)
    ordered = None if call.progress is None else OrderedProgress(call.progress)

    async def send() -> Any:
        token = CURRENT_CALL.set(call)
        try:
            return await live.client.session.send_request(request, types.EmptyResult, progress_callback=ordered)
        finally:
            CURRENT_CALL.reset(token)

    try:
        raw, _ = await _send_request(live, InFlight(client=call.client), send)
    except MCPError as error:
        if error.code != types.HEADER_MISMATCH:
            raise
        await list_tools(live)  # the server wants headers that follow from the listed schema
        raw, _ = await _send_request(live, InFlight(client=call.client), send)
    if ordered is not None:
        await ordered.wait_until_reported()
    return raw


async def list_tools(live: OpenConnection) -> list[dict[str, Any]]:
    """Return every tool that the server lists, page by page, as it stands on the wire.

    Tools that are not valid, or listed twice, are excluded and are reported as dropped.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_SUBSCRIBED_WITHIN):
            await live.subscribed.wait()
    live.begin_list()
    found: dict[str, dict[str, Any]] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        in_flight = InFlight(listing=True)
        params = types.PaginatedRequestParams(cursor=cursor)

        async def send(params: types.PaginatedRequestParams = params) -> types.ListToolsResult:
            return await live.client.session.list_tools(params=params)

        raw, page = await _send_request(live, in_flight, send)
        assert page is not None  # a list that the SDK refuses is refused
        usable = {tool.name for tool in page.tools}
        for tool in cast("list[dict[str, Any]]", raw["tools"]):
            name = tool["name"]
            if name in found:
                live.drop(name, "it is listed twice; the first one is used")
            elif name not in usable:
                live.drop(name, "its x-mcp-header annotation is not valid")
            else:
                found[name] = tool
                if live.fast_call is not None and "x-mcp-header" in str(tool["inputSchema"]):
                    live.header_tools.add(name)
        if page.next_cursor is None or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    live.end_list()
    return list(found.values())


async def _send_request(
    live: OpenConnection, in_flight: InFlight, send: Callable[[], Awaitable[T]]
) -> tuple[dict[str, Any], T | None]:
    """Send one request and return the answer as it stood on the wire, and as the SDK made of it.

    That is None where a call's result has what this version of the SDK does not know: it passes through.
    """
    token = IN_FLIGHT.set(in_flight)
    try:
        result = await send()
    except MCPError as error:
        if error.code == types.PARSE_ERROR and error.message.startswith(_UNPARSED):
            raise InvalidAnswerError(unreadable_answer_text(error.message)) from None
        if _is_too_large(error):
            raise TooLargeError from None
        raise _connection_end(error, in_flight) or error from None
    except ValidationError as error:
        if in_flight.raw is None or in_flight.listing:
            raise InvalidAnswerError(f"its answer is not valid: {_first_error(error)}") from None
        return in_flight.raw, None
    except RuntimeError as error:
        if live.alive():
            raise
        raise ConnectionEndedError(live.reason, in_flight, dead=True) from error
    finally:
        IN_FLIGHT.reset(token)
        if in_flight.number is not None:
            live.in_flight.pop(in_flight.number, None)
    if in_flight.raw is None:
        raise InvalidAnswerError("its answer has no result")
    return in_flight.raw, result


async def ask_client_back(live: OpenConnection, request: Any, call: Call) -> dict[str, Any]:
    """Return the raw result of a request of an extension, while its client may be asked back; raises as a call does."""
    requests = live.server_requests
    requests.begin_other(call)
    token = CURRENT_CALL.set(call)
    try:
        return await request_result(live, request, call.progress, call.client)
    finally:
        CURRENT_CALL.reset(token)
        if call.passes_on:
            await call.wait_until_passed_on()
        if requests.end(call):
            await call.finish_asking()


async def request_result(
    live: OpenConnection, request: Any, progress: Progress | None = None, client: Client | None = None
) -> dict[str, Any]:
    """Return the raw result of a request other than a call; raises as :func:`call_tool` does."""
    ordered = None if progress is None else OrderedProgress(progress)

    async def send() -> Any:
        return await live.client.session.send_request(request, types.EmptyResult, progress_callback=ordered)

    raw, _ = await _send_request(live, InFlight(client=client), send)
    if ordered is not None:
        await ordered.wait_until_reported()
    return raw


def _is_too_large(error: MCPError) -> bool:
    marked = http_failure(error)
    if marked is not None:
        return marked[0] == TOO_LARGE
    return error.code == types.CONNECTION_CLOSED and error.message.startswith(EVENT_TOO_LARGE)


def _connection_end(error: MCPError, in_flight: InFlight) -> ConnectionEndedError | None:
    """Return the end of the connection that an error stands for, or None."""
    # The SDK's own code for an end is one that many servers use too.
    if error.code == types.CONNECTION_CLOSED and (not in_flight.refused or error.message.startswith(STREAM_ENDED)):
        return ConnectionEndedError(one_line(error.message), in_flight, dead=not in_flight.sent)
    match http_failure(error):
        case (kind, _) if kind == SESSION:
            in_flight.unread = True
            return ConnectionEndedError(error.message, in_flight, dead=True)
        case (kind, _) if kind == BROKEN:
            return ConnectionEndedError(error.message, in_flight)
        case _:
            return None


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return one_line(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}", limit=300)
