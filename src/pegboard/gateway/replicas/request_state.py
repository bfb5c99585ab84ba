"""What a client sends back to go on with a call that waits for it, so that any replica understands it (G14).

A ``requestState`` names the replica that has the call, whose call it is, until when it waits, and what it waits for. It
is no secret, and has the seal of the replicas: no one else can make or alter one.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from time import time
from typing import Any, Final, NamedTuple, cast

LONGEST: Final = 16 * 1024
"""How many characters a state may have."""
_PURPOSE: Final = b"pegboard: a call that waits for its client"
_SIZE: Final = 32


class RequestState(NamedTuple):
    """A call that waits for its client.

    ``owner`` is the replica that has it, ``call`` its random name there, ``whose`` a digest of the call and of who
    makes it. ``asked`` has for each open question under what its answer is kept in the store, nothing where it is
    asked by a server that runs at the owner.
    """

    owner: str
    call: str
    whose: str
    expires_at: float
    asked: Mapping[str, str]

    @property
    def hangs_on_owner(self) -> bool:
        """Return whether no one but its owner can go on with it."""
        return not all(self.asked.values())


class StateSeal:
    """The seal of one replica; without others it is one of this process alone."""

    def __init__(self, key: bytes = b"", own: str = "", now: Callable[[], float] = time) -> None:
        self._key = hmac.digest(key or secrets.token_bytes(32), _PURPOSE, sha256)
        self._now = now
        self.own: Final = own

    def seal(self, whose: str, seconds: float, asked: Mapping[str, str]) -> tuple[str, str]:
        """Return a new name for a call that waits here, and the state that says so for some seconds."""
        call = secrets.token_urlsafe(16)
        state = RequestState(self.own, call, whose, round(self._now() + seconds, 3), asked)
        text = json.dumps(state, separators=(",", ":")).encode()
        return call, base64.urlsafe_b64encode(self._mac(text) + text).decode().rstrip("=")

    def open(self, text: object) -> RequestState | None:
        """Return what a state says, or None where it is none of the replicas', or not any longer."""
        if not isinstance(text, str) or len(text) > LONGEST or not text.isascii():
            return None
        try:
            sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, inside = sealed[:_SIZE], sealed[_SIZE:]
        if not hmac.compare_digest(mac, self._mac(inside)):
            return None
        state = RequestState(*cast("tuple[Any, ...]", json.loads(inside)))  # the seal says who wrote it
        return state if state.expires_at > self._now() else None

    def mark(self, *parts: str) -> str:
        """Return a text that no one else can make of these."""
        return self._mac(json.dumps(parts).encode())[:16].hex()

    def _mac(self, text: bytes) -> bytes:
        return hmac.digest(self._key, text, sha256)
