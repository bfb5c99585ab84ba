"""What the newest calls came to, so that an equal one is not decided anew (P3).

A permission binds the next call (P4): what is remembered counts only for the very same access and
state, and both are made anew whenever a configuration, a catalog, a switch or a state has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pegboard.core.access.guards import guards_of
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.transitions import used

if TYPE_CHECKING:
    from pegboard.board.session import Session
    from pegboard.core.access.permissions import CompiledPermissions
    from pegboard.core.model.delivery import Host
    from pegboard.core.state.calls import Run
    from pegboard.core.state.sessions import State
    from pegboard.core.state.surfaces import LoadedTool
    from pegboard.ports import Client, Progress, SessionKey, Source

MOST: Final = 4096
"""How many states, and how many calls, are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerChannel:
    """Hold the way back to whoever calls: who takes progress, who can be asked, and the request's ``_meta``."""

    progress: Progress | None = None
    client: Client | None = None
    meta: JsonObject = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedCall:
    """Hold a call that may run: the tool, whose it is, and who runs it.

    ``stored`` is the state as it was read, ``state`` the same within its budget. ``renews``: the call
    is the first use of a lease in this turn (S7).
    """

    access: CompiledPermissions
    host: Host
    stored: State
    state: State
    out: LoadedTool
    spec: PluginSpec
    source: Source
    scope: str
    guards: JsonObject
    renews: bool


class DecisionCache:
    """Remember the states that were read last, and the calls that were decided last."""

    def __init__(self) -> None:
        self._states: dict[SessionKey, State] = {}
        self._routes: dict[tuple[SessionKey, bool, str], DecidedCall] = {}

    def forget_states(self) -> None:
        """Forget the states: the store has changed."""
        self._states.clear()

    def keep_state(self, key: SessionKey, state: State) -> None:
        """Remember a state that was read."""
        if len(self._states) >= MOST:
            self._states.clear()
        self._states[key] = state

    def state(self, key: SessionKey) -> State | None:
        """Return the state as of the last look at the store, if it was read since."""
        return self._states.get(key)

    def find(self, session: Session, name: str, access: CompiledPermissions, stored: State) -> DecidedCall | None:
        """Return what a call of this name comes to, if that was decided for the same access, state and host."""
        route = self._routes.get((session.key, session.stable, name))
        if route is None or route.access is not access or route.host is not session.host:
            return None
        return route if route.stored is stored or route.stored == stored else None

    def keep(
        self, session: Session, name: str, access: CompiledPermissions, stored: State, state: State, plan: Run
    ) -> DecidedCall:
        """Remember a call that may run."""
        tool, keeper = plan.out.tool, session.board.keeper
        spec = keeper.specs[tool.plugin]
        late = session.stable and tool.id not in starting_tools(access).head
        route = DecidedCall(
            access=access,
            host=session.host,
            stored=stored,
            state=state,
            out=plan.out,
            spec=spec,
            source=keeper.source_of(spec),
            scope=pool_scope(access, spec, session.key),
            guards=guards_of(spec),
            renews=late and used(access, state, tool.id) is not state,
        )
        if len(self._routes) >= MOST:
            self._routes.clear()
        self._routes[session.key, session.stable, name] = route
        return route


LOCAL = "local"
"""The principal of whoever started the process: connections that describe a server are its own."""


def pool_scope(access: CompiledPermissions, spec: PluginSpec, key: SessionKey) -> str:
    """Return which pool a connection is taken from: never one of another principal's (G9)."""
    agent = access.agent
    scope = access.circumstances.worker_scope or agent.worker_scope
    if scope == "user_agent":
        return f"user:{key.principal}:agent:{key.agent}"
    if scope == "user" or agent.private_per is not None:
        return f"user:{key.principal}"
    own = isinstance(spec, ServerSpec) and spec.command is not None and not spec.shared
    if own and key.principal != LOCAL:
        return f"user:{key.principal}"
    return "shared"
