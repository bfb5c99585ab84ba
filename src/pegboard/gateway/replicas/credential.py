"""What proves to a replica that another one has sent a request: made of the secret that both have from the store.

It holds for one request, once, and for half a minute by the clock of the store. So a client cannot pose as a replica,
and what is forwarded is never forwarded again.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

HEADER: Final = "pegboard-replica"
"""The header of a request of a client that was sent on, with the credential."""
ASKS: Final = "pegboard-replica-asks"
"""The header of a question that a replica has made itself, with its credential: no client's request can become one."""
VALID: Final = 30.0
"""For how long a credential is valid, in seconds."""
_SENT_ON: Final = b"pegboard: a request between replicas"
ASKING: Final = b"pegboard: a question between replicas"
_FORM: Final = re.compile(r"1 ([a-z0-9]{1,16}) ([a-z0-9]{1,16}) (\d{1,12}\.\d{3}) ([0-9a-f]{32}) ([0-9a-f]{64})")


class CredentialError(Exception):
    """A credential that proves nothing; its text says why."""


class RequestProof(NamedTuple):
    """Who has sent a request, and to whom."""

    asker: str
    owner: str


class Credentials:
    """The credentials of one replica: it issues them for its requests, and checks those of requests that it gets.

    Those of one ``purpose`` prove nothing for another.
    """

    def __init__(self, key: bytes, own: str, now: Callable[[], float], *, purpose: bytes = _SENT_ON) -> None:
        self._key = hmac.digest(key, purpose, sha256)
        self._own = own
        self._now = now
        self._used: dict[str, float] = {}  # until when each may not come again, the oldest first

    def issue(self, owner: str, method: str, target: bytes, body: bytes) -> str:
        """Return the credential for a request to its owner; ``target`` is its path with the query, as on the wire."""
        time, nonce = f"{self._now():.3f}", secrets.token_hex(16)
        mac = self._mac(RequestProof(self._own, owner), time, nonce, method, target, body)
        return f"1 {self._own} {owner} {time} {nonce} {mac}"

    def check(self, credential: str, method: str, target: bytes, body: bytes) -> RequestProof:
        """Return what the credential of a request proves; it does so once.

        Raises ``CredentialError``.
        """
        form = _FORM.fullmatch(credential)
        if form is None:
            raise CredentialError("it is none")
        asker, owner, time, nonce, mac = form.groups()
        proof = RequestProof(asker, owner)
        if not hmac.compare_digest(mac, self._mac(proof, time, nonce, method, target, body)):
            raise CredentialError("it is for another request, or was not made with the secret of the store")
        now = self._now()
        if abs(now - float(time)) > VALID:
            raise CredentialError("it is no longer valid")
        self._forget(now)
        if nonce in self._used:
            raise CredentialError("it was used before")
        self._used[nonce] = now + 2 * VALID
        return proof

    def _forget(self, now: float) -> None:
        while self._used and next(iter(self._used.values())) < now:
            del self._used[next(iter(self._used))]

    def _mac(self, proof: RequestProof, time: str, nonce: str, method: str, target: bytes, body: bytes) -> str:
        parts = (*proof, time, nonce, method, target.hex(), sha256(body).hexdigest())
        return hmac.digest(self._key, "\n".join(parts).encode(), sha256).hex()
