"""Messages of the protocol as they stand on the wire, and lines that are none and still answer a request.

Imports the SDK: import late.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from pegboard.sources.mcp.wire.request_outcomes import NO_MESSAGE, TOO_DEEP
from pegboard.support import odd_json

Message = dict[str, Any]

UNPARSED: Final = "Failed to parse JSON response: "
"""How the SDK begins its error for an answer that it cannot read."""
UNPARSED_EVENT: Final = "Failed to parse SSE message: "
"""How it begins that of an event."""
EVENT_TOO_LARGE: Final = "SSE stream failed: Server-sent event exceeded"
"""How it begins that of an event over the limit."""
_TOO_DEEP_FOR_SDK: Final = "recursion limit exceeded"
"""What its reader says of JSON that is nested too deeply."""
STREAM_ENDED: Final = "SSE stream ended"
"""How it begins that of a stream that ended without an answer."""
_HEAD: Final = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,64})")\s*,')


def parse_by_model(data: bytes | str) -> JSONRPCMessage:
    """Return what the SDK makes of a message; raises ``ValueError``, ``TooDeepError`` where that is why."""
    try:
        return jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            raise
    return jsonrpc_message_adapter.validate_python(odd_json.parse_odd_json(data), by_name=False)


def parse_message(data: bytes) -> Message | None:
    """Return a message that is an object of JSON, or None."""
    message: Message
    try:
        message = from_json(data)
    except ValueError:
        try:
            message = odd_json.parse_odd_json(data)
        except ValueError:
            return None
    return message if type(message) is dict else None


def is_plain_answer(message: Message) -> bool:
    """Return whether a message is an answer exactly as the protocol has it."""
    if len(message) != 3 or message.get("jsonrpc") != "2.0" or "id" not in message:
        return False
    error: object = message.get("error")
    if type(error) is dict:
        error = cast("Message", error)
        return type(error.get("code")) is int and type(error.get("message")) is str
    return type(message.get("result")) is dict


def as_answer(message: JSONRPCMessage) -> Message | None:
    """Return what the SDK made of an answer, or None where it is none."""
    match message:
        case JSONRPCResponse():
            return {"id": message.id, "result": message.result}
        case JSONRPCError():
            return {"id": message.id, "error": message.error.model_dump()}
        case _:
            return None


def requests_answered(line: bytes) -> Iterator[int | str]:
    """Yield the requests that a line would answer if it were a message.

    JSON with lone surrogates, numbers that are none, members that are missing or a batch still says
    which; of what is no JSON at all only the beginning is looked at.
    """
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        yield from requests_answered_by(line)
        return
    for entry in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(entry, dict):
            entry = cast("dict[str, Any]", entry)
            number = entry.get("id")
            answers = "jsonrpc" in entry or "result" in entry
            if answers and "method" not in entry and isinstance(number, int | str):
                yield number


def unreadable_answer_text(message: str) -> str:
    """Return as a clause what the SDK's error for an answer that it cannot read means."""
    return TOO_DEEP if _TOO_DEEP_FOR_SDK in message else NO_MESSAGE


def requests_answered_by(start: bytes | bytearray) -> Iterator[int | str]:
    """Yield the request that a line answers of which only the start is there, where that says so."""
    found = _HEAD.match(start)
    if found is not None and b'"method"' not in start[:200]:
        yield int(found[1]) if found[1] else found[2].decode(errors="replace")


def unread_because(error: ValueError) -> str:
    """Return as a clause why an answer cannot be read."""
    return TOO_DEEP if isinstance(error, odd_json.TooDeepError) else NO_MESSAGE


def unparsed_answer(number: int | str, error: ValueError) -> JSONRPCError:
    """Return what the session reads in place of an answer that is no message."""
    deep = f": {_TOO_DEEP_FOR_SDK}" if isinstance(error, odd_json.TooDeepError) else ""
    text = f"{UNPARSED}it is not a message of the protocol{deep}"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=text))


def oversized_answer(number: int | str, limit: int) -> JSONRPCError:
    """Return what the session reads in place of an answer over the limit."""
    text = f"{EVENT_TOO_LARGE} the {limit} byte limit."
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=CONNECTION_CLOSED, message=text))
