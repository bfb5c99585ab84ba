"""How an agent is had over the toolkits: with Pegboard, and with what its framework has itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks.bill.requests_read import FORMS, Form
from benchmarks.bill.toolkits import Toolkit
from pegboard import Host, Pegboard

Say = Callable[[str], Awaitable[None]]
"""Says something as the user, and comes back when the agent has answered."""
MODELS: Mapping[Form, str] = {"anthropic": "claude-opus-4-8", "responses": "gpt-5.4", "chat": "gpt-5.4"}


class Adapter(Protocol):
    """A way to give an agent the toolkits.

    ``beside`` is the framework's own deferral that it is compared with, None for that itself; ``forms`` are those of
    the providers that it speaks. Each ``talk`` is a new conversation with the provider at the address.
    """

    name: str
    beside: str | None
    forms: Sequence[Form]

    def talk(self, form: Form, url: str, system: str) -> AbstractAsyncContextManager[Say]: ...


class PydanticAI:
    """pydantic-ai with the tools of a session; ``host`` is what is passed to ``board.session``."""

    beside: str | None = "pydantic-ai"
    forms: Sequence[Form] = FORMS

    def __init__(self, name: str, config: Path, *, agent: str = "assistant", host: Host | None = None) -> None:
        self.name = name
        self._config = config
        self._agent = agent
        self._host = host

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        from pegboard.frameworks.pydantic_ai import SessionTools

        async with Pegboard.open(self._config) as board:
            await board.ready()
            host: dict[str, Any] = {} if self._host is None else {"host": self._host}
            session = await board.session(agent=self._agent, session_id="s", **host)
            yield _say(form, url, system, [SessionTools(session)])


class OwnDeferral:
    """pydantic-ai alone: a deferred capability for each toolkit."""

    name = "pydantic-ai"
    beside: str | None = None
    forms: Sequence[Form] = FORMS

    def __init__(self, toolkits: Sequence[Toolkit]) -> None:
        self._toolkits = toolkits

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        from pydantic_ai.capabilities import Capability

        kits = [
            Capability(id=kit.name, description=kit.description, tools=kit.functions(), defer_loading=True)
            for kit in self._toolkits
        ]
        yield _say(form, url, system, kits)


def _say(form: Form, url: str, system: str, capabilities: Sequence[Any]) -> Say:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage

    agent = Agent(model_of(form, url), instructions=system, capabilities=capabilities, model_settings={"cache": True})
    messages: list[ModelMessage] = []

    async def say(text: str) -> None:
        run = await agent.run(text, message_history=messages)
        messages[:] = run.all_messages()

    return say


def model_of(form: Form, url: str) -> Any:
    """Return pydantic-ai's model over the provider's real client."""
    if form == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
        return AnthropicModel(MODELS[form], provider=AnthropicProvider(anthropic_client=client))
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key="none", max_retries=0))
    kind = OpenAIResponsesModel if form == "responses" else OpenAIChatModel
    return kind(MODELS[form], provider=provider)


def adapters(toolkits: Sequence[Toolkit], config: Path) -> tuple[Adapter, ...]:
    """Return the adapters that are measured, each framework's own deferral before what is compared with it."""
    return (
        OwnDeferral(toolkits),
        PydanticAI("pegboard", config),
        PydanticAI("pegboard, anticipate: false", config, agent="asked"),
        PydanticAI("pegboard, result", config, host=Host(delivery=("result",))),
    )
