"""A plain proxy in front of several gateways: each request goes to the next one, whatever it is about."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import uvicorn

from .clients import until

HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding"}


class RoundRobin:
    """The proxy; ``bases`` are the gateways, ``served`` says for each request which one of them had it, and how."""

    def __init__(self, bases: Sequence[str]) -> None:
        self.bases = list(bases)
        self.served: list[tuple[str, str]] = []
        self._client = httpx2.AsyncClient(timeout=60, trust_env=False, limits=httpx2.Limits(max_connections=None))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        base = self.bases[len(self.served) % len(self.bases)]
        self.served.append((base, scope["method"]))
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        work = asyncio.create_task(self._pass_on(base, scope, body, send))
        gone = asyncio.create_task(left(receive))
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (work, gone):
            task.cancel()
        await asyncio.wait({work, gone})

    async def _pass_on(self, base: str, scope: Any, body: bytes, send: Any) -> None:
        headers = [pair for pair in scope["headers"] if pair[0] not in HOP_BY_HOP]
        query = scope["query_string"].decode()
        url = f"{base}{scope['path']}{'?' if query else ''}{query}"
        request = httpx2.Request(scope["method"], url, headers=headers, content=body or None)
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.TransportError:
            await send({"type": "http.response.start", "status": 502, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            back = [pair for pair in response.headers.raw if pair[0].lower() not in HOP_BY_HOP]
            await send({"type": "http.response.start", "status": response.status_code, "headers": back})
            with contextlib.suppress(httpx2.TransportError):
                async for part in response.aiter_raw():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()


async def left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def round_robin(*bases: str) -> AsyncIterator[tuple[str, RoundRobin]]:
    """Serve the proxy; yields where, and the proxy itself."""
    proxy = RoundRobin(bases)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(proxy, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(server.serve(sockets=[listening]))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(proxy.aclose)
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", proxy
        finally:
            server.should_exit = True
            await task
