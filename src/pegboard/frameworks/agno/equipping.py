"""How an agent or a team of Agno is given the tools of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agno.agent import Agent
from agno.models.base import Model
from agno.run import RunContext
from agno.team import Team

from pegboard.board.session import Session
from pegboard.core.surface.continuations import LIMIT
from pegboard.errors import UsageError
from pegboard.frameworks import runs
from pegboard.frameworks.agno.models import host_of_model, provider_of_model
from pegboard.frameworks.agno.session_function import AgnoSessionFunction
from pegboard.frameworks.agno.session_model import AgnoSessionModel
from pegboard.frameworks.runs import AnySession

OwnerT = TypeVar("OwnerT", Agent, Team)
OpenSession = Callable[[RunContext], AnySession | Awaitable[Session]]


def equip(agent: OwnerT, session: AnySession | OpenSession, *, limit: int = LIMIT) -> OwnerT:
    """Return the agent or team with the tools of a session behind its own, which win where a name is the same.

    Args:
        agent: it has a model; instructions, hooks, memory and other tools stay as they are.
        session: the session, or what opens one for a run from its ``session_id`` and ``user_id``.
        limit: how often in a row the tools of a run change without one being used; then the model has to answer.

    Raises:
        UsageError: the agent has no model.
    """
    if not isinstance(agent.model, Model):
        raise UsageError("The agent has no model of its own.", hint="Give it one first: Agent(model=...).")
    owner: Any = agent
    host, provider = host_of_model(agent.model), provider_of_model(agent.model)
    owner.model = runs.make_twin(agent.model, AgnoSessionModel)
    function = AgnoSessionFunction(name="pegboard_session", session=session, limit=limit, host=host, provider=provider)
    owner.add_tool(function)
    return agent
