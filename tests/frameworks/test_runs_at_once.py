"""One agent object in several runs of one session at once: each run is a turn, and what lasts a turn lasts it."""

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import pytest
from agents import Agent as OpenAIAgent
from agents import MaxTurnsExceeded, RunConfig, RunHooks, Runner, StopAtTools, Usage, function_tool
from agno.agent import Agent as AgnoAgent
from agno.db.in_memory import InMemoryDb
from agno_driver import ScriptedModel as AgnoModel
from framework_drivers import Answer, Script, Step, call
from framework_tools import RAN
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_driver import ScriptedChat, message_of
from langchain_driver import carried as langchain_carried
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from openai_agents_driver import ModelStep, ScriptedModel, assistant_message, carried, made
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai_driver import scripted

from pegboard import Pegboard, Session
from pegboard.frameworks.agno import equip as agno_equip
from pegboard.frameworks.langchain import SessionTools as LangChainTools
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.owned_run import OwnedRun
from pegboard.frameworks.pydantic_ai import SessionTools

pytestmark = pytest.mark.cover(1)

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {
        "notes": {"python": "framework_tools:Notes"},
        "sums": {"python": "framework_tools:Sums"},
        "shredder": {"python": "framework_tools:Shredder", "approve": {"shred": "always"}},
    },
    "toolkits": {
        "notes": {"description": "Notes.", "tools": ["notes"]},
        "papers": {"description": "Papers.", "tools": ["shredder"]},
        "pressing": {
            "description": "What presses.",
            "tools": ["sums"],
            "focus": [{"when": "^Go", "tools": ["load_tools", "shred"], "choice": "required"}],
        },
    },
    "defaults": {"anticipate": False},
    "agents": {
        "a": {"tools": ["sums"], "allowed_toolkits": ["notes", "papers"], "dialect": "pegboard"},
        "focused": {
            "tools": ["sums"],
            "allowed_toolkits": ["notes", "papers", "pressing"],
            "initial_toolkits": ["pressing"],
            "dialect": "pegboard",
        },
    },
}
LOAD = call("load_tools", names=["notes"], keep="turn")
LIST = call("note_list")
ADD = call("add_numbers", first=1, second=2)
MESSAGE = HumanMessage("Go on.")
"""One object for all runs: LangChain gives it an id with the first."""
SCRIPT: ContextVar[Script] = ContextVar("script")
"""What the model answers in the run of this task."""


class Framework(Protocol):
    """An agent of a framework over a session."""

    def agent(self, session: Any, **given: Any) -> Any: ...
    async def run(self, agent: Any, *, stream: bool = False) -> Any: ...
    def run_sync(self, agent: Any) -> Any: ...
    async def go_on(self, agent: Any, asked: Any) -> None: ...


class OpenAIAgents:
    def agent(self, session: Any, **given: Any) -> Any:
        async def answer(request: Any) -> ModelStep:
            step = await SCRIPT.get().answer(carried(request))
            if isinstance(step, str):
                return ModelStep(output=[assistant_message(step)])
            assert isinstance(step, list)
            return ModelStep(output=[made(one, uuid4().hex) for one in step])

        model = ScriptedModel([ModelStep.respond(answer) for _ in range(60)], default_usage=Usage(requests=1))
        return equip(OpenAIAgent(name="A", model=model, **given), session)

    async def run(self, agent: Any, *, stream: bool = False) -> Any:
        if not stream:
            return await Runner.run(agent, "Go on.")
        done = Runner.run_streamed(agent, "Go on.")
        _ = [event async for event in done.stream_events()]
        return done

    def run_sync(self, agent: Any) -> Any:
        return Runner.run_sync(agent, "Go on.")

    async def go_on(self, agent: Any, asked: Any) -> None:
        state = asked.to_state()
        state.approve(state.get_interruptions()[0])
        await Runner.run(agent, state)


class PydanticAI:
    def agent(self, session: Any, **given: Any) -> Any:
        return PydanticAgent(
            scripted(SCRIPT.get), output_type=[str, DeferredToolRequests], capabilities=[SessionTools(session)], **given
        )

    async def run(self, agent: Any, *, stream: bool = False) -> Any:
        if not stream:
            return await agent.run("Go on.")
        async with agent.run_stream("Go on.") as result:
            return await result.get_output()

    def run_sync(self, agent: Any) -> Any:
        return agent.run_sync("Go on.")

    async def go_on(self, agent: Any, asked: Any) -> None:
        results = DeferredToolResults(approvals={one.tool_call_id: True for one in asked.output.approvals})
        await agent.run(message_history=asked.all_messages(), deferred_tool_results=results)


class OwnScriptChat(ScriptedChat):
    """A chat model that follows the script of its task."""

    async def _agenerate(self, messages: list[Any], *args: Any, **request: Any) -> Any:
        script = SCRIPT.get()
        answer = await script.answer(
            langchain_carried(messages, request.get("tools") or (), request.get("tool_choice"))
        )
        return ChatResult(generations=[ChatGeneration(message=message_of(answer, len(script.calls)))])


class LangChain:
    """Agents of LangChain whose runs are each in a thread of its own; or kept by nothing, so that none can wait."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept

    def agent(self, session: Any, **given: Any) -> Any:
        saver = InMemorySaver() if self.kept else None
        return create_agent(OwnScriptChat(), middleware=[LangChainTools(session)], checkpointer=saver, **given)

    async def run(self, agent: Any, *, stream: bool = False) -> Any:
        given, thread = self._given()
        if not stream:
            await agent.ainvoke(given, thread)
        else:
            _ = [part async for part in agent.astream(given, thread, stream_mode="messages")]
        return thread

    def run_sync(self, agent: Any) -> Any:
        return agent.invoke(*self._given())

    async def go_on(self, agent: Any, asked: Any) -> None:
        await agent.ainvoke(Command(resume=True), asked)

    def _given(self) -> tuple[Any, Any]:
        return {"messages": [MESSAGE]}, {"configurable": {"thread_id": uuid4().hex}} if self.kept else {}


@dataclass
class OwnScriptModel(AgnoModel):
    """A model of Agno that follows the script of its task."""

    async def ainvoke(self, messages: list[Any], *args: Any, **request: Any) -> Any:
        self.script = SCRIPT.get()
        return await super().ainvoke(messages, *args, **request)


class Agno:
    def agent(self, session: Any, **given: Any) -> Any:
        model = OwnScriptModel()
        return agno_equip(AgnoAgent(model=model, db=InMemoryDb(), telemetry=False, **given), session)

    async def run(self, agent: Any, *, stream: bool = False) -> Any:
        if not stream:
            return await agent.arun("Go on.", session_id="talk")
        return [event async for event in agent.arun("Go on.", session_id="talk", stream=True)]

    def run_sync(self, agent: Any) -> Any:
        return agent.run("Go on.", session_id="talk")

    async def go_on(self, agent: Any, asked: Any) -> None:
        for requirement in asked.active_requirements:
            requirement.confirm()
        await agent.acontinue_run(run_id=asked.run_id, session_id="talk", requirements=asked.requirements)


FRAMEWORKS: dict[str, Framework] = {
    "openai-agents": OpenAIAgents(),
    "pydantic-ai": PydanticAI(),
    "langchain": LangChain(kept=True),
    "langchain-unkept": LangChain(kept=False),
    "agno": Agno(),
}


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    RAN.clear()
    return FRAMEWORKS[request.param]


@pytest.fixture
async def board() -> AsyncIterator[Pegboard]:
    RAN.clear()
    async with Pegboard.open(CONFIG) as board:
        yield board


@pytest.fixture
async def session(board: Pegboard) -> Session:
    return await board.session(agent="a", session_id="s")


def begin(framework: Framework, agent: Any, *steps: Step, stream: bool = False) -> tuple[asyncio.Task[Any], Script]:
    """Return a run that is under way, and its script."""
    script = Script(*steps)

    async def run() -> Any:
        SCRIPT.set(script)
        return await framework.run(agent, stream=stream)

    return asyncio.create_task(run()), script


def behind(event: asyncio.Event, answer: Answer) -> Callable[[], Awaitable[Answer]]:
    """Return a step that the model makes once something has happened."""

    async def step() -> Answer:
        await event.wait()
        return answer

    return step


def tells(event: asyncio.Event, answer: Answer) -> Callable[[], Awaitable[Answer]]:
    """Return a step with which something happens."""

    async def step() -> Answer:
        event.set()
        return answer

    return step


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_ends_no_turn_of_another(framework: Framework, session: Session, stream: bool) -> None:
    """S6: what the longer run has loaded for its turn stays, until both are over."""
    agent, loaded, over = framework.agent(session), asyncio.Event(), asyncio.Event()
    long, script = begin(framework, agent, LOAD, tells(loaded, LIST), behind(over, LIST), LIST, "done", stream=stream)
    await loaded.wait()
    short, _ = begin(framework, agent, ADD, ADD, "done")
    await short
    assert (await session.surface()).turn == 1
    over.set()
    await long

    assert [len(one.results) for one in script.calls] == [0, 1, 1, 1, 1]
    assert "note_list" in script.calls[3].tools
    assert (RAN.count("note_list"), RAN.count("add_numbers")) == (3, 2)
    assert (await session.surface()).turn == 3


async def test_many_runs_at_once_are_a_turn_each(framework: Framework, session: Session) -> None:
    """S6: whichever began or ended first; half of them are streamed."""
    agent = framework.agent(session)
    made = [begin(framework, agent, LOAD, *[LIST] * n, "done", stream=n % 2 == 0) for n in range(6)]
    await asyncio.gather(*(run for run, _ in made))

    assert (RAN.count("note_list"), (await session.surface()).turn) == (15, 7)
    assert not any("has not run" in text for _, script in made for one in script.calls for text in one.results)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_that_is_cancelled_leaves_the_other_as_it_is(
    framework: Framework, session: Session, stream: bool
) -> None:
    """S6: its turn ends with the one that goes on."""
    agent, loaded, over, asked = framework.agent(session), asyncio.Event(), asyncio.Event(), asyncio.Event()
    long, script = begin(framework, agent, LOAD, tells(loaded, LIST), behind(over, LIST), "done")
    await loaded.wait()

    async def never() -> Answer:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    given_up, _ = begin(framework, agent, ADD, never, stream=stream)
    await asked.wait()
    given_up.cancel()
    with suppress(asyncio.CancelledError):
        await given_up
    over.set()
    await long

    assert (RAN.count("note_list"), "note_list" in script.calls[3].tools) == (2, True)
    if not stream:  # a stream that is left goes on in the SDK
        assert (await session.surface()).turn == 3


@pytest.mark.parametrize("name", ["openai-agents", "pydantic-ai", "langchain", "agno"])
async def test_a_run_that_waits_for_a_person_does_not_keep_others_in_its_turn(name: str, session: Session) -> None:
    """S6, A3: it goes on in a turn of its own, or in the one that it began with."""
    await session.load("papers")
    framework = FRAMEWORKS[name]
    agent = framework.agent(session)
    waits, _ = begin(framework, agent, call("shred", paper="draft"), "It is gone.")
    asked = await waits
    other, _ = begin(framework, agent, ADD, "done")
    await other
    assert (await session.surface()).turn == 2

    script = Script("It is gone.")
    SCRIPT.set(script)
    await framework.go_on(agent, asked)
    assert (RAN, script.calls[0].results) == (["add_numbers", "shred"], ("draft is shredded",))
    assert (await session.surface()).turn == 3


def test_runs_in_two_threads_are_a_turn_each(framework: Framework) -> None:
    """S6: each has an event loop of its own, and the board another one."""
    both, scripts = threading.Barrier(2), [Script(LOAD, LIST, LIST, "done"), Script(LOAD, LIST, "done")]
    with Pegboard.open_sync(CONFIG) as board:
        session = board.session(agent="a", session_id="s")
        agent = framework.agent(session)

        def run(script: Script) -> None:
            SCRIPT.set(script)
            both.wait()
            framework.run_sync(agent)

        threads = [threading.Thread(target=run, args=(script,)) for script in scripts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [len(script.calls) for script in scripts] == [4, 3]
        assert (RAN.count("note_list"), session.surface().turn) == (3, 3)


# -- ends of LangChain and Agno, which tell none


GRAPHS = ["langchain", "langchain-unkept", "agno"]


@pytest.mark.parametrize("name", GRAPHS)
async def test_a_run_that_failed_is_over_for_those_that_go_on(name: str, session: Session) -> None:
    """S6: its turn ends with the one that goes on, though it made its last step later."""
    framework = FRAMEWORKS[name]
    agent, loaded, over = framework.agent(session), asyncio.Event(), asyncio.Event()
    long, script = begin(framework, agent, LOAD, tells(loaded, LIST), behind(over, LIST), "done")
    await loaded.wait()

    async def fails() -> Answer:
        raise ConnectionError("no line")

    failed, _ = begin(framework, agent, ADD, fails)
    with suppress(ConnectionError):
        await failed
    over.set()
    await long
    assert (RAN.count("note_list"), "note_list" in script.calls[3].tools) == (2, True)
    assert (await session.surface()).turn == 3


@pytest.mark.parametrize("name", ["langchain", "agno"])
async def test_a_run_goes_on_behind_a_person_as_the_same_run(name: str, board: Pegboard) -> None:
    """S5, S6: the message of the user that began it does not count again, what it has loaded for its turn stays."""
    session = await board.session(agent="focused", session_id="s")
    await session.load("papers")
    framework = FRAMEWORKS[name]
    agent = framework.agent(session)
    waits, script = begin(framework, agent, LOAD, call("shred", paper="draft"))
    asked = await waits
    assert (await session.surface()).turn == 1

    again = Script(LIST, "It is gone.")
    SCRIPT.set(again)
    await framework.go_on(agent, asked)
    assert (RAN, (await session.surface()).turn) == (["shred", "note_list"], 2)
    assert [one.required for one in (script.calls[0], *again.calls)] == [True, False, False]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_that_is_over_holds_nothing(name: str, session: Session, stream: bool) -> None:
    """S6: what it had is free, once it has ended."""
    framework = FRAMEWORKS[name]
    agent = framework.agent(session)
    before = {id(one) for one in gc.get_objects() if isinstance(one, OwnedRun)}
    for steps in ((LOAD, LIST, "done"), ("done",)):
        run, _ = begin(framework, agent, *steps, stream=stream)
        await run
        del run
    gc.collect()
    assert [one for one in gc.get_objects() if isinstance(one, OwnedRun) and id(one) not in before] == []


class Ends(AgentMiddleware[Any, Any, Any]):
    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"jump_to": "end"}


class Holds(AgentMiddleware[Any, Any, Any]):
    def after_model(self, state: Any, runtime: Any) -> None:
        interrupt("Wait.")


class Raises(AgentMiddleware[Any, Any, Any]):
    def after_model(self, state: Any, runtime: Any) -> None:
        raise ConnectionError("no line")


class RaisesWithin(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        await handler(request)
        raise ConnectionError("no line")


@pytest.mark.cover(2)
@pytest.mark.parametrize("other", [Ends, Holds, Raises, RaisesWithin])
@pytest.mark.parametrize("behind", [True, False], ids=["behind ours", "before ours"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_that_another_middleware_ends_or_holds_is_over_for_other_threads(
    session: Session, other: type[AgentMiddleware[Any, Any, Any]], behind: bool, stream: bool
) -> None:
    """S6: nothing that was begun within it holds it: objects of plugins, records to write, timers."""
    framework, ours = FRAMEWORKS["langchain"], LangChainTools(session)
    middleware = [ours, other()] if behind else [other(), ours]
    ends = create_agent(OwnScriptChat(), middleware=middleware, checkpointer=InMemorySaver())
    before = {id(one) for one in gc.get_objects() if isinstance(one, OwnedRun)}
    run, _ = begin(framework, ends, LOAD, "never", stream=stream)
    with suppress(ConnectionError):
        await run
    del run
    await asyncio.sleep(0)
    gc.collect()  # what an error holds goes with it
    again, _ = begin(framework, framework.agent(session), ADD, "done")
    await again

    assert (await session.surface()).turn == 3
    del ours, ends, middleware, again
    gc.collect()
    assert [one for one in gc.get_objects() if isinstance(one, OwnedRun) and id(one) not in before] == []


# -- ends that only OpenAI Agents has


async def test_a_run_that_stops_at_a_tool_ends_its_turn(session: Session) -> None:
    """S6: so does one that fails in a hook, in the agent's own tool, or by its number of turns."""
    RAN.clear()

    class Fails(RunHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
            raise RuntimeError("no disk")

    @function_tool(failure_error_function=None)
    def own() -> str:
        raise RuntimeError("no paper")

    framework, kept = OpenAIAgents(), []
    stops = framework.agent(session, tool_use_behavior=StopAtTools(stop_at_tool_names=["add_numbers"]))
    SCRIPT.set(Script(ADD))
    kept.append(await Runner.run(stops, "Go on."))
    assert (kept[0].final_output, (await session.surface()).turn) == ("3", 2)

    SCRIPT.set(Script(ADD))
    with pytest.raises(Exception, match="no disk") as failed:
        await Runner.run(framework.agent(session), "Go on.", hooks=Fails())
    kept.append(failed)
    assert (await session.surface()).turn == 3

    SCRIPT.set(Script(call("own")))
    with pytest.raises(Exception, match="no paper") as failed:
        await Runner.run(framework.agent(session, tools=[own]), "Go on.")
    kept.append(failed)
    assert (await session.surface()).turn == 4

    SCRIPT.set(Script(ADD, ADD, ADD))
    with pytest.raises(MaxTurnsExceeded) as exceeded:
        await Runner.run(framework.agent(session), "Go on.", max_turns=2)
    kept.append(exceeded)
    assert ((await session.surface()).turn, len(kept)) == (5, 4)


async def test_agents_that_hand_over_are_one_run(session: Session) -> None:
    """S6: in one session and one run, one turn."""
    framework = OpenAIAgents()
    second = framework.agent(session)
    first = framework.agent(session, handoffs=[second])
    first.name, second.name = "First", "Second"
    SCRIPT.set(Script(LOAD, call("transfer_to_a"), LIST, "done"))

    await Runner.run(first, "Go on.")

    assert (RAN, (await session.surface()).turn) == (["note_list"], 2)


@pytest.mark.parametrize("gone", ["module", "model"])
async def test_a_version_of_the_sdk_that_tells_no_end_is_warned_of_once(
    session: Session, gone: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S6: runs go on; the turn of one that failed ends with the beginning of the next. So with a model of a run."""
    from pegboard.frameworks.runs import warn_once

    warn_once.cache_clear()
    RAN.clear()
    agent, given = OpenAIAgents().agent(session), RunConfig()
    if gone == "module":
        monkeypatch.setitem(sys.modules, "agents.models._run_context", None)
    else:
        given = RunConfig(model=ScriptedModel([[made(ADD, "1")], [made(ADD, "2")], [assistant_message("done")]] * 2))

    with caplog.at_level(logging.WARNING, "pegboard.frameworks"):
        SCRIPT.set(Script(ADD, ADD, "never"))
        with pytest.raises(MaxTurnsExceeded) as kept:
            await Runner.run(agent, "Go on.", max_turns=2, run_config=given)
        assert (kept.type, (await session.surface()).turn) == (MaxTurnsExceeded, 1)
        SCRIPT.set(Script(ADD, "done"))
        await Runner.run(agent, "Go on.", run_config=given)

    assert (await session.surface()).turn == (3 if gone == "module" else 2)
    assert len([one for one in caplog.records if one.name == "pegboard.frameworks"]) == 1
