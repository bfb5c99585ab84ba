"""Lines that are no message of the protocol and still answer a request: who waits for them is told at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

UNPARSED: Final = "Failed to parse JSON response: "
"""How the SDK begins what it says of an answer that it cannot read."""
_HEAD: Final = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,64})")\s*,')


def answered(line: bytes) -> Iterator[int | str]:
    """Yield the requests that a line would answer if it were a message.

    JSON with lone surrogates, numbers that are none, members that are missing or a batch still says
    which; of what is no JSON at all only the beginning is looked at.
    """
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        found = _HEAD.match(line)
        if found is not None and b'"method"' not in line[:200]:
            yield int(found[1]) if found[1] else found[2].decode(errors="replace")
        return
    for entry in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(entry, dict):
            entry = cast("dict[str, Any]", entry)
            number = entry.get("id")
            said = "jsonrpc" in entry or "result" in entry
            if said and "method" not in entry and isinstance(number, int | str):
                yield number


def refusal(number: int | str) -> JSONRPCError:
    """Return what the session is told in place of an answer that cannot be read."""
    said = f"{UNPARSED}it is not a message of the protocol"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=said))
