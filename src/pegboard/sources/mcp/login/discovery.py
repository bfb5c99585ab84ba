"""Who issues the logins of a server, found by metadata (RFC 9728, RFC 8414, OpenID Connect). Import late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    get_client_metadata_scopes,
    issuers_match,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import Field, ValidationError

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.login.challenge import Challenge
from pegboard.sources.mcp.login.web import LoginWeb, place_of

_GRANTS = ["authorization_code", "refresh_token"]
_USUAL = {"authorization": "authorize", "token": "token", "registration": "register"}


class IssuerMetadata(OAuthMetadata):
    """The metadata of an issuer, with what the SDK leaves unread."""

    device_authorization_endpoint: str | None = None
    client_id_metadata_document_supported: bool | None = Field(default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """Who issues the logins of a server: ``resource`` is what they are for, ``scopes`` what is asked for."""

    name: str
    metadata: IssuerMetadata
    resource: str
    scopes: tuple[str, ...]


def resource_of(spec: ServerSpec) -> str:
    """Return the address of a server in its canonical form, under which its logins are kept."""
    return resource_url_from_server_url(spec.url or "")


async def find_issuer(web: LoginWeb, spec: ServerSpec, challenge: Challenge, wanted: tuple[str, ...] = ()) -> Issuer:
    """Return who issues the logins of a server.

    ``wanted`` are scopes that are asked for in any case: those of before, and those that are configured.

    Raises ``ToolUnavailableError`` where no one does, or what is said of it must not be believed.
    """
    resource = await _resource(web, spec, challenge)
    if resource is None:
        root = urlsplit(spec.url or "")
        name, identifier = _choose_issuer(spec, [f"{root.scheme}://{root.netloc}"]), resource_of(spec)
        metadata = await _metadata(web, spec, None, name)
    else:
        name, identifier = (
            _choose_issuer(spec, [str(one) for one in resource.authorization_servers]),
            str(resource.resource),
        )
        metadata = await _metadata(web, spec, name, name)
    asked = " ".join(wanted or challenge.scopes) or None
    scopes = get_client_metadata_scopes(asked, resource, metadata, _GRANTS)
    return Issuer(name=name, metadata=metadata, resource=identifier, scopes=tuple((scopes or "").split()))


async def offers_login(web: LoginWeb, spec: ServerSpec, challenge: Challenge) -> bool:
    """Return whether a server that refused a request has logins: it says where, or its metadata is at a usual place."""
    if challenge.resource_metadata or (spec.auth is not None and spec.auth.kind != "none"):
        return True
    try:
        if await _resource(web, spec, challenge) is None:
            await find_issuer(web, spec, challenge)
    except ToolUnavailableError:
        return False
    return True


async def _resource(web: LoginWeb, spec: ServerSpec, challenge: Challenge) -> ProtectedResourceMetadata | None:
    """Return what a server says of itself, or None where it says nothing."""
    url = spec.url or ""
    for place in build_protected_resource_metadata_discovery_urls(challenge.resource_metadata or None, url):
        answer = await web.request("GET", place)
        if answer.status_code != 200:
            continue
        try:
            found = ProtectedResourceMetadata.model_validate_json(answer.content)
        except ValidationError:
            if place == challenge.resource_metadata:
                raise _unusable(spec, f"{place_of(place)} is not the metadata of a protected resource") from None
            continue
        if not check_resource_allowed(resource_of(spec), str(found.resource)):
            raise _unusable(spec, f"its metadata is that of another resource, {place_of(str(found.resource))}")
        return found
    return None


def _choose_issuer(spec: ServerSpec, named: Sequence[str]) -> str:
    """Return the issuer that is configured, else the first of those that are named.

    Raises ``ToolUnavailableError`` where a configured secret would go to another origin than the server's own because
    the server says so.
    """
    auth = spec.auth
    wanted = auth.issuer if auth is not None else ""
    if not wanted:
        sends_secret = auth is not None and auth.client_secret and auth.kind in ("code", "client_credentials")
        if sends_secret and httpx2.URL(named[0]).origin != httpx2.URL(spec.url or "").origin:
            raise _unspecified_issuer_error(spec, place_of(named[0]))
        return named[0]
    if not any(issuers_match(one, wanted) for one in named):
        raise _unusable(spec, f"its logins are issued by {place_of(named[0])}, not by {place_of(wanted)}")
    return next(one for one in named if issuers_match(one, wanted))


async def _metadata(web: LoginWeb, spec: ServerSpec, issuer: str | None, name: str) -> IssuerMetadata:
    absent = True
    for place in build_oauth_authorization_server_metadata_discovery_urls(issuer, spec.url or ""):
        answer = await web.request("GET", place)
        if answer.status_code >= 500:
            raise _unusable(spec, f"{place_of(place)} answers HTTP {answer.status_code}")
        absent = absent and answer.status_code == 404
        if answer.status_code != 200:
            continue
        try:
            found = IssuerMetadata.model_validate_json(answer.content)
        except ValidationError:
            continue
        if issuer is not None:
            _require_issuer(spec, found, issuer)
        if "S256" not in (found.code_challenge_methods_supported or []):
            raise _unusable(spec, f"{place_of(name)} does not say that it supports PKCE with S256")
        return found
    said_so = spec.auth is not None and spec.auth.kind == "code"  # else a mere 401 would be taken for a login
    if absent and issuer is None and said_so:
        return _usual_metadata(name)
    raise _unusable(spec, f"no metadata of {place_of(name)} was found")


def _usual_metadata(origin: str) -> IssuerMetadata:
    """Return where an issuer of 2025-03-26 has its endpoints that says nothing of them."""
    usual = {f"{what}_endpoint": f"{origin}/{path}" for what, path in _USUAL.items()}
    return IssuerMetadata.model_validate({"issuer": origin, **usual})


def _require_issuer(spec: ServerSpec, found: IssuerMetadata, issuer: str) -> None:
    try:
        validate_metadata_issuer(found, issuer)
    except OAuthFlowError:
        said = place_of(str(found.issuer))
        raise _unusable(spec, f"the metadata of {place_of(issuer)} is that of another issuer, {said}") from None


def _unspecified_issuer_error(spec: ServerSpec, issuer: str) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"{spec.label} wants a login by {issuer}, but `client_secret` is sent only to an issuer that the configuration "
        "names, or that has the server's own origin.",
        hint=f"If that is the issuer that you have the secret from, add `issuer: {issuer}` to `auth` in "
        f"`{spec.section}`.",
        location=spec.place,
    )


def _unusable(spec: ServerSpec, why: str) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"{spec.label} requires a login, but the login cannot work: {why}.", location=spec.place
    )
