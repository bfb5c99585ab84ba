"""What a server says that refuses a request without a login, or with one that is not enough (RFC 6750, RFC 9728)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pegboard.core.access.logins import login_command
from pegboard.core.model.specs import ServerSpec

_FIELD: Final = re.compile(r'\b(resource_metadata|scope|error)=(?:"([^"]*)"|([^\s,"]+))')
_LONGEST: Final = 4_096
"""Characters of a header that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What stood in ``WWW-Authenticate``: where the metadata is, the scopes that are needed, what is wrong."""

    resource_metadata: str = ""
    scopes: tuple[str, ...] = ()
    error: str = ""


def challenge_of(status: int, headers: Mapping[str, str], spec: ServerSpec) -> Challenge | None:
    """Return what a refused request says of a login, or None where it can mean none.

    ``headers`` has lower-case names. 401 may mean one also without the place of its metadata, which then is at the
    usual ones or nowhere; 403 means one where the scope is not enough.
    """
    if not may_log_in(spec):
        return None
    text = headers.get("www-authenticate", "")[:_LONGEST]
    found = {name: quoted or plain for name, quoted, plain in _FIELD.findall(text)}
    if status != 401 and not (status == 403 and found.get("error") == "insufficient_scope"):
        return None
    return Challenge(
        resource_metadata=found.get("resource_metadata", ""),
        scopes=tuple(found.get("scope", "").split()),
        error=found.get("error", ""),
    )


def may_log_in(spec: ServerSpec) -> bool:
    """Return whether a login can be meant by what a server refuses: no one configured another way."""
    if spec.auth is not None and spec.auth.kind == "none":
        return False
    return bool(spec.url) and not any(name.lower() == "authorization" for name in spec.headers)


def logs_in_for_gateway(spec: ServerSpec) -> bool:
    """Return whether the gateway logs in to a server for itself, with a secret or a key, for all who use it."""
    return spec.auth is not None and spec.auth.kind in ("client_credentials", "private_key_jwt")


def login_hint(spec: ServerSpec) -> str:
    """Return how a person logs in to a server."""
    return f"Log in: `{login_command(spec.name)}`."
