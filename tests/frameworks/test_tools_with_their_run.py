"""Tools of LangChain and functions of Agno as plugins have the run that calls them, directly and by `call_tool`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agno.agent import Agent
from agno_driver import ScriptedModel
from framework_drivers import Script, call
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_driver import ScriptedChat

from pegboard import Host, Pegboard, Session
from pegboard.frameworks.agno import equip
from pegboard.frameworks.langchain import SessionTools

MODULE = '''
from typing import Annotated
from agno.exceptions import RetryAgentRun, StopAgentRun
from agno.run import RunContext
from agno.tools import Toolkit, tool as agno_tool
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, tool
from langgraph.types import Command


@tool
def whoami(runtime: ToolRuntime) -> str:
    """Say who asks."""
    return runtime.context["user"]


@tool
def named(word: str, name: Annotated[str, InjectedState("user_name")]) -> str:
    """Say a word to the user."""
    return f"{word} {name}"


@tool
def tagged(config: RunnableConfig) -> str:
    """Say what the run is tagged with."""
    return config["configurable"]["tag"]


@tool
def owned(secret: Annotated[str, InjectedToolArg]) -> str:
    """Take what the program alone has."""
    return secret


@tool
def rename(name: str, call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Rename the user."""
    return Command(update={"user_name": name, "messages": [ToolMessage(f"renamed to {name}", tool_call_id=call_id)]})


@tool(return_direct=True)
def quote(text: str) -> str:
    """Quote."""
    return f"<{text}>"


@tool(response_format="content_and_artifact")
def measure(text: str) -> tuple[str, object]:
    """Measure a text."""
    return f"{len(text)} characters", {"length": len(text)} if text == "json" else Length(text)


class Length:
    def __init__(self, text):
        self.length = len(text)


def spare() -> str:
    """Do nothing; what may be loaded brings `call_tool`."""
    return ""


langchain = [whoami, named, tagged, owned, rename, quote, measure]


class Shop(Toolkit):
    """A shop."""

    def __init__(self, **more):
        super().__init__(name="shop", tools=[self.add, self.whose, self.buy, self.pick, self.haggle], **more)

    def add(self, item: str, run_context: RunContext) -> str:
        """Add an item."""
        run_context.session_state.setdefault("items", []).append(item)
        return ", ".join(run_context.session_state["items"])

    def whose(self, agent) -> str:
        """Say whose shop it is."""
        return agent.name

    def pick(self, item: str) -> str:
        """Pick an item."""
        return f"{item} is picked"

    @agno_tool(pre_hook=lambda agent: agent.metadata["asked"].append("haggle"))
    def haggle(self, price: int) -> str:
        """Offer a price."""
        if price < 2:
            raise RetryAgentRun("Offer more than that.")
        raise StopAgentRun("The shop is closed.", agent_message="Closed.")

    @agno_tool(stop_after_tool_call=True)
    def buy(self, item: str) -> str:
        """Buy an item."""
        return f"{item} is bought"
'''


class Named(AgentState[Any]):
    user_name: str


@pytest.fixture
async def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pegboard]:
    (tmp_path / "things_of_runs.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    plugins = {"lc": {"python": "things_of_runs:langchain"}, "shop": {"python": "things_of_runs:Shop"}}
    plugins["spare"] = {"python": "things_of_runs:spare"}
    tools: list[Any] = ["lc", {"shop": {"stop_after_tool_call_tools": ["pick"]}}]
    agents = {"a": {"tools": tools, "discoverable": ["spare"], "dialect": "pegboard", "anticipate": False}}
    async with Pegboard.open({"store": "memory:", "plugins": plugins, "agents": agents}) as board:
        yield board


@pytest.fixture
async def session(board: Pegboard) -> Session:
    return await board.session(agent="a", session_id="s", principal="ada", host=Host(delivery=("result",)))


def made(tool: str, through: bool, /, **arguments: Any) -> Any:
    return call("call_tool", name=tool, arguments=arguments) if through else call(tool, **arguments)


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_of_langchain_injects_what_its_tools_take(session: Session, stream: bool, through: bool) -> None:
    """P6: runtime, a part of the state, settings; what the program alone has makes its tool unavailable."""
    calls = [
        made("whoami", through),
        made("named", through, word="hi"),
        made("tagged", through),
        made("owned", through),
    ]
    made_by: Any = create_agent
    agent = made_by(
        ScriptedChat(script=Script(*calls, "done")),
        middleware=[SessionTools(session)],
        state_schema=Named,
        context_schema=dict,
    )
    given = {"messages": [("user", "Go.")], "user_name": "Tim"}
    settings = {"context": {"user": "ada"}, "config": {"configurable": {"tag": "blue"}}}
    state = (
        [one async for one in agent.astream(given, stream_mode="values", **settings)][-1]
        if stream
        else await agent.ainvoke(given, **settings)
    )
    answers = [one.text for one in state["messages"] if one.type == "tool"]
    assert answers[:3] == ["ada", "hi Tim", "blue"]
    assert "InjectedToolArg" in answers[3]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
@pytest.mark.parametrize("first", [False, True], ids=["control_first", "session_first"])
async def test_a_middleware_gives_what_the_program_alone_has(session: Session, through: bool, first: bool) -> None:
    """X5: it reaches the tool and nothing else; what a model writes in its place does not count."""

    class Gives(AgentMiddleware[Any, Any, Any]):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            if "word" in request.tool_call["args"]:
                return await handler(request)
            args = {**request.tool_call["args"], "secret": "s3cret"}
            return await handler(request.override(tool_call={**request.tool_call, "args": args}))

    calls = [made("owned", through), made("owned", through, secret="guess"), made("owned", through, word="x")]
    tools = SessionTools(session)
    agent: Any = create_agent(
        ScriptedChat(script=Script(*calls, "done")), middleware=[tools, Gives()] if first else [Gives(), tools]
    )
    state = await agent.ainvoke({"messages": [("user", "Go.")]})
    answers = [one.text for one in state["messages"] if one.type == "tool"]
    assert answers[0] == "s3cret"
    assert not any("s3cret" in text or "guess" in text.partition("'secret'")[0] for text in answers[1:])
    calls_of_model = [one["args"] for m in state["messages"] if m.type == "ai" for one in m.tool_calls]
    assert calls_of_model == [{}, {"secret": "guess"}, {"word": "x"}]


@pytest.mark.parametrize("name", ["whoami", "named", "tagged", "owned"])
async def test_without_a_run_what_a_run_injects_is_unavailable(session: Session, name: str) -> None:
    """P6: with the reason."""
    answer = await session.call(name, {"word": "hi"} if name == "named" else {})
    reason = "InjectedToolArg" if name == "owned" else "run of LangChain"
    assert (answer.status, reason in answer.message) == ("tool_unavailable", True)


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_tool_of_langchain_updates_the_state_and_ends_the_run(session: Session, through: bool) -> None:
    """S6: a result that ends the run is its answer, and the model is not asked again."""
    script = Script(made("rename", through, name="Tim"), made("quote", through, text="x"), "not reached")
    agent: Any = create_agent(ScriptedChat(script=script), middleware=[SessionTools(session)], state_schema=Named)
    state = await agent.ainvoke({"messages": [("user", "Go.")]})
    assert (state["user_name"], state["messages"][-1].text) == ("Tim", "<x>")
    assert [one.text for one in state["messages"] if one.type == "tool"] == ["renamed to Tim", "<x>"]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_an_artifact_of_a_tool_of_langchain_stays_what_it_is(session: Session, through: bool) -> None:
    """The program has it beside the result; the model reads the text."""
    script = Script(made("measure", through, text="json"), made("measure", through, text="any"), "done")
    agent: Any = create_agent(ScriptedChat(script=script), middleware=[SessionTools(session)])
    state = await agent.ainvoke({"messages": [("user", "Go.")]})
    first, second = [one for one in state["messages"] if one.type == "tool"]
    assert (first.artifact, second.artifact.length) == ({"length": 4}, 3)
    assert [one.results for one in script.calls[1:]] == [("4 characters",), ("3 characters",)]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_result_that_ends_the_run_is_read_once(session: Session, through: bool) -> None:
    """S6: the run ends with an answer that repeats it; the model of the next run reads the result alone."""
    sent: list[list[str]] = []

    class Watched(ScriptedChat):
        async def _agenerate(self, messages: list[Any], *args: Any, **request: Any) -> Any:
            sent.append([one.text.partition("\n\n<system>")[0] for one in messages if one.type != "system"])
            return await super()._agenerate(messages, *args, **request)

    agent: Any = create_agent(
        Watched(script=Script(made("quote", through, text="x"), "done")), middleware=[SessionTools(session)]
    )
    state = await agent.ainvoke({"messages": [("user", "Go.")]})
    assert [one.text for one in state["messages"][-2:]] == ["<x>", "<x>"]
    await agent.ainvoke({"messages": [*state["messages"], ("user", "Thanks.")]})
    assert sent[-1] == ["Go.", "", "<x>", "Thanks."]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
@pytest.mark.parametrize("name", ["buy", "pick"])
async def test_a_function_of_agno_ends_the_run_with_its_result(session: Session, name: str, through: bool) -> None:
    """T13: marked in code, or named in the configuration."""
    model = ScriptedModel(script=Script(made(name, through, item="milk"), "not reached"))
    done = await equip(Agent(model=model), session).arun("Go.")
    assert str(done.content) == ("milk is bought" if name == "buy" else "milk is picked")


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_function_of_agno_has_the_state_and_the_agent_of_its_run(session: Session, through: bool) -> None:
    """G9: what it keeps is the run's, and what the run has is there."""
    script = Script(made("add", through, item="eggs"), made("whose", through), "done")
    agent = Agent(name="Clerk", model=ScriptedModel(script=script), session_state={"items": ["milk"]})
    done = await equip(agent, session).arun("Go.")
    assert [one.result for one in done.tools or ()] == ["milk, eggs", "Clerk"]
    assert (done.session_state or {})["items"] == ["milk", "eggs"]


@pytest.mark.parametrize("through", [False, True], ids=["direct", "through"])
async def test_a_function_of_agno_has_its_model_try_again_and_stops_the_run(session: Session, through: bool) -> None:
    """S6: as it is written for Agno alone; its own hooks run."""
    asked: list[str] = []
    model = ScriptedModel(script=Script(made("haggle", through, price=1), made("haggle", through, price=5), "no"))
    agent = Agent(model=model, metadata={"asked": asked})
    await equip(agent, session).arun("Go.")
    assert (len(model.script.calls), asked) == (2, ["haggle", "haggle"])
    assert model.script.calls[1].results == ("Offer more than that.",)
