"""Which session a request is for: whose, under which id, child of which other (S1, P8, L8)."""

from __future__ import annotations

import itertools
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container, Iterator
from dataclasses import dataclass, field
from typing import Final

from pegboard.board.observability.conversations import Conversation
from pegboard.core.access.instances import PoolUser
from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.access.settings.own_settings import OwnSetting
from pegboard.core.model.agents import Agent, WorkerScope, World, narrowest
from pegboard.core.model.delivery import Host
from pegboard.core.model.loadout_registry import loadout_of_kind
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.errors import UnknownAgentError, UsageError
from pegboard.ports import SessionKey

DEPTH: Final = 3
"""How many sessions may stand above one."""
_KIND_LENGTH: Final = 40
MOST_LIVE: Final = 4_096
"""So many sessions are known to be live; the one without news for longest goes first."""
LIVE_FOR: Final = 3600.0
"""For how many seconds after its last surface a session of which nothing is stored is taken to be live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """Which session it is, who holds it, and what it adds to its agent's profile.

    ``stable`` is whether it has an id; without one nothing is stored (S4). ``start`` is the state of which nothing
    is stored, ``parent`` the session that it is a child of; ``delegated`` is whether it works under its own profile as
    long as the parent's agent may delegate to it (P8). ``conversation`` is what is asked for in it, as long
    as the process lasts. ``by`` is the operator who acts in it from outside, for the audit trail (X4). ``settings`` is
    what a child has set for itself: it ends with it (P10).
    ``kind`` is what kind of child it is, "" of one that is none.
    ``client`` names the connected client, "" where only the session tells clients apart; ``number`` tells sessions
    without an id apart (G9). ``chosen`` is whether someone has said what the host can do; else adapters do.
    """

    key: SessionKey
    stable: bool
    host: Host
    constraints: SessionConstraints
    start: State = DEFAULT
    parent: SessionInfo | None = None
    delegated: bool = False
    conversation: Conversation = field(default_factory=Conversation, compare=False, repr=False)
    by: str = field(default="", compare=False)
    settings: dict[OwnSetting, str] = field(default_factory=dict[OwnSetting, str], compare=False, repr=False)
    kind: str = ""
    client: str = ""
    chosen: bool = True
    number: int = field(default_factory=itertools.count().__next__, compare=False, repr=False)

    @property
    def pool_user(self) -> PoolUser:
        """Return on whose behalf objects and connections are used here (G9)."""
        named = pool_user_of(self.key)
        session = named.session if self.stable else f"number {self.number}"
        return PoolUser(principal=named.principal, session=session, client=self.client)


class Delegation:
    """What the host does with a task that is delegated, of one board; it may be set at any time."""

    __slots__ = ("run",)

    def __init__(self) -> None:
        self.run: Callable[[SessionInfo, str], Awaitable[object]] | None = None

    @property
    def fault(self) -> str:
        """Return why nothing can be delegated, or nothing (P6)."""
        return (
            "" if self.run is not None else "No subagents can run here: the host program has not set board.on_delegate."
        )


class LiveSessions:
    """The sessions that had a surface in this process within an hour, and when; the oldest goes first."""

    def __init__(self) -> None:
        self._known: OrderedDict[SessionKey, tuple[SessionInfo, float]] = OrderedDict()

    def note(self, info: SessionInfo) -> None:
        """Note that a session has a surface now; one without an id is nothing to come back to."""
        if not info.stable:
            return
        self._known[info.key] = info, time.time()
        self._known.move_to_end(info.key)
        if len(self._known) > MOST_LIVE:
            self._known.popitem(last=False)

    def get(self, key: SessionKey) -> tuple[SessionInfo, float] | None:
        """Return what a session was opened with, and when it had a surface last, if it is live here."""
        return self._known.get(key)

    @property
    def newest(self) -> float:
        """Return when one had a surface last, in seconds since the epoch; 0.0 where none had."""
        return next(reversed(self._known.values()))[1] if self._known else 0.0

    def forget(self, key: SessionKey) -> None:
        """Forget a session that was deleted."""
        self._known.pop(key, None)

    def __iter__(self) -> Iterator[tuple[SessionInfo, float]]:
        """Iterate over the sessions and when they had a surface last, in seconds since the epoch."""
        latest = time.time() - LIVE_FOR
        return iter(tuple(known for known in self._known.values() if known[1] >= latest))


def agent_of(world: World, name: str) -> Agent:
    """Return an agent's profile; raises ``UnknownAgentError``."""
    agent = world.agents.get(name)
    if agent is None:
        raise UnknownAgentError(f"There is no agent '{name[:100]}'.", hint=did_you_mean(name, world.agents))
    return agent


def open_sub_app(world: World, agent: str, name: str | None) -> str | None:
    """Return the sub-app that a client may open of an agent (T9).

    Raises ``UsageError`` where the agent does not list it, whether or not there is one of this name.
    """
    if name is None:
        return None
    listed = [known for known in agent_of(world, agent).sub_apps if known in world.sub_apps]
    if name not in listed:
        shown = one_line(name, limit=100)
        hint = did_you_mean(name, listed)
        raise UsageError(f"Agent '{agent}' has no sub-app '{shown}'.", code="unknown_sub_app", hint=hint)
    return name


def pool_user_of(key: SessionKey) -> PoolUser:
    """Return on whose behalf a session with an id uses objects and connections, but for its client (G9)."""
    return PoolUser(principal=key.principal, session=f"id {key.session}")


def sessions_above(info: SessionInfo) -> Iterator[SessionInfo]:
    """Yield the sessions above one, the nearest first."""
    parent = info.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def child_of(
    parent: SessionInfo, world: World, kind: str, agent: str | None, *, delegates: Container[str] = ()
) -> SessionInfo:
    """Return a new session for a subagent of this kind, with its kind's loadout as active (L8).

    It has an id of its own, of which nothing is stored before something changes. ``agent`` None is the parent's. One of
    the ``delegates`` works under its own profile, whatever the kind (P8). Raises ``UsageError`` where the parent is too
    deep.
    """
    if sum(1 for _ in sessions_above(parent)) >= DEPTH:
        raise UsageError(
            f"A child of this session would be more than {DEPTH} levels deep.",
            code="child_depth",
            hint="Do the work in this session.",
        )
    import uuid  # every start would pay for it

    profile = agent_of(world, agent if agent is not None else parent.key.agent)
    name = re.sub(r"[^\w-]+", "-", kind.strip())[:_KIND_LENGTH] or "child"
    parts = (parent.key.session, name, uuid.uuid4().hex)
    key = SessionKey(
        principal=parent.key.principal, agent=profile.name, session="/".join(part for part in parts if part)
    )
    scope = _narrowest_scope(parent.constraints, agent_of(world, parent.key.agent), profile)
    delegated = agent is not None and agent in delegates
    return SessionInfo(
        key=key,
        stable=True,
        host=parent.host,
        constraints=SessionConstraints(worker_scope=scope, sub_app=None if delegated else parent.constraints.sub_app),
        start=DEFAULT if delegated else State(loadout=loadout_of_kind(kind)),
        parent=parent,
        delegated=delegated,
        kind=kind,
        client=parent.client,
    )


def _narrowest_scope(parent: SessionConstraints, parent_agent: Agent, profile: Agent) -> WorkerScope | None:
    """Return the narrowest scope of the parent and the child's own agent, None where both share (P5, G9)."""
    private = "user" if parent_agent.private_per is not None else None
    scope = narrowest(parent.worker_scope, parent_agent.worker_scope, private, profile.worker_scope)
    return None if scope == "shared" else scope
