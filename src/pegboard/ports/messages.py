"""Sending a message to an address outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Messenger(Protocol):
    """Sends messages to addresses."""

    async def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        """Post a message to an address, and to no other: a redirect is not followed.

        Args:
            url: the address.
            body: the message.
            headers: those that say what it is.

        Returns:
            Why it did not arrive, without the address; nothing where it did.
        """
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...
