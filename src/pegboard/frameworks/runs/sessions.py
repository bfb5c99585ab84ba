"""What a run takes as its session, and whose session a task has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, cast

from pegboard.board.blocking import SyncSession
from pegboard.board.session import Session
from pegboard.errors import UsageError

T = TypeVar("T")
Worker = TypeVar("Worker")
AnySession = Session | SyncSession
SessionFunction = Callable[[Session], Awaitable[T]]


def in_event_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        return bool(asyncio.get_running_loop())
    except RuntimeError:
        return False


def worker_of(agents: Worker | Mapping[str, Worker], child: Session) -> Worker:
    """Return the framework's agent that does the task of a child session.

    Args:
        agents: the one for every child, or some by the name of the child's agent, or by its kind.
        child: the session; one that works under the profile of its parent goes by its kind first.

    Raises:
        UsageError: none of them is for this child.
    """
    if not isinstance(agents, Mapping):
        return agents
    known = cast("Mapping[str, Worker]", agents)
    info = child.info
    names = (child.key.agent, info.kind) if info.delegated else (info.kind, child.key.agent)
    for name in names:
        if name in known:
            return known[name]
    raise UsageError(
        f"No agent of the framework is given for '{names[0]}'.", hint=f"There are: {', '.join(known) or 'none'}."
    )
