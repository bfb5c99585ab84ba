"""Agents of LangChain that do what other agents delegate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

from pegboard.board.session import Session
from pegboard.frameworks import runs
from pegboard.frameworks.langchain.calls import CALLING

MakeAgent = Callable[[Session], Runnable[Any, Any]]


def delegate_to(
    agents: MakeAgent | Mapping[str, MakeAgent], *, events: Callable[[Any], object] | None = None
) -> Callable[[Session, str], Awaitable[str]]:
    """Return what runs delegated tasks, for ``board.on_delegate``: an agent that is made over the child's session.

    It has the context and the callbacks of the run that delegates, by which its usage counts there.

    Args:
        agents: makes the agent for every child, or one for each by the name of the child's agent, or by its kind:
            ``lambda child: create_agent(model, middleware=[SessionTools(child)])``.
        events: takes what the child's model writes as it comes, ``(message, metadata)``; it must not wait.
    """

    async def run_child(child: Session, task: str) -> str:
        agent: Any = runs.worker_of(agents, child)(child)
        calling, config = CALLING.get(), RunnableConfig(configurable={"thread_id": child.key.session})
        given = {} if calling is None or calling.context is None else {"context": calling.context}
        state: dict[str, Any] = {}
        begun = {"messages": [HumanMessage(task)]}
        async for mode, part in agent.astream(begun, config, stream_mode=["values", "messages"], **given):
            if mode == "values":
                state = {**state, **part}
            elif events is not None:
                events(part)
        if "__interrupt__" in state:
            return "The task is not done: a call of it waits for a person."
        return str(state["messages"][-1].text)

    return run_child
