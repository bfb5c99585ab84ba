"""Logins to remote servers as values: what one is needed for, one that is pending, one that stands (G11)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.permissions import LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginNeed:
    """What a login is needed for.

    ``owner`` is whose it is. ``scopes`` are those that the server asked for, empty where it named none.
    """

    plugin: str
    owner: LoginOwner
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLogin:
    """A login that a person may complete once, at ``url``, until ``expires_at`` (seconds since the epoch).

    ``plugin`` is the server's name, ``resource`` its address in canonical form. Where the issuer has logins of devices
    (RFC 8628), a person may instead type ``code`` at ``code_url``, with any browser; else both are empty. ``why`` says
    in a sentence why the login of before does not count, where it is lost to Pegboard; else it is empty.
    """

    id: str
    plugin: str
    resource: str
    owner: LoginOwner
    url: str
    expires_at: float
    code: str = ""
    code_url: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedLogin:
    """The pending login that one waiting call needs.

    ``id`` is the waiting call's, and no other call has it: ``session.resume(id)`` goes on with that call. ``pending``
    is the login, one for all waiting calls of its owner; its own ``id`` names it in addresses and to who completes it.
    """

    id: str
    pending: PendingLogin

    @property
    def plugin(self) -> str:
        """Return the server's name."""
        return self.pending.plugin

    @property
    def url(self) -> str:
        """Return where a person logs in."""
        return self.pending.url

    @property
    def expires_at(self) -> float:
        """Return until when they may, in seconds since the epoch."""
        return self.pending.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A login that stands; it holds no secret.

    Attributes:
        plugin: the server's name, empty where it is no longer configured.
        resource: the address that it is for.
        owner: whose it is.
        issuer: who issued it.
        scopes: what it allows.
        expires_at: when its token ends, in seconds since the epoch; None where no one knows.
        renewable: whether it is renewed by itself.
        refused: why it no longer counts, or empty.
    """

    plugin: str
    resource: str
    owner: LoginOwner
    issuer: str
    scopes: tuple[str, ...]
    expires_at: float | None
    renewable: bool
    refused: str


def login_command(server: str, owner: LoginOwner | None = None) -> str:
    """Return what is typed to log in to a server, for the user of this machine or another owner.

    >>> login_command("linear"), login_command("linear", LoginOwner("ada", "clerk"))
    ('pegboard login linear', 'pegboard login linear --principal ada --agent clerk')
    """
    whose = "" if owner is None or owner.principal == LOCAL else f" --principal {shlex.quote(owner.principal)}"
    agent = "" if owner is None or not owner.agent else f" --agent {shlex.quote(owner.agent)}"
    return f"pegboard login {shlex.quote(server)}{whose}{agent}"
