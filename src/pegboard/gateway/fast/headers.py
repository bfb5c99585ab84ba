"""What the headers of a plain request say, before anything else is read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pegboard.errors import PegboardError
from pegboard.gateway.http.auth import Authenticator, OriginCheck, Refusal

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from pegboard.gateway.protocol.board_port import Caller

LONGEST: Final = 1024 * 1024
"""How large a plain request may be, in bytes."""
_ONCE: Final = frozenset(
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


def headers_of(scope: Scope) -> Headers | None:
    """Return the headers that matter, or None where one is given twice or belongs to an argument."""
    found: Headers = {}
    for name, value in scope["headers"]:
        if name in _ONCE:
            if name in found:
                return None
            found[name] = value
        elif name.startswith(b"mcp-param-") or name == b"content-encoding":
            return None
    return found


def is_plain_json_post(headers: Headers) -> bool:
    """Return whether a request is a small one of JSON, and takes JSON and events."""
    length, accept = headers.get(b"content-length", b""), headers.get(b"accept", b"")
    if not length.isdigit() or len(length) > 7 or int(length) > LONGEST:
        return False
    if headers.get(b"content-type", b"").lower() not in (b"application/json", b"application/json; charset=utf-8"):
        return False
    return b"application/json" in accept and b"text/event-stream" in accept


def caller_of(scope: Scope, headers: Headers, door: Authenticator, guard: OriginCheck) -> Caller | None:
    """Return who calls an agent, or None where that is for another path or a refusal (G2)."""
    path: str = scope["path"]
    if path != "/mcp" and not path.startswith("/mcp/"):
        return None
    origin, authorization = headers.get(b"origin"), headers.get(b"authorization")
    transport = headers.get(b"mcp-session-id")
    if not guard.lets_in(headers.get(b"host", b"").decode("latin-1"), _text(origin)):
        return None
    query: Any = {}
    if scope["query_string"]:
        from starlette.datastructures import QueryParams

        query = QueryParams(scope["query_string"])
    try:
        return door.caller(_text(authorization), path[5:] or None, query, _text(transport))
    except (Refusal, PegboardError):
        return None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def replay_body(first: Any, receive: Receive) -> Receive:
    """Return what receives a message that was received already, then the rest."""
    waiting = [first]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay
