"""Arguments that a function does not have: its plugin never runs it without them."""

from pathlib import Path

from pegboard import Pegboard

MODULE = '''
from agno.tools import Toolkit
from langchain_core.tools import tool
from pydantic import BaseModel, ConfigDict
from pydantic_ai import FunctionToolset


def plain(before: str = "") -> str:
    """Purge."""
    return f"ran {before}"


@tool
def chained(before: str = "") -> str:
    """Purge."""
    return f"ran {before}"


class Before(BaseModel):
    before: str = ""


@tool(args_schema=Before)
def modelled(before: str = "") -> str:
    """Purge."""
    return f"ran {before}"


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")
    before: str = ""


@tool(args_schema=Anything)
def open_ended(before: str = "", **more) -> str:
    """Purge."""
    return f"ran {before} {more}"


things = FunctionToolset()


@things.tool_plain
def in_a_set(before: str = "") -> str:
    """Purge."""
    return f"ran {before}"


class Kit(Toolkit):
    def __init__(self):
        super().__init__(name="kit", tools=[self.of_a_toolkit])

    def of_a_toolkit(self, before: str = "") -> str:
        """Purge."""
        return f"ran {before}"
'''
CONFIG = """
store: "memory:"
plugins:
  plain: {python: "unknown_arguments:plain"}
  chained: {python: "unknown_arguments:chained"}
  modelled: {python: "unknown_arguments:modelled"}
  open_ended: {python: "unknown_arguments:open_ended"}
  set: {python: "unknown_arguments:things"}
  kit: {python: "unknown_arguments:Kit"}
agents:
  default: {tools: [plain, chained, modelled, open_ended, set, kit]}
"""
TOOLS = ["plain", "chained", "modelled", "in_a_set", "of_a_toolkit"]


async def test_an_argument_that_a_function_does_not_have_is_an_error_that_names_it(tmp_path: Path) -> None:
    """X2: in whatever framework it was written."""
    (tmp_path / "unknown_arguments.py").write_text(MODULE)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    given = {"before": "2020", "befor": "2021"}
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        await board.ready()
        session = await board.session(session_id="s")
        for name in TOOLS:
            answered = await session.call(name, given)
            texts = " ".join(block["text"] for block in answered.result.content)
            assert answered.is_error, name
            assert "befor" in texts.replace("before", ""), name
        answered = await session.call("open_ended", given)
        assert answered.result.content[0]["text"] == "ran 2020 {'befor': '2021'}"
