"""A session's tools beside what a framework or a host has of its own: names, models and arguments."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import Runner, Usage
from agents.testing import ModelStep, ScriptedModel, assistant_message
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from pegboard import Pegboard, Session
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.pydantic_ai import SessionTools

MODULE = '''
def search(text: str) -> str:
    """Search the wiki."""
    return "of the session"


def final_result(count: int) -> str:
    """Count."""
    return "of the session"


def clock() -> str:
    """Tell the time."""
    return "noon"
'''
LOADABLE = {"allowed_toolkits": ["wiki"], "dialect": "pegboard", "anticipate": False}
CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"wiki": {"python": "wiki"}},
    "toolkits": {"wiki": {"description": "The wiki", "tools": ["wiki"]}},
    "agents": {"a": LOADABLE, "loaded": {"tools": ["wiki"], "dialect": "pegboard", "anticipate": False}},
}
LOAD = [ToolCallPart("load_tools", {"names": ["wiki"]})]


class Counted(BaseModel):
    count: int


@pytest.fixture
async def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pegboard]:
    (tmp_path / "wiki.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    async with Pegboard.open(CONFIG) as opened:
        yield opened


async def session_of(board: Pegboard, agent: str = "a") -> Session:
    return await board.session(agent=agent, session_id="s", principal="ada")


def model_of(*steps: list[Any]) -> FunctionModel:
    left = iter(steps)
    return FunctionModel(lambda messages, info: ModelResponse(parts=next(left)))


def down(*_: object) -> ModelResponse:
    raise ModelHTTPError(status_code=529, model_name="first", body="overloaded")


def results_of(done: Any) -> list[Any]:
    parts = (part for message in done.all_messages() for part in message.parts)
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


@pytest.mark.parametrize("agent", ["a", "loaded"], ids=["loaded in the run", "there from the start"])
async def test_a_tool_of_the_agents_own_wins_in_pydantic_ai(board: Pegboard, agent: str) -> None:
    """G10: the run goes on, and the agent's own tool runs."""
    model = model_of(LOAD, [ToolCallPart("search", {"text": "x"})], [TextPart("done")])
    own: Any = Agent(model, capabilities=[SessionTools(await session_of(board, agent))])

    @own.tool_plain
    def search(text: str) -> str:
        return f"the agent's own {text}"

    done = await own.run("Go on.")
    assert (done.output, results_of(done)[-1]) == ("done", "the agent's own x")


async def test_a_meta_tool_gives_way_to_a_tool_of_the_agents_own_in_pydantic_ai(board: Pegboard) -> None:
    model = model_of([ToolCallPart("load_tools", {"names": ["x"]})], [TextPart("done")])
    own: Any = Agent(model, capabilities=[SessionTools(await session_of(board))])

    @own.tool_plain
    def load_tools(names: list[str]) -> str:
        return f"own {names}"

    assert results_of(await own.run("Go on."))[0] == "own ['x']"


@pytest.mark.parametrize("agent", ["a", "loaded"], ids=["loaded in the run", "there from the start"])
async def test_an_output_tool_wins_in_pydantic_ai(board: Pegboard, agent: str) -> None:
    """G10: the output is the agent's."""
    model = model_of(LOAD, [ToolCallPart("final_result", {"count": 3})])
    own = Agent(model, output_type=Counted, capabilities=[SessionTools(await session_of(board, agent))])
    assert (await own.run("Go on.")).output == Counted(count=3)


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in a wrapper"])
@pytest.mark.parametrize("inner", [False, True], ids=["one", "in another"])
async def test_a_model_that_falls_back_has_the_tools(board: Pegboard, wrapped: bool, inner: bool) -> None:
    """D4: the model that steps in loads and calls."""
    call = [ToolCallPart("clock", {})]
    second: Any = model_of(LOAD, call, [TextPart("noon")])
    model: Any = FallbackModel(FunctionModel(down), second)
    model = FallbackModel(FunctionModel(down), model) if inner else model
    model = WrapperModel(model) if wrapped else model
    done = await Agent(model, capabilities=[SessionTools(await session_of(board))]).run("What time is it?")
    assert (done.output, results_of(done)[-1]) == ("noon", "noon")


@pytest.mark.parametrize("written", ["", "null", " ", "{}"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", ["a", "loaded"], ids=["not loaded", "loaded"])
async def test_arguments_that_are_empty_are_an_empty_object(
    board: Pegboard, written: str, stream: bool, agent: str
) -> None:
    """A1: no one is asked about a call that needs no approval, and the model reads what it wrote."""
    sent: list[Any] = []
    answers: list[Any] = [
        [ResponseFunctionToolCall(type="function_call", name="clock", arguments=written, call_id="1")],
        [assistant_message("done")],
    ]

    async def answer(request: Any) -> ModelStep:
        sent.append(request.input)
        return ModelStep(output=answers.pop(0))

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(2)], default_usage=Usage())
    equipped = equip(OpenAIAgent(name="A", model=model), await session_of(board, agent))
    done: Any = Runner.run_streamed(equipped, "Time?") if stream else await Runner.run(equipped, "Time?")
    _ = [event async for event in done.stream_events()] if stream else []

    assert (done.final_output, list(done.interruptions), list(await board.approvals.list())) == ("done", [], [])
    if agent == "loaded":
        assert [item["output"] for item in done.to_input_list() if item.get("type") == "function_call_output"] == [
            "noon"
        ]
    assert [item["arguments"] for item in sent[-1] if item.get("type") == "function_call"] == [written]
