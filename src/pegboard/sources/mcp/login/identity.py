"""As whom Pegboard is known to an issuer: as configured, by the address of a document, or as registered (RFC 7591)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

from mcp.client.auth import OAuthRegistrationError
from mcp.client.auth.utils import (
    create_client_registration_request,
    handle_registration_response,
    is_valid_client_metadata_url,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.ports.sealed import SealedStore, SealedText
from pegboard.sources.mcp.login.discovery import Issuer
from pegboard.sources.mcp.login.web import LoginWeb, place_of

DEVICE_CODE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_USABLE: Final = (None, "none", "client_secret_post", "client_secret_basic")
"""How a client may have to show who it is when it asks for tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A client as an issuer knows it: how it shows itself (``method``), and where browsers are sent back to.

    ``scopes`` are those that it was registered with: some issuers let it ask for no others.
    """

    client_id: str
    client_secret: str = field(default="", repr=False)
    method: str = "none"
    redirect: str = ""
    scopes: tuple[str, ...] = ()


def configured_identity(spec: ServerSpec, issuer: Issuer) -> Identity | None:
    """Return the client that is registered beforehand, or described at an address; None where none is configured.

    An address counts where the issuer reads such documents.
    """
    auth = spec.auth
    if auth is None or not auth.client_id:
        return None
    if auth.kind == "code" and not auth.client_secret and is_valid_client_metadata_url(auth.client_id):
        described = issuer.metadata.client_id_metadata_document_supported
        return Identity(client_id=auth.client_id) if described else None
    offered = issuer.metadata.token_endpoint_auth_methods_supported
    basic = offered is None or "client_secret_basic" in offered  # RFC 8414: what counts where nothing is said
    method = ("client_secret_basic" if basic else "client_secret_post") if auth.client_secret else "none"
    if auth.kind == "private_key_jwt":
        method = "private_key_jwt"
    return Identity(client_id=auth.client_id, client_secret=auth.client_secret, method=method)


async def registered_identity(store: SealedStore, issuer: Issuer) -> Identity | None:
    """Return as whom Pegboard was registered with an issuer before, or None."""
    return _read_identity(await store.sealed("identity", issuer.name))


def _read_identity(kept: SealedText | None) -> Identity | None:
    try:
        return None if kept is None or kept.text is None else _IDENTITY.validate_json(kept.text)
    except ValidationError:
        return None


async def register(
    web: LoginWeb,
    store: SealedStore,
    spec: ServerSpec,
    issuer: Issuer,
    redirect: str,
    before: Identity | None = None,
) -> Identity:
    """Register Pegboard with an issuer, and remember it; ``before`` is as whom it was registered until now.

    Raises ``ToolUnavailableError`` where the issuer registers no one: which two values to set is in the hint.
    """
    if issuer.metadata.registration_endpoint is None:
        raise ToolUnavailableError(
            f"{place_of(issuer.name)}, which issues the logins of {spec.label}, registers no clients.",
            hint=f"Register one there (redirect address: {redirect}), and set `auth: {{client_id, client_secret}}` "
            f"in `{spec.section}`.",
            location=spec.place,
        )
    scopes = tuple(dict.fromkeys((*(before.scopes if before else ()), *issuer.scopes)))
    try:
        found = await _register_client(web, issuer, redirect, scopes)
    except (OAuthRegistrationError, ValidationError) as error:
        why = one_line(str(error), limit=300).rstrip(".")
        raise ToolUnavailableError(
            f"{place_of(issuer.name)} does not register Pegboard as a client of {spec.label}: {why}.",
            hint=f"Set `auth: {{client_id, client_secret}}` in `{spec.section}`.",
            location=spec.place,
        ) from None
    identity = Identity(
        client_id=found.client_id,
        client_secret=found.client_secret or "",
        method=found.token_endpoint_auth_method or ("client_secret_basic" if found.client_secret else "none"),
        redirect=redirect,
        scopes=scopes,
    )
    await store.seal("identity", issuer.name, _to_json(identity), expected=None)
    return identity


async def _register_client(
    web: LoginWeb, issuer: Issuer, redirect: str, scopes: tuple[str, ...]
) -> OAuthClientInformationFull:
    offered = issuer.metadata.token_endpoint_auth_methods_supported or ["none"]
    device = [DEVICE_CODE] if issuer.metadata.device_authorization_endpoint else []
    method: Any = next((one for one in ("none", "client_secret_basic", "client_secret_post") if one in offered), "none")
    asked = OAuthClientMetadata(
        client_name="Pegboard",
        redirect_uris=[AnyUrl(redirect)],
        token_endpoint_auth_method=method,
        grant_types=["authorization_code", "refresh_token", *device],
        application_type="native",
        scope=" ".join(scopes) or None,
    )
    request = create_client_registration_request(issuer.metadata, asked, issuer.name)
    body = cast("object", from_json(request.content))
    answer = await web.request("POST", str(request.url), json=body)
    found = await handle_registration_response(answer)
    if found.token_endpoint_auth_method not in _USABLE:
        raise OAuthRegistrationError(f"it demands '{found.token_endpoint_auth_method}'")
    return found


async def forget(store: SealedStore, issuer: str, client_id: str) -> None:
    """Forget as whom Pegboard was registered, since the issuer does not know it any longer; a newer one stays."""
    kept = await store.sealed("identity", issuer)
    known = _read_identity(kept)
    if kept is not None and known is not None and known.client_id == client_id:
        await store.seal("identity", issuer, None, expected=kept.version)


def _to_json(identity: Identity) -> str:
    return to_json(identity).decode()


_IDENTITY: Final = TypeAdapter(Identity)
