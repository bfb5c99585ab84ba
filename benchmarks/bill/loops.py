"""Loops by hand on the providers' real clients: with Pegboard, and with what a provider has itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.bill.adapters import MODELS, Adapter, Say
from benchmarks.bill.requests_read import FORMS, Form
from benchmarks.bill.tool_search import ToolSearch
from benchmarks.bill.toolkits import Toolkit
from pegboard import Pegboard, Tool
from pegboard.core.model.tools import text_result
from pegboard.frameworks.loop import Loop
from pegboard.wire.anthropic_messages import AnthropicMessages
from pegboard.wire.openai_chat import OpenAIChat
from pegboard.wire.openai_responses import OpenAIResponses
from pegboard.wire.provider_forms import HistoryChange, ProviderForm, RequestParts, ToolResult, as_plain

Create = Callable[..., Awaitable[Any]]
WIRE: Mapping[Form, ProviderForm] = {
    "anthropic": AnthropicMessages(),
    "responses": OpenAIResponses(),
    "chat": OpenAIChat(),
}
SEARCH = Tool(
    plugin="provider",
    name="tool_search",
    wire="tool_search",
    description="Search for tools that are not listed, by what they are to do.",
    input_schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


class PlainLoop:
    """A loop by hand over a session."""

    beside: str | None = "loop, the provider's search"
    forms: Sequence[Form] = FORMS

    def __init__(self, name: str, config: Path, *, agent: str = "assistant") -> None:
        self.name = name
        self._config = config
        self._agent = agent

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        async with Pegboard.open(self._config) as board:
            await board.ready()
            session = await board.session(agent=self._agent, session_id="s")
            loop = Loop(session, form=form, model=MODELS[form], system=system)
            create, messages = _create(form, url), list[Any]()

            async def say(text: str) -> None:
                messages.append({"role": "user", "content": text})
                while True:
                    messages.extend(await loop.answer(await create(**await loop.request(messages))))
                    if loop.done:
                        return

            yield say


class ProviderSearch:
    """A loop by hand with what the provider has itself: its tool search, or all tools at the head."""

    name = "loop, the provider's search"
    beside: str | None = None
    forms: Sequence[Form] = FORMS

    def __init__(self, toolkits: Sequence[Toolkit], config: Path) -> None:
        self._made = {tool.name: tool for toolkit in toolkits for tool in toolkit.tools}
        self._search = ToolSearch(toolkits)
        self._config = config

    @asynccontextmanager
    async def talk(self, form: Form, url: str, system: str) -> AsyncIterator[Say]:
        wire = WIRE[form]
        create, messages, shown = _create(form, url), list[Any](), set[str]()
        async with Pegboard.open(self._config) as board:
            await board.ready()
            session = await board.session(session_id="s", agent="assistant")
            tools = {tool.wire: tool for tool in (await session.snapshot()).permissions.permitted}
            parts = RequestParts(
                model=MODELS[form],
                system=(system,),
                head=[*tools.values()] if form == "chat" else [SEARCH],
                deferred=[*tools.values()] if form == "anthropic" else [],
                reveals=form != "chat",
            )

            async def say(text: str) -> None:
                messages.append({"role": "user", "content": text})
                while True:
                    said = wire.reply(as_plain(await create(**wire.request(parts, messages))))
                    messages.extend(said.messages)
                    if not said.calls:
                        return
                    (call,) = said.calls
                    found = self._search.found(str((call.arguments or {})["query"])) if call.name == SEARCH.wire else []
                    answer = f"{len(found)} tools found" if found else self._made[call.name].answer
                    messages.extend(wire.results([ToolResult(call=call, result=text_result(answer), limit=100_000)]))
                    new = tuple(tools[name] for name in found if name not in shown)
                    shown.update(found)
                    messages.extend(wire.change(HistoryChange(joined=new), reveals=True))

            yield say


def loops(toolkits: Sequence[Toolkit], config: Path) -> tuple[Adapter, ...]:
    """Return the loops that are measured, the provider's own before what is compared with it."""
    return (
        ProviderSearch(toolkits, config),
        PlainLoop("loop, pegboard", config),
        PlainLoop("loop, pegboard, anticipate: false", config, agent="asked"),
    )


def _create(form: Form, url: str) -> Create:
    """Return what sends a request with the provider's client."""
    common: dict[str, Any] = {"base_url": url, "api_key": "none", "max_retries": 0}
    if form == "anthropic":
        from anthropic import AsyncAnthropic

        client = AsyncAnthropic(**common)
        return lambda **request: client.messages.create(**request, max_tokens=1000)
    from openai import AsyncOpenAI

    openai = AsyncOpenAI(**common)
    return openai.responses.create if form == "responses" else openai.chat.completions.create
