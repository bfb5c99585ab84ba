"""The older SSE transport: one stream of events for all messages, a POST for each request.

The SDK's own ``sse_client`` takes events of at most 1 MiB, which no option changes: an image is soon
larger. Imports the SDK: import late.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.message import SessionMessage

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.wire.http_client import WatchedClient
from pegboard.sources.mcp.wire.messages import parse_by_model, requests_answered, unparsed_answer
from pegboard.sources.mcp.wire.open_connection import LONGEST_LINE, OpenConnection
from pegboard.sources.mcp.wire.redirects import RedirectError, within_origin

_TOO_LARGE = "Server-sent event exceeded"

ReceivedMessages = MemoryObjectSendStream[SessionMessage | Exception]


class SseTransport:
    """A server at a URL that speaks the older SSE transport; every call goes by the SDK."""

    fast_path = None

    def __init__(self, spec: ServerSpec, live: OpenConnection) -> None:
        self._spec = spec
        self._live = live
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> tuple[Any, Any]:
        url = self._spec.url or ""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(WatchedClient(self._spec, self._live, lasting=False))
            limit = self._live.message_limit
            source = await stack.enter_async_context(sse_within_origin(client, url, max_event_size=limit))
            source.response.raise_for_status()
            events = aiter(source)
            endpoint = await self._first_endpoint(events, str(source.response.url))
            group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(group.cancel_scope.cancel)
            send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            group.start_soon(self._receive_events, events, send)
            self._stack = stack.pop_all()
        return receive, _Posts(client, endpoint)

    async def _first_endpoint(self, events: Any, url: str) -> str:
        try:
            return await self._endpoint(events, url)
        except httpx2.SSEError as error:
            if str(error).startswith(_TOO_LARGE):
                self._live.close_oversized()
            raise

    @staticmethod
    async def _endpoint(events: Any, url: str) -> str:
        """Return where requests are posted to, which the server names first; raises ``ValueError``."""
        async for event in events:
            if event.event != "endpoint":
                continue
            endpoint = urljoin(url, event.data)
            try:
                within_origin(httpx2.URL(url), endpoint)
            except RedirectError:
                raise ValueError("it names an endpoint on another host") from None
            return endpoint
        raise ValueError("its stream of events names no endpoint")

    async def _receive_events(self, events: Any, received: ReceivedMessages) -> None:
        """Give the session what comes, until the stream ends."""
        async with received:
            try:
                async for event in events:
                    if event.event == "message" and event.data:
                        await self._take_message(event.data, received)
            except httpx2.SSEError:
                self._live.close_oversized()
            except (httpx2.TransportError, httpx2.StreamError):
                pass
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass

    async def _take_message(self, data: str, received: ReceivedMessages) -> None:
        try:
            message = SessionMessage(parse_by_model(data))
        except ValueError as error:
            line = data.encode(errors="replace")
            number = next(requests_answered(line), None)
            if number is None:
                self._live.add_invalid_line(data[:LONGEST_LINE])
                return
            message = SessionMessage(unparsed_answer(number, error))
        await received.send(message)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)


class _Posts:
    """The messages to the server, each a POST; one that fails ends the connection, as its client notes."""

    def __init__(self, client: WatchedClient, endpoint: str) -> None:
        self._client = client
        self._endpoint = endpoint

    async def send(self, item: SessionMessage, /) -> None:
        """Post a message."""
        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        await request_within_origin(self._client, "POST", self._endpoint, json=body)

    async def aclose(self) -> None:
        """Do nothing: the client is closed by its transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
