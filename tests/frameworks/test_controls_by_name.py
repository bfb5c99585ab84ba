"""What a host of a framework decides by a tool's name sees that tool where the model calls it through `call_tool`."""

import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import RunHooks, Runner, StopAtTools
from agno.agent import Agent as AgnoAgent
from agno_driver import ScriptedModel as AgnoModel
from framework_drivers import Script, call
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_driver import ScriptedChat
from langgraph.checkpoint.memory import InMemorySaver
from openai_agents_driver import ModelStep, ScriptedModel, assistant_message, made
from openai_agents_driver import scripted as openai_scripted
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, PrepareTools
from pydantic_ai.messages import ModelResponse
from pydantic_ai_driver import scripted as pydantic_scripted

from pegboard import Host, Pegboard, Session
from pegboard.frameworks import agno, openai_agents
from pegboard.frameworks.langchain import SessionTools as LangChainTools
from pegboard.frameworks.pydantic_ai import SessionTools

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"purse": {"python": "purse"}},
    "toolkits": {"purse": {"description": "A purse.", "tools": ["purse"]}},
    "agents": {"a": {"allowed_toolkits": ["purse"], "dialect": "pegboard", "anticipate": False}},
}
MODULE = '''
PAID = []


def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"{amount} is paid"
'''
LOAD = call("load_tools", names=["purse"])
"""What a model writes of which the list does not change: the schema comes with the answer."""


def pay(amount: Any = 1, **more: Any) -> Any:
    return call("call_tool", **{"name": "pay", "arguments": {"amount": amount}, **more})


@pytest.fixture
def paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Return what was paid."""
    (tmp_path / "purse.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)

    def read() -> list[int]:
        import sys

        return list(sys.modules["purse"].PAID) if "purse" in sys.modules else []

    return read


@pytest.fixture
async def session(paid: object) -> AsyncIterator[Session]:
    async with Pegboard.open(CONFIG) as board:
        yield await board.session(agent="a", session_id="s", principal="ada", host=Host(delivery=("result",)))


def langchain_agent(session: Session, script: Script, control: Any, *, first: bool) -> Any:
    tools = LangChainTools(session)
    middleware = [tools, control] if first else [control, tools]
    return create_agent(ScriptedChat(script=script), middleware=middleware, checkpointer=InMemorySaver())


@pytest.mark.parametrize("name", ["Pay", "purse/pay"])
async def test_a_tool_in_another_spelling_does_not_pass_by_a_control_of_its_name(
    session: Session, paid: Callable[[], list[int]], name: str
) -> None:
    """P3: it has not run, and the answer says how it is called; directly and through `call_tool`."""
    for written in (pay(name=name), call(name, amount=1)):
        control = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
        agent, thread = (
            langchain_agent(session, Script(LOAD, written, "done"), control, first=True),
            {"configurable": {"thread_id": f"{written}"}},
        )
        state = await agent.ainvoke({"messages": [("user", "Pay.")]}, thread)
        assert (paid(), "Call 'pay'" in str(state["messages"][-2].content)) == ([], True)

        script = Script(LOAD, written, "done")
        await Agent(pydantic_scripted(lambda script=script: script), capabilities=[SessionTools(session)]).run("Pay.")
        agno_agent = AgnoAgent(model=AgnoModel(script=Script(LOAD, written, "done")))
        await agno.equip(agno_agent, session).arun("Pay.")
        assert paid() == []


async def test_openai_agents_stops_at_a_tool_that_is_called_through_another(
    session: Session, paid: Callable[[], list[int]]
) -> None:
    """P3: the tool's answer is the run's, and hooks are told its name."""
    began: list[str] = []

    class Hooks(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            began.append(tool.name)

    script = Script(LOAD, pay(3), "not reached")
    agent: Any = OpenAIAgent(
        name="A", model=openai_scripted(script), tool_use_behavior=StopAtTools(stop_at_tool_names=["pay"])
    )
    done = await Runner.run(openai_agents.equip(agent, session), "Pay.", hooks=Hooks())
    assert (done.final_output, paid(), began) == ("3 is paid", [3], ["load_tools", "pay"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_openai_agents_sends_calls_back_as_they_were_made(
    session: Session, paid: Callable[[], list[int]], stream: bool
) -> None:
    """D4: what the provider has cached of the history stays as it was."""
    sent: list[Any] = []
    answers: list[Any] = [[made(LOAD, "1")], [made(pay(3), "2")], [assistant_message("Paid.")]]

    async def answer(request: Any) -> ModelStep:
        sent.append(request.input)
        return ModelStep(output=answers.pop(0))

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(3)])
    agent: Any = openai_agents.equip(OpenAIAgent(name="A", model=model), session)
    done: Any = Runner.run_streamed(agent, "Pay.") if stream else await Runner.run(agent, "Pay.")
    _ = [event async for event in done.stream_events()] if stream else []
    assert (done.final_output, paid()) == ("Paid.", [3])
    names = [one["name"] for one in done.to_input_list() if one.get("type") == "function_call"]
    assert names == ["load_tools", "pay"]
    calls = [one for one in sent[-1] if one.get("type") == "function_call"]
    assert (calls[1]["name"], json.loads(calls[1]["arguments"])) == ("call_tool", dict(pay(3).arguments))


async def test_hooks_of_pydantic_ai_see_a_tool_that_is_called_through_another(
    session: Session, paid: Callable[[], list[int]]
) -> None:
    """P3: what is kept of the run names the tool."""
    seen: list[tuple[str, Any]] = []

    class Watch(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            seen.append((tool_def.name, args))
            return args

    script = Script(LOAD, pay(2), "done")
    agent = Agent(pydantic_scripted(lambda: script), capabilities=[SessionTools(session), Watch()])
    done = await agent.run("Pay.")
    assert (paid(), seen[-1]) == ([2], ("pay", {"amount": 2}))
    responses = [one for one in done.all_messages() if isinstance(one, ModelResponse)]
    assert [part.tool_name for one in responses for part in one.tool_calls] == ["load_tools", "pay"]


async def test_a_tool_that_pydantic_ai_does_not_prepare_is_not_called_through_another(
    session: Session, paid: Callable[[], list[int]]
) -> None:
    """P3: a tool that is excluded from the agent's list is excluded here too."""

    async def prepare(_: Any, definitions: list[Any]) -> list[Any]:
        return [one for one in definitions if one.name != "pay"]

    for asked in (pay(2), call("pay", amount=3)):
        model = pydantic_scripted(partial(next, repeat(Script(LOAD, asked, "done"))))
        agent = Agent(model, capabilities=[SessionTools(session), PrepareTools(prepare)])
        assert (await agent.run("Pay.")).output == "done"
    assert paid() == []
