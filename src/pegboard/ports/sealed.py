"""Secrets that outlive the process, sealed where they lie, and who may change one of them now (G11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from pegboard.ports.requests import AuditRecord

SealedKind = Literal["grant", "identity", "login", "secret"]
"""What a secret is: the tokens of a login, what a client is known as to an issuer, a login that is not completed, a
value that a configuration names (G13)."""


class SealedText(NamedTuple):
    """A secret as it is stored.

    ``key`` is its name, ``text`` None where it was sealed with another key than the present one. ``version`` grows with
    each change. After ``expires_at``, in seconds since the epoch, it is removed; None is never.
    """

    key: str
    text: str | None
    version: int
    expires_at: float | None = None


class SealedStore(Protocol):
    """Secrets by kind and key; writers compare and swap."""

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, None where there is none, or it has expired."""
        ...

    async def all_sealed(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired, by key."""
        ...

    async def seal(
        self,
        kind: SealedKind,
        key: str,
        text: str | None,
        *,
        expected: int | None,
        expires_at: float | None = None,
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store a secret with what is recorded of it, if the stored version is still ``expected``.

        Args:
            kind: What it is.
            key: Its name.
            text: The secret; None removes it.
            expected: The version that was read; 0 where there was none, None where any may be replaced.
            expires_at: When it is removed, in seconds since the epoch; None is never.
            audit: Records of this change, stored in the same transaction or not at all.

        Returns:
            The new version (0 after a removal), or None if another writer was first: then nothing is stored.

        Raises:
            StoreError: It cannot be written, or there is no key to seal it with.
        """
        ...

    async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take the right to do something alone, over all processes; return whether the holder has it now.

        It ends by itself after some seconds; a holder that has it already keeps it.
        """
        ...

    async def end_lease(self, name: str, holder: str) -> None:
        """Give a right back, if it is still this holder's."""
        ...
