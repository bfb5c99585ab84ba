"""What the authorization server of the tests has given to whom: the SDK's provider, with families of tokens."""

import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from authorization.clients import described_client, judged, known_clients
from authorization.options import BASE_SCOPE, Options


@dataclass(kw_only=True)
class Family:
    """All tokens that come from one login."""

    account: str
    client_id: str
    resource: str | None
    refreshes: bool
    revoked: bool = False


class Code(AuthorizationCode):
    family: Any = None  # once it was used


class Access(AccessToken):
    family: Any


class Refresh(RefreshToken):
    family: Any
    used: bool = False


@dataclass(kw_only=True)
class Asked:
    """A person is asked whether a client may act for them."""

    client: OAuthClientInformationFull
    params: AuthorizationParams


@dataclass
class Grants(OAuthAuthorizationServerProvider[Code, Refresh, Access]):
    origin: str
    options: Options
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=known_clients)
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    codes: dict[str, Code] = field(default_factory=dict[str, Code])
    access: dict[str, Access] = field(default_factory=dict[str, Access])
    refresh: dict[str, Refresh] = field(default_factory=dict[str, Refresh])
    counts: Counter[str] = field(default_factory=Counter[str])
    secrets: list[str] = field(default_factory=list[str])  # everything given out that no output may show

    @property
    def issuer(self) -> str:
        """The issuer as it is, whatever the metadata says."""
        return f"{self.origin}/tenant" if self.options.path_aware else self.origin

    @property
    def resource(self) -> str:
        """The one resource that tokens are for, as it is written."""
        return f"{self.origin}/mcp/" if self.options.resource_slash else f"{self.origin}/mcp"

    def now(self) -> float:
        return time.time() + self.options.clock

    def secret(self, kind: str) -> str:
        self.secrets.append(made := f"{kind}-{secrets.token_urlsafe(32)}")
        return made

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        client = self.clients.get(client_id)
        if client is None and self.options.metadata_documents and client_id.startswith(("https://", "http://")):
            client = await described_client(client_id, self.options)
        return client and judged(client, self.options)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.counts["registrations"] += 1
        if client_info.client_secret:
            self.secrets.append(client_info.client_secret)
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if problem := self.wrong_resource(params.resource):
            raise AuthorizeError("invalid_target", problem)
        number = secrets.token_urlsafe(8)
        self.asked[number] = Asked(client=client, params=params)
        return f"{self.origin}/consent?request={number}"

    def wrong_resource(self, resource: str | None) -> str | None:
        """Say what is wrong with the resource that someone asks a token for; None if nothing is."""
        if resource is None:
            return "resource is missing" if self.options.demand_resource else None
        known = (self.resource, *self.options.protects)
        return None if resource in known else f"no such resource: {resource}"

    def allow(self, asked: Asked, account: str) -> str:
        """Return where the browser of a person who agreed goes next."""
        self.counts["authorizations"] += 1
        params = asked.params
        code = Code(
            code=self.secret("code"),
            scopes=params.scopes or [BASE_SCOPE],
            expires_at=time.time() + 60,
            client_id=asked.client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=account,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state, iss=self.said_iss())

    def refuse(self, asked: Asked) -> str:
        """Return where the browser of a person who did not agree goes next."""
        base, state = str(asked.params.redirect_uri), asked.params.state
        return construct_redirect_uri(base, error="access_denied", state=state, iss=self.said_iss())

    def said_iss(self) -> str | None:
        return self.issuer if self.options.iss is None else self.options.iss or None

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> Code | None:
        code = self.codes.get(authorization_code)
        if code is None or code.client_id != client.client_id:
            return None
        if code.family is not None or self.options.code_spent:
            self.counts["codes_reused"] += 1
            if code.family is not None:
                code.family.revoked = True
            return None
        return code

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: Code
    ) -> OAuthToken:
        self.counts["exchanges"] += 1
        code = authorization_code
        code.family = self.family(client, str(code.subject), code.scopes, code.resource)
        return self.tokens(code.family, code.scopes)

    def family(
        self, client: OAuthClientInformationFull, account: str, scopes: list[str], resource: str | None
    ) -> Family:
        """Return a new family of tokens."""
        offline = not self.options.offline_access or "offline_access" in scopes
        refreshes = self.options.refresh_tokens and offline and "refresh_token" in client.grant_types
        return Family(account=account, client_id=client.client_id, resource=resource, refreshes=refreshes)

    def tokens(self, family: Family, scopes: list[str], *, refreshes: bool | None = None) -> OAuthToken:
        """Return new tokens of a family."""
        common: dict[str, Any] = {
            "client_id": family.client_id,
            "scopes": scopes,
            "resource": family.resource,
            "subject": family.account,
            "family": family,
        }
        lifetime = self.options.lifetime
        access = Access(token=self.secret("access"), claims={"iss": self.issuer}, **common)
        access.expires_at = int(time.time() + lifetime)
        self.access[access.token] = access
        refresh = None
        if family.refreshes if refreshes is None else refreshes:
            refresh = Refresh(token=self.secret("refresh"), **common)
            self.refresh[refresh.token] = refresh
        return OAuthToken(
            access_token=access.token,
            expires_in=int(lifetime),
            scope=" ".join(scopes),
            refresh_token=refresh.token if refresh is not None else None,
        )

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> Refresh | None:
        found = self.refresh.get(refresh_token)
        if found is None or found.client_id != client.client_id or found.family.revoked:
            return None
        if found.used:
            self.counts["reuses"] += 1
            found.family.revoked = True
            return None
        return found

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: Refresh, scopes: list[str]
    ) -> OAuthToken:
        self.counts["refreshes"] += 1
        if self.options.refresh_loses_scopes:
            scopes = scopes[:1]
        if not self.options.rotate:
            return self.tokens(refresh_token.family, scopes, refreshes=False)
        refresh_token.used = True
        made = self.tokens(refresh_token.family, scopes)
        if made.refresh_token:  # what was granted once can be asked for again, whatever this answer has
            self.refresh[made.refresh_token].scopes = refresh_token.scopes
        return made

    async def load_access_token(self, token: str) -> Access | None:
        found = self.access.get(token)
        if found is None or found.family.revoked or (found.expires_at or 0) <= time.time():
            return None
        return found

    async def revoke_token(self, token: Access | Refresh) -> None:
        self.counts["revocations"] += 1
        token.family.revoked = True

    def machine_tokens(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        """Return tokens for a client that acts for itself."""
        self.counts["machine_logins"] += 1
        family = Family(account=client.client_id, client_id=client.client_id, resource=resource, refreshes=False)
        return self.tokens(family, scopes or [BASE_SCOPE])

    def expire(self) -> None:
        """Let every access token expire now; refresh tokens stay."""
        self.access.clear()

    def log_out_all(self) -> None:
        """Take back everything that was given to anyone; registrations stay."""
        for token in (*self.access.values(), *self.refresh.values()):
            token.family.revoked = True

    def forget_clients(self) -> None:
        """Know none of those who registered."""
        self.clients = known_clients()
