"""Agents of Agno that the configuration describes."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIResponses
from agno_driver import ScriptedModel
from framework_drivers import Script, call
from framework_tools import RAN

from pegboard import Pegboard, UsageError
from pegboard.frameworks.agno import agno_agent

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONFIG = """
store: "memory:"
models:
  default: {provider: anthropic, id: claude-sonnet-4-6, max_tokens: 500}
  fast: {provider: OpenAI, id: gpt-5.4, api_key: "${KEY}"}
  wrong: {provider: anthropic, id: claude-sonnet-4-6, max_token: 500}
  strange: {provider: nobody, id: x}
  half: {provider: anthropic}
plugins:
  sums: {python: "framework_tools:Sums"}
  notes: {python: "framework_tools:Notes"}
toolkits: {notes: {description: The notes, tools: [notes]}}
agents:
  assistant: {display_name: Ada's helper, role: Helps, tools: [sums], allowed_toolkits: [notes], dialect: pegboard}
  quick: {model: fast, tools: [sums]}
  a: {model: wrong}
  b: {model: strange}
  c: {model: half}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    RAN.clear()
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"KEY": "sk-1"}) as board:
        yield board


def test_an_agent_is_what_the_configuration_says(board: Pegboard) -> None:
    agent = agno_agent(board, "assistant")

    assert (agent.id, agent.name, agent.role) == ("assistant", "Ada's helper", "Helps")
    assert isinstance(agent.model, Claude)
    assert (agent.model.id, agent.model.max_tokens) == ("claude-sonnet-4-6", 500)


def test_its_model_is_the_one_that_it_names(board: Pegboard) -> None:
    model = agno_agent(board, "quick").model

    assert isinstance(model, OpenAIResponses)
    assert (model.id, model.api_key) == ("gpt-5.4", "sk-1")


def test_what_is_given_wins(board: Pegboard) -> None:
    agent = agno_agent(board, "assistant", name="Bob's helper", description="Kind.", model=ScriptedModel())

    assert (agent.name, agent.description, agent.role) == ("Bob's helper", "Kind.", "Helps")
    assert isinstance(agent.model, ScriptedModel)


async def test_each_run_has_the_session_of_its_user(board: Pegboard) -> None:
    """S1: what one loads, another has not; the tools are those of the profile."""
    unload = call("unload_tools", names=["notes"])
    script = Script(call("load_tools", names=["notes"]), "Loaded.", unload, "No.", unload, "Gone.")
    agent = agno_agent(board, "assistant", model=ScriptedModel(script=script), telemetry=False)

    for user in ("ada", "bob", "ada"):
        await agent.arun("Go on.", session_id="s", user_id=user)

    results = [one.results[0] for one in script.calls if one.results]
    assert [json.loads(text)["items"][0]["status"] for text in results] == ["loaded", "not_loaded", "unloaded"]
    assert "add_numbers" in script.calls[0].tools


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("nobody", "There is no agent 'nobody'.", "There are: assistant, quick, a, b, c."),
        ("a", "models.wrong: Claude of Agno has no 'max_token'.", "Did you mean 'max_tokens'?"),
        ("b", "models.strange: Model provider 'nobody' is not supported.", ""),
        ("c", "models.half: 'provider' and 'id' say which model it is.", ""),
    ],
)
def test_what_cannot_be_built_is_one_clear_error(board: Pegboard, name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        agno_agent(board, name)

    assert (raised.value.message, raised.value.hint) == (message, hint)


async def test_the_model_of_seed_000_is_said_to_be_missing(tmp_path: Path) -> None:
    """Its example names a model and defines none."""
    shutil.copy(EXAMPLES / "assistant.yaml", tmp_path / "assistant.yaml")
    async with Pegboard.open(tmp_path / "assistant.yaml") as board:
        with pytest.raises(UsageError, match="no model 'sonnet' for the agent 'assistant'") as raised:
            agno_agent(board, "assistant")
        assert raised.value.hint == "`models:` has: none. Add it, or give `agno_agent(…, model=…)`."

        assert agno_agent(board, "assistant", model=ScriptedModel()).name == "Assistant"


async def test_the_agents_of_seed_001_are_built_as_they_stand(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "data-agents.yaml", tmp_path / "pegboard.yaml")
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        agents = [agno_agent(board, name) for name in ("assistant", "researcher")]

    assert [(agent.name, agent.role) for agent in agents] == [
        ("Assistant", "A versatile helper that loads tools on demand"),
        ("Researcher", "Deep research specialist"),
    ]
    assert [agent.model.id for agent in agents if agent.model] == ["claude-sonnet-4-6"] * 2
