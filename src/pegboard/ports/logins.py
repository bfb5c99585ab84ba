"""Logins to remote servers: who needs one, and how a pending one is completed (G11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.logins import Login, LoginNeed, PendingLogin
from pegboard.core.model.specs import PluginSpec

LoginState = Literal["waiting", "completed", "failed"]
"""What became of a pending login; one that has expired has failed."""


class ServerLogins(Protocol):
    """The logins to the servers of a source."""

    async def needed(self, spec: PluginSpec, owner: LoginOwner) -> LoginNeed | None:
        """Return what a login of an owner is needed for, as far as a server has said; None where none is.

        Raises:
            StoreError: The logins cannot be read.
            ToolUnavailableError: The gateway logs in for itself, and cannot; says why.
        """
        ...

    async def holders(self, spec: PluginSpec) -> Sequence[LoginOwner] | None:
        """Return who has a login to a server that counts, the newest first; None where it wants none.

        Raises:
            StoreError: The logins cannot be read.
        """
        ...

    async def pending(self, login_id: str) -> PendingLogin | None:
        """Return a login that is still to be completed, begun by any process, or None.

        Args:
            login_id: Its id, or the ``state`` that the browser was sent back with.

        Raises:
            StoreError: The logins cannot be read.
        """
        ...

    async def begin(
        self, spec: PluginSpec, need: LoginNeed, *, redirect: str | None = None, device: bool = False
    ) -> PendingLogin:
        """Begin a login, or return the one that is pending already for the same owner and ``redirect``.

        Whichever of an owner's is completed first completes the others that this process began.

        Args:
            spec: The server.
            need: Whose login, and for what.
            redirect: Where the browser is sent back to; None is a loopback address of this process.
            device: Whether it may also be completed by a code that is typed elsewhere, where the issuer offers that.

        Returns:
            The pending login.

        Raises:
            ToolUnavailableError: The server, or who issues its logins, does not do what a login needs; says what.
        """
        ...

    async def complete(self, answer: Mapping[str, str], *, owner: LoginOwner | None = None) -> PendingLogin:
        """Complete a pending login with what the browser was sent back with; each counts once.

        Args:
            answer: The parameters of that address: ``state``, ``code`` or ``error``, ``iss``.
            owner: Whose it must be; None is anyone's who holds the address.

        Returns:
            The login, which stands now.

        Raises:
            UsageError: It is unknown, was used, has expired, or was refused; says which.
        """
        ...

    async def wait(self, pending: PendingLogin) -> LoginState:
        """Wait until a pending login is completed by any process, has failed or expired; return which."""
        ...

    async def logins(self) -> Sequence[Login]:
        """Return every login that is stored.

        Raises:
            StoreError: They cannot be read.
        """
        ...

    async def end(self, spec: PluginSpec, owner: LoginOwner) -> bool:
        """Forget a login of an owner, and tell its issuer; return whether there was one.

        Raises:
            StoreError: It cannot be removed.
        """
        ...


@runtime_checkable
class HasLogins(Protocol):
    """A source with servers that may want a login."""

    @property
    def logins(self) -> ServerLogins:
        """Return their logins."""
        ...
