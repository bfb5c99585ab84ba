"""Apps beside the protocol, under paths of their own: the console.

One is built by the first request to it. It gets what all of HTTP has here: Host and Origin are checked, a body is
bounded and whole before the app runs, and its streams of events end when the gateway is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pegboard.gateway.http.auth import HttpRefusal, OriginCheck
from pegboard.gateway.http.open_requests import OpenRequests, too_late, whole_body

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BODY_LIMIT: Final = 1024 * 1024
"""How large a request to a mounted app may be, in bytes."""


class GatewayApp(Protocol):
    """The app that serves the protocol, and the life of the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        ...

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        ...


class MountedApp(Protocol):
    """An app under paths of its own; it is served no lifespan."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; its path is whole."""
        ...

    async def close(self) -> None:
        """Let go of everything; no request is running any longer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """The paths of an app: each prefix itself and everything below it. ``build`` is called by the first request."""

    prefixes: tuple[str, ...]
    build: Callable[[], MountedApp]


class MountingApp:
    """An ASGI app that serves every mount, and hands every other request on to ``app``."""

    def __init__(self, app: GatewayApp, mounts: Sequence[Mount], *, host: str) -> None:
        self._app = app
        self._mounted = [_Mounted(mount, host) for mount in mounts]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "http":
            for mounted in self._mounted:
                if mounted.covers(scope["path"]):
                    await mounted.serve(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await asyncio.gather(self._app.close(grace=grace), *(each.close(grace=grace) for each in self._mounted))


class _Mounted:
    """A mount, its app once that is built, and the requests that are open."""

    def __init__(self, mount: Mount, host: str) -> None:
        self._mount = mount
        self._app: MountedApp | None = None
        self._requests = OpenRequests()
        self.serve = OriginCheck(self._serve, host=host)

    def covers(self, path: str) -> bool:
        return any(path == prefix or path.startswith(f"{prefix}/") for prefix in self._mount.prefixes)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._requests.closing:
                raise too_late()
            too_large = HttpRefusal(413, "A request here has at most 1 MiB.", Connection="close")
            body = await whole_body(scope, receive, limit=BODY_LIMIT, too_large=too_large)
        except HttpRefusal as refusal:
            await refusal(scope, receive, send)
            return
        if body is None:
            return
        if self._app is None:
            self._app = self._mount.build()
        await self._requests.serve(self._app, scope, body, receive, send)

    async def close(self, *, grace: float) -> None:
        await self._requests.close(grace=grace)
        if self._app is not None:
            await self._app.close()
