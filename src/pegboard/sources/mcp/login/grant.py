"""The tokens of one login, and what is needed to renew them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

_AHEAD: Final = 60.0
"""Seconds before its end at which a token is renewed at the latest; one that is short-lived at a fifth of its life."""
_SHARE: Final = 0.2
_EARLIER: Final = 0.25
"""By up to which share of that each process renews earlier than the others, so that they do not all ask at once."""

GrantKind = Literal["code", "client_credentials", "private_key_jwt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginGrant:
    """What an issuer gave. It is a secret: it is stored sealed, and never shown.

    Attributes:
        access_token: what is in the ``Authorization`` header.
        refresh_token: what renews it, or empty.
        obtained_at: when it was issued, in seconds since the epoch, by our clock.
        expires_at: when the access token ends, by our clock; None where no one said.
        scopes: what it allows.
        issuer: who issued it.
        resource: what it is for, as it was asked for.
        token_endpoint: where it is renewed.
        revocation_endpoint: where it is revoked, or empty.
        client_id: as whom it is renewed.
        client_secret: the secret of that client, or empty.
        method: how that client shows itself: none, client_secret_basic, client_secret_post.
        kind: how it was obtained: by a person's login (code), or by the gateway for itself.
        renewed: whether it was renewed since the login, with which scopes may have been lost.
        refused: why the issuer does not renew it any longer, or empty.
        login_id: which login it comes from: another one may be that of another account.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    obtained_at: float
    expires_at: float | None = None
    scopes: tuple[str, ...] = ()
    issuer: str
    resource: str
    token_endpoint: str
    revocation_endpoint: str = ""
    client_id: str
    client_secret: str = field(default="", repr=False)
    method: str = "none"
    kind: GrantKind = "code"
    renewed: bool = False
    refused: str = ""
    login_id: str = ""

    def to_json(self) -> str:
        """Return the grant as it is sealed."""
        return to_json(self).decode()

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return the secrets that there are, by what each is."""
        found = {"access": self.access_token, "refresh": self.refresh_token, "client": self.client_secret}
        return {name: secret for name, secret in found.items() if secret}

    @property
    def header(self) -> str:
        """Return the value of the ``Authorization`` header."""
        return f"Bearer {self.access_token}"

    @property
    def renewable(self) -> bool:
        """Return whether there is something to renew it with."""
        return bool(self.refresh_token or self.kind != "code") and not self.refused

    def renew_at(self) -> float | None:
        """Return when one process renews it, ahead of its end; None where that is not known."""
        if self.expires_at is None:
            return None
        ahead = min(_AHEAD, _SHARE * max(0.0, self.expires_at - self.obtained_at))
        return self.expires_at - ahead * (1 + random.random() * _EARLIER)  # noqa: S311 - no secret

    def refused_for(self, why: str) -> LoginGrant:
        """Return the grant as one that no longer counts."""
        return replace(self, refused=why)


_GRANT: Final = TypeAdapter(LoginGrant)


def grant_from_json(text: str) -> LoginGrant | None:
    """Return the grant that was sealed, or None where it cannot be read."""
    try:
        return _GRANT.validate_json(text)
    except ValidationError:
        return None
