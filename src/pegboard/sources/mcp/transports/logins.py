"""Whether a remote server demands a login: asked with one request that begins nothing."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import httpx2

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.certificates import tls

PATIENCE: Final = 3.0
"""How long a server may take to answer, in seconds."""
_PING: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_ACCEPT: Final = {"accept": "application/json, text/event-stream"}
_UNAUTHORIZED: Final = 401


async def demands_login(spec: ServerSpec) -> bool | None:
    """Return whether a remote server answers only to a client that has logged in, or None where it did not answer.

    It says so with 401 and the place of its protected-resource metadata (RFC 9728), or with 401 to somebody who sends
    no header of their own: no key can be wrong there.
    """
    method, body = ("GET", None) if spec.transport == "sse" else ("POST", _PING)
    try:
        async with (
            asyncio.timeout(PATIENCE),
            httpx2.AsyncClient(headers={**_ACCEPT, **spec.headers}, verify=tls()) as client,
            client.stream(method, spec.url or "", json=body) as response,
        ):
            challenge = response.headers.get("www-authenticate", "")
            return response.status_code == _UNAUTHORIZED and ("resource_metadata" in challenge or not spec.headers)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError):
        return None
