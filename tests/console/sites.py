"""Sites of a test's own, each an origin of its own, in the process of the test."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from gateway.clients import until


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def site(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an app on a free port of the loopback; yields its origin."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _Uvicorn(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await until(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()
