"""LangChain's agents: with Pegboard, and with what LangChain has itself."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.bill.adapters import MODELS, Adapter, Say
from benchmarks.bill.requests_read import FORMS, Form
from benchmarks.bill.toolkits import Toolkit
from pegboard import Pegboard


class LangChain:
    """LangChain with the tools of a session."""

    beside: str | None = "LangChain"
    forms: Sequence[Form] = FORMS

    def __init__(self, name: str, config: Path, *, agent: str = "assistant") -> None:
        self.name = name
        self._config = config
        self._agent = agent

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        from pegboard.frameworks.langchain import SessionTools

        async with Pegboard.open(self._config) as board:
            await board.ready()
            session = await board.session(agent=self._agent, session_id="s")
            yield _say(form, url, system, (), [SessionTools(session)])


class OwnSearch:
    """LangChain alone: its middleware for the provider's tool search, or all tools at the head."""

    name = "LangChain"
    beside: str | None = None
    forms: Sequence[Form] = FORMS

    def __init__(self, toolkits: Sequence[Toolkit]) -> None:
        self._toolkits = toolkits

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        from langchain.agents.middleware import ProviderToolSearchMiddleware
        from langchain_core.tools import StructuredTool

        functions = [function for kit in self._toolkits for function in kit.functions()]
        tools = [StructuredTool.from_function(one, parse_docstring=True) for one in functions]
        search = ProviderToolSearchMiddleware(searchable_tools=[tool.name for tool in tools])
        yield _say(form, url, system, tools, [] if form == "chat" else [search])


def _say(form: Form, url: str, system: str, tools: Sequence[Any], middleware: Sequence[Any]) -> Say:
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    agent: Any = create_agent(
        _model_of(form, url),
        tools,
        system_prompt=system,
        middleware=[*middleware, *_caching(form)],
        checkpointer=InMemorySaver(),
    )

    async def say(text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydantic's, of the blocks of a provider's tool search
            await agent.ainvoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "s"}})

    return say


def _caching(form: Form) -> list[Any]:
    """Return what sets breakpoints where the provider wants some."""
    if form != "anthropic":
        return []
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

    return [AnthropicPromptCachingMiddleware()]


def _model_of(form: Form, url: str) -> Any:
    """Return LangChain's model over the provider's real client."""
    given: dict[str, Any] = {"model": MODELS[form], "base_url": url, "api_key": "none", "max_retries": 0}
    if form == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(**{**given, "max_tokens": 1000})
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(**given, use_responses_api=form == "responses")


def langchain_agents(toolkits: Sequence[Toolkit], config: Path) -> tuple[Adapter, ...]:
    """Return the agents that are measured, LangChain's own before what is compared with it."""
    return (
        OwnSearch(toolkits),
        LangChain("LangChain, pegboard", config),
        LangChain("LangChain, pegboard, anticipate: false", config, agent="asked"),
    )
