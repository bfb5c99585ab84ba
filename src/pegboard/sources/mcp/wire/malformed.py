"""Lines that are no message of the protocol and still answer a request, which then fails at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, ErrorData, JSONRPCError

UNPARSED: Final = "Failed to parse JSON response: "
"""How the SDK begins its error for an answer that it cannot read."""
UNPARSED_EVENT: Final = "Failed to parse SSE message: "
"""How it begins that of an event."""
EVENT_TOO_LARGE: Final = "SSE stream failed: Server-sent event exceeded"
"""How it begins that of an event over the limit."""
STREAM_ENDED: Final = "SSE stream ended"
"""How it begins that of a stream that ended without an answer."""
_HEAD: Final = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,64})")\s*,')


def answered(line: bytes) -> Iterator[int | str]:
    """Yield the requests that a line would answer if it were a message.

    JSON with lone surrogates, numbers that are none, members that are missing or a batch still says
    which; of what is no JSON at all only the beginning is looked at.
    """
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        yield from begun(line)
        return
    for entry in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(entry, dict):
            entry = cast("dict[str, Any]", entry)
            number = entry.get("id")
            answers = "jsonrpc" in entry or "result" in entry
            if answers and "method" not in entry and isinstance(number, int | str):
                yield number


def begun(start: bytes | bytearray) -> Iterator[int | str]:
    """Yield the request that a line answers of which only the start is there, where that says so."""
    found = _HEAD.match(start)
    if found is not None and b'"method"' not in start[:200]:
        yield int(found[1]) if found[1] else found[2].decode(errors="replace")


def refusal(number: int | str) -> JSONRPCError:
    """Return what the session reads in place of an answer that is no message."""
    text = f"{UNPARSED}it is not a message of the protocol"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=text))


def oversized(number: int | str, limit: int) -> JSONRPCError:
    """Return what the session reads in place of an answer over the limit."""
    text = f"{EVENT_TOO_LARGE} the {limit} byte limit."
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=CONNECTION_CLOSED, message=text))
