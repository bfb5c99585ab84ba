"""JSON-RPC messages as bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from pydantic_core import from_json, to_json

Message = dict[str, Any]


def parsed(data: bytes | bytearray) -> Message | None:
    """Return a message that is an object of JSON, or None."""
    try:
        message: object = from_json(data)
    except ValueError:
        return None
    return cast("Message", message) if type(message) is dict else None


def dumped(message: Message) -> bytes:
    """Return a message as JSON of one line; text that is no Unicode is written with escapes."""
    with suppress(ValueError, UnicodeError):
        return to_json(message, inf_nan_mode="null")
    import json

    return json.dumps(message, separators=(",", ":"), default=str).encode()
