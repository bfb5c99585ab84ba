"""One request of one operator: who asks for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

from pegboard.console.entry.operator_access import Operator, SignIn
from pegboard.operators.approvals import WaitingCalls
from pegboard.operators.attention import Attention
from pegboard.operators.masked import ShownNames

EVENTS: Final = "/console/events"
"""The address of the stream of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequest:
    """One request of an operator; ``sign_in`` is None for a program with a bearer token.

    Where a whole page is asked for, ``waiting`` is which calls wait for a person, ``attention`` what else needs one,
    and ``stream`` the address at which the page hears of changes.
    ``names`` is how names are shown, and the way back.
    """

    request: Request
    operator: Operator
    sign_in: SignIn | None
    names: ShownNames
    waiting: WaitingCalls = field(default_factory=WaitingCalls)
    attention: Attention = field(default_factory=Attention)
    stream: str = EVENTS

    def given(self, name: str) -> str:
        """Return what a part of the address's query means, names as they are; nothing where it is not there."""
        return self.names.meant(self.request.query_params.get(name, ""))

    @property
    def partial(self) -> bool:
        """Return whether a script of the page asks for a part of it."""
        return self.request.headers.get("hx-request") == "true"
