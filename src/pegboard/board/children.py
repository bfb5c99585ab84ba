"""Sessions of subagents: at most what their parent may now, and nothing that reaches up (P8, L8)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, WorkerScope
from pegboard.core.model.loadout_registry import loadout_of_kind
from pegboard.core.state.sessions import State
from pegboard.errors import UsageError
from pegboard.ports import SessionKey

if TYPE_CHECKING:
    from pegboard.board.session import Session

DEPTH: Final = 3
"""How many sessions may stand above one."""
_SCOPES: Final[tuple[WorkerScope, ...]] = ("shared", "user", "user_agent")
_KIND_LENGTH: Final = 40


def begin(parent: Session, kind: str, agent: str | None) -> Session:
    """Return a new session for a subagent of this kind, with its kind's loadout as active (L8).

    It has an id of its own, of which nothing is stored before something changes. ``agent`` None is
    the parent's. Raises ``UsageError`` where the parent is too deep, ``UnknownAgentError``.
    """
    from pegboard.board.session import Session

    if sum(1 for _ in above(parent)) >= DEPTH:
        raise UsageError(
            f"A child of this session would be more than {DEPTH} levels deep.",
            code="child_depth",
            hint="Let the session do the work itself.",
        )
    profile = parent.board.agent(agent if agent is not None else parent.key.agent)
    name = re.sub(r"[^\w-]+", "-", kind.strip())[:_KIND_LENGTH] or "child"
    parts = (parent.key.session, name, uuid.uuid4().hex)
    key = SessionKey(
        principal=parent.key.principal, agent=profile.name, session="/".join(part for part in parts if part)
    )
    circumstances = replace(parent.circumstances, worker_scope=_scope(parent, profile))
    return Session(
        parent.board,
        key,
        stable=True,
        host=parent.host,
        circumstances=circumstances,
        parent=parent,
        start=State(loadout=loadout_of_kind(kind)),
    )


def above(session: Session) -> Iterator[Session]:
    """Yield the sessions above one, the nearest first."""
    parent = session.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _scope(parent: Session, profile: Agent) -> WorkerScope | None:
    """Return the narrowest scope of the parent and the child's own agent, None where both share (P5, G9)."""
    agent = parent.agent
    private = "user" if agent.private_per is not None else "shared"
    held = (parent.circumstances.worker_scope or agent.worker_scope, private, profile.worker_scope)
    narrowest = max(held, key=_SCOPES.index)
    return None if narrowest == "shared" else narrowest


async def access(session: Session, since: float | None = None) -> CompiledPermissions:
    """Return what a session may as of ``since``, or now; a child, as of its parents' permissions and loadouts now."""
    await session.board.refresh(since)
    for parent in above(session):
        await parent.stored()
    return access_now(session)


def access_now(session: Session) -> CompiledPermissions:
    """Return what a session may as of the last look at the stored switches and its parents' states."""
    return session.board.access_now(session.key.agent, _circumstances(session))


def _circumstances(session: Session) -> SessionConstraints:
    """Return the circumstances over the parent's access as it is in the world now, never an older one."""
    parent = session.parent
    if parent is None:
        return session.circumstances
    within = replace(_circumstances(parent), narrowed=parent.seen.loadout)
    return replace(session.circumstances, parent=parent.board.access_now(parent.key.agent, within))
