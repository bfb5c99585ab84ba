"""Operators who are signed in, and what they, their browsers and their programs prove it with (G2)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from pegboard.core.principals.bearer_tokens import RIGHTS, Right, Token, may_use_agent, owner_of, token_of

LOCAL: Final = "local"
"""The operator on loopback where no tokens are configured."""
LIFETIME: Final = 12 * 3600.0
"""For how long a browser stays signed in after its last request, in seconds."""
MOST: Final = 1000
"""How many browsers are signed in at once; of the operator who has most, the one without a request for longest gives
way."""
CODE_LIFETIME: Final = 600.0
"""For how long a one-time code can be used, in seconds."""
MOST_CODES: Final = 64
"""How many codes are good at once; the oldest gives way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Someone who may use the console, and the token that they have; without tokens there is one operator."""

    name: str
    token: Token | None = None

    def sees(self, agent: str) -> bool:
        """Return whether an agent is there for this operator."""
        return may_use_agent(self.token, agent)

    @property
    def rights(self) -> frozenset[Right]:
        """Return what this operator may do; whoever started a gateway without tokens may do everything."""
        return frozenset(RIGHTS) if self.token is None else self.token.rights

    @property
    def grants(self) -> bool:
        """Return whether a switch of this operator may grant what the file does not (A5)."""
        return "configure" in self.rights

    @property
    def agents(self) -> frozenset[str] | None:
        """Return the agents that are there for this operator, None for all."""
        return None if self.token is None or self.token.agents is None else frozenset(self.token.agents)


@dataclass(slots=True, kw_only=True)
class SignIn:
    """A browser that is signed in.

    ``csrf`` is what its forms carry, ``token`` the digest of the token that it signed in with, None for a one-time
    code. ``notices`` are shown by its next page.
    """

    operator: Operator
    csrf: str
    token: bytes | None
    until: float
    notices: list[object] = field(default_factory=list[object])


class SignInCodes:
    """Codes of 128 random bits, each good once and for ten minutes; only their digests are kept."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}

    def new(self) -> str:
        """Return a new code."""
        code = secrets.token_urlsafe(16)
        while len(self._until) >= MOST_CODES:
            del self._until[next(iter(self._until))]
        self._until[digest(code)] = self._clock() + CODE_LIFETIME
        return code

    def is_good(self, code: str) -> bool:
        """Return whether the code could be used now; it is not used up."""
        return self._clock() < self._until.get(digest(code), 0.0)

    def redeem(self, code: str) -> bool:
        """Return whether the code is good, and use it up."""
        until = self._until.pop(digest(code), None)
        return until is not None and self._clock() < until


class OperatorAccess:
    """Who may use the console of one board; ``tokens`` returns those of the configuration in force.

    ``secret`` is for the user's other processes: with it one asks for a one-time code.
    """

    def __init__(self, tokens: Callable[[], Sequence[Token]], clock: Callable[[], float] = monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._sign_ins: dict[bytes, SignIn] = {}
        self.codes = SignInCodes(clock)
        self.secret = secrets.token_urlsafe(32)

    @property
    def by_code(self) -> bool:
        """Return whether one signs in with a code: where no tokens are configured."""
        return not self._tokens()

    def knows_secret(self, given: str) -> bool:
        """Return whether someone has the secret of this process, where codes are in use."""
        return self.by_code and hmac.compare_digest(digest(given), digest(self.secret))

    def bearer(self, authorization: str | None) -> Operator | None:
        """Return whose bearer token a header holds, if that is an operator's."""
        return _operator(owner_of(authorization, self._tokens()))

    def is_known(self, authorization: str | None) -> bool:
        """Return whether a header holds a token of the configuration, also one that is no operator's."""
        return owner_of(authorization, self._tokens()) is not None

    def with_code(self, code: str) -> str | None:
        """Return the cookie of a new sign-in with a one-time code, or None."""
        return self._begin_sign_in(Operator(name=LOCAL), None) if self.by_code and self.codes.redeem(code) else None

    def with_token(self, token: str) -> str | None:
        """Return the cookie of a new sign-in with an operator's token, or None."""
        operator = _operator(known := token_of(token, self._tokens()))
        return (
            self._begin_sign_in(operator, digest(known.value)) if known is not None and operator is not None else None
        )

    def signed_in(self, cookie: str | None, *, renew: bool = True) -> SignIn | None:
        """Return the sign-in of a cookie while it lasts and its operator still is one; ``renew`` lets it last again."""
        known = self._sign_ins.pop(digest(cookie), None) if cookie else None
        if cookie is None or known is None or self._clock() >= known.until:
            return None
        operator = self._current_operator(known)
        if operator is None:
            return None
        known.operator = operator
        if renew:
            known.until = self._clock() + LIFETIME
        self._sign_ins[digest(cookie)] = known
        return known

    def end(self, cookie: str | None) -> None:
        """End a sign-in."""
        if cookie:
            self._sign_ins.pop(digest(cookie), None)

    def _begin_sign_in(self, operator: Operator, token: bytes | None) -> str:
        cookie = secrets.token_urlsafe(32)
        while len(self._sign_ins) >= MOST:
            names = Counter(known.operator.name for known in self._sign_ins.values())
            ((most, _),) = names.most_common(1)
            del self._sign_ins[next(key for key, known in self._sign_ins.items() if known.operator.name == most)]
        until = self._clock() + LIFETIME
        self._sign_ins[digest(cookie)] = SignIn(
            operator=operator, csrf=secrets.token_urlsafe(32), token=token, until=until
        )
        return cookie

    def _current_operator(self, known: SignIn) -> Operator | None:
        if known.token is None:
            return known.operator if self.by_code else None
        now = (one for one in self._tokens() if hmac.compare_digest(digest(one.value), known.token))
        return _operator(next(now, None))


def _operator(token: Token | None) -> Operator | None:
    """Return the operator whose token it is, if its owner is one."""
    return Operator(name=token.principal, token=token) if token is not None and token.rights else None


def digest(secret: str) -> bytes:
    """Return what is kept of a secret: looking it up tells nothing of the secret itself."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
