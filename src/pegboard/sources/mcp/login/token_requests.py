"""The requests for tokens: for a code, to renew, to revoke (RFC 6749, 7009, 7636, 8707). Import late."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast
from urllib.parse import quote

from pydantic_core import from_json

from pegboard.core.model.masking import MASK
from pegboard.core.model.naming import one_line
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.login.discovery import Issuer
from pegboard.sources.mcp.login.grant import Grant
from pegboard.sources.mcp.login.identity import Identity
from pegboard.sources.mcp.login.web import LoginWeb, place_of

_LONGEST_LIFE: Final = 10 * 365 * 86_400.0
_SECRET: Final = 8
"""Characters from which on a value that was sent may be a secret: shorter ones are words of the protocol."""


class RefusedTokensError(Exception):
    """An issuer that refuses tokens for good: ``code`` is the error of RFC 6749, ``text`` what it says of it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.text = text


async def exchanged(
    web: LoginWeb, issuer: Issuer, identity: Identity, *, code: str, verifier: str, redirect: str
) -> Grant:
    """Return the grant for a code.

    Raises ``RefusedTokensError``, and ``ToolUnavailableError`` where the issuer cannot be asked.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect,
        "code_verifier": verifier,
        "resource": issuer.resource,
    }
    endpoint = str(issuer.metadata.token_endpoint)
    asked_at = time.time()
    answer = await _asked(web, endpoint, identity, form)
    revocation = issuer.metadata.revocation_endpoint
    return Grant(
        access_token=_token(answer, endpoint),
        refresh_token=_text(answer, "refresh_token"),
        obtained_at=asked_at,
        expires_at=_end(answer, asked_at),
        scopes=tuple(_text(answer, "scope").split()) or issuer.scopes,
        issuer=issuer.name,
        resource=issuer.resource,
        account=_text(answer, "account"),
        token_endpoint=endpoint,
        revocation_endpoint="" if revocation is None else str(revocation),
        client_id=identity.client_id,
        client_secret=identity.client_secret,
        method=identity.method,
    )


async def renewed(web: LoginWeb, grant: Grant) -> Grant:
    """Return the grant with new tokens; what the issuer leaves unsaid stays as it was.

    Raises ``RefusedTokensError``, and ``ToolUnavailableError`` where the issuer cannot be asked.
    """
    from dataclasses import replace

    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "resource": grant.resource}
    identity = Identity(client_id=grant.client_id, client_secret=grant.client_secret, method=grant.method)
    asked_at = time.time()
    answer = await _asked(web, grant.token_endpoint, identity, form)
    return replace(
        grant,
        access_token=_token(answer, grant.token_endpoint),
        refresh_token=_text(answer, "refresh_token") or grant.refresh_token,
        obtained_at=asked_at,
        expires_at=_end(answer, asked_at),
        scopes=tuple(_text(answer, "scope").split()) or grant.scopes,
    )


async def revoke(web: LoginWeb, grant: Grant) -> None:
    """Tell the issuer that a grant is not used any more, if it takes that; its answer does not matter."""
    if not grant.revocation_endpoint:
        return
    identity = Identity(client_id=grant.client_id, client_secret=grant.client_secret, method=grant.method)
    for kind, token in (("refresh_token", grant.refresh_token), ("access_token", grant.access_token)):
        if token:
            form, headers = _shown(identity, {"token": token, "token_type_hint": kind})
            await web.request("POST", grant.revocation_endpoint, form=form, headers=headers)


async def _asked(web: LoginWeb, endpoint: str, identity: Identity, form: Mapping[str, str]) -> Mapping[str, Any]:
    body, headers = _shown(identity, form)
    response = await web.request("POST", endpoint, form=body, headers=headers)
    try:
        answer: Any = from_json(response.content)
    except ValueError:
        answer = None
    found: Mapping[str, Any] = cast("Mapping[str, Any]", answer) if isinstance(answer, dict) else {}
    if response.status_code == 200 and found and "error" not in found:
        return found
    error = _text(found, "error")
    if error and response.status_code < 500:
        sent = {*body.values(), identity.client_secret}
        said = one_line(_without(_text(found, "error_description"), sent), limit=200)
        raise RefusedTokensError(one_line(_without(error, sent), limit=60), said)
    raise ToolUnavailableError(
        f"{place_of(endpoint)} answers HTTP {response.status_code} without tokens.", hint="It is tried again."
    )


def _without(text: str, sent: Iterable[str]) -> str:
    """Return what an issuer says without what it was sent, which it may repeat."""
    for secret in sorted(filter(None, sent), key=len, reverse=True):
        if len(secret) >= _SECRET:
            text = text.replace(secret, MASK)
    return text


def _shown(identity: Identity, form: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form and the headers by which a client shows who it is (RFC 6749, 2.3.1)."""
    if identity.method == "client_secret_basic" and identity.client_secret:
        pair = f"{quote(identity.client_id, safe='')}:{quote(identity.client_secret, safe='')}"
        return dict(form), {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    secret = {"client_secret": identity.client_secret} if identity.client_secret else {}
    return {**form, "client_id": identity.client_id, **secret}, {}


def _token(answer: Mapping[str, Any], endpoint: str) -> str:
    token = _text(answer, "access_token")
    usable = token and token.isascii() and token.isprintable() and " " not in token
    if not usable or _text(answer, "token_type").lower() not in ("", "bearer"):
        raise ToolUnavailableError(f"{place_of(endpoint)} answers without a bearer token.")
    return token


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _end(answer: Mapping[str, Any], asked_at: float) -> float | None:
    """Return when a token ends, by our clock: from when it was asked for, whatever the clock of the issuer says."""
    value = answer.get("expires_in")
    try:
        life = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except ValueError:
        return None
    return asked_at + min(life, _LONGEST_LIFE) if life > 0 else None
