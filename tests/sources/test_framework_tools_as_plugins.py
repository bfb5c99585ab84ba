"""Tools of LangChain and toolsets of pydantic-ai as plugins."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session

MODULE = '''
from langchain_core.tools import StructuredTool, ToolException, tool
from pydantic_ai import FunctionToolset, ModelRetry, RunContext

@tool(parse_docstring=True)
async def weigh(name: str, grams: int = 5) -> str:
    """Weigh a thing.

    Args:
        name: What is weighed.
    """
    return f"{name}: {grams} g"

@tool(response_format="content_and_artifact")
def look(name: str):
    """Look at a thing."""
    picture = {"type": "image", "base64": "AA==", "mime_type": "image/png"}
    return [{"type": "text", "text": name}, picture], {"seen": name}

def _lose(name: str) -> str:
    raise ToolException(f"{name} is lost")

lose = StructuredTool.from_function(_lose, name="lose", description="Lose a thing.", metadata={"destructiveHint": True})
scales = [weigh, look, lose]

things = FunctionToolset()

@things.tool
def whose(ctx: RunContext[str], name: str) -> str:
    """Say whose a thing is.

    Args:
        name: The thing.
    """
    return f"{name} is {ctx.deps}'s"

@things.tool_plain
async def count(names: list[str]) -> dict[str, int]:
    """Count things."""
    return {"count": len(names)}

@things.tool_plain
def fail() -> str:
    """Fail."""
    raise ModelRetry("try again")

@things.tool_plain(requires_approval=True)
def burn(name: str) -> str:
    """Burn a thing."""
    return f"{name} is burnt"

renamed = things.prefixed("my")
'''
CONFIG = """
store: "memory:"
defaults: {anticipate: false, dialect: pegboard}
plugins:
  scales: {python: "desk:scales", description: Scales}
  things: {python: "desk:things", approve: {whose: {name: [secret*]}}}
  renamed: {python: "desk:renamed"}
  single: {python: "desk:weigh"}
agents:
  one: {tools: [scales, things]}
  two: {tools: [renamed, single]}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "desk.py").write_text(MODULE)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        yield board


@pytest.fixture
async def session(board: Pegboard) -> Session:
    return await board.session(agent="one", session_id="s")


async def test_tools_of_langchain_are_described_as_they_are(session: Session) -> None:
    surface = await session.surface()
    weigh, lose = surface.find("weigh"), surface.find("lose")

    assert weigh is not None
    assert lose is not None
    assert (weigh.tool.plugin, weigh.tool.description) == ("scales", "Weigh a thing.")
    assert weigh.tool.input_schema["required"] == ["name"]
    assert weigh.tool.input_schema["properties"]["name"]["description"] == "What is weighed."
    assert dict(lose.tool.annotations) == {"destructiveHint": True}


async def test_tools_of_langchain_run(session: Session) -> None:
    """Async or not; their blocks are ours, their artifact is structured content, what they raise is an answer (P6)."""
    assert (await session.call("weigh", {"name": "egg"})).result.content[0]["text"] == "egg: 5 g"

    seen = (await session.call("look", {"name": "egg"})).result
    assert [dict(block) for block in seen.content] == [
        {"type": "text", "text": "egg"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]
    assert seen.structured == {"seen": "egg"}

    lost = await session.call("lose", {"name": "egg"})
    assert (lost.is_error, lost.result.content[0]["text"]) == (True, "ToolException: egg is lost")
    assert (await session.call("weigh", {})).status == "invalid_arguments"


async def test_a_toolset_of_pydantic_ai_is_a_plugin(session: Session) -> None:
    """Descriptions, schemas, results and errors; what demands an approval there demands it here (T13)."""
    surface = await session.surface()
    whose = surface.find("whose")

    assert whose is not None
    assert whose.tool.description == "Say whose a thing is."
    assert "ctx" not in whose.tool.input_schema["properties"]
    assert (await session.call("count", {"names": ["a", "b"]})).result.structured == {"count": 2}
    assert (await session.call("fail", {})).is_error
    burnt = await session.call("burn", {"name": "letter"})
    assert (burnt.status, burnt.approval is not None) == ("needs_approval", True)
    assert burnt.approval is not None
    await session.approvals.allow(burnt.approval.id, by="grace")
    assert (await session.resume(burnt.approval.id)).result.content[0]["text"] == "letter is burnt"
    assert (await session.call("whose", {"name": "secret"})).status == "needs_approval"


async def test_a_tool_of_a_toolset_has_the_run_that_calls_it(session: Session) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from pegboard.frameworks.pydantic_ai import SessionTools

    agent = Agent(TestModel(call_tools=["whose"]), deps_type=str, capabilities=[SessionTools(session)])
    done = await agent.run("Whose is it?", deps="ada")

    assert "a is ada's" in done.output
    assert (await session.call("whose", {"name": "egg"})).result.content[0]["text"] == "egg is None's"


async def test_what_wraps_a_toolset_and_a_single_tool_are_plugins_too(board: Pegboard) -> None:
    session = await board.session(agent="two", session_id="s")

    assert {"my_count", "weigh"} <= set((await session.surface()).names)
    assert (await session.call("my_count", {"names": []})).result.structured == {"count": 0}


async def test_two_tools_of_one_name_are_reported(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(MODULE + "\ntwice = [weigh, lose.model_copy(update={'name': 'weigh'})]\n")
    (tmp_path / "pegboard.yaml").write_text(
        'store: "memory:"\nplugins: {twice: {python: "desk:twice"}}\nagents: {one: {tools: [twice]}}'
    )
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        surface = await (await board.session(agent="one", session_id="s")).surface()

    assert [missing.reason for missing in surface.missing] == ["plugin 'twice' has two tools named 'weigh'."]
