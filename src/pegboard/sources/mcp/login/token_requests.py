"""The requests for tokens: for a code, for the gateway, for a device, to renew, to revoke. Import late."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast
from urllib.parse import quote

from pydantic_core import from_json

from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.login.discovery import Issuer
from pegboard.sources.mcp.login.grant import GrantKind, LoginGrant
from pegboard.sources.mcp.login.identity import DEVICE_CODE, Identity
from pegboard.sources.mcp.login.web import LoginWeb, place_of

_LONGEST_LIFE: Final = 10 * 365 * 86_400.0
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SIGNED_FOR: Final = 300
"""Seconds for which what a client signs counts."""
_BY_CURVE: Final = {256: "ES256", 384: "ES384", 521: "ES512"}
_TOO_MANY: Final = 429
_LONGEST_PAUSE: Final = 60.0
_SECRET: Final = 8
"""Characters from which on a value that was sent may be a secret: shorter ones are words of the protocol."""


class BusyIssuerError(ToolUnavailableError):
    """An issuer that gives no tokens for now: ``pause`` is how long it wants to be left alone, where it says so."""

    pause: float | None = None


class RefusedTokensError(Exception):
    """An issuer that refuses tokens for good: ``code`` is the error of RFC 6749, ``text`` what it says of it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.text = text


async def exchange_code(
    web: LoginWeb, issuer: Issuer, identity: Identity, *, code: str, verifier: str, redirect: str
) -> LoginGrant:
    """Return the grant for a code.

    Raises ``RefusedTokensError``, and ``ToolUnavailableError`` where the issuer cannot be asked.
    """
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    return await _request_grant(web, issuer, identity, form, "code")


async def granted_to_gateway(web: LoginWeb, issuer: Issuer, identity: Identity, kind: GrantKind) -> LoginGrant:
    """Return a grant for the gateway itself, which shows a secret or a key (RFC 6749 4.4, RFC 7523).

    Raises ``RefusedTokensError``, and ``ToolUnavailableError`` where the issuer cannot be asked.
    """
    scope = {"scope": " ".join(issuer.scopes)} if issuer.scopes else {}
    return await _request_grant(web, issuer, identity, {"grant_type": "client_credentials", **scope}, kind)


async def device_begun(web: LoginWeb, issuer: Issuer, identity: Identity) -> Mapping[str, Any]:
    """Return what a person types where, and what the machine holds meanwhile (RFC 8628).

    Raises ``RefusedTokensError``, and ``ToolUnavailableError`` where the issuer cannot be asked.
    """
    scope = {"scope": " ".join(issuer.scopes)} if issuer.scopes else {}
    endpoint = issuer.metadata.device_authorization_endpoint or ""
    return await _request_tokens(web, endpoint, issuer.name, identity, {**scope, "resource": issuer.resource})


async def granted_to_device(web: LoginWeb, issuer: Issuer, identity: Identity, device_code: str) -> LoginGrant:
    """Return the grant for what a machine holds, once a person has typed its code elsewhere.

    Raises ``RefusedTokensError``, with ``authorization_pending`` until then, and ``ToolUnavailableError``.
    """
    return await _request_grant(web, issuer, identity, {"grant_type": DEVICE_CODE, "device_code": device_code}, "code")


async def _request_grant(
    web: LoginWeb, issuer: Issuer, identity: Identity, form: Mapping[str, str], kind: GrantKind
) -> LoginGrant:
    endpoint = str(issuer.metadata.token_endpoint)
    asked_at = time.time()
    answer = await _request_tokens(web, endpoint, issuer.name, identity, {**form, "resource": issuer.resource})
    revocation = issuer.metadata.revocation_endpoint
    return LoginGrant(
        access_token=_token(answer, endpoint),
        refresh_token=_text(answer, "refresh_token") if kind == "code" else "",
        obtained_at=asked_at,
        expires_at=_end_of_token(answer, asked_at),
        scopes=tuple(_text(answer, "scope").split()) or issuer.scopes,
        issuer=issuer.name,
        resource=issuer.resource,
        token_endpoint=endpoint,
        revocation_endpoint="" if revocation is None else str(revocation),
        client_id=identity.client_id,
        client_secret=identity.client_secret,
        method=identity.method,
        kind=kind,
        login_id=secrets.token_hex(8),
    )


async def renew_tokens(web: LoginWeb, grant: LoginGrant) -> LoginGrant:
    """Return the grant with new tokens; what the issuer leaves unsaid stays as it was.

    Raises ``RefusedTokensError``, and ``ToolUnavailableError`` where the issuer cannot be asked.
    """
    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "resource": grant.resource}
    if grant.kind != "code":
        scope = {"scope": " ".join(grant.scopes)} if grant.scopes else {}
        form = {"grant_type": "client_credentials", "resource": grant.resource, **scope}
    asked_at = time.time()
    answer = await _request_tokens(web, grant.token_endpoint, grant.issuer, _identity(grant), form)
    return replace(
        grant,
        access_token=_token(answer, grant.token_endpoint),
        refresh_token=_text(answer, "refresh_token") or grant.refresh_token,
        obtained_at=asked_at,
        expires_at=_end_of_token(answer, asked_at),
        scopes=tuple(_text(answer, "scope").split()) or grant.scopes,
        renewed=True,
    )


async def revoke(web: LoginWeb, grant: LoginGrant) -> None:
    """Tell the issuer that a grant is no longer used, if it takes that; its answer does not matter."""
    if not grant.revocation_endpoint:
        return
    for kind, token in (("refresh_token", grant.refresh_token), ("access_token", grant.access_token)):
        if token:
            form, headers = _client_credentials(
                _identity(grant), grant.issuer, {"token": token, "token_type_hint": kind}
            )
            await web.request("POST", grant.revocation_endpoint, form=form, headers=headers)


def _identity(grant: LoginGrant) -> Identity:
    return Identity(client_id=grant.client_id, client_secret=grant.client_secret, method=grant.method)


async def _request_tokens(
    web: LoginWeb, endpoint: str, issuer: str, identity: Identity, form: Mapping[str, str]
) -> Mapping[str, Any]:
    body, headers = _client_credentials(identity, issuer, form)
    response = await web.request("POST", endpoint, form=body, headers=headers)
    try:
        answer: Any = from_json(response.content)
    except ValueError:
        answer = None
    found: Mapping[str, Any] = cast("Mapping[str, Any]", answer) if isinstance(answer, dict) else {}
    if response.status_code == 200 and found and "error" not in found:
        return found
    error = _text(found, "error")
    if error and response.status_code < 500 and response.status_code != _TOO_MANY:
        shown = headers.get("authorization", "").partition(" ")[2]
        sent = Masker(each for each in (*body.values(), identity.client_secret, shown) if len(each) >= _SECRET)
        said = one_line(sent.text(_text(found, "error_description")), limit=200)
        raise RefusedTokensError(one_line(sent.text(error), limit=60), said)
    busy = BusyIssuerError(
        f"{place_of(endpoint)} answers HTTP {response.status_code} without tokens.", hint="It is tried again."
    )
    busy.pause = _pause(response.headers.get("retry-after", ""))
    raise busy


def _pause(said: str) -> float | None:
    """Return for how many seconds an issuer wants to be left alone, at most a minute; None where it does not say."""
    return min(float(said), _LONGEST_PAUSE) if said.isascii() and said.isdigit() else None


def _client_credentials(
    identity: Identity, issuer: str, form: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form and the headers by which a client shows who it is (RFC 6749, 2.3.1; RFC 7523, 2.2)."""
    if identity.method == "private_key_jwt":
        shown = {"client_assertion_type": _ASSERTION, "client_assertion": _assertion(identity, issuer)}
        return {**form, "client_id": identity.client_id, **shown}, {}
    if identity.method == "client_secret_basic" and identity.client_secret:
        pair = f"{quote(identity.client_id, safe='')}:{quote(identity.client_secret, safe='')}"
        return dict(form), {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    secret = {"client_secret": identity.client_secret} if identity.client_secret else {}
    return {**form, "client_id": identity.client_id, **secret}, {}


def _assertion(identity: Identity, issuer: str) -> str:
    """Return who the client is, signed with its private key; raises ``ToolUnavailableError`` where that is none."""
    import jwt
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key: Any = load_pem_private_key(identity.client_secret.encode(), None)
    except (ValueError, TypeError):
        raise ToolUnavailableError(
            "`client_secret` of `auth` holds no private key in PEM without a password."
        ) from None
    now = int(time.time())
    claims = {
        "iss": identity.client_id,
        "sub": identity.client_id,
        "aud": issuer,
        "iat": now,
        "exp": now + _SIGNED_FOR,
        "jti": secrets.token_hex(16),
    }
    algorithm = {"Ed25519PrivateKey": "EdDSA"}.get(type(key).__name__)
    return jwt.encode(claims, key, algorithm=algorithm or _BY_CURVE.get(getattr(key, "key_size", 0), "RS256"))


def _token(answer: Mapping[str, Any], endpoint: str) -> str:
    token = _text(answer, "access_token")
    usable = token and token.isascii() and token.isprintable() and " " not in token
    if not usable or _text(answer, "token_type").lower() not in ("", "bearer"):
        raise ToolUnavailableError(f"{place_of(endpoint)} answers without a bearer token.")
    return token


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _end_of_token(answer: Mapping[str, Any], asked_at: float) -> float | None:
    """Return when a token ends, by our clock: from when it was asked for, whatever the clock of the issuer says."""
    value = answer.get("expires_in")
    try:
        life = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except ValueError:
        return None
    return asked_at + min(life, _LONGEST_LIFE) if life > 0 else None
