"""Agents of Agno that are made as the configuration describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Protocol

from agno.agent import Agent
from agno.models.base import Model
from agno.models.utils import get_model
from agno.run import RunContext

from pegboard.board.session import Session
from pegboard.core.model.agents import Agent as Profile
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import JsonObject
from pegboard.errors import UsageError
from pegboard.frameworks.agno.equipping import equip


class ConfiguredBoard(Protocol):
    """A board over a configuration, as ``Pegboard.open`` gives it."""

    @property
    def configuration(self) -> Configured:
        """Return what the configuration says."""
        ...

    async def session(self, *, agent: str, session_id: str | None = None, principal: str = "local") -> Session:
        """Return a session."""
        ...


class Configured(Protocol):
    """What a configuration says of agents and their models."""

    @property
    def agents(self) -> Mapping[str, Profile]:
        """Return the agents."""
        ...

    @property
    def models(self) -> Mapping[str, JsonObject]:
        """Return the models, as they are written."""
        ...


def agno_agent(board: ConfiguredBoard, name: str, /, *, model: Model | None = None, **given: Any) -> Agent:
    """Return an agent as the configuration describes it, with the tools of a session for each of its runs.

    Its name is ``display_name``, its role ``role``, its model the one of ``models:`` that ``model`` names, else
    ``default``. A run's ``session_id`` and ``user_id`` say whose session it has; no user is ``local``.

    Args:
        board: the board over the configuration.
        name: the agent in it.
        model: in place of the configured one.
        given: anything else that ``agno.agent.Agent`` takes, which wins.

    Raises:
        UsageError: there is no such agent, or no model of it that Agno can make.
    """
    configured = board.configuration
    profile = configured.agents.get(name)
    if profile is None:
        raise UsageError(f"There is no agent '{name}'.", hint=f"There are: {', '.join(configured.agents) or 'none'}.")
    described: dict[str, Any] = {"id": name, "name": profile.display_name or name, "role": profile.role or None}
    described |= {**given, "model": _model_of(configured, profile) if model is None else model}

    async def open_session_of_run(run: RunContext) -> Session:
        return await board.session(agent=name, session_id=run.session_id, principal=run.user_id or "local")

    return equip(Agent(**described), open_session_of_run)


def _model_of(configured: Configured, profile: Profile) -> Model:
    """Return the model of an agent as Agno has it.

    Raises:
        UsageError: there is none that Agno can make.
    """
    name = profile.model or "default"
    written = configured.models.get(name)
    if written is None:
        known = ", ".join(configured.models) or "none"
        raise UsageError(
            f"The configuration has no model '{name}' for the agent '{profile.name}'.",
            hint=f"`models:` has: {known}. Add it, or give `agno_agent(…, model=…)`.",
        )
    rest = dict(written)
    rest.pop("prices", None)
    provider, model_id = rest.pop("provider", None), rest.pop("id", None)
    if not isinstance(provider, str) or not isinstance(model_id, str):
        raise UsageError(f"models.{name}: 'provider' and 'id' say which model it is.")
    try:
        made: Any = get_model(f"{provider}:{model_id}")
    except (ImportError, ValueError) as error:
        raise UsageError(f"models.{name}: {error}") from error
    known_keys = {one.name for one in fields(made) if one.init}
    if unknown := sorted(rest.keys() - known_keys):
        raise UsageError(
            f"models.{name}: {type(made).__name__} of Agno has no '{unknown[0]}'.",
            hint=did_you_mean(unknown[0], known_keys),
        )
    return replace(made, **rest) if rest else made
