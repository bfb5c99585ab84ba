"""Keyed digests of what an approval is bound to (A2)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pegboard.core.model.tools import JsonObject, Tool

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def canonical(value: Any) -> str:
    """Return a JSON value as the text that equal values share.

    Raises ``ValueError``, ``TypeError`` or ``RecursionError`` for what is not JSON.

    >>> canonical({"b": [1, True], "a": 2})
    '{"a":2,"b":[1,true]}'
    """
    return _ENCODER.encode(value)


def digest(key: bytes, text: str) -> str:
    """Return the keyed digest of a text, 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), key=key, digest_size=16).hexdigest()


def definition_of(tool: Tool) -> Any:
    """Return what a tool is to those who approve a call of it, as JSON (A4)."""
    demanded = tool.confirmation
    return {
        "name": tool.wire,
        "description": tool.description,
        "input": tool.input_schema,
        "annotations": tool.annotations,
        "confirmation": [demanded.kind, demanded.schema, demanded.hook] if demanded is not None else None,
    }


def definition_digest(key: bytes, tool: Tool) -> str:
    """Return the digest of what a tool is to those who approve a call of it."""
    return digest(key, canonical(definition_of(tool)))


def rules_digest(key: bytes, in_force: JsonObject, variant: str, fingerprint: str) -> str:
    """Return the digest of what is in force for a tool: its rules, its plugin's settings, how its server is started."""
    return digest(key, canonical([in_force, variant, fingerprint]))
