"""Bearer tokens: whose a request is, which agents it may use, and what its owner may do as an operator (G2, A5)."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pegboard.problems import Place

Right = Literal["see", "approve", "switch", "configure"]
"""What an operator may do: look; answer calls that wait for a person; set switches, change sessions and start servers
again; accept what widens a configuration."""
RIGHTS: Final[tuple[Right, ...]] = ("see", "approve", "switch", "configure")
OPERATOR: Final[frozenset[Right]] = frozenset({"see", "approve", "switch"})
"""The rights of `console: true`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Who may use the gateway as whom; ``agents`` None is all of them.

    With ``rights`` they are an operator too, of these agents and no others. ``written`` is the value in the text of
    the configuration where that refers to variables. A ``value`` may be the digest of the token.
    """

    principal: str
    value: str = field(repr=False)
    agents: tuple[str, ...] | None = ()
    rights: frozenset[Right] = frozenset()
    written: str = field(default="", repr=False)
    place: Place | None = None


_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def digest_of(token: str) -> str:
    """Return what a configuration may have in place of a token: it tells whether one is right, and is no token itself.

    >>> digest_of("ada-secret")[:16]
    'sha256:cb3ac4f9f'
    """
    return f"sha256:{hashlib.sha256(token.encode(errors='surrogatepass')).hexdigest()}"


def _is_value_of(token: Token, given: str) -> bool:
    value = digest_of(given) if _DIGEST.fullmatch(token.value) else given
    return hmac.compare_digest(value.encode(errors="surrogatepass"), token.value.encode(errors="surrogatepass"))


def owner_of(authorization: str | None, tokens: Sequence[Token]) -> Token | None:
    """Return the token that an ``Authorization`` header bears."""
    scheme, _, given = (authorization or "").partition(" ")
    return token_of(given, tokens) if scheme.lower() == "bearer" else None


def token_of(offered: str, tokens: Sequence[Token]) -> Token | None:
    """Return the token with this value; each is compared in constant time.

    >>> token_of(" ada-secret ", [Token(principal="ada", value="ada-secret")])
    Token(principal='ada', agents=(), rights=frozenset(), place=None)
    >>> token_of("", [Token(principal="eve", value="")]) is None
    True
    """
    given = offered.strip()
    if not given:
        return None
    found = [token for token in tokens if _is_value_of(token, given)]
    return found[0] if found else None


def may_use_agent(token: Token | None, agent: str) -> bool:
    """Return whether an agent may be used with this token, and seen with it in the console.

    Without tokens every agent may.
    """
    return token is None or token.agents is None or agent in token.agents
