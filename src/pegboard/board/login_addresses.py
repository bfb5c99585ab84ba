"""Where a person is told to log in: at the issuer, or at a page of a gateway that first asks who they are (G11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pegboard.core.access.logins import PendingLogin

PAGES = "/login"
"""Where a gateway has its pages of logins; the last part of an address is the id of a pending login."""
CALLBACK = f"{PAGES}/callback"
"""Where the browser comes back to."""


def _no_gateway(_: str) -> str:
    """Return that no gateway has a page."""
    return ""


@dataclass(slots=True)
class LoginAddresses:
    """The addresses of the logins of a board.

    ``gateway`` returns the origin of the gateway whose page a principal logs in at. Nothing is returned for who needs
    no page: on the machine that they sit at a loopback address of this process takes the answer.
    """

    gateway: Callable[[str], str] = _no_gateway

    def redirect(self, principal: str) -> str | None:
        """Return where the browser is sent back to; None is a loopback address of this process."""
        origin = self.gateway(principal)
        return f"{origin}{CALLBACK}" if origin else None

    def shown(self, pending: PendingLogin) -> PendingLogin:
        """Return a pending login with the address that its owner is shown."""
        origin = self.gateway(pending.owner.principal)
        return replace(pending, url=f"{origin}{PAGES}/{pending.id}") if origin else pending
