"""What Pegboard adds to a step of an agent framework: from the model's answer, a call, to its next request.

Each framework runs its own agent, bare with Python functions as tools and with a session that has the same ones, in
alternating runs. The catalog has 1,000 tools; 20 of them are loaded, or all. What else the machine does lengthens the
time that a step takes, and less what it computes: both are measured. On a busy machine a step that was interrupted
computes longer too, since its code and data are no longer at hand: the fastest tenth of the steps is next to what is
computed undisturbed.

The model answers at once, in two ways. A scripted model is in the place of the framework's own, and a step is the
least that it can be: a step of Agno is 0.14 ms then, of which hardly anything is left beside a call that is decided,
validated, audited and counted. With the framework's own model of OpenAI over Chat Completions, whose client answers in
the process, the step has what each real one has: history and tools in the provider's form, and the answer out of it;
but for the client's own work, and the network.

LangChain and Agno are run a third time (``hooks alone``): what their public interface costs whoever changes tools from
step to step, with hooks that hand on the same tools and calls and do nothing else.

There are two readings of "over the bare framework". The list is the same on both sides within a row (``of bare``): the
bare agent has tools with the definitions of the session's meta-tools beside the functions, which no one calls. The
catalog is the same where the bare framework lists all of it, as it must, and the session has 20 loaded (``of bare with
the catalog``).
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from benchmarks.answering_client import MODEL, AnsweringClient
from pegboard import Pegboard, Session
from pegboard.core.model.tools import Tool as Definition
from pegboard.dialects.names import META_PLUGIN

CATALOG = 1_000
SOME = 20
STEPS = 20
RUNS = 20
FUNCTION = '''
async def tool_{n}(text: str, count: int = {n}) -> str:
    """Do the thing of which number {n} is the number, to a text, as often as it is asked for.

    Args:
        text: What it is done to.
        count: How often.
    """
    return text
'''

Tool = Callable[..., Awaitable[str]]
Step = tuple[float, float]
"""The milliseconds that a step took, and those that the process computed meanwhile."""
Taken = list[Step]
Pair = tuple[Taken, Taken]
"""The steps of two runs in turn, bare and with Pegboard."""
Answers = Literal["scripted", "of OpenAI"]
Tools = tuple[Sequence[Tool], Sequence[Definition]]
"""Functions, and tools that have a definition alone."""


@dataclass(frozen=True, slots=True)
class HandedOn:
    """Tools that hooks hand on."""

    tools: Tools


Run = Callable[[Tools | HandedOn | Session, Answers], Awaitable[Taken]]
"""Runs an agent for ``STEPS`` steps, each a call of ``tool_0``: with these tools, or with those of the session.

A step is from the end of the model's answer to the beginning of its next call.
"""


class Clock:
    """The times between a model's calls."""

    def __init__(self) -> None:
        self.taken: Taken = []
        self._answered: tuple[float, float] | None = None

    def called(self) -> bool:
        """Note that the model is called; return whether it is to go on."""
        if self._answered is not None:
            passed, computed = self._answered
            self.taken.append(((time.perf_counter() - passed) * 1000, (time.process_time() - computed) * 1000))
        return len(self.taken) < STEPS

    def answers(self) -> None:
        self._answered = (time.perf_counter(), time.process_time())


async def never(*_: Any, **__: Any) -> str:
    """Stand in for what is never called."""
    raise NotImplementedError


async def pydantic_ai(given: Tools | HandedOn | Session, answers: Answers) -> Taken:
    from pydantic_ai import Agent, Tool
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    from pegboard.frameworks.pydantic_ai import SessionTools

    clock = Clock()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = ToolCallPart("tool_0", {"text": "x"}) if clock.called() else TextPart("done")
        clock.answers()
        return ModelResponse(parts=[part])

    model: Any = FunctionModel(answer)
    if answers != "scripted":
        client = AnsweringClient(clock.called, clock.answers)
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
    if isinstance(given, Session):
        agent = Agent(model, capabilities=[SessionTools(given)])
    else:
        assert not isinstance(given, HandedOn)
        defined = [Tool.from_schema(never, one.wire, one.description, dict(one.input_schema)) for one in given[1]]
        agent = Agent(model, tools=[*given[0], *defined])
    await agent.run("Go on.", usage_limits=UsageLimits(request_limit=None))
    return clock.taken


async def agno(given: Tools | HandedOn | Session, answers: Answers) -> Taken:
    from agno.agent import Agent
    from agno.models.base import Model
    from agno.models.openai import OpenAIChat
    from agno.models.response import ModelResponse

    from pegboard.frameworks.agno import equip

    clock = Clock()
    call = {"id": "call", "type": "function", "function": {"name": "tool_0", "arguments": '{"text": "x"}'}}

    class Scripted(Model):
        """A model that calls as long as the clock runs."""

        async def ainvoke(self, *args: Any, **request: Any) -> ModelResponse:
            answer = ModelResponse(tool_calls=[call]) if clock.called() else ModelResponse(content="done")
            clock.answers()
            return answer

        invoke = invoke_stream = ainvoke_stream = ainvoke  # type: ignore[assignment]
        _parse_provider_response = _parse_provider_response_delta = ainvoke  # type: ignore[assignment]

    model: Model = Scripted(id="scripted")
    if answers != "scripted":
        model = OpenAIChat(id=MODEL, async_client=AnsweringClient(clock.called, clock.answers))
    agent = Agent(model=model, telemetry=False)
    if isinstance(given, Session):
        agent = equip(agent, given)
    elif isinstance(given, HandedOn):
        functions, definitions = given.tools
        agent.tools = lambda: [*functions, *map(_agno_function, definitions)]
        agent.tool_hooks = [_agno_hook]
    else:
        agent.tools = [*given[0], *map(_agno_function, given[1])]
    await agent.arun("Go on.")
    return clock.taken


async def _agno_hook(function_name: str, function_call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return await function_call(**arguments)


def _agno_function(tool: Definition) -> Any:
    from agno.tools.function import Function

    given: dict[str, Any] = {"name": tool.wire, "description": tool.description, "parameters": dict(tool.input_schema)}
    return Function(**given, entrypoint=never, skip_entrypoint_processing=True)


async def langchain(given: Tools | HandedOn | Session, answers: Answers) -> Taken:
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_openai import ChatOpenAI

    from pegboard.frameworks.langchain import SessionTools

    clock = Clock()
    call = {"id": "call", "name": "tool_0", "args": {"text": "x"}}

    class Scripted(FakeMessagesListChatModel):
        """A model that calls as long as the clock runs; it converts its tools, as those of providers do."""

        def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
            for tool in tools:
                convert_to_openai_tool(tool)
            return self

        async def _agenerate(self, *args: Any, **request: Any) -> ChatResult:
            answer = AIMessage("", tool_calls=[call]) if clock.called() else AIMessage("done")
            clock.answers()
            return ChatResult(generations=[ChatGeneration(message=answer)])

    model: Any = Scripted(responses=[])
    if answers != "scripted":
        client = AnsweringClient(clock.called, clock.answers)
        given_client: Any = {"api_key": "none", "async_client": client.chat.completions, "root_async_client": client}
        model = ChatOpenAI(model=MODEL, **given_client)
    if isinstance(given, Session):
        agent: Any = create_agent(model, middleware=[SessionTools(given)])
    elif isinstance(given, HandedOn):
        agent = create_agent(model, middleware=[_langchain_hooks(given.tools)])
    else:
        agent = create_agent(model, tools=[*given[0], *map(_langchain_tool, given[1])])
    await agent.ainvoke({"messages": [HumanMessage("Go on.")]}, {"recursion_limit": 10 * STEPS})
    return clock.taken


def _langchain_hooks(tools: Tools) -> Any:
    """Return a middleware that hands on tools and calls, as plain functions: no thread is used."""
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import ToolMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool

    listed = [convert_to_openai_tool(one) for one in (*tools[0], *map(_langchain_tool, tools[1]))]
    functions: dict[str, Any] = {one.__name__: one for one in tools[0]}

    class Hooks(AgentMiddleware[Any, Any, Any]):
        def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=listed))

        def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return answered(request.tool_call)

    async def answered(call: Any) -> Any:
        text = await functions[call["name"]](**call["args"])
        return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"])

    return Hooks()


def _langchain_tool(tool: Definition) -> Any:
    from langchain_core.tools import StructuredTool

    given: dict[str, Any] = {"name": tool.wire, "description": tool.description, "args_schema": dict(tool.input_schema)}
    return StructuredTool.from_function(coroutine=never, **given)


async def openai_agents(given: Tools | HandedOn | Session, answers: Answers) -> Taken:
    from agents import (
        Agent,
        FunctionTool,
        Model,
        ModelResponse,
        OpenAIChatCompletionsModel,
        Runner,
        Usage,
        function_tool,
        set_tracing_disabled,
    )
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from pegboard.frameworks.openai_agents import equip

    set_tracing_disabled(True)
    clock = Clock()
    said = ResponseOutputText(type="output_text", text="done", annotations=[])
    done = ResponseOutputMessage(type="message", id="1", role="assistant", status="completed", content=[said])

    class Scripted(Model):
        """A model that calls as long as the clock runs."""

        async def get_response(self, *args: Any, **request: Any) -> ModelResponse:
            item: Any = done
            if clock.called():
                name = f"call_{len(clock.taken)}"
                item = ResponseFunctionToolCall(
                    type="function_call", name="tool_0", arguments='{"text": "x"}', call_id=name
                )
            clock.answers()
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        stream_response = get_response  # type: ignore[assignment]

    model: Model = Scripted()
    if answers != "scripted":
        client = AnsweringClient(clock.called, clock.answers)
        model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
    agent = Agent(name="assistant", model=model)
    if isinstance(given, Session):
        agent = equip(agent, given)
    else:
        assert not isinstance(given, HandedOn)
        agent.tools = [function_tool(one, strict_mode=False) for one in given[0]]
        agent.tools += [
            FunctionTool(one.wire, one.description, dict(one.input_schema), never, False) for one in given[1]
        ]
    await Runner.run(agent, "Go on.", max_turns=2 * STEPS)
    return clock.taken


FRAMEWORKS: dict[str, Run] = {
    "pydantic-ai": pydantic_ai,
    "agno": agno,
    "langchain": langchain,
    "openai-agents": openai_agents,
}
HOOKED = ("agno", "langchain")
ANSWERS: tuple[Answers, ...] = ("scripted", "of OpenAI")


def measure() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "thousand_tools.py").write_text("".join(FUNCTION.format(n=n) for n in range(CATALOG)))
        (path / "pegboard.yaml").write_text(
            "plugins: {thousand: {python: thousand_tools}}\n"
            "defaults: {anticipate: false}\n"
            "agents:\n"
            f"  some: {{tools: [{', '.join(f'tool_{n}' for n in range(SOME))}], discoverable: [thousand]}}\n"
            "  all: {tools: [thousand]}\n"
        )
        sys.path.insert(0, folder)
        try:
            module = importlib.import_module("thousand_tools")
        finally:
            sys.path.remove(folder)
        return asyncio.run(rows(path / "pegboard.yaml", module))


async def rows(config: Path, module: ModuleType) -> list[dict[str, object]]:
    functions = [getattr(module, f"tool_{n}") for n in range(CATALOG)]
    async with Pegboard.open(config) as board:
        return [
            row for answers in ANSWERS for name in FRAMEWORKS for row in await rows_of(name, answers, functions, board)
        ]


async def rows_of(name: str, answers: Answers, functions: Sequence[Tool], board: Pegboard) -> list[dict[str, object]]:
    """Return what a step takes with some of the catalog loaded, and with all of it: bare and with Pegboard in turn."""
    run, loaded = FRAMEWORKS[name], {"some": functions[:SOME], "all": functions}
    taken: dict[str, list[Pair]] = {agent: [] for agent in loaded}
    hooked: dict[str, list[Pair]] = {agent: [] for agent in loaded}
    for agent, tools in loaded.items():
        session = await board.session(agent=agent, session_id=f"{name} {answers}")
        await run(session, answers)
        beside = [one.tool for one in (await session.surface()).tools if one.tool.plugin == META_PLUGIN]
        for _ in range(RUNS if agent == "some" else RUNS // 4):
            bare = await run((tools, beside), answers)
            taken[agent].append((bare, await run(session, answers)))
            if name in HOOKED:
                hooked[agent].append((bare, await run(HandedOn((tools, beside)), answers)))
    with_catalog = statistics.median(computed for bare, _ in taken["all"] for _, computed in bare)
    return [
        row_of(name, answers, len(tools), taken[agent], with_catalog) | hooks_of(hooked[agent])
        for agent, tools in loaded.items()
    ]


def row_of(name: str, answers: Answers, loaded: int, pairs: Sequence[Pair], with_catalog: float) -> dict[str, object]:
    """Return the medians of the steps; a ratio is that of two runs in turn, since the machine may change between."""
    bare, ours = ([step for pair in pairs for step in pair[side]] for side in (0, 1))
    (took, computed), (took_ours, computed_ours) = p50(bare), p50(ours)
    of_bare, computed_of_bare = (
        statistics.median(p50(ours)[kind] / p50(bare)[kind] for bare, ours in pairs) for kind in (0, 1)
    )
    return {
        "framework": name,
        "model": answers,
        "tools in the catalog": CATALOG,
        "loaded": loaded,
        "bare step p50 ms": round(took, 3),
        "with Pegboard ms": round(took_ours, 3),
        "of bare": round(of_bare, 2),
        "computed, bare ms": round(computed, 3),
        "computed, with Pegboard ms": round(computed_ours, 3),
        "computed of bare": round(computed_of_bare, 2),
        "fastest tenth, bare ms": round(p10(bare), 3),
        "fastest tenth, with Pegboard ms": round(p10(ours), 3),
        "fastest tenth of bare": round(p10(ours) / p10(bare), 2),
        "computed of bare with the catalog": round(computed_ours / with_catalog, 2),
    }


def hooks_of(pairs: Sequence[Pair]) -> dict[str, object]:
    """Return what hooks alone come to, where the framework is run with them."""
    names = ("hooks alone, of bare", "hooks alone, fastest tenth of bare")
    if not pairs:
        return dict.fromkeys(names, "")
    computed = statistics.median(p50(hooked)[1] / p50(bare)[1] for bare, hooked in pairs)
    bare, hooked = (p10([step for pair in pairs for step in pair[side]]) for side in (0, 1))
    return dict(zip(names, (round(computed, 2), round(hooked / bare, 2)), strict=True))


def p50(taken: Taken) -> Step:
    return statistics.median(step[0] for step in taken), statistics.median(step[1] for step in taken)


def p10(taken: Taken) -> float:
    """Return what the fastest tenth of the steps computes at most."""
    return statistics.quantiles((step[1] for step in taken), n=10)[0]
