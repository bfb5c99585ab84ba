"""JSON-RPC messages as bytes.

Before the SDK is imported, plain messages are read and written by the standard library: the first answers of a
start do without ``pydantic_core``. What the two could read or write differently is left to the latter.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from types import ModuleType
from typing import Any, Final, NoReturn, cast

from pegboard.support import odd_json

Message = dict[str, Any]

_DEEPEST: Final = 100
"""How many brackets a message may have to be read by the standard library, which would read deeper ones."""


def parse_message(data: bytes | bytearray) -> Message | None:
    """Return a message that is an object of JSON, or None."""
    message: Message
    try:
        if "pydantic_core" not in sys.modules and _is_plain(data):
            message = _load_json(data)
        else:
            message = _pydantic_core().from_json(data)
    except ValueError:
        return None
    return message if type(message) is dict else None


@cache
def _pydantic_core() -> ModuleType:
    """Return the module once it is imported whole, which another thread may be about."""
    import pydantic_core

    return pydantic_core


def _is_plain(data: bytes | bytearray) -> bool:
    """Return whether both readers read the same in it: no escaped half of a character, no depth."""
    return data.count(b"{") + data.count(b"[") <= _DEEPEST and b"\\ud" not in data.lower()


def _load_json(data: bytes | bytearray) -> Any:
    return json.loads(data.decode(), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def dump_message(message: Message) -> bytes:
    """Return a message as JSON of one line; text that is no Unicode is written with escapes."""
    try:
        if "pydantic_core" not in sys.modules and _writes_plainly(message):
            return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
        return _pydantic_core().to_json(message, inf_nan_mode="null")
    except (ValueError, UnicodeError):
        return odd_json.write(message)


def _writes_plainly(value: Any) -> bool:
    """Return whether both writers write the same: they differ in exponents, and in what JSON does not have."""
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return all(type(key) is str and _writes_plainly(inner) for key, inner in pairs)
    if isinstance(value, list):
        return all(map(_writes_plainly, cast("list[Any]", value)))
    if type(value) is float:
        return repr(value).strip("-0123456789") == "."
    return value is None or type(value) in (str, int, bool)
