"""What the authorization server and the protected server of the tests do: usual by default, each oddity by a switch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ACCOUNTS: tuple[str, ...] = ("ada", "ben")
BASE_SCOPE = "read"
SCOPES: tuple[str, ...] = ("read", "write", "offline_access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    redirects: Mapping[str, str] = field(default_factory=dict[str, str])  # path → where it is redirected to, with 307

    # Where the metadata is, and what it says.
    metadata_at: Literal["both", "oauth", "openid"] = "both"
    path_aware: bool = False  # the issuer has a path, and no metadata is at an address without one
    resource_metadata: bool = True  # False: as servers of 2025-03-26, only metadata of the issuer
    scopes_supported: tuple[str, ...] = (BASE_SCOPE,)  # of the resource
    authorization_server: str | None = None  # the issuer of another site, asked there about each token
    issuer: str | None = None  # what the issuer's metadata says in place of the truth
    resource: str | None = None  # what the resource's metadata says in place of the truth
    resource_slash: bool = False  # the resource ends with a slash, and tokens must be for it as it is written
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    code_challenge_methods: bool = True
    revocation: bool = True  # False: tokens end with their time alone
    odd_document: Literal["resource", "issuer"] = "issuer"  # the metadata that the next three are about
    metadata_redirect: str | None = None  # an address, or `loop`
    metadata_padding: int = 0  # bytes
    metadata_html: bool = False

    # Who the client is.
    registration: bool = True
    registration_status: int | None = None  # refuses every registration with this status and a page of HTML
    client_documents: Mapping[str, Any] = field(default_factory=dict[str, Any])  # address → what is found there
    metadata_documents: bool = True  # takes addresses as client ids
    exact_redirect: bool = False  # another port of the loopback is another address
    scopes_as_registered: bool = False  # refuses scopes that the client was not registered with

    # What a person does, and what comes back.
    consent: Literal["auto", "page", "refuse"] = "auto"
    iss: str | None = None  # in place of the issuer; "" leaves it out
    demand_resource: bool = True  # with every login and every token
    protects: tuple[str, ...] = ()  # resources of other sites that tokens may be for
    code_spent: bool = False  # each code has been used before the client comes with it

    # Answers with tokens.
    lifetime: float = 3600  # seconds of access tokens
    expires_in: Literal["number", "text", "none"] = "number"
    token_type: str = "Bearer"
    refresh_tokens: bool = True
    offline_access: bool = False  # refresh tokens only where that scope was asked for
    rotate: bool = True  # False: a refresh token stays, and the answer has none
    refresh_loses_scopes: bool = False  # the new access token has the first scope only
    scope_in_answer: bool = True
    token_html: bool = False  # a page in place of an answer, with status 200; nothing is used up
    token_status: int | None = None  # no answer but a page with this status; nothing is used up
    errors_as_200: bool = False
    echo_secrets: bool = False  # errors repeat what was sent, those of the protected server too
    hold: Literal["", "before", "after"] = ""  # answers of `/token` wait until this changes
    device: bool = True
    device_interval: int = 0
    verification_uri: str | None = None  # where a person types the code, in place of the site's page

    # The protected server.
    challenge: Literal["metadata", "bare", "none"] = "metadata"  # what the 401 says
    challenge_scope: str | None = None
    open_lists: bool = False  # only calls need a token
    never_enough: bool = False  # `write` is refused with any scopes
    late_refusals: bool = False  # the body of each 403 comes only once it is released
    handshake: bool = False  # knows nothing of the 2026 era
    demand_user_agent: bool = False  # of every request
    clock: float = 0  # seconds that this machine's clock is ahead
