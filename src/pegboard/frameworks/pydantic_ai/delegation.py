"""Agents of the framework that do what is delegated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_ai.agent import AbstractAgent, EventStreamHandler
from pydantic_ai.tools import DeferredToolRequests

from pegboard.board.session import Session
from pegboard.frameworks.pydantic_ai.capability import SessionTools
from pegboard.frameworks.pydantic_ai.toolset import CALLING
from pegboard.frameworks.runs import (
    worker_of,
)


def delegate_to(
    agents: AbstractAgent[Any, Any] | Mapping[str, AbstractAgent[Any, Any]],
    *,
    events: EventStreamHandler[Any] | None = None,
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: an agent that works with the child's tools.

    It has the dependencies of the run that delegates, and counts in its usage and under its limits.

    Args:
        agents: the agent for every child, or one for each by the name of the child's agent, or by its kind.
        events: takes the events of the child's run as they come, as ``Agent.run`` has it.
    """

    async def run_child(child: Session, task: str) -> str:
        agent: AbstractAgent[Any, Any] = worker_of(agents, child)
        calling = CALLING.get()
        given: dict[str, Any] = {} if calling is None else {"deps": calling.deps, "usage": calling.usage}
        if calling is not None:
            given["usage_limits"] = calling.usage_limits
        done = await agent.run(task, capabilities=[SessionTools(child)], event_stream_handler=events, **given)
        output = done.output
        waits = isinstance(output, DeferredToolRequests)
        return "The task is not done: a call of it waits for a person." if waits else str(output)

    return run_child
