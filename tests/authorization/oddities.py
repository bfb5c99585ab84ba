"""What servers and issuers were seen to do, how the site of these tests does it, and what a good client does then.

A row is one story: a call of `tool` with `options`, and a person who follows the address of the login that it asks for
(as the account `ada`). Where there is a second part, `then` is switched on, `control` happens (`expire` goes without
saying), and the tool is called once more, with no one there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["works", "needs_login", "refused", "waits"]
"""How the last call of a good client ends.

works: it is answered, and where there is a second part, without a person.
needs_login: a new login is asked for, once; when a person has followed it, the call works.
refused: there is no way; the error says what is wrong, and no code or token was sent where it should not.
waits: it fails for now, the grant is kept, and the call works without a person once `then` is switched off.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    name: str
    client: str  # what a good one does
    outcome: Outcome
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    then: Mapping[str, Any] | None = None  # None: there is no second part
    control: Literal["", "log_out_all", "forget_clients"] = ""
    tool: Literal["whoami", "write"] = "whoami"
    counts: Mapping[str, int] = field(default_factory=dict[str, int])  # of the site by then; each login followed once
    never: tuple[str, ...] = ()  # paths that a good client does not ask

    def __str__(self) -> str:
        return self.name


ELSEWHERE = "https://other.example"
PRIVATE = "http://10.255.255.1"
ONE_LOGIN = {"registrations": 1, "authorizations": 1, "exchanges": 1}
AGAIN = {"registrations": 1, "authorizations": 1, "refreshes": 1}

FINDING_OUT = (
    Oddity(
        name="metadata is at the OpenID address only",
        options={"metadata_at": "openid"},
        client="tries both addresses of the issuer",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="metadata is at path-aware addresses only",
        options={"path_aware": True},
        client="puts the path after the well-known part",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="the challenge names no metadata",
        options={"challenge": "bare"},
        client="looks at the well-known addresses of the resource",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="a 401 without a challenge",
        options={"challenge": "none"},
        client="looks at the well-known addresses of the resource",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="no metadata of the resource",
        options={"resource_metadata": False},
        client="takes the server's own origin for the issuer, as in 2025-03-26",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="metadata names another issuer",
        options={"issuer": ELSEWHERE},
        client="says which issuer it asked and which answered",
        outcome="refused",
        never=("/register", "/authorize", "/token"),
    ),
    Oddity(
        name="metadata names another resource",
        options={"resource": f"{ELSEWHERE}/mcp"},
        client="says that the metadata is about another server",
        outcome="refused",
        never=("/register", "/authorize", "/token"),
    ),
    Oddity(
        name="the resource ends with a slash",
        options={"resource_slash": True},
        client="sends the resource as the metadata writes it",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="metadata of the resource redirects to a private address",
        options={"odd_document": "resource", "metadata_redirect": f"{PRIVATE}/metadata"},
        client="follows no redirect to another origin",
        outcome="works",  # as where there is none
    ),
    Oddity(
        name="metadata of the issuer redirects to a private address",
        options={"metadata_redirect": f"{PRIVATE}/metadata"},
        client="follows no redirect to another origin",
        outcome="refused",
        never=("/token",),
    ),
    Oddity(
        name="metadata redirects in a loop",
        options={"metadata_redirect": "loop"},
        client="gives up after a few",
        outcome="refused",
        never=("/token",),
    ),
    Oddity(
        name="metadata of two megabytes",
        options={"metadata_padding": 2_000_000},
        client="reads no more than one",
        outcome="refused",
        never=("/token",),
    ),
    Oddity(
        name="a page in place of metadata",
        options={"metadata_html": True},
        client="says that no metadata is there",
        outcome="refused",
        never=("/token",),
    ),
    Oddity(
        name="no word of PKCE",
        options={"code_challenge_methods": False},
        client="logs in nowhere without it",
        outcome="refused",
        never=("/authorize", "/token"),
    ),
    Oddity(
        name="the address of the login is a script",
        options={"authorization_endpoint": "javascript:alert(1)"},
        client="shows no address that is not https, or http of the loopback",
        outcome="refused",
    ),
    Oddity(
        name="the address of the login is http elsewhere",
        options={"authorization_endpoint": f"{PRIVATE}/authorize"},
        client="shows no address that is not https, or http of the loopback",
        outcome="refused",
    ),
    Oddity(
        name="tokens are had by http elsewhere",
        options={"token_endpoint": f"{PRIVATE}/token"},
        client="sends no code by http but to the loopback",
        outcome="refused",
    ),
    Oddity(
        name="requests without User-Agent are refused",
        options={"demand_user_agent": True},
        client="names itself in each request",
        outcome="works",
        counts=ONE_LOGIN,
    ),
)

WHO_THE_CLIENT_IS = (
    Oddity(
        name="no registration",
        options={"registration": False, "metadata_documents": False},
        client="says which two values to set, and invents no address to register at",
        outcome="refused",
        never=("/register", "/authorize", "/token"),
    ),
    Oddity(
        name="registration is refused",
        options={"registration_status": 403, "metadata_documents": False},
        client="says so, and which two values to set",
        outcome="refused",
        never=("/authorize", "/token"),
    ),
    Oddity(
        name="the registration is forgotten",
        then={},
        control="forget_clients",
        client="registers anew, once, and asks for a login with the new client",
        outcome="needs_login",
    ),
    Oddity(
        name="another port of the loopback is another address",
        options={"exact_redirect": True},
        client="registers the port that it listens at, or listens at the one it registered",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="a client gets only scopes that it was registered with",
        options={"scopes_as_registered": True},
        tool="write",
        client="registers with every scope that it may come to ask for, or anew",
        outcome="works",
    ),
)

LOGINS = (
    Oddity(
        name="the person refuses",
        options={"consent": "refuse"},
        client="says so; the next call asks again",
        outcome="refused",
        never=("/token",),
    ),
    Oddity(
        name="the answer comes from another issuer",
        options={"iss": ELSEWHERE},
        client="compares with the recorded issuer, letter by letter, and throws the code away",
        outcome="refused",
        never=("/token",),
    ),
    Oddity(
        name="the answer names no issuer, and none was announced",
        options={"iss": ""},
        client="goes on",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="the code was used before",
        options={"code_spent": True},
        client="sends it once, and says that the login has to be repeated",
        outcome="refused",
        counts={"codes_reused": 1},
    ),
    Oddity(
        name="a scope is named in the challenge",
        options={"challenge_scope": "read write", "scopes_supported": ()},
        tool="write",
        client="asks for these scopes at once",
        outcome="works",
        counts={"authorizations": 1},
    ),
    Oddity(
        name="one tool needs more",
        tool="write",
        client="asks for what it has and what is missing, together",
        outcome="works",
        counts={"authorizations": 2},
    ),
    Oddity(
        name="no scopes are enough",
        options={"never_enough": True},
        tool="write",
        client="asks three times at most, and says which scope is missing",
        outcome="refused",
    ),
    Oddity(
        name="only calls need a login",
        options={"open_lists": True},
        client="lists the tools, and asks for a login with the first call",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="the server knows nothing of 2026",
        options={"handshake": True},
        client="logs in before the handshake",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="the server's clock is ten minutes off",
        options={"clock": 600.0},
        client="counts from when it asked, by its own clock",
        outcome="works",
        counts=ONE_LOGIN,
    ),
)

TOKENS = (
    Oddity(
        name="an answer without expires_in",
        options={"expires_in": "none"},
        then={},
        client="uses the token until it is refused, then refreshes",
        outcome="works",
        counts=AGAIN,
    ),
    Oddity(
        name="expires_in is a text",
        options={"expires_in": "text"},
        then={},
        client="reads the number in it",
        outcome="works",
        counts=AGAIN,
    ),
    Oddity(
        name="bearer in small letters",
        options={"token_type": "bearer"},
        client="takes it for Bearer",
        outcome="works",
        counts=ONE_LOGIN,
    ),
    Oddity(
        name="a page in place of tokens",
        options={"token_html": True},
        client="says that the answer is none, and stores nothing",
        outcome="refused",
    ),
    Oddity(
        name="the answer names no scopes",
        options={"scope_in_answer": False},
        tool="write",
        then={},
        client="takes those it asked for as granted",
        outcome="works",
        counts={"authorizations": 2, "refreshes": 1},
    ),
    Oddity(
        name="scopes are lost on refresh",
        tool="write",
        then={"refresh_loses_scopes": True},
        client="notes what it has, and asks for all of it again where the server says that it is not enough",
        outcome="needs_login",
    ),
    Oddity(
        name="no refresh token",
        options={"refresh_tokens": False},
        then={},
        client="asks for a login when the token has expired",
        outcome="needs_login",
    ),
    Oddity(
        name="refresh tokens only with offline_access",
        options={"offline_access": True},
        then={},
        client="asks for that scope where the issuer lists it",
        outcome="works",
        counts=AGAIN,
    ),
    Oddity(
        name="refresh tokens stay the same",
        options={"rotate": False},
        then={},
        client="keeps the refresh token where an answer has none",
        outcome="works",
        counts=AGAIN,
    ),
    Oddity(
        name="everybody is logged out",
        then={},
        control="log_out_all",
        client="asks for a login, once for all calls that wait",
        outcome="needs_login",
    ),
    Oddity(
        name="errors come with status 200",
        then={"errors_as_200": True},
        control="log_out_all",
        client="takes what has no token for an error",
        outcome="needs_login",
    ),
    Oddity(
        name="the issuer is down",
        then={"token_status": 503},
        client="keeps the grant: nobody has refused it",
        outcome="waits",
    ),
    Oddity(
        name="the issuer has had enough requests",
        then={"token_status": 429},
        client="keeps the grant, and waits as long as it is told to",
        outcome="waits",
    ),
    Oddity(
        name="a page in place of refreshed tokens",
        then={"token_html": True},
        client="keeps the grant: nobody has refused it",
        outcome="waits",
    ),
    Oddity(
        name="errors repeat what was sent",
        then={"echo_secrets": True},
        control="log_out_all",
        client="shows none of it in any output",
        outcome="needs_login",
    ),
    Oddity(
        name="tokens live for a second",
        options={"lifetime": 1.0},
        client="refreshes no more often than it must",
        outcome="works",
        counts=ONE_LOGIN,
    ),
)

ODDITIES = (*FINDING_OUT, *WHO_THE_CLIENT_IS, *LOGINS, *TOKENS)
