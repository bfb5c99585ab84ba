"""Agents of Agno that do what other agents delegate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agno.agent import Agent
from agno.run.agent import RunOutput

from pegboard.board.session import Session
from pegboard.frameworks import runs
from pegboard.frameworks.agno.equipping import equip
from pegboard.ports.framework_runs import FRAMEWORK_RUN


def delegate_to(
    agents: Agent | Mapping[str, Agent], *, events: Callable[[Any], object] | None = None
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: a copy of an agent with the tools of the child.

    It has the dependencies of the run that delegates. Agno counts what it takes in its own run's metrics.

    Args:
        agents: the agent for every child, or one for each by the name of the child's agent, or by its kind.
        events: takes the events of the child's run as they come; it must not wait.
    """

    async def run_child(child: Session, task: str) -> str:
        one: Any = equip(runs.worker_of(agents, child).deep_copy(), child)
        calling = FRAMEWORK_RUN.get()
        context: Any = None if calling is None else getattr(calling.context, "_run_context", None)
        given: dict[str, Any] = {"session_id": child.key.session}
        if context is not None and context.dependencies is not None:
            given["dependencies"] = context.dependencies
        done = await (one.arun(task, **given) if events is None else _run_streamed(one, task, given, events))
        return "The task is not done: a call of it waits for a person." if done.is_paused else str(done.content)

    return run_child


async def _run_streamed(one: Any, task: str, given: Mapping[str, Any], events: Callable[[Any], object]) -> Any:
    """Return what a run comes to whose events are handed on."""
    done: Any = None
    async for event in one.arun(task, stream=True, stream_events=True, yield_run_output=True, **given):
        if isinstance(event, RunOutput):
            done = event
        else:
            events(event)
    return done
