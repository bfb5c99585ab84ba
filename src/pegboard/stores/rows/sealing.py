"""The sealing of the secrets of a store: AES-GCM with 256 bits (G11)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Place = Literal["variable", "keyring", "file"]
"""Where a key is kept; it is stored beside what was sealed with it."""
_NONCE: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of 32 bytes, and where it is kept."""

    place: Place
    value: bytes = field(repr=False)


class SealedRow(NamedTuple):
    """A secret as it is stored: the name that it is sealed under, and where the key is, empty where that is unknown."""

    name: str
    sealed: bytes
    place: str


def sealed_name(kind: str, key: str) -> str:
    """Return the name that a secret of a kind is sealed under."""
    return f"{kind}\0{key}"


class Sealing:
    """Seals texts with a key, each under its name, which must be the same when it is opened.

    ``others`` open what they have sealed, and seal nothing any more.
    """

    def __init__(self, key: Key, *others: Key) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.place: Final = key.place
        self._ciphers: Final = [AESGCM(one.value) for one in (key, *others)]

    def seal(self, text: str, name: str) -> bytes:
        """Return the text, sealed."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._ciphers[0].encrypt(nonce, _bytes(text), _bytes(name))

    def open(self, sealed: bytes, name: str) -> str | None:
        """Return the text, or None where it was sealed with another key or under another name."""
        from cryptography.exceptions import InvalidTag

        for cipher in self._ciphers:
            try:
                opened = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _bytes(name))
            except (InvalidTag, ValueError):
                continue
            return opened.decode("utf-8", "surrogatepass")
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
