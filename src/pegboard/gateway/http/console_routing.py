"""Pages whose state is in one process, on several: the requests of a browser stay with the replica that it came to.

A cookie names that replica, and any other one sends the request on to it. It is no secret and opens nothing: who is
signed in, the pages themselves say.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.gateway.http.auth import FORWARDED, Authenticator
from pegboard.gateway.http.replica_routing import ForwardedRequests

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from pegboard.gateway.http.mounts import GatewayApp
    from pegboard.gateway.replicas.peers import ReplicaPeers

_REPLICA: Final = re.compile("[a-z0-9]{1,16}")


class ConsoleRouting:
    """An ASGI app that sends on the visits of other replicas to pages below some paths, and hands on all else."""

    def __init__(
        self, app: GatewayApp, prefixes: Sequence[str], peers: ReplicaPeers, authenticator: Authenticator
    ) -> None:
        self._app = app
        self._prefixes = tuple(prefixes)
        self._peers = peers
        self._elsewhere = ForwardedRequests(self._serve_here, peers, authenticator)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] != "http" or not self._is_console_path(scope["path"]) or FORWARDED in scope:
            await self._app(scope, receive, send)
            return
        named = _request(scope).cookies.get(_cookie_name(scope), "")
        if named == self._peers.own:
            await self._app(scope, receive, send)
        elif _REPLICA.fullmatch(named):
            await self._elsewhere.serve(named, scope, receive, send)
        else:
            await self._serve_here(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await asyncio.gather(self._app.close(grace=grace), self._elsewhere.close(grace=grace))

    def _is_console_path(self, path: str) -> bool:
        if not path.startswith(self._prefixes):
            return False
        return any(path == prefix or path.startswith(f"{prefix}/") for prefix in self._prefixes)

    async def _serve_here(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request here; from now on this replica has the visit, where there are others."""
        named = bool(self._peers.heartbeat.others)
        await self._app(scope, receive, _send_with_cookie(self._peers.own, scope, send) if named else send)


def _cookie_name(scope: Scope) -> str:
    """Return the name of the cookie: browsers share cookies between the ports of a host."""
    return f"pegboard_replica_{_request(scope).url.port or 80}"


def _request(scope: Scope) -> Request:
    from starlette.requests import Request  # no start needs it

    return Request(scope)


def _send_with_cookie(replica: str, scope: Scope, send: Send) -> Send:
    # A browser comes back from another site with it, too: from the issuer of a login.
    cookie = f"{_cookie_name(scope)}={replica}; Path=/; HttpOnly; SameSite=Lax"

    async def send_with_cookie(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"set-cookie", cookie.encode())]}
        await send(message)

    return send_with_cookie
