"""What Pegboard adds to a step of an agent framework: from the model's answer, a call, to its next request.

Each framework runs its own agent with its own scripted model, bare with Python functions as tools and with a session
that has the same ones, in alternating runs. The catalog has 1,000 tools; 20 of them are loaded, or all. What else the
machine does lengthens the time that a step takes, and hardly what it computes: both are measured.

There are two readings of "over the bare framework". The list is the same on both sides within a row. The catalog is the
same on both sides between rows: a bare framework has 1,000 tools only by listing them, a session has 20 of them loaded.
Scripted models answer at once and send nothing, so that the step is all there is. LangChain's converts its tools first,
as the clients of its providers do with every request; for the others the model's client does that on both sides.

What a framework takes for hooks that do nothing stands beside it: with LangChain a middleware that wraps calls, with
pydantic-ai a capability with instructions that may change. An adapter without these is not to be had.
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pegboard import Pegboard, Session

CATALOG = 1_000
SOME = 20
STEPS = 20
RUNS = 8
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
Taken = list[tuple[float, float]]
"""For each step the milliseconds that it took, and those that the process computed meanwhile."""
Given = Session | Literal["nothing", "empty hooks"]
Run = Callable[[Sequence[Tool], Given], Awaitable[Taken]]
"""Runs an agent for ``STEPS`` steps, each a call of ``tool_0``: with the functions, or with the tools of the session.

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


async def pydantic_ai(functions: Sequence[Tool], given: Given) -> Taken:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import UsageLimits

    from pegboard.frameworks.pydantic_ai import SessionTools

    clock = Clock()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = ToolCallPart("tool_0", {"text": "x"}) if clock.called() else TextPart("done")
        clock.answers()
        return ModelResponse(parts=[part])

    model = FunctionModel(answer)
    if isinstance(given, Session):
        agent = Agent(model, capabilities=[SessionTools(given)])
    elif given == "empty hooks":
        agent = Agent(model, capabilities=[empty_capability(functions)])
    else:
        agent = Agent(model, tools=functions)
    await agent.run("Go on.", usage_limits=UsageLimits(request_limit=None))
    return clock.taken


async def agno(functions: Sequence[Tool], given: Given) -> Taken:
    from agno.agent import Agent
    from agno.models.base import Model
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

    agent = Agent(model=Scripted(id="scripted"), tools=list(functions), telemetry=False)
    await (equip(agent, given) if isinstance(given, Session) else agent).arun("Go on.")
    return clock.taken


async def langchain(functions: Sequence[Tool], given: Given) -> Taken:
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from pegboard.frameworks.langchain import SessionTools

    clock = Clock()
    call = {"id": "call", "name": "tool_0", "args": {"text": "x"}}

    class Scripted(FakeMessagesListChatModel):
        """A model that calls as long as the clock runs."""

        def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
            for tool in tools:
                convert_to_openai_tool(tool)
            return self

        async def _agenerate(self, *args: Any, **request: Any) -> ChatResult:
            answer = AIMessage("", tool_calls=[call]) if clock.called() else AIMessage("done")
            clock.answers()
            return ChatResult(generations=[ChatGeneration(message=answer)])

    middleware: tuple[Any, ...] = (SessionTools(given),) if isinstance(given, Session) else ()
    if given == "empty hooks":
        middleware = (empty_middleware(),)
    agent: Any = create_agent(Scripted(responses=[]), tools=list(functions), middleware=middleware)
    await agent.ainvoke({"messages": [HumanMessage("Go on.")]})
    return clock.taken


def empty_capability(functions: Sequence[Tool]) -> Any:
    """Return a capability of pydantic-ai that gives an agent these functions, with hooks that do nothing."""
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

    class Instructed(WrapperToolset[Any]):
        """Functions with two instructions."""

        @property
        def id(self) -> str:
            return "empty"

        async def get_instructions(self, ctx: Any) -> Any:
            return [InstructionPart("", name="policy"), InstructionPart("", name="loaded", on_change="append")]

    class Empty(AbstractCapability[Any]):
        """The hooks of an adapter, each passing on what it is given."""

        def get_toolset(self) -> Any:
            return Instructed(FunctionToolset(functions, id="empty"))

        def get_model_settings(self) -> Any:
            return lambda _: ModelSettings()

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            return request_context

        async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
            raise error

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
            return response

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            return await handler()

    return Empty()


def empty_middleware() -> Any:
    """Return a middleware of LangChain whose hooks do nothing."""
    from langchain.agents.middleware import AgentMiddleware

    class Empty(AgentMiddleware[Any, Any, Any]):
        """The hooks of an adapter, each passing on what it is given."""

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

    return Empty()


FRAMEWORKS: dict[str, Run] = {"pydantic-ai": pydantic_ai, "agno": agno, "langchain": langchain}
HOOKED = ("pydantic-ai", "langchain")
"""The frameworks whose hooks take time of their own; Agno has none, its adapter stands in the place of the model."""


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
    async with Pegboard.open(config) as board:
        return [
            await row(name, agent, [getattr(module, f"tool_{n}") for n in range(loaded)], board)
            for name in FRAMEWORKS
            for agent, loaded in (("some", SOME), ("all", CATALOG))
        ]


async def row(name: str, agent: str, functions: Sequence[Tool], board: Pegboard) -> dict[str, object]:
    run, session = FRAMEWORKS[name], await board.session(agent=agent, session_id=name)
    bare: Taken = []
    hooked: Taken = []
    ours: Taken = []
    for _ in range(RUNS):
        bare += await run(functions, "nothing")
        hooked += await run(functions, "empty hooks") if name in HOOKED else []
        ours += await run((), session)
    (took, computed), (took_ours, computed_ours) = p50(bare), p50(ours)
    took_hooked, computed_hooked = p50(hooked) if hooked else (took, computed)
    return {
        "framework": name,
        "tools in the catalog": CATALOG,
        "loaded": len(functions),
        "bare step p50 ms": round(took, 2),
        "with empty hooks ms": round(took_hooked, 2),
        "with Pegboard ms": round(took_ours, 2),
        "more ms": round(took_ours - took, 2),
        "of bare": round(took_ours / took, 2),
        "of empty hooks": round(took_ours / took_hooked, 2),
        "computed, bare / empty hooks / with, p50 ms": f"{computed:.2f} / {computed_hooked:.2f} / {computed_ours:.2f}",
        "more computed ms": round(computed_ours - computed, 2),
        "computed of bare": round(computed_ours / computed, 2),
        "computed of empty hooks": round(computed_ours / computed_hooked, 2),
    }


def p50(taken: Taken) -> tuple[float, float]:
    return statistics.median(step[0] for step in taken), statistics.median(step[1] for step in taken)
