"""What OpenAI Agents decides by a tool's name counts for a session's tool, called directly or through `call_tool`."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionToolResult,
    ModelSettings,
    RunContextWrapper,
    RunHooks,
    Runner,
    StopAtTools,
    ToolGuardrailFunctionOutput,
    ToolsToFinalOutputResult,
    Usage,
    function_tool,
    set_trace_processors,
    set_tracing_disabled,
    tool_input_guardrail,
)
from agents.tracing import FunctionSpanData, Span, Trace, TracingProcessor
from framework_drivers import Call, call
from openai_agents_driver import ModelStep, ScriptedModel, assistant_message, function_call, made

from pegboard import Host, Pegboard
from pegboard.frameworks.openai_agents import equip

pytestmark = pytest.mark.cover(1)

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"purse": {"python": "purse_of_agents", "approve": {"lend": "always"}}},
    "toolkits": {"purse": {"description": "A purse.", "tools": ["purse"]}},
    "agents": {
        "a": {"allowed_toolkits": ["purse"], "dialect": "pegboard", "anticipate": False},
    },
}
MODULE = '''
PAID = []


def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"{amount} is paid"


def lend(amount: int) -> str:
    """Lend an amount."""
    PAID.append(-amount)
    return f"{amount} is lent"
'''
LOAD = call("load_tools", names=["purse"])
Way = Literal["whole", "streamed", "blocking"]


class Purse:
    """A session, what was paid in it, and what its model was sent."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.sent: list[Any] = []

    @property
    def paid(self) -> list[int]:
        import sys

        return list(sys.modules["purse_of_agents"].PAID) if "purse_of_agents" in sys.modules else []

    def model(self, *steps: Call | list[Call] | str) -> ScriptedModel:
        """Return a model that makes these steps; what it is sent is kept."""
        left = list(steps)

        async def answer(request: Any) -> ModelStep:
            self.sent.append(request)
            step = left.pop(0)
            if isinstance(step, str):
                return ModelStep(output=[assistant_message(step)])
            calls = step if isinstance(step, list) else [step]
            return ModelStep(output=[made(one, f"call_{len(self.sent)}_{n}") for n, one in enumerate(calls)])

        return ScriptedModel([ModelStep.respond(answer) for _ in steps], default_usage=Usage(requests=1))

    def calls_sent(self) -> list[tuple[str, Any]]:
        """Return the calls of the newest request, as the model reads them."""
        items = [one for one in self.sent[-1].input if one.get("type") == "function_call"]
        return [(one["name"], json.loads(one["arguments"])) for one in items]


@pytest.fixture
async def purse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> AsyncIterator[Purse]:
    (tmp_path / "purse_of_agents.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    given: Any = {"agent": "a", "session_id": "s", "host": Host(delivery=("result",))}
    if "way" in request.fixturenames and request.getfixturevalue("way") == "blocking":
        with Pegboard.open_sync(CONFIG) as blocking:
            yield Purse(blocking.session(**given))
    else:
        async with Pegboard.open(CONFIG) as board:
            yield Purse(await board.session(**given))


@pytest.fixture(params=["direct", "through"])
def through(request: pytest.FixtureRequest) -> bool:
    return request.param == "through"


@pytest.fixture(params=["whole", "streamed", "blocking"])
def way(request: pytest.FixtureRequest) -> Way:
    return request.param


def of(tool: str, through: bool, amount: Any = 1) -> Call:
    arguments = {"amount": amount}
    return call("call_tool", name=tool, arguments=arguments) if through else call(tool, **arguments)


async def run(agent: Any, way: Way, given: Any = "Pay.", **more: Any) -> Any:
    """Return what a run comes to; one that blocks is in a thread, over a session that blocks."""
    if way == "whole":
        return await Runner.run(agent, given, **more)
    if way == "streamed":
        done = Runner.run_streamed(agent, given, **more)
        _ = [event async for event in done.stream_events()]
        return done
    return await asyncio.to_thread(Runner.run_sync, agent, given, **more)


BEHAVIORS: dict[str, Any] = {
    "names": StopAtTools(stop_at_tool_names=["pay"]),
    "first": "stop_on_first_tool",
    "function": lambda _, results: by_name(results),
}


def by_name(results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
    paid = [one.output for one in results if one.tool.name == "pay"]
    return ToolsToFinalOutputResult(is_final_output=bool(paid), final_output=paid[0] if paid else None)


@pytest.mark.parametrize("behavior", BEHAVIORS)
async def test_a_run_ends_with_the_result_of_a_tool(purse: Purse, behavior: str, through: bool, way: Way) -> None:
    """P3: by the tool's own name; what loads or lists tools is no first tool."""
    model = purse.model(LOAD, of("pay", through, 3), "not reached")
    agent: Any = Agent(name="A", model=model, tool_use_behavior=BEHAVIORS[behavior])
    done = await run(equip(agent, purse.session), way)
    assert (done.final_output, purse.paid, len(purse.sent)) == ("3 is paid", [3], 2)


@pytest.mark.parametrize("behavior", ["names", "first"])
async def test_a_tool_that_has_not_run_ends_no_run(purse: Purse, behavior: str, through: bool, way: Way) -> None:
    """X1, X2: it was not loaded, or its arguments were wrong; the model makes the call that is right."""
    wrong = [of("pay", False, 1), of("pay", through, "much")]
    model = purse.model(*wrong, of("pay", through, 3), "not reached")
    agent: Any = Agent(name="A", model=model, tool_use_behavior=BEHAVIORS[behavior])
    done = await run(equip(agent, purse.session), way)
    assert (done.final_output, purse.paid) == ("3 is paid", [3])


async def test_a_copy_of_an_equipped_agent_stops_where_it_says(purse: Purse, through: bool, way: Way) -> None:
    """P3: also one that is equipped once more."""
    model = purse.model(LOAD, of("pay", through, 3), "not reached")
    agent: Any = equip(Agent(name="A", model=model), purse.session)
    stops = equip(agent.clone(tool_use_behavior="stop_on_first_tool"), purse.session)
    assert (await run(stops, way)).final_output == "3 is paid"


async def test_hooks_of_the_run_and_of_the_agent_are_told_the_tool(purse: Purse, through: bool, way: Way) -> None:
    """P3: before and after the call, with the arguments that the tool gets."""
    told: list[tuple[str, str, Any]] = []

    class OfRun(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            told.append(("run", tool.name, json.loads(context.tool_arguments)))

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
            told.append(("ran", tool.name, result))

    class OfAgent(AgentHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            told.append(("agent", context.tool_name, json.loads(context.tool_arguments)))

    agent: Any = Agent(name="A", model=purse.model(LOAD, of("pay", through, 3), "done"), hooks=OfAgent())
    done = await run(equip(agent, purse.session), way, hooks=OfRun())
    assert (done.final_output, purse.paid) == ("done", [3])
    about = [one for one in told if one[1] == "pay"]
    assert sorted(about, key=str) == [
        ("agent", "pay", {"amount": 3}),
        ("ran", "pay", "3 is paid"),
        ("run", "pay", {"amount": 3}),
    ]
    written = of("pay", through, 3)
    assert purse.calls_sent()[1] == (written.name, dict(written.arguments))


@pytest.mark.cover(2)
async def test_a_person_is_asked_about_the_tool(purse: Purse, through: bool, way: Way) -> None:
    """A1: the interruption names it and has its arguments."""
    agent: Any = Agent(name="A", model=purse.model(LOAD, of("lend", through, 3), "done"))
    done = await run(equip(agent, purse.session), way)
    [asked] = done.interruptions
    assert (asked.name, json.loads(asked.arguments), purse.paid) == ("lend", {"amount": 3}, [])
    state = done.to_state()
    state.approve(asked)
    done = await run(done.last_agent, way, state)
    assert (done.final_output, purse.paid) == ("done", [-3])
    written = of("lend", through, 3)
    assert purse.calls_sent()[1] == (written.name, dict(written.arguments))


async def test_a_person_who_refuses_is_heard(purse: Purse, through: bool, way: Way) -> None:
    """A3: the model reads their words, and the tool has not run."""
    agent: Any = Agent(name="A", model=purse.model(LOAD, of("lend", through, 3), "done"))
    done = await run(equip(agent, purse.session), way)
    [asked] = done.interruptions
    state = done.to_state()
    state.reject(asked, rejection_message="Not today.")
    done = await run(done.last_agent, way, state)
    outputs = [item["output"] for item in done.to_input_list() if item.get("type") == "function_call_output"]
    assert (done.final_output, outputs[-1], purse.paid) == ("done", "Not today.", [])


async def test_a_tool_of_the_agents_own_keeps_its_guardrail_and_its_question(purse: Purse, way: Way) -> None:
    """A1: beside the session's tools, and `call_tool` does not reach it."""

    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("Nobody burns today.")

    @function_tool(tool_input_guardrails=[never])
    def burn(amount: int) -> str:
        return "burnt"

    @function_tool(needs_approval=True)
    def drown(amount: int) -> str:
        return "drowned"

    model = purse.model(of("burn", False), of("burn", True), of("drown", True), of("drown", False), "done")
    agent: Any = Agent(name="A", model=model, tools=[burn, drown])
    done = await run(equip(agent, purse.session), way)
    outputs = [item["output"] for item in done.to_input_list() if item.get("type") == "function_call_output"]
    assert (outputs[0], [one.name for one in done.interruptions]) == ("Nobody burns today.", ["drown"])
    assert all("not found" in output for output in outputs[1:3])


@pytest.mark.parametrize("loaded", [False, True], ids=["not loaded", "loaded"])
async def test_a_tool_that_the_model_has_to_call_is_listed(purse: Purse, loaded: bool, through: bool, way: Way) -> None:
    """D4: with its schema, as long as it is the choice; then the list is as before."""
    if loaded:
        await run(equip(Agent(name="A", model=purse.model(LOAD, "done")), purse.session), way)
        purse.sent.clear()
    model = purse.model(of("pay", through, 3), "done")
    agent: Any = Agent(name="A", model=model, model_settings=ModelSettings(tool_choice="pay"))
    done = await run(equip(agent, purse.session), way)
    assert (done.final_output, purse.paid) == ("done", [3])
    [listed] = [tool for tool in purse.sent[0].tools if tool.name == "pay"]
    assert listed.params_json_schema["required"] == ["amount"]
    assert purse.sent[0].model_settings.tool_choice == "pay"
    assert purse.sent[1].model_settings.tool_choice is None


async def test_a_choice_that_is_no_tool_of_the_session_is_the_sdks_own(purse: Purse) -> None:
    """P9: nothing is listed of which the session says nothing."""
    settings = ModelSettings(tool_choice="nothing")
    agent: Any = Agent(name="A", model=purse.model("done"), model_settings=settings)
    await run(equip(agent, purse.session), "whole")
    assert "nothing" not in [tool.name for tool in purse.sent[0].tools]


class Spans(TracingProcessor):
    """The names of the spans of functions."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_trace_start(self, trace: Trace) -> None: ...
    def on_trace_end(self, trace: Trace) -> None: ...
    def on_span_start(self, span: Span[Any]) -> None: ...

    def on_span_end(self, span: Span[Any]) -> None:
        if isinstance(span.span_data, FunctionSpanData):
            self.names.append(span.span_data.name)

    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


@pytest.fixture
def spans() -> Iterator[Spans]:
    kept = Spans()
    set_trace_processors([kept])
    set_tracing_disabled(False)
    yield kept
    set_tracing_disabled(True)
    set_trace_processors([])


async def test_a_span_has_the_name_of_the_tool(purse: Purse, spans: Spans, through: bool, way: Way) -> None:
    agent: Any = Agent(name="A", model=purse.model(LOAD, of("pay", through, 3), "done"))
    await run(equip(agent, purse.session), way)
    assert spans.names == ["load_tools", "pay"]


async def test_a_function_that_decides_reads_the_context_of_its_run(purse: Purse, through: bool, way: Way) -> None:
    """P3: it is asked with every step, also with what only loads."""
    asked: list[Any] = []

    async def decides(about: RunContextWrapper[str], results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
        asked.append((about.context, [one.tool.name for one in results]))
        return by_name(results)

    model = purse.model(LOAD, of("pay", through, 3), "not reached")
    agent: Any = Agent(name="A", model=model, tool_use_behavior=decides)
    await run(equip(agent, purse.session), way, context="ada")
    assert asked == [("ada", ["load_tools"]), ("ada", ["pay"])]


@pytest.mark.parametrize(
    "written",
    [
        '{"name":"pay","arguments":{"amount":3}}',
        '{ "arguments" : {"amount" : 3.0},\n "name" : "p\\u0061y" }',
        '{"name": "pay", "arguments": {"amount": 3}, "why": "caf\\u00e9 \u00e9"}',
    ],
)
async def test_the_model_reads_byte_for_byte_what_it_wrote(purse: Purse, written: str, way: Way) -> None:
    """D4: whatever form it has; what is kept of the run names the tool."""
    model = purse.model(LOAD, "done", "done")
    steps = iter([function_call("call_tool", written, call_id="call_pay"), assistant_message("done")])

    async def answer(request: Any) -> ModelStep:
        purse.sent.append(request)
        return ModelStep(output=[next(steps)])

    agent: Any = equip(Agent(name="A", model=model), purse.session)
    await run(agent, way)
    model = ScriptedModel([ModelStep.respond(answer) for _ in range(2)], default_usage=Usage(requests=1))
    agent = equip(Agent(name="A", model=model), purse.session)
    done = await run(agent, way)
    sent = [one for one in purse.sent[-1].input if one.get("type") == "function_call"]
    assert [(one["name"], one["arguments"]) for one in sent] == [("call_tool", written)]
    assert [one["name"] for one in done.to_input_list() if one.get("type") == "function_call"] == ["pay"]
