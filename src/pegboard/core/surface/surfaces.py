"""What goes to the model at one step: tools in order, hints, policy, focus, and what they cost (F1, F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.leases import ALWAYS, LeaseReason
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools, available, starting_tools
from pegboard.core.state.sessions import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Numbers of tokens: of the tools, of hints, policy and suffix, of both, of everything permitted (F4).

    ``saved`` is what loading every permitted tool would cost more than this.
    """

    tools: int
    text: int
    total: int
    catalog: int
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What goes to the model at one step (F1); ``tools`` includes the meta-tools, in order.

    ``loadout`` is the session's active loadout (L7), ``shrunk`` the one that narrows what is loaded
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
        return tuple(loaded.tool.wire for loaded in self.tools)

    def find(self, wire: str) -> LoadedTool | None:
        """Return the tool with this wire name."""
        return next((loaded for loaded in self.tools if loaded.tool.wire == wire), None)


def resolve(
    access: CompiledPermissions, state: State, *, session: str | None = None, meta: Iterable[Tool] = ()
) -> Surface:
    """Return the surface: total, deterministic, its cost that of what is loaded."""
    return Surface(
        agent=access.agent.name,
        session=session,
        turn=state.turn,
        tools=order(access, active_tools(access, state), loaded_meta_tools(meta)),
        loadout=state.loadout,
        shrunk=state.shrunk,
    )


def loaded_meta_tools(tools: Iterable[Tool]) -> tuple[LoadedTool, ...]:
    """Return the meta-tools as they stand on a surface."""
    return tuple(LoadedTool(tool=tool, until=ALWAYS, because=(LeaseReason.META,)) for tool in tools)


def order(
    access: CompiledPermissions, active: Mapping[str, LoadedTool], meta: Iterable[LoadedTool]
) -> tuple[LoadedTool, ...]:
    """Return what the model gets, in the order of F1, without what is unavailable."""
    head = starting_tools(access).head
    front = [loaded for key, loaded in active.items() if key in head]
    back = [loaded for key, loaded in active.items() if key not in head]
    return (*available(access, front), *meta, *available(access, back))
