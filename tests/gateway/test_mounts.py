"""An app beside the protocol, under paths of its own: the console."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from pegboard.assembly import Pegboard
from pegboard.gateway import Mount, serving
from pegboard.gateway.http import run
from pegboard.gateway.http.mounts import BODY_LIMIT

from .clients import MODERN, connected, modern_request, until


class Site:
    """A small app with pages, a stream without an end, and an answer that waits."""

    def __init__(self) -> None:
        self.built = self.open = 0
        self.waiting, self.released, self.closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.open_at_close = -1
        self._app = Starlette(
            routes=[
                Route("/console", self._page),
                Route("/console/events", self._events),
                Route("/console/slow", self._slow),
                Route("/api/{name:path}", self._page, methods=["GET", "POST"]),
            ]
        )

    def build(self) -> "Site":
        self.built += 1
        return self

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        self.open_at_close = self.open
        self.closed.set()

    async def _page(self, request: Request) -> Response:
        return PlainTextResponse(f"{request.method} {request.url.path} {len(await request.body())}")

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[str]:
        self.open += 1
        try:
            yield "data: first\n\n"
            await asyncio.Event().wait()
        finally:
            self.open -= 1

    async def _slow(self, request: Request) -> Response:
        self.waiting.set()
        await self.released.wait()
        return PlainTextResponse("done")


@asynccontextmanager
async def mounted(config: Path, site: Site, *, host: str = "127.0.0.1") -> AsyncIterator[str]:
    mount = Mount(prefixes=("/console", "/api"), build=site.build)
    async with Pegboard.open(config) as board, serving(board, host=host, port=0, mounts=[mount]) as url:
        yield url.removesuffix("/mcp")


async def test_a_mounted_app_is_built_by_the_first_request_to_it(config: Path) -> None:
    """G1: also where that is the very first request of all; the protocol is served as without it."""
    site = Site()
    async with mounted(config, site) as base, httpx2.AsyncClient(base_url=base) as http:
        assert (await http.get("/console")).text == "GET /console 0"
        assert (await http.get("/console/?x=1", follow_redirects=False)).status_code == 307  # Starlette's own
        assert (await http.post("/api/a/b", content=b"abc")).text == "POST /api/a/b 3"
        async with connected(f"{base}/mcp", MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"
        assert site.built == 1
    assert site.closed.is_set()


async def test_a_mounted_app_that_nobody_opens_is_never_built(config: Path) -> None:
    """G1: paths that begin alike are not its own."""
    site = Site()
    async with mounted(config, site) as base, httpx2.AsyncClient(base_url=base) as http:
        body, headers = modern_request("tools/list")
        assert (await http.post("/mcp", json=body, headers=headers)).status_code == 200
        for path in ("/healthz", "/consoles", "/apis", "/mcp/console", "/x/console", "/"):
            await http.get(path)
        assert site.built == 0


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        (None, None, 200),
        (None, "http://{own}", 200),
        ("localhost:1", "http://localhost:1", 200),
        ("[::1]:5", "http://[::1]:5", 200),
        ("example.org", None, 421),
        (None, "https://example.org", 403),
        (None, "null", 403),
        (None, "http://", 403),
    ],
)
async def test_hosts_and_origins_are_checked_before_a_mounted_app(
    config: Path, host: str | None, origin: str | None, status: int
) -> None:
    """G2: it is asked nothing that the protocol would not be."""
    site = Site()
    async with mounted(config, site) as base, httpx2.AsyncClient(base_url=base) as http:
        given = {"host": host, "origin": origin and origin.format(own=base.removeprefix("http://"))}
        for method, path in (("GET", "/console"), ("POST", "/api/x")):
            answer = await http.request(method, path, headers={k: v for k, v in given.items() if v is not None})
            assert answer.status_code == status
        assert site.built == (status == 200)


async def pieces(sizes: Sequence[int]) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


async def test_a_request_to_a_mounted_app_has_a_largest_size(config: Path) -> None:
    """G1: whether it says its size or not; the app is not even asked."""
    site = Site()
    async with mounted(config, site) as base, httpx2.AsyncClient(base_url=base, timeout=60) as http:
        assert (await http.post("/api/x", content=b"x" * (BODY_LIMIT + 1))).status_code == 413
        assert (await http.post("/api/x", content=pieces([BODY_LIMIT, 1]))).status_code == 413
        assert site.built == 0
        assert (await http.post("/api/x", content=b"x" * BODY_LIMIT)).text == f"POST /api/x {BODY_LIMIT}"
        assert (await http.post("/api/x", content=pieces([5, 0, 7]))).text == "POST /api/x 12"


async def test_a_client_that_goes_away_ends_its_stream(config: Path) -> None:
    """G1: and no other."""
    site = Site()
    async with mounted(config, site) as base, AsyncExitStack() as staying, AsyncExitStack() as going:
        kept = []  # a text that no one refers to any longer closes its stream
        for stack in (staying, going):
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=base))
            stream = await stack.enter_async_context(http.stream("GET", "/console/events"))
            kept.append(stream.aiter_text())
            assert await anext(kept[-1]) == "data: first\n\n"
        assert site.open == 2
        await going.aclose()

        async def one_is_left() -> bool:
            return site.open == 1

        await until(one_is_left)


async def test_every_open_stream_ends_when_the_gateway_is_stopped(config: Path) -> None:
    """G1: each to its proper end, before the app is closed."""
    site, read = Site(), asyncio.Semaphore(0)

    async def follow(http: httpx2.AsyncClient) -> str:
        text = ""
        async with http.stream("GET", "/console/events") as stream:
            async for piece in stream.aiter_text():
                text += piece
                read.release()
        return text

    async with AsyncExitStack() as clients:
        async with mounted(config, site) as base:
            limits = httpx2.Limits(max_connections=None)
            http = await clients.enter_async_context(httpx2.AsyncClient(base_url=base, timeout=60, limits=limits))
            followers = [asyncio.create_task(follow(http)) for _ in range(20)]
            for _ in followers:
                await read.acquire()
            assert site.open == 20
        assert await asyncio.gather(*followers) == ["data: first\n\n"] * 20
    assert (site.open, site.open_at_close) == (0, 0)


async def test_a_request_in_flight_is_answered_while_the_gateway_stops(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: where it ends within the grace."""
    monkeypatch.setattr(run, "GRACE", 60)
    site = Site()
    async with httpx2.AsyncClient(timeout=60) as http, AsyncExitStack() as stack:
        base = await stack.enter_async_context(mounted(config, site))
        asked = asyncio.create_task(http.get(f"{base}/console/slow"))
        await site.waiting.wait()
        stopped = asyncio.create_task(stack.aclose())

        async def stopping() -> bool:
            try:
                return (await http.get(f"{base}/console")).status_code == 503
            except httpx2.TransportError:
                return True

        await until(stopping)
        site.released.set()
        assert (await asked).text == "done"
        await stopped
    assert site.closed.is_set()


async def test_a_request_that_outlasts_the_grace_is_refused(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: with a status that says why, and nothing hangs."""
    monkeypatch.setattr(run, "GRACE", 0)
    site = Site()
    async with httpx2.AsyncClient(timeout=60) as http:
        async with mounted(config, site) as base:
            asked = asyncio.create_task(http.get(f"{base}/console/slow"))
            await site.waiting.wait()
        answer = await asked
    assert (answer.status_code, "stopping" in answer.text) == (503, True)


async def test_an_app_that_cannot_be_built_takes_nothing_with_it(config: Path) -> None:
    """G1: its paths fail without a word of why to the client; the protocol goes on."""

    def fails() -> Site:
        raise ImportError("no module named secret")

    mount = Mount(prefixes=("/console",), build=fails)
    async with Pegboard.open(config) as board, serving(board, port=0, mounts=[mount]) as url:
        async with httpx2.AsyncClient() as http:
            answer = await http.get(url.removesuffix("/mcp") + "/console")
            assert (answer.status_code, "secret" in answer.text) == (500, False)
        async with connected(url, MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"
