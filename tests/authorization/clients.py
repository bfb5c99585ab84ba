"""The clients that the authorization server of the tests knows, and how it finds out about others."""

from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.shared.auth import InvalidRedirectUriError, InvalidScopeError, OAuthClientInformationFull
from pydantic import AnyUrl
from starlette.requests import Request

from authorization.options import SCOPES, Options

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LOOPBACK = {"127.0.0.1", "localhost", "[::1]", "::1"}
CODE_AND_REFRESH = ["authorization_code", "refresh_token", DEVICE_CODE]

# Known before anyone registers: id → secret, way to show it, grants.
KNOWN: dict[str, tuple[str | None, str, list[str]]] = {
    "known": ("known-secret-0001", "client_secret_post", CODE_AND_REFRESH),
    "known-basic": ("known-secret-0002", "client_secret_basic", CODE_AND_REFRESH),
    "known-public": (None, "none", CODE_AND_REFRESH),
    "robot": ("robot-secret-0003", "client_secret_basic", ["client_credentials"]),
    "signer": (None, "private_key_jwt", ["client_credentials"]),
}
KNOWN_REDIRECTS = ["http://127.0.0.1/callback", "http://localhost/callback"]
_KEY = ec.generate_private_key(ec.SECP256R1())
SIGNER_KEY = _KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


class Client(OAuthClientInformationFull):
    """A client as this server judges it: any port of the loopback is the registered one, any scope may be asked for."""

    exact_redirect: bool = False
    scopes_as_registered: bool = False

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        if redirect_uri is None or self.exact_redirect:
            return super().validate_redirect_uri(redirect_uri)
        if any(_without_port(redirect_uri) == _without_port(one) for one in self.redirect_uris or ()):
            return redirect_uri
        raise InvalidRedirectUriError(f"Redirect URI '{redirect_uri}' not registered for client")

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        if self.scopes_as_registered:
            return super().validate_scope(requested_scope)
        asked = None if requested_scope is None else requested_scope.split()
        if unknown := set(asked or ()) - set(SCOPES):
            raise InvalidScopeError(f"no such scope: {', '.join(sorted(unknown))}")
        return asked


def _without_port(uri: AnyUrl) -> tuple[str | None, ...]:
    port = None if uri.host in LOOPBACK else str(uri.port)
    return uri.scheme, uri.host, port, uri.path, uri.query


def judged(client: OAuthClientInformationFull, options: Options) -> Client:
    """Return a client's record with what this server does with it now."""
    rules = {"exact_redirect": options.exact_redirect, "scopes_as_registered": options.scopes_as_registered}
    return Client.model_validate({**client.model_dump(), **rules})


def known_clients() -> dict[str, OAuthClientInformationFull]:
    """Return the clients that are there from the start, by id."""
    return {
        name: OAuthClientInformationFull(
            client_id=name,
            client_secret=secret,
            client_name=name,
            token_endpoint_auth_method=method,
            grant_types=grants,
            redirect_uris=[AnyUrl(uri) for uri in KNOWN_REDIRECTS],
            scope=" ".join(SCOPES),
        )
        for name, (secret, method, grants) in KNOWN.items()
    }


async def described_client(address: str, options: Options) -> OAuthClientInformationFull | None:
    """Return the client that is described at an address which is its id; None where there is none or it lies."""
    if address in options.client_documents:
        document = options.client_documents[address]
    elif urlsplit(address).hostname in LOOPBACK:  # the tests ask no one on the network
        async with httpx2.AsyncClient(verify=False, trust_env=False, timeout=5) as http:
            answer = await http.get(address, follow_redirects=False)
        try:
            document = answer.json() if answer.status_code == 200 else None
        except ValueError:
            document = None
    else:
        document = None
    if not isinstance(document, dict) or document.get("client_id") != address:
        return None
    document.setdefault("token_endpoint_auth_method", "none")
    return OAuthClientInformationFull.model_validate(document)


class Authenticator(ClientAuthenticator):
    """Find out which client asks: as the SDK does, and by a signed assertion."""

    def __init__(self, provider: Any, issuer: Any, now: Any) -> None:
        super().__init__(provider)
        self._issuer, self._now = issuer, now
        self._seen: set[str] = set()

    async def authenticate_request(self, request: Request) -> OAuthClientInformationFull:
        form = await request.form()
        assertion = form.get("client_assertion")
        if not isinstance(assertion, str):
            return await super().authenticate_request(request)
        client = await self.provider.get_client(str(form.get("client_id")))
        if client is None or client.token_endpoint_auth_method != "private_key_jwt":
            raise AuthenticationError("this client has no key here")
        if form.get("client_assertion_type") != ASSERTION:
            raise AuthenticationError("client_assertion_type is missing")
        self._verify(assertion, client.client_id)
        return client

    def _verify(self, assertion: str, client_id: str) -> None:
        kept = {"require": ["iss", "sub", "aud", "exp", "jti"], "verify_exp": False, "verify_iat": False}
        try:
            claims = jwt.decode(
                assertion,
                _KEY.public_key(),
                algorithms=["ES256"],
                audience=self._issuer(),
                issuer=client_id,
                subject=client_id,
                options=kept,  # type: ignore - a plain dict
            )
        except jwt.PyJWTError as error:
            raise AuthenticationError(f"the assertion is not valid: {error}") from None
        if not claims.get("iat", 0) - 60 <= self._now() <= claims["exp"] or claims["jti"] in self._seen:
            raise AuthenticationError("the assertion has expired, is from the future, or was used before")
        self._seen.add(claims["jti"])
