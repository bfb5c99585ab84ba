"""An agent that has the tools of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Any, Final, TypeVar, cast
from uuid import uuid4
from weakref import WeakKeyDictionary

from agents import (
    Agent,
    FunctionTool,
    FunctionToolResult,
    Handoff,
    ModelProvider,
    Tool,
    ToolsToFinalOutputResult,
)

from pegboard.board.session import Session
from pegboard.core.surface.continuations import LIMIT
from pegboard.frameworks import runs
from pegboard.frameworks.openai_agents.equipped_run import RUNNING, EquippedRun
from pegboard.frameworks.openai_agents.model_twin import stepping_twin
from pegboard.frameworks.openai_agents.models import behind_twin
from pegboard.frameworks.openai_agents.state import AgentState, AnyContext
from pegboard.frameworks.runs import AnySession

AgentT = TypeVar("AgentT", bound=Agent[Any])

OpenSession = Callable[[AnyContext], AnySession | Awaitable[Session]]

NAMES: Final[WeakKeyDictionary[AnyContext, str]] = WeakKeyDictionary()
"""The names of the runs, by what all agents of a run share."""


def equip(
    agent: AgentT, session: AnySession | OpenSession, *, limit: int = LIMIT, provider: ModelProvider | None = None
) -> AgentT:
    """Return a copy of an agent that has the tools of a session behind its own, which win where a name is the same.

    Args:
        agent: instructions, handoffs, guardrails, hooks and other tools stay as they are.
        session: the session, or what opens one for a run from its context.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.
        provider: what knows the agent's model where that is a name; the SDK's own by default. A model, or a provider
            of models, in a run's ``RunConfig`` does not count for this agent.
    """
    plain: Any = agent
    if isinstance(agent, SessionAgent):
        plain = cast("Any", copy(agent))
        plain.model = plain.pegboard_host.model
    host = EquippedHost(session, limit, plain.model)
    made: Any = runs.make_twin(plain, SessionAgent)
    made.model = stepping_twin(plain.model, host, provider)
    made.tool_use_behavior = tool_use_behavior(plain.tool_use_behavior, host)
    made.pegboard_host = host
    return made


class EquippedHost(AgentState):
    """An equipped agent over its runs."""

    def __init__(self, session: AnySession | OpenSession, limit: int, model: Any) -> None:
        super().__init__(model)
        self._session = session
        self._limit = limit
        self._runs: WeakKeyDictionary[AnyContext, EquippedRun] = WeakKeyDictionary()

    def run_of(self, context: AnyContext) -> EquippedRun:
        """Return the run of a context; one that goes on after a decision is the one that waited for it."""
        known = self._runs.get(context)
        if known is None:
            known = next((run for run in self.waiting if run.has_decision_in(context)), None) or self.new_run(context)
            self._runs[context] = known
        return known

    def new_run(self, context: AnyContext) -> EquippedRun:
        """Return a run that no one else knows."""
        session = self._session
        opens = session if isinstance(session, AnySession) else partial(session, context)
        return EquippedRun(self, opens, self._limit, NAMES.setdefault(context, uuid4().hex))


class SessionAgent:
    """What an equipped agent does where the SDK asks it for its tools and instructions."""

    pegboard_host: EquippedHost

    async def get_all_tools(self, run_context: AnyContext) -> list[Tool]:
        """Return the agent's own tools, and those of the session behind them."""
        own: list[Tool] = await behind_twin(super()).get_all_tools(run_context)
        run = (
            self.pegboard_host.run_of(run_context)
            if run_context.turn_input
            else self.pegboard_host.new_run(run_context)
        )
        if run_context.turn_input:
            RUNNING.set(run)
        handoffs = (_handoff_name(one) for one in behind_twin(self).handoffs)
        return [*own, *await run.tools_for_step(run_context, {*(tool.name for tool in own), *handoffs})]

    async def get_system_prompt(self, run_context: AnyContext) -> str | None:
        """Return the agent's instructions with policy and hints behind them."""
        own: str | None = await behind_twin(super()).get_system_prompt(run_context)
        step = self.pegboard_host.run_of(run_context).step
        prefix = step.prefix if step is not None else ""
        return "\n\n".join(text for text in (own, prefix) if text) or own

    def clone(self, **changes: Any) -> Any:
        """Return a copy with changes, over the same session."""
        host, steps = self.pegboard_host, behind_twin(self).model
        plain = behind_twin(super()).clone(**changes)
        plain.pegboard_host = host
        if "tool_use_behavior" in changes:
            plain.tool_use_behavior = tool_use_behavior(changes["tool_use_behavior"], host)
        if "model" in changes:
            plain.model = stepping_twin(changes["model"], host, getattr(steps, "_provider", None))
        return plain


class StopsBehindTools:
    """What an agent does that ends a run with the result of a tool: a tool that has not run ends none.

    Args:
        given: what the agent was made with, the first tool or some by name; no meta-tool is the first.
        host: the agent's.
    """

    def __init__(self, given: Any, host: EquippedHost) -> None:
        self.given = given
        self._host = host

    def __call__(self, context: AnyContext, results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
        """Return whether one of these results ends the run."""
        run = self._host.run_of(context)
        for result in filter(run.has_run, results):
            names = {result.tool.name, result.tool.qualified_name}
            if (
                not run.is_meta(result.tool)
                if isinstance(self.given, str)
                else names & {*self.given["stop_at_tool_names"]}
            ):
                return ToolsToFinalOutputResult(is_final_output=True, final_output=result.output)
        return ToolsToFinalOutputResult(is_final_output=False, final_output=None)

    def _is_named(self, tool: FunctionTool, run: EquippedRun) -> bool:
        if isinstance(self.given, str):
            return not run.is_meta(tool)
        return not {tool.name, tool.qualified_name}.isdisjoint(self.given["stop_at_tool_names"])


def tool_use_behavior(behavior: Any, host: EquippedHost) -> Any:
    """Return what an equipped agent does with the results of tools; a function of the host is asked as it is."""
    given = behavior.given if isinstance(behavior, StopsBehindTools) else behavior
    declared = given == "stop_on_first_tool" or isinstance(given, dict)
    return StopsBehindTools(given, host) if declared else given


def _handoff_name(handoff: Any) -> str:
    return handoff.tool_name if isinstance(handoff, Handoff) else Handoff.default_tool_name(handoff)
