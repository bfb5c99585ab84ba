"""The documents that say where to log in: of the resource and of its issuer, and what can be odd about them."""

from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.routes import build_metadata
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from authorization.clients import DEVICE_CODE
from authorization.grants import Grants
from authorization.options import SCOPES

RESOURCE = "/.well-known/oauth-protected-resource"
ISSUER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


def document_at(path: str, grants: Grants) -> tuple[str, dict[str, Any]] | None:
    """Return which document is at an address, and the document; None if there is none."""
    options, below = grants.options, urlsplit(grants.issuer).path
    resources = {f"{RESOURCE}/mcp"} if options.path_aware else {f"{RESOURCE}/mcp", RESOURCE}
    if path in resources and options.resource_metadata:
        return "resource", resource_document(grants)
    oauth = {f"{ISSUER}{below}"} if options.metadata_at != "openid" else set[str]()
    openid = {f"{OPENID}{below}", f"{below}{OPENID}"} if options.metadata_at != "oauth" else set[str]()
    return ("issuer", issuer_document(grants)) if path in oauth | openid else None


def resource_document(grants: Grants) -> dict[str, Any]:
    """Return the metadata of the protected server."""
    options = grants.options
    document: dict[str, Any] = {
        "resource": options.resource or grants.resource,
        "authorization_servers": [options.authorization_server or grants.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "The protected server of the tests",
    }
    return document | ({"scopes_supported": list(options.scopes_supported)} if options.scopes_supported else {})


def issuer_document(grants: Grants) -> dict[str, Any]:
    """Return the metadata of the issuer: what the SDK says of its routes, and what was built around them."""
    options, origin = grants.options, grants.origin
    made = build_metadata(
        AnyHttpUrl(origin),
        None,
        ClientRegistrationOptions(enabled=options.registration, valid_scopes=list(SCOPES)),
        RevocationOptions(enabled=True),
    )
    document = made.model_dump(mode="json", exclude_none=True)
    document |= {
        "issuer": options.issuer or grants.issuer,
        "introspection_endpoint": f"{origin}/introspect",
        "authorization_response_iss_parameter_supported": options.iss != "",
        "client_id_metadata_document_supported": options.metadata_documents,
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
    }
    document["token_endpoint_auth_methods_supported"] += ["none", "private_key_jwt"]
    document["revocation_endpoint_auth_methods_supported"] += ["none"]
    document["grant_types_supported"] += ["client_credentials"]
    if not options.offline_access:
        document["scopes_supported"].remove("offline_access")
    if options.device:
        document["device_authorization_endpoint"] = f"{origin}/device_authorization"
        document["grant_types_supported"] += [DEVICE_CODE]
    if not options.code_challenge_methods:
        del document["code_challenge_methods_supported"]
    if not options.revocation:
        del document["revocation_endpoint"]
    for name in ("authorization_endpoint", "token_endpoint"):
        document[name] = getattr(options, name) or document[name]
    return document


def answer(request: Request, grants: Grants) -> Response:
    """Answer with the document at this address, as odd as the options want it."""
    found = document_at(request.url.path, grants)
    if found is None:
        return Response(status_code=404)
    which, document = found
    options = grants.options
    if which == options.odd_document:
        if options.metadata_redirect == "loop":
            turn = int(request.query_params.get("turn", 0))
            return RedirectResponse(f"{request.url.path}?turn={turn + 1}")
        if options.metadata_redirect:
            return RedirectResponse(options.metadata_redirect)
        if options.metadata_html:
            return HTMLResponse("<!doctype html><title>Sign in</title><p>Please sign in.")
        if options.metadata_padding:
            document["padding"] = "x" * options.metadata_padding
    return JSONResponse(document)
