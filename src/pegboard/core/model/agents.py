"""Agents as they are configured, and the world that they work in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pegboard.core.model.catalog import Catalog
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.prices import Prices
from pegboard.core.model.recording import UNLESS_STATED, Recording
from pegboard.core.model.selectors import Member
from pegboard.core.model.toolkits import ISOLATING_SCOPES, Toolkit
from pegboard.core.model.tools import EMPTY
from pegboard.problems import Place

WorkerScope = Literal["shared", "user", "user_agent"]
Activation = Literal["next_step", "next_request"]
UnloadedCall = Literal["safe", "schema", "run", "reject"]
DialectName = Literal["pegboard", "toolkits", "invokeother", "discovery"]
HINT_TOKENS: Final = 1500
"""What hints take at most where nothing else is stated (F2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The bounds of a surface: number of tools, tokens; None is unbounded (S9)."""

    tools: int | None = None
    tokens: int | None = None
    shrink: bool = False

    def __bool__(self) -> bool:
        """Return whether there is a bound."""
        return self.tools is not None or self.tokens is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anticipate:
    """The bounds of what one message of the user may load before anyone asks for it (S5)."""

    tools: int = 5
    tokens: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The profile of an agent; names are as written, looked up against the catalog later.

    ``switches`` are the configured booleans (P2) with the place of each in ``switch_places``;
    ``lease`` None takes the dialect's default; ``turn_gap`` is in seconds, ``hint_tokens`` in tokens, None without a
    bound (F2); ``approval_expires`` is for how many seconds an approval counts, ``approvals_by`` who may give one (A5);
    ``anticipate`` None loads nothing that no one asked for; ``remember`` is whether what is called after which need is
    remembered for its searches, ``search_loads`` whether a search loads what it finds. ``host_tools`` are those of
    the host that it lists, ``may_delegate`` the agents that work for it under their own profiles (P8), ``sub_apps``
    what clients may open of it (T9), ``self_config`` which of its own settings it may change, ``record`` what is
    kept of its calls (X4). ``provider_model`` is its model as ``provider:id`` where ``models:`` has both, else "",
    ``prices`` what it costs, None where it says not. ``dialect_reason`` says why it has this dialect where
    the file does not state one.
    """

    name: str
    static: tuple[Member, ...] = ()
    essential: tuple[Member, ...] = ()
    host_tools: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    allowed_toolkits: tuple[str, ...] = ()
    initial_toolkits: tuple[str, ...] = ()
    loadout: str | None = None
    discoverable: tuple[str, ...] = ()
    sub_apps: tuple[str, ...] = ()
    self_config: tuple[str, ...] = ()
    switches: Mapping[str, bool] = field(default=EMPTY)
    switch_places: Mapping[str, Place] = field(default=EMPTY)
    worker_scope: WorkerScope = "shared"
    private_per: str | None = None
    dialect: DialectName = "pegboard"
    dialect_reason: str = ""
    activation: Activation | None = None
    lease: LeaseTerm | None = None
    budget: Budget = Budget()
    hint_tokens: int | None = HINT_TOKENS
    unloaded_call: UnloadedCall = "safe"
    anticipate: Anticipate | None = None
    search_loads: bool = True
    turn_gap: float = 120.0
    approval_expires: float = 3600.0
    approvals_by: Literal["operator", "client"] = "client"
    remember: bool = True
    record: Recording = UNLESS_STATED
    display_name: str = ""
    role: str = ""
    model: str = ""
    provider_model: str = ""
    prices: Prices | None = None
    rooms: tuple[str, ...] = ()
    place: Place | None = None

    @property
    def isolating(self) -> bool:
        """Return whether the agent works apart for each user, so that shared-only plugins cannot be used."""
        return self.worker_scope in ISOLATING_SCOPES or self.private_per is not None


SCOPES: Final[tuple[WorkerScope, ...]] = ("shared", "user", "user_agent")
"""The scopes, the widest first."""


def narrowest(*scopes: WorkerScope | None) -> WorkerScope:
    """Return the narrowest of some scopes.

    >>> narrowest("user", None, "shared")
    'user'
    """
    stated: list[WorkerScope] = [scope for scope in scopes if scope is not None]
    return max(stated, key=SCOPES.index) if stated else "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The scope in force: an agent's own, and what a session narrows it to (P5)."""

    agent: Agent
    narrowed: WorkerScope | None = None

    @property
    def worker(self) -> WorkerScope:
        """Return the narrower of both: a session never widens its agent's scope (G9)."""
        return narrowest(self.agent.worker_scope, self.narrowed)

    @property
    def isolating(self) -> bool:
        """Return whether shared-only plugins cannot be used."""
        return self.agent.isolating or self.narrowed in ISOLATING_SCOPES

    @property
    def label(self) -> str:
        """Return the scope as people are shown it."""
        if self.narrowed in ISOLATING_SCOPES:
            return f"worker_scope={self.narrowed}"
        if self.agent.worker_scope in ISOLATING_SCOPES:
            return f"worker_scope={self.agent.worker_scope}"
        if self.agent.private_per is not None:
            return f"private.per={self.agent.private_per}"
        return f"worker_scope={self.narrowed or self.agent.worker_scope}"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One consistent picture of everything configured and known; replaced whole, never edited."""

    catalog: Catalog = field(default_factory=Catalog)
    toolkits: Mapping[str, Toolkit] = field(default=EMPTY)
    loadouts: Mapping[str, Loadout] = field(default=EMPTY)
    agents: Mapping[str, Agent] = field(default=EMPTY)
    sub_apps: Mapping[str, tuple[Member, ...]] = field(default=EMPTY)

    def lists(self) -> Iterator[tuple[Member, ...]]:
        """Yield every list of tools that is written: those of toolkits, agents and sub-apps."""
        yield from (toolkit.members for toolkit in self.toolkits.values())
        for agent in self.agents.values():
            yield from (agent.static, agent.essential)
        yield from self.sub_apps.values()

    def default_agent(self) -> str | None:
        """Return the agent that is meant where none is named: ``default``, else the only one."""
        if "default" in self.agents:
            return "default"
        return next(iter(self.agents)) if len(self.agents) == 1 else None
