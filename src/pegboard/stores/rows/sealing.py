"""The sealing of the secrets of a store: AES-GCM with 256 bits (G11)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from pegboard.ports.store_copies import SealedState

Place = Literal["variable", "second", "keyring", "file"]
"""Where a key is kept; it is stored beside what was sealed with it. The second variable's key only opens."""
_NONCE: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of 32 bytes, and where it is kept."""

    place: Place
    value: bytes = field(repr=False)

    @property
    def mark(self) -> bytes:
        """Return what tells this key from others and says nothing else of it."""
        return blake2b(self.value, digest_size=16, person=b"pegboard key").digest()


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

    ``others`` open what they have sealed, and seal nothing any more. ``read_at`` is the mark that the store had when
    the keys were read: where it has another one, another key may seal.
    """

    def __init__(self, key: Key, *others: Key, read_at: bytes = b"") -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.key: Final = key
        self.place: Final = key.place
        self.read_at: Final = read_at
        self.places: Final = list(dict.fromkeys(one.place for one in (key, *others)))
        self._ciphers: Final = [(one, AESGCM(one.value)) for one in (key, *others)]

    @property
    def keys(self) -> list[Key]:
        """Return the keys, first the one that seals."""
        return [key for key, _ in self._ciphers]

    def seal(self, text: str, name: str) -> bytes:
        """Return the text, sealed."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._ciphers[0][1].encrypt(nonce, _bytes(text), _bytes(name))

    def open(self, sealed: bytes, name: str) -> str | None:
        """Return the text, or None where it was sealed with another key or under another name."""
        found = self.opened(sealed, name)
        return None if found is None else found[1]

    def opened(self, sealed: bytes, name: str) -> tuple[Key, str] | None:
        """Return the key that opens what is sealed, with the text, or None."""
        from cryptography.exceptions import InvalidTag

        for key, cipher in self._ciphers:
            try:
                opened = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _bytes(name))
            except (InvalidTag, ValueError):
                continue
            return key, opened.decode("utf-8", "surrogatepass")
        return None

    def state(self, rows: Iterable[SealedRow]) -> SealedState:
        """Return how what is sealed stands to these keys."""
        opened, there, unopened = dict.fromkeys(map(str, self.places), 0), 0, 0
        for row in rows:
            there += 1
            if (found := self.opened(row.sealed, row.name)) is None:
                unopened += 1
            else:
                opened[found[0].place] += 1
        return SealedState(place=self.place, there=there, unopened=unopened, opened=opened)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
