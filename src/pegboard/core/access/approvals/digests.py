"""Keyed digests of what an approval is bound to (A2)."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol

from pegboard.core.access.approvals.approval import Binding
from pegboard.core.model.tools import JsonObject, Tool

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def canonical(value: Any) -> str:
    """Return a JSON value as the text that equal values share.

    Raises ``ValueError``, ``TypeError`` or ``RecursionError`` for what is not JSON.

    >>> canonical({"b": [1, True], "a": 2})
    '{"a":2,"b":[1,true]}'
    """
    return _ENCODER.encode(value)


def require_json(value: Any) -> None:
    """Raise ``ValueError`` for what a server would not be sent as it is: other numbers, halves of characters.

    >>> require_json({"a": float("nan")})
    Traceback (most recent call last):
        ...
    ValueError: Out of range float values are not JSON compliant
    """
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def digest(key: bytes, text: str) -> str:
    """Return the keyed digest of a text, 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), key=key, digest_size=16).hexdigest()


def definition_of(tool: Tool) -> dict[str, Any]:
    """Return what a tool is to those who approve a call of it, as JSON (A4)."""
    demanded = tool.confirmation
    return {
        "name": tool.wire,
        "description": tool.description,
        "input": tool.input_schema,
        "annotations": tool.annotations,
        "confirmation": [demanded.kind, demanded.schema, demanded.hook] if demanded is not None else None,
    }


def definition_digest(key: bytes, tool: Tool, later: str = "") -> str:
    """Return the digest of what a tool is to those who approve a call of it.

    ``later`` is the digest of its pin where that is not the one first seen: whatever of the definition was accepted,
    what was approved before is void (A6).
    """
    definition = definition_of(tool)
    return digest(key, canonical({**definition, "pin": later} if later else definition))


class SessionOwner(Protocol):
    """Whose call it is: the key of a session, or what an approval is bound to."""

    @property
    def principal(self) -> str:
        """Return whose session it is."""
        ...

    @property
    def agent(self) -> str:
        """Return the agent's name."""
        ...

    @property
    def session(self) -> str:
        """Return the id of the session."""
        ...


def binding_of(
    key: bytes,
    session: SessionOwner,
    tool: Tool,
    arguments: str,
    in_force: JsonObject,
    variant: str,
    fingerprint: str,
    *,
    later: str = "",
) -> Binding:
    """Return what an approval of a call is bound to.

    ``arguments`` is the digest of the arguments, nothing for those who ask about every call; ``variant`` is the key of
    its plugin's settings, ``fingerprint`` how its server is started, ``later`` the digest of the tool's pin where that
    is not the one first seen (A4).
    """
    return Binding(
        principal=session.principal,
        agent=session.agent,
        session=session.session,
        tool=tool.id,
        definition=definition_digest(key, tool, later),
        arguments=arguments,
        rules=digest(key, canonical([in_force, variant, fingerprint])),
    )
