"""Agents of the SDK that do what is delegated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents import (
    Agent,
    Runner,
)

from pegboard.board.session import Session
from pegboard.frameworks import runs
from pegboard.frameworks.openai_agents.equipped_run import CALLING
from pegboard.frameworks.openai_agents.equipping import (
    equip,
)


def delegate_to(
    agents: Agent[Any] | Mapping[str, Agent[Any]], *, events: Callable[[Any], object] | None = None
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: a copy of an agent with the tools of the child.

    It has the context of the run that delegates, and counts in its usage.

    Args:
        agents: the agent for every child, or one for each by the name of the child's agent, or by its kind.
        events: takes the events of the child's run as they come; it must not wait.
    """

    async def run_child(child: Session, task: str) -> str:
        calling = CALLING.get()
        agent = equip(runs.worker_of(agents, child), child)
        given: dict[str, Any] = (
            {} if calling is None else {"context": calling.context, "run_config": calling.run_config}
        )
        if events is None:
            done: Any = await Runner.run(agent, task, **given)
        else:
            done = Runner.run_streamed(agent, task, **given)
            async for event in done.stream_events():
                events(event)
        if calling is not None:
            calling.usage.add(done.context_wrapper.usage)
        return (
            "The task is not done: a call of it waits for a person." if done.interruptions else str(done.final_output)
        )

    return run_child
