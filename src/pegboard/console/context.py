"""What every page and every answer of the console works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from pegboard.board.services import Services
from pegboard.console.console_board import ConsoleBoard
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.exports import RunningExports
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.templating import Templates
from pegboard.console.updates.changes import Streams
from pegboard.core.model.agents import Agent
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.principals.bearer_tokens import Right
from pegboard.errors import UnknownAgentError, UsageError
from pegboard.operators.adding_servers import AddingServers
from pegboard.operators.attention import Attention, HookFault, find_attention
from pegboard.operators.editing import Editing, Editor
from pegboard.operators.history import ConfigurationHistory
from pegboard.operators.subjects import OperatorSubjects
from pegboard.operators.together import BulkSwitch, BulkSwitchKind

ATTENTION: Final = 20
"""How much of what needs someone is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of one console: its board, who may use it, and what draws it.

    ``services`` and ``subjects`` know the part of the catalog that the operator sees, ``board`` all of it.
    """

    board: ConsoleBoard
    services: Services
    subjects: OperatorSubjects
    editing: Editing
    history: ConfigurationHistory
    adding: AddingServers
    access: OperatorAccess
    streams: Streams
    exports: RunningExports
    templates: Templates
    hooks: Callable[[], Sequence[HookFault]] = tuple

    def editor(self, visit: OperatorRequest) -> Editor:
        """Return the operator as who edits the configuration."""
        return Editor(name=visit.operator.name, agents=visit.operator.agents)

    def agent(self, visit: OperatorRequest, name: str) -> Agent:
        """Return an agent that the operator sees; raises ``UnknownAgentError`` for any other."""
        seen = {agent.name: agent for agent in self.agents(visit)}
        if name not in seen:
            raise UnknownAgentError(f"There is no agent '{one_line(name, limit=100)}'.", hint=did_you_mean(name, seen))
        return seen[name]

    def agents(self, visit: OperatorRequest) -> tuple[Agent, ...]:
        """Return the agents that the operator sees."""
        return tuple(agent for agent in self.board.world.agents.values() if visit.operator.sees(agent.name))

    def shown_agents(self, visit: OperatorRequest) -> list[str]:
        """Return the names of the agents that the operator sees, as they are shown."""
        return [visit.names.shown(agent.name) for agent in self.agents(visit)]

    def agent_of_list(self, visit: OperatorRequest, name: str) -> str | None:
        """Return the agent that a list is narrowed to, also one that is no longer configured; None is every one."""
        if name and not visit.operator.sees(name):
            self.agent(visit, name)
        return name or None

    def together(
        self, visit: OperatorRequest, kind: BulkSwitchKind, name: str, value: bool | None, agent: str
    ) -> BulkSwitch:
        """Return what is set for one agent, or with no name for all that the operator sees."""
        agents = (self.agent(visit, agent).name,) if agent else tuple(one.name for one in self.agents(visit))
        return BulkSwitch(kind=kind, name=name, value=value, agents=agents)

    async def attention(self, visit: OperatorRequest) -> Attention:
        """Return what needs the operator."""
        edits = [str(change) for change in self.board.waiting] if visit.operator.agents is None else []
        return await find_attention(
            self.services,
            self.subjects.problems,
            self.board.configuration_state,
            edits,
            agents=visit.operator.agents,
            hooks=self.hooks(),
            limit=ATTENTION,
        )

    def require_every_agent(self, visit: OperatorRequest) -> None:
        """Raise ``UsageError`` where the operator sees some agents only: what all agents share is not theirs."""
        if visit.operator.agents is not None:
            raise UsageError(
                "Servers and the configuration are those of every agent, and this token is for some of them only.",
                code="every_agent_required",
                hint='Use a token with `agents: ["*"]`.',
            )


def require_right(visit: OperatorRequest, right: Right) -> None:
    """Raise ``UsageError`` where the operator may not do something (A5)."""
    if right not in visit.operator.rights:
        raise UsageError(
            f"The token of '{visit.operator.name}' does not have the right '{right}'.",
            code="right_required",
            hint="The rights of an operator are set under `tokens:`, in `console`.",
        )


Handler = Callable[[Context, OperatorRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One address of the console: its path, its handler, the method that it takes, and the right that it needs."""

    path: str
    handler: Handler
    method: str = "GET"
    right: Right = "see"
