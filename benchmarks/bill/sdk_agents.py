"""OpenAI Agents: with Pegboard, and with what the SDK has itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.bill.adapters import MODELS, Adapter, Say
from benchmarks.bill.model import MOST
from benchmarks.bill.requests_read import Form
from benchmarks.bill.toolkits import Toolkit
from pegboard import Pegboard

SPOKEN: Sequence[Form] = ("responses", "chat")
"""The forms that the SDK speaks to its own provider."""


class OpenAIAgents:
    """An agent of the SDK with the tools of a session."""

    beside: str | None = "OpenAI Agents"
    forms: Sequence[Form] = SPOKEN

    def __init__(self, name: str, config: Path, *, agent: str = "assistant") -> None:
        self.name = name
        self._config = config
        self._agent = agent

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        from pegboard.frameworks.openai_agents import equip

        async with Pegboard.open(self._config) as board:
            await board.ready()
            session = await board.session(agent=self._agent, session_id="s")
            yield _say(equip(_agent(form, url, system, ()), session))


class OwnToolSearch:
    """The SDK alone: the provider's tool search over deferred tools, or all tools at the head."""

    name = "OpenAI Agents"
    beside: str | None = None
    forms: Sequence[Form] = SPOKEN

    def __init__(self, toolkits: Sequence[Toolkit]) -> None:
        self._toolkits = toolkits

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        from agents import ToolSearchTool, function_tool

        deferred = form == "responses"
        functions = [function for kit in self._toolkits for function in kit.functions()]
        tools: list[Any] = [function_tool(one, strict_mode=False, defer_loading=deferred) for one in functions]
        yield _say(_agent(form, url, system, [*tools, ToolSearchTool()] if deferred else tools))


def _agent(form: Form, url: str, system: str, tools: Sequence[Any]) -> Any:
    """Return an agent over the provider's real client."""
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    kind = OpenAIResponsesModel if form == "responses" else OpenAIChatCompletionsModel
    model = kind(model=MODELS[form], openai_client=client)
    return Agent(name="assistant", instructions=system, model=model, tools=list(tools))


def _say(agent: Any) -> Say:
    from agents import Runner

    items: list[Any] = []

    async def say(text: str) -> None:
        done = await Runner.run(agent, [*items, {"role": "user", "content": text}], max_turns=2 * MOST)
        items[:] = done.to_input_list()

    return say


def sdk_agents(toolkits: Sequence[Toolkit], config: Path) -> tuple[Adapter, ...]:
    """Return the agents that are measured, the SDK's own before what is compared with it."""
    return (
        OwnToolSearch(toolkits),
        OpenAIAgents("OpenAI Agents, pegboard", config),
        OpenAIAgents("OpenAI Agents, pegboard, anticipate: false", config, agent="asked"),
    )
