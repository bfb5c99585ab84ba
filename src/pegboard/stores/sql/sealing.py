"""The sealing of the secrets of a store: AES-GCM with 256 bits (G11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from pegboard.ports.store_copies import SealedState

KeyPlace = Literal["variable", "second", "keyring", "file", "memory"]
"""Where a key is kept; it is stored beside what was sealed with it. The second variable's key only opens."""
_NONCE: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SealingKey:
    """A key of 32 bytes, and where it is kept."""

    place: KeyPlace
    value: bytes = field(repr=False)


class SealedRow(NamedTuple):
    """A secret as it is stored: the name that it is sealed under, and where the key is."""

    name: str
    sealed: bytes
    place: str


def sealed_name(kind: str, key: str) -> str:
    """Return the name that a secret of a kind is sealed under."""
    return f"{kind}\0{key}"


class Cipher(Protocol):
    """Seals texts, each under its name, which must be the same when it is opened."""

    @property
    def place(self) -> KeyPlace:
        """Return where the key is that seals."""
        ...

    def seal(self, text: str, name: str) -> bytes:
        """Return the text, sealed."""
        ...

    def open(self, sealed: bytes, name: str) -> str | None:
        """Return the text, or None where it was sealed with another key or under another name."""
        ...


class NoCipher:
    """Leaves texts as they are: no other process reads the memory of this one."""

    @property
    def place(self) -> KeyPlace:
        """Return that there is no key."""
        return "memory"

    def seal(self, text: str, name: str) -> bytes:  # noqa: ARG002 - as that of a cipher
        """Return the text as bytes."""
        return _bytes(text)

    def open(self, sealed: bytes, name: str) -> str:  # noqa: ARG002 - as that of a cipher
        """Return the text."""
        return sealed.decode("utf-8", "surrogatepass")


class Sealing:
    """Seals with the first of some keys, and opens what any of them has sealed."""

    def __init__(self, key: SealingKey, *others: SealingKey) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.place: Final = key.place
        self._ciphers: Final = [(one, AESGCM(one.value)) for one in (key, *others)]

    def seal(self, text: str, name: str) -> bytes:
        """Return the text, sealed."""
        from secrets import token_bytes

        nonce = token_bytes(_NONCE)
        return nonce + self._ciphers[0][1].encrypt(nonce, _bytes(text), _bytes(name))

    def open(self, sealed: bytes, name: str) -> str | None:
        """Return the text, or None where none of the keys opens it under this name."""
        found = self.open_sealed(sealed, name)
        return None if found is None else found[1]

    def open_sealed(self, sealed: bytes, name: str) -> tuple[SealingKey, str] | None:
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
        """Return how many of some secrets each key opens."""
        found = [self.open_sealed(row.sealed, row.name) for row in rows]
        opened: dict[str, int] = dict.fromkeys((key.place for key, _ in self._ciphers), 0)
        for one in found:
            if one is not None:
                opened[one[0].place] += 1
        return SealedState(place=self.place, there=len(found), unopened=found.count(None), opened=opened)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
