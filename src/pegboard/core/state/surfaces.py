"""What goes to the model at one step, and what an operator may ask about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pegboard.core.access.permissions import Reason
from pegboard.core.model.leases import LeaseReason, LeaseTerm
from pegboard.core.model.tools import EMPTY, JsonObject, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTool:
    """Hold a tool that a lease stands on: until when, because of what, under which overrides.

    ``because`` has every reason, the one that put it into its place first. ``needed_by`` are the
    tools that require it (T8).
    """

    tool: Tool
    until: LeaseTerm
    because: tuple[LeaseReason, ...]
    overrides: JsonObject = field(default=EMPTY)
    key: str = ""
    needed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Hold tokens: of the tools, of hints, policy and suffix, of both, of everything permitted (F4).

    ``saved`` is what loading every permitted tool would cost more than this.
    """

    tools: int
    text: int
    total: int
    catalog: int
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Hold what goes to the model at one step (F1); ``tools`` includes the meta-tools, in order.

    ``loadout`` is the session's active loadout (L7), ``shrunk`` the one that narrows what is out
    from the start to fit the budget (S9).
    """

    agent: str
    session: str | None
    turn: int
    tools: tuple[LoadedTool, ...]
    hints: tuple[str, ...] = ()
    suffix: str = ""
    policy: str = ""
    focus: JsonObject | None = None
    loadout: str | None = None
    shrunk: str | None = None
    count: Callable[[], Costs] | None = field(default=None, compare=False, repr=False)

    @property
    def tokens(self) -> Costs:
        """Return what the surface costs, counted now; raises ``ValueError`` without a counter."""
        if self.count is None:
            raise ValueError("this surface was resolved without a token counter")
        return self.count()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the wire names, in order."""
        return tuple(out.tool.wire for out in self.tools)

    def find(self, wire: str) -> LoadedTool | None:
        """Return the tool with this wire name."""
        return next((out for out in self.tools if out.tool.wire == wire), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Answer the four predicates for one tool, with the chain of reasons (F5)."""

    tool: str
    permitted: bool
    loaded: bool
    visible: bool
    callable: bool
    reasons: tuple[Reason, ...]
