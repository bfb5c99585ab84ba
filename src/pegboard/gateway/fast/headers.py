"""The headers of a plain request, judged before its body is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from pegboard.gateway.protocol.board_port import Caller

MOST_BYTES: Final = 1024 * 1024
"""How large a plain request may be, in bytes."""
_AT_MOST_ONCE: Final = frozenset(
    {
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"accept",
        b"mcp-protocol-version",
        b"mcp-method",
        b"mcp-name",
        b"mcp-session-id",
    }
)
Headers = dict[bytes, bytes]
Identify = Callable[["Scope", Headers], "Caller | None"]
"""Return who calls an agent, or None where a request is for another path or is to be refused (G2)."""


def headers_of(scope: Scope) -> Headers | None:
    """Return the headers that matter, or None where one is given twice or belongs to an argument."""
    headers: Headers = {}
    for name, value in scope["headers"]:
        if name in _AT_MOST_ONCE:
            if name in headers:
                return None
            headers[name] = value
        elif name.startswith(b"mcp-param-") or name == b"content-encoding":
            return None
    return headers


def is_plain_json_post(headers: Headers) -> bool:
    """Return whether a request is a small one of JSON, whose client accepts JSON and events."""
    length, accept = headers.get(b"content-length", b""), headers.get(b"accept", b"")
    if not length.isdigit() or len(length) > 7 or int(length) > MOST_BYTES:
        return False
    if headers.get(b"content-type", b"").lower() not in (b"application/json", b"application/json; charset=utf-8"):
        return False
    return b"application/json" in accept and b"text/event-stream" in accept


def replay_body(first: Any, receive: Receive) -> Receive:
    """Return what receives a message that was received already, then the rest."""
    waiting = [first]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay
