"""Requests that providers refuse, whole conversations over one that does: numbers of tools, roots, texts, choices."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner
from agents import ModelSettings as OpenAISettings
from framework_drivers import Driver
from loop_talk import FORMS, Form, talk
from openai_agents_driver import model_of_form
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import Tool
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings, ToolOrOutput

from pegboard import Host, Pegboard
from pegboard.dialects.names import CALL
from pegboard.frameworks.openai_agents import equip
from pegboard.frameworks.pydantic_ai import SessionTools
from pegboard.testing import ModelAnswer, ProviderRefusal, StrictProvider
from pegboard.testing.providers.tool_rules import MOST_TOOLS

pytestmark = pytest.mark.cover(1)

CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {
        "many": {"python": "many_tools"},
        "roots": {"python": "odd_tools:roots"},
        "texts": {"python": "odd_tools:texts"},
    },
    "toolkits": {"texts": {"description": "Tools that say nothing.", "tools": ["texts"]}},
    "agents": {
        "crowded": {"tools": ["many"], "dialect": "pegboard"},
        "odd": {"tools": ["roots", "texts"], "dialect": "pegboard"},
        "later": {"allowed_toolkits": ["texts"], "dialect": "pegboard", "anticipate": False},
    },
}
MANY = "RAN = []\n" + "".join(
    f'\n\ndef tool_{n}(to: str) -> str:\n    """Do number {n}."""\n    RAN.append({n})\n    return "done"\n'
    for n in range(200)
)
ODD = '''
import os

from langchain_core.tools import StructuredTool

RAN = []
TEXT = {"type": "string"}


def ran(name):
    def run(**arguments):
        RAN.append((name, arguments))
        return "it is done"

    return run


def of(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


SCHEMAS = {
    "find_any": {"type": "object", "anyOf": [of(id=TEXT), of(url=TEXT)]},
    "find_one": {"oneOf": [of(id=TEXT), of(url=TEXT)]},
    "find_all": {"allOf": [of(id=TEXT), {"$ref": "#/$defs/Url"}], "$defs": {"Url": of(url=TEXT)}},
}
roots = [
    StructuredTool(name=name, description="Find it.", args_schema=schema, func=ran(name))
    for name, schema in SCHEMAS.items()
]


def say_nothing() -> str:
    """Say nothing."""
    RAN.append(("say_nothing", {}))
    return ""


def find_none() -> list[str]:
    """Find none."""
    RAN.append(("find_none", {}))
    return []


def say_blank() -> str:
    """Say what is empty to the eye."""
    RAN.append(("say_blank", {}))
    return " \\n"


def read_name() -> str:
    """Read a name that is no UTF-8."""
    RAN.append(("read_name", {}))
    return os.fsdecode(b"report\\x97.txt")


def read_data() -> dict[str, str]:
    """Read such names as data."""
    RAN.append(("read_data", {}))
    return {os.fsdecode(b"key\\x97"): "half \\ud83d"}


def fail() -> str:
    """Fail with such a name."""
    RAN.append(("fail", {}))
    raise FileNotFoundError(os.fsdecode(b"report\\x97.txt"))


def repeat(text: str) -> str:
    """Repeat a text."""
    RAN.append(("repeat", {}))
    return text


texts = [say_nothing, find_none, say_blank, read_name, read_data, fail, repeat]
'''


def ran(module: str) -> list[Any]:
    return list(sys.modules[module].RAN) if module in sys.modules else []


@pytest.fixture
async def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pegboard]:
    for name, text in (("many_tools", MANY), ("odd_tools", ODD)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    async with Pegboard.open(CONFIG) as board:
        yield board


THROUGH: ModelAnswer = [(CALL, {"name": "tool_199", "arguments": {"to": "ada"}})]
ROOTS = {"find_any": {"url": "u"}, "find_one": {"id": "i"}, "find_all": {"id": "i", "url": "u"}}
EMPTY = ("say_nothing", "find_none", "say_blank")


@pytest.mark.parametrize("name", ROOTS)
async def test_a_choice_at_the_root_of_a_schema_is_called(driver: Driver, board: Pegboard, name: str) -> None:
    """D4, X2: no provider takes it as it is; what it demands is checked all the same."""
    with StrictProvider([(name, {})], [(name, ROOTS[name])], "Done.") as server:
        going = driver.talk(await board.session(agent="odd", session_id="s"), url=server.url)
        assert (await going.run("Find it.")).answer.strip() == "Done."

    assert (server.refusals, ran("odd_tools")) == ([], [(name, ROOTS[name])])


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", ROOTS)
async def test_a_loop_calls_what_has_a_choice_at_its_root(board: Pegboard, form: Form, name: str) -> None:
    """D4, X2: the same in every form of a loop."""
    answers: list[ModelAnswer] = [[(name, {})], [(name, ROOTS[name])], "Done."]
    async with talk(await board.session(agent="odd", session_id="s"), form, lambda _: answers.pop(0)) as going:
        assert await going.say("Find it.") == "Done."

    assert (going.server.refusals, ran("odd_tools")) == ([], [(name, ROOTS[name])])


@pytest.mark.parametrize("name", EMPTY)
async def test_a_result_that_has_no_text_is_taken(driver: Driver, board: Pegboard, name: str) -> None:
    """D4: Anthropic refuses blocks of text that are empty to the eye."""
    with StrictProvider([(name, {})], "Done.", "Still.") as server:
        going = driver.talk(await board.session(agent="odd", session_id="s"), url=server.url)
        assert (await going.run("Go on.")).answer.strip() == "Done."
        assert (await going.run("And now?")).answer.strip() == "Still."

    assert (server.refusals, ran("odd_tools")) == ([], [(name, {})])


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", EMPTY)
async def test_a_loop_sends_a_result_that_has_no_text(board: Pegboard, form: Form, name: str) -> None:
    """D4: the same in every form of a loop."""
    answers: list[ModelAnswer] = [[(name, {})], "Done."]
    async with talk(await board.session(agent="odd", session_id="s"), form, lambda _: answers.pop(0)) as going:
        assert await going.say("Go on.") == "Done."

    assert (going.server.refusals, ran("odd_tools")) == ([], [(name, {})])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_a_provider_has_no_place_for_is_found_and_called(
    driver: Driver, board: Pegboard, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    """D4: as many tools as it takes are listed and nothing is refused; the others are loaded; one line says so."""
    reported: list[Any] = []
    board.on("adapted", reported.append)
    board.on("rejected", reported.append)
    answers = [[("tool_3", {"to": "ada"})], [("load_tools", {"names": ["tool_199"]})], THROUGH, "Done."]
    if driver.form == "anthropic":
        answers[1:3] = [[("tool_199", {"to": "ada"})]]
    with StrictProvider(*answers, "Still.") as server:
        going = driver.talk(await board.session(agent="crowded", session_id="s"), url=server.url)
        for said in ("Done.", "Still."):
            assert (await going.run("Go on.", stream=stream)).answer.strip() == said

    assert (server.refusals, ran("many_tools")) == ([], [3, 199])
    expected = 0 if driver.form == "anthropic" else 1
    assert [event["subject"] for event in reported] == expected * ["form:tools"]
    assert sum(one.name == "pegboard" and one.levelname == "WARNING" for one in caplog.records) == expected
    if expected:
        assert {len(body["tools"]) for body in server.bodies} == {MOST_TOOLS}


class FewTools:
    """A model whose provider takes 64 tools; it loads one of the others in its second turn, and calls it."""

    def __init__(self) -> None:
        said: list[ModelAnswer] = ["Done.", [("load_tools", {"names": ["tool_199"]})], THROUGH, "Done."]
        self.says, self.refused = iter(said), 0

    def __call__(self, body: Mapping[str, Any]) -> ModelAnswer:
        had = sum(not tool.get("defer_loading") for tool in body["tools"])
        if had <= 64:
            return next(self.says)
        self.refused += 1
        text = f"array too long. Expected an array with maximum length 64, but got an array with length {had} instead."
        return ProviderRefusal(text=f"Invalid 'tools': {text}", param="tools", code="array_above_max_length")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_limit_of_which_only_a_refusal_says_is_kept(driver: Driver, board: Pegboard, stream: bool) -> None:
    """D4: refused once: the request is sent without the rest, which the model finds in the next run."""
    reported: list[Any] = []
    board.on("rejected", reported.append)
    model = FewTools()
    with StrictProvider(model=model) as server:
        going = driver.talk(await board.session(agent="crowded", session_id="s"), url=server.url)
        for _ in range(2):
            assert (await going.run("Go on.", stream=stream)).answer.strip() == "Done."

    assert (model.refused, reported, ran("many_tools")) == (1, [], [199])


@pytest.mark.parametrize("form", FORMS, ids=str)
async def test_a_loop_lists_what_a_provider_has_a_place_for(board: Pegboard, form: Form) -> None:
    """D4: the same in every form of a loop, and what a host sends beside counts where the provider refuses it."""
    answers: list[ModelAnswer] = [[("load_tools", {"names": ["tool_199"]})], "Done."]
    if form.form == "anthropic":
        answers[0] = [("tool_199", {"to": "ada"})]
    async with talk(await board.session(agent="crowded", session_id="s"), form, lambda _: answers.pop(0)) as going:
        assert await going.say("Go on.") == "Done."

    assert going.server.refusals == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_tools_of_the_agent_take_places_of_their_own(board: Pegboard, stream: bool) -> None:
    """D4: an agent of pydantic-ai over OpenAI with three tools of its own."""
    names = ["first", "second", "third"]
    agent: Any = PydanticAgent(
        tools=[Tool(lambda: "own", name=name) for name in names],
        capabilities=[SessionTools(await board.session(agent="crowded", session_id="s"))],
    )
    with StrictProvider([("load_tools", {"names": ["tool_199"]})], THROUGH, [("first", {})], "Done.") as server:
        model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=f"{server.url}/v1", api_key="k"))
        if stream:
            async with agent.run_stream("Go on.", model=model) as done:
                assert await done.get_output() == "Done."
        else:
            assert (await agent.run("Go on.", model=model)).output == "Done."

    assert (server.refusals, ran("many_tools")) == ([], [199])
    assert {len(body["tools"]) for body in server.bodies} == {MOST_TOOLS}


@pytest.mark.parametrize("dialect", ["pegboard", "invokeother", "discovery"])
@pytest.mark.parametrize("agent", ["crowded", "kit"])
async def test_what_the_list_has_no_place_for_is_loaded_in_each_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, agent: str
) -> None:
    """D4, P3, T4: whether tools are named or in a toolkit that is loaded from the start: found, loaded, called."""
    (tmp_path / "many_tools.py").write_text(MANY)
    monkeypatch.chdir(tmp_path)
    kit = {"many": {"description": "Do things by number.", "tools": ["many"]}}
    agents = {
        "crowded": {"tools": ["many"], "dialect": dialect},
        "kit": {"allowed_toolkits": ["many"], "initial_toolkits": ["many"], "dialect": dialect},
    }
    config = {"store": "memory:", "plugins": CONFIG["plugins"], "toolkits": kit, "agents": agents}
    async with Pegboard.open(config) as board:
        session = await board.session(agent=agent, session_id="s", host=Host(delivery=("result",)))
        assert (await session.fit_list(50), await session.fit_list(50)) == (True, False)
        surface = await session.surface(message="Go on.")
        listed = [one.tool.wire for one in surface.tools]
        found = await session.search("do number 199")
        answer = await session.call(CALL, {"name": "tool_199", "arguments": {"to": "ada"}})
        assert (answer.status, ran("many_tools")) == ("ok", [199])

    assert (len(listed), listed.count(CALL), "tool_199" in listed) == (50, 1, False)
    assert ("tool_199", "loadable") in [(one.name, one.status) for one in found.results]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ["find_none", "say_blank", "say_nothing"])
async def test_a_choice_of_a_tool_that_is_not_loaded_is_taken(board: Pegboard, name: str, stream: bool) -> None:
    """D4, P3: its definition goes with the choice, which its provider would refuse else."""
    session = await board.session(agent="later", session_id="s")
    with StrictProvider([(name, {})], "Done.") as server:
        model, settings = model_of_form("responses", server.url), OpenAISettings(tool_choice=name)
        agent: Any = equip(Agent(name="A", model=model, model_settings=settings), session)
        done: Any = Runner.run_streamed(agent, "Go on.") if stream else await Runner.run(agent, "Go on.")
        _ = [event async for event in done.stream_events()] if stream else []

    assert (done.final_output, server.refusals, ran("odd_tools")) == ("Done.", [], [(name, {})])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("choice", [["say_blank"], ToolOrOutput(["say_blank", "find_none"])], ids=["list", "or output"])
async def test_a_choice_of_pydantic_ai_of_a_tool_that_is_not_loaded_is_taken(
    board: Pegboard, choice: Any, stream: bool
) -> None:
    """D4, P3: pydantic-ai would end the run before the request; without the choice the list is as it was."""
    session = await board.session(agent="later", session_id="s")
    agent: Any = PydanticAgent(capabilities=[SessionTools(session)])
    with StrictProvider([("say_blank", {})], "Done.", "Still.") as server:
        model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=f"{server.url}/v1", api_key="k"))

        def settings(ctx: Any) -> ModelSettings:
            return {"tool_choice": choice} if ctx.run_step == 1 else {}

        if stream:
            async with agent.run_stream("Go on.", model=model, model_settings=settings) as done:
                assert await done.get_output() == "Done."
        else:
            assert (await agent.run("Go on.", model=model, model_settings=settings)).output == "Done."

    assert (server.refusals, ran("odd_tools")) == ([], [("say_blank", {})])
    first, second = ([tool["function"]["name"] for tool in body["tools"]] for body in server.bodies)
    assert ("say_blank" in first, "say_blank" in second) == (True, False)


async def test_a_choice_of_pydantic_ai_of_what_nobody_may_ends_the_run(board: Pegboard) -> None:
    """P9: as pydantic-ai says it of a name that there is not; nothing is sent."""
    agent: Any = PydanticAgent(capabilities=[SessionTools(await board.session(agent="later", session_id="s"))])
    with StrictProvider("Done.") as server:
        model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=f"{server.url}/v1", api_key="k"))
        with pytest.raises(UserError, match="tool_3"):
            await agent.run("Go on.", model=model, model_settings={"tool_choice": ["tool_3"]})

    assert server.bodies == []


@pytest.mark.cover(2)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ["read_name", "read_data", "fail"])
async def test_half_a_character_ends_no_conversation(driver: Driver, board: Pegboard, name: str, stream: bool) -> None:
    """D4: UTF-8 cannot carry it: neither of a result, nor of data, nor of an error, now and in later turns."""
    with StrictProvider([(name, {})], "Done.", "Still.") as server:
        going = driver.talk(await board.session(agent="odd", session_id="s"), url=server.url)
        for said in ("Done.", "Still."):
            assert (await going.run("Go on.", stream=stream)).answer.strip() == said

    assert (server.refusals, ran("odd_tools")) == ([], [(name, {})])
    assert "\\ufffd" in json.dumps(server.bodies[-1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_half_a_character_that_a_model_writes_ends_no_conversation(
    driver: Driver, board: Pegboard, stream: bool
) -> None:
    """D4: the tool has it as U+FFFD; the clients of pydantic-ai, and a stream of Anthropic's, take no such call."""
    with StrictProvider([("repeat", {"text": "half \ud83d"})], "Done.", "Still.") as server:
        going = driver.talk(await board.session(agent="odd", session_id="s"), url=server.url)
        with suppress(ValueError):
            for said in ("Done.", "Still."):
                assert (await going.run("Go on.", stream=stream)).answer.strip() == said

    taken = driver.name != "pydantic-ai" and not (driver.name == "loop" and stream)
    assert (server.refusals, ran("odd_tools")) == ([], [("repeat", {})] if taken else [])
    assert len(server.bodies) == (3 if taken or driver.name == "pydantic-ai" else 1)
