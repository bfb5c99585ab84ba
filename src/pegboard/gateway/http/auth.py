"""Authentication of requests over HTTP: hosts, origins and bearer tokens (G2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pegboard.board.session_info import open_sub_app
from pegboard.core.model.naming import label_problem
from pegboard.core.model.specs import any_reaches
from pegboard.core.principals.bearer_tokens import Token, may_use_agent, owner_of
from pegboard.errors import PegboardError, UsageError
from pegboard.gateway.protocol.board_port import LOCAL, BoardPort, Caller
from pegboard.support.hosts import is_loopback
from pegboard.support.mcp_constants import INVALID_PARAMS, INVALID_REQUEST
from pegboard.support.user_token import UserToken, make_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104  (recognised, not bound)
FORWARDED: Final = "pegboard.forwarded"
"""What the scope of a request has that another replica has sent on, which has judged Host and Origin: its id."""
PRINCIPAL: Final = "pegboard.principal"
"""What the state of a request has once it is known whose it is."""
_MOST_HOSTS: Final = 256


def require_tokens(board: BoardPort, host: str) -> None:
    """Refuse to serve other machines without tokens (G2)."""
    if not is_loopback(host) and not board.configuration.tokens:
        raise UsageError(
            f"Serving on {host} lets other machines in, and no tokens are configured.",
            code="tokens_required",
            hint="Add 'tokens:' to the configuration, or serve on 127.0.0.1.",
        )


def starts_what_reaches(board: BoardPort, port: int) -> bool:
    """Return whether a gateway has something confined in its configuration that could connect to its port."""
    return any_reaches((spec.confine for spec in board.configuration.specs.values()), port)


def demand_user_token(board: BoardPort, host: str, port: int) -> None:
    """Make the token of the user where something that is confined reaches the gateway, which has no other (A7)."""
    if board.configuration.tokens or not is_loopback(host) or not starts_what_reaches(board, port):
        return
    try:
        make_token()
    except OSError as error:
        raise UsageError(
            f"Something confined has network, and the token that keeps it out of the gateway cannot be made: {error}.",
            code="tokens_required",
            hint="Make that folder writable, add 'tokens:', or confine with `network: none`.",
        ) from None


class HttpRefusal(Exception):  # noqa: N818  (it is an answer)
    """An answer to a request with an HTTP status and a JSON-RPC error."""

    def __init__(self, status: int, message: str, *, code: int = INVALID_REQUEST, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **given}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        from starlette.responses import JSONResponse

        error = {"jsonrpc": "2.0", "id": None, "error": {"code": self.code, "message": self.message}}
        await JSONResponse(error, status_code=self.status, headers=self.headers)(scope, receive, send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticator:
    """The rules by which a request gets its caller; ``host`` is where the gateway is bound."""

    board: BoardPort
    host: str
    default_agent: str | None = None
    default_session: str | None = None
    default_sub_app: str | None = None
    origins: dict[str, str] = field(default_factory=dict[str, str])
    """By principal, where they reached the gateway last, as a Host that is served here."""
    user_token: UserToken = field(default_factory=UserToken)

    def note_request(self, caller: Caller, scope: Scope, host: str) -> None:
        """Note whose a request is, and where they reach the gateway: there they log in to servers, too (G11)."""
        scope.setdefault("state", {})[PRINCIPAL] = caller.principal
        self.origins[caller.principal] = f"{scope.get('scheme', 'http')}://{host}"

    def origin(self, principal: str) -> str:
        """Return where a principal with a token reaches the gateway, nothing for anyone else."""
        known = any(token.principal == principal for token in self.board.configuration.tokens)
        return self.origins.get(principal, "") if known else ""

    def principal(self, authorization: str | None) -> Token | None:
        """Return the token of a request, or None where none are in use; raises ``Refusal``."""
        tokens = self.board.configuration.tokens
        if not tokens and is_loopback(self.host):
            if self.user_token.admits(authorization, lambda: starts_what_reaches(self.board, self.user_token.port)):
                return None
            where = f" The token is in {self.user_token.file}: something confined of this user has network, and runs."
            raise _refuse_unauthenticated(authorization, where)
        token = owner_of(authorization, tokens)
        if token is None:
            raise _refuse_unauthenticated(authorization)
        return token

    def caller(
        self, authorization: str | None, agent: str | None, query: Mapping[str, str], transport: str | None = None
    ) -> Caller:
        """Return who calls; raises ``Refusal``.

        An agent that is not theirs looks like none (G2), a sub-app that their agent does not list, too (T9).
        """
        token = self.principal(authorization)
        agent = (agent or "").removesuffix("/")  # an address with a slash at its end is the one without
        world = self.board.world
        name = agent or self.default_agent or world.default_agent()
        if name is None or name not in world.agents or not may_use_agent(token, name):
            raise HttpRefusal(404, "There is no such agent here. Name one in the path: /mcp/{agent}.")
        named = query.get("session")
        if named is not None and (problem := label_problem(named)):
            raise HttpRefusal(400, f"?session= {problem}", code=INVALID_PARAMS)
        return Caller(
            agent=name,
            principal=token.principal if token is not None else LOCAL,
            session=named or self.default_session,
            transport_session=transport,
            client=transport or "",
            sub_app=self._sub_app(name, query.get("sub_app", None if agent else self.default_sub_app)),
        )

    def _sub_app(self, agent: str, name: str | None) -> str | None:
        try:
            return open_sub_app(self.board.world, agent, name)
        except UsageError:
            raise HttpRefusal(
                404, "There is no such sub-app here. Name one that the agent lists: ?sub_app=NAME."
            ) from None


def _refuse_unauthenticated(authorization: str | None, where: str = "") -> HttpRefusal:
    """Return the refusal of a request without a token that counts; ``where`` says where there is one."""
    scheme, _, given = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and given.strip():
        challenge = 'Bearer realm="pegboard", error="invalid_token"'
        return HttpRefusal(401, f"This bearer token is not known here.{where}", WWW_Authenticate=challenge)
    return HttpRefusal(401, f"A bearer token is required.{where}", WWW_Authenticate='Bearer realm="pegboard"')


class OriginCheck:
    """A middleware that refuses foreign Hosts and Origins, so that no web page reaches the gateway."""

    def __init__(self, app: ASGIApp, *, host: str) -> None:
        self._app = app
        self._allowed: set[tuple[str, str | None]] = set()
        self._open = host in ANY_ADDRESS
        self._hosts = LOOPBACK_NAMES | {host.lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refusal = self.refusal_of(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def refusal_of(self, scope: Scope) -> HttpRefusal | None:
        """Return the refusal of a request, or None where it may come in."""
        if FORWARDED in scope:
            return None
        headers: dict[str, Any] = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        return self._refusal(headers.get("host", ""), headers.get("origin"))

    def allows(self, host: str, origin: str | None) -> bool:
        """Return whether a request with this Host and Origin is allowed."""
        pair = host, origin
        if pair in self._allowed:
            return True
        if self._refusal(host, origin) is not None:
            return False
        if len(self._allowed) < _MOST_HOSTS:
            self._allowed.add(pair)
        return True

    def _refusal(self, host: str, origin: str | None) -> HttpRefusal | None:
        name = host_name(f"//{host}")
        if not name or not (self._open or name in self._hosts):
            return HttpRefusal(421, "This Host is not served here.")
        if origin is not None:
            source = host_name(origin)
            if not source or not (source in self._hosts or (self._open and source == name)):
                return HttpRefusal(403, "Requests from this Origin are not served here.")
        return None


def host_name(url: str) -> str:
    """Return the host of a URL in lower case, or nothing where there is none.

    >>> host_name("//[::1]:80"), host_name("http://LocalHost:1"), host_name("null")
    ('::1', 'localhost', '')
    """
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").rstrip(".").lower() if parts.scheme in ("", "http", "https") else ""
    except ValueError:
        return ""


def identify(
    scope: Scope, headers: Mapping[bytes, bytes], authenticator: Authenticator, origins: OriginCheck
) -> Caller | None:
    """Return who calls an agent, or None where a request is for another path or is to be refused (G2)."""
    path: str = scope["path"]
    if path != "/mcp" and not path.startswith("/mcp/"):
        return None
    if FORWARDED not in scope and not origins.allows(_text(headers.get(b"host")) or "", _text(headers.get(b"origin"))):
        return None
    query: Any = {}
    if scope["query_string"]:
        from starlette.datastructures import QueryParams

        query = QueryParams(scope["query_string"])
    authorization, transport = _text(headers.get(b"authorization")), _text(headers.get(b"mcp-session-id"))
    try:
        caller = authenticator.caller(authorization, path[5:] or None, query, transport)
    except (HttpRefusal, PegboardError):
        return None
    authenticator.note_request(caller, scope, _text(headers.get(b"host")) or "")
    return caller


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
