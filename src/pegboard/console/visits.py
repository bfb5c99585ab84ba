"""Who asks for what: one request of one operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

from pegboard.console.entry.operator_access import Operator, SignIn
from pegboard.operators.approvals import WaitingCalls

EVENTS: Final = "/console/events"
"""The address of the stream of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of an operator; ``sign_in`` is None for a program with a bearer token.

    Where a whole page is asked for, ``waiting`` is which calls wait for a person, and ``stream`` the address at
    which the page hears of changes.
    """

    request: Request
    operator: Operator
    sign_in: SignIn | None
    waiting: WaitingCalls = field(default_factory=WaitingCalls)
    stream: str = EVENTS

    @property
    def partial(self) -> bool:
        """Return whether a script of the page asks for a part of it."""
        return self.request.headers.get("hx-request") == "true"
