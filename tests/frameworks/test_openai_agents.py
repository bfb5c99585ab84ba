"""What OpenAI Agents has and other frameworks have not: states of runs, handoffs, models by name."""

import base64
import json
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    ModelProvider,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunState,
    SQLiteSession,
    Usage,
    function_tool,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from framework_drivers import Script, Step, call
from framework_tools import PICTURE, RAN
from openai import AsyncOpenAI
from openai_agents_driver import scripted

from pegboard import Host, Pegboard, Session
from pegboard.frameworks.openai_agents import delegate_to, equip
from pegboard.testing import StrictProvider

CONFIG = """
store: "sqlite:///pegboard.db"
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
  pictures: {python: "framework_tools:Pictures"}
  shredder: {python: "framework_tools:Shredder", approve: {shred: WHEN}}
toolkits:
  notes: {description: The notes of the user, tools: [notes]}
  papers: {description: What is done with papers, tools: [shredder]}
  sums:
    tools: [sums]
    focus: [{when: add, tools: [add_numbers], choice: required}]
defaults: {anticipate: false}
agents:
  clerk: {allowed_toolkits: [papers], dialect: pegboard}
  assistant:
    tools: [pictures, delegate]
    may_delegate: [clerk]
    allowed_toolkits: [notes, sums]
    initial_toolkits: [sums]
    dialect: pegboard
  eager: {allowed_toolkits: [notes], dialect: pegboard, anticipate: {tools: 5}}
"""
LOAD = call("load_tools", names=["notes"])
LOAD_PAPERS = call("load_tools", names=["papers"], keep="turn")
LIST = call("note_list")
SHRED = call("shred", paper="draft")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    RAN.clear()
    return written(tmp_path / "pegboard.yaml")


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


def written(path: Path, when: str = "always") -> Path:
    path.write_text(CONFIG.replace("WHEN", when))
    return path


def agent_of(*steps: Step, **given: Any) -> tuple[Agent[Any], Script]:
    """Return an agent whose model follows a script, and the script."""
    script = Script(*steps)
    settings: dict[str, Any] = {"name": "A", "model": scripted(script), **given}
    return Agent(**settings), script


def equipped(session: Any, *steps: Step, **given: Any) -> tuple[Agent[Any], Script]:
    agent, script = agent_of(*steps, **given)
    return equip(agent, session), script


def outputs(items: list[Any]) -> list[Any]:
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


# -- approvals, over states


async def paused(session: Session) -> str:
    """Return the state of a run that waits, as JSON; what it waits for was loaded for its turn alone."""
    agent, _ = equipped(session, LOAD_PAPERS, SHRED)
    result = await Runner.run(agent, "Shred the draft.")
    assert [one.name for one in result.interruptions] == ["shred"]
    return json.dumps(result.to_state().to_json())


async def test_a_state_goes_on_where_its_tool_has_left_the_list(board: Pegboard) -> None:
    """X1: the lease ended with another turn; the call is answered, and the run goes on."""
    session = await board.session(agent="clerk", session_id="s")
    text = await paused(session)
    await session.end_turn()
    agent, script = equipped(session, "Then not.")
    state = await RunState.from_json(agent, json.loads(text))
    state.approve(state.get_interruptions()[0])

    result = await Runner.run(agent, state)

    assert (result.final_output, RAN) == ("Then not.", [])
    assert "was not run" in script.calls[0].results[0]


async def test_who_approves_a_tool_for_the_whole_run_is_not_asked_again(board: Pegboard) -> None:
    session = await board.session(agent="clerk", session_id="s")
    agent, _ = equipped(session, LOAD_PAPERS, SHRED, SHRED, [SHRED, call("shred", paper="letter")], "All gone.")
    state = (await Runner.run(agent, "Shred it all.")).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)

    result = await Runner.run(agent, state)

    assert (result.final_output, RAN) == ("All gone.", ["shred"] * 4)


async def test_a_result_from_elsewhere_is_handed_in_with_the_words(board: Pegboard) -> None:
    """T13: nothing runs here; what a person says in its place is the result, for the session too."""
    session = await board.session(agent="clerk", session_id="s")
    agent, script = equipped(session, LOAD_PAPERS, call("post", paper="letter"), "Posted.")
    state = (await Runner.run(agent, "Post it.")).to_state()
    state.reject(state.get_interruptions()[0], rejection_message="It is in the box.")

    await Runner.run(agent, state)

    assert (script.calls[2].results, RAN) == (("It is in the box.",), [])
    assert [one.status for one in await board.approvals.list(ended=True)] == ["used"]


async def test_arguments_that_are_no_json_are_nobody_s_to_approve(board: Pegboard) -> None:
    session = await board.session(agent="clerk", session_id="s")
    await session.load("papers")
    broken = [function_call("shred", '{"paper": ', call_id="call_1")]
    agent = equip(Agent(name="A", model=ScriptedModel([broken, [assistant_message("Sorry.")]])), session)

    result = await Runner.run(agent, "Shred it.")

    assert (result.interruptions, result.final_output) == ([], "Sorry.")
    assert outputs(result.to_input_list()) == ["The arguments of 'shred' are not a JSON object. It was not called."]


# -- what the model is given


async def test_what_is_loaded_now_stands_last_and_stays_in_no_history(board: Pegboard) -> None:
    """D4: neither the items of the result nor a session of the SDK keep it."""
    session = await board.session(agent="assistant", session_id="s")
    model = ScriptedModel([[function_call("load_tools", {"names": ["notes"]}, call_id="1")], [assistant_message("ok")]])
    memory = SQLiteSession("s")

    result = await Runner.run(equip(Agent(name="A", model=model), session), "Load them.", session=memory)

    last: Any = model.calls[1].input[-1]
    assert last["content"].startswith("<system>")
    assert "note_list" in last["content"]
    kept = json.dumps([result.to_input_list(), await memory.get_items()])
    assert ("<system>" in kept, "Load them." in kept) == (False, True)


async def test_a_server_that_keeps_the_conversation_is_told_a_change_once(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    steps = [[function_call(name, given, call_id=name)] for name, given in (("load_tools", {"names": ["notes"]}),)]
    steps += [[function_call("note_list", {}, call_id=str(n))] for n in range(3)]
    model = ScriptedModel([*steps, [assistant_message("ok")]])

    await Runner.run(equip(Agent(name="A", model=model), session), "Go on.", conversation_id="conv_1")

    notes = [sum("<system>" in str(item.get("content")) for item in one.input) for one in model.calls]  # type: ignore[union-attr]
    assert notes == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
async def test_loads_of_ten_turns_break_no_prefix(board: Pegboard, kind: Any) -> None:
    """D4: with the SDK's own clients, against a server; what is loaded is called through `call_tool`."""
    session = await board.session(agent="assistant", session_id="s")
    load = [("load_tools", {"names": ["notes"]})]
    use = [("call_tool", {"name": "note_list", "arguments": {}})]
    unload = [("unload_tools", {"names": ["notes"]})]
    items: list[Any] = []
    steps = [step for _ in range(5) for step in (load, use, "Milk.", unload, "Gone.")]
    with StrictProvider(*steps) as server:
        model = kind("gpt-5.4", AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none"))
        agent = equip(Agent(name="A", instructions="Be kind.", model=model), session)
        for turn in range(10):
            items.append({"role": "user", "content": f"List my notes, part {turn}."})
            items = (await Runner.run(agent, items)).to_input_list()

    assert (len(server.bodies), server.refusals, server.rewritten, RAN) == (25, [], 0, ["note_list"] * 5)


@pytest.mark.parametrize("allow", [True, False])
async def test_a_person_is_asked_about_the_real_tool_behind_call_tool(config: Path, *, allow: bool) -> None:
    """A1, A3: with a real client, over a process; the words of a refusal reach the session."""
    shred = [("call_tool", {"name": "shred", "arguments": {"paper": "draft"}})]
    with StrictProvider([("load_tools", {"names": ["papers"]})], shred, "Done.") as server:
        plain = Agent(
            name="A", model=OpenAIResponsesModel("gpt-5.4", AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none"))
        )
        async with Pegboard.open(config) as board:
            asked = await Runner.run(equip(plain, await board.session(agent="clerk", session_id="s")), "Shred it.")
            assert [one.tool for one in await board.approvals.list()] == ["shred"]
            text = json.dumps(asked.to_state().to_json())
        async with Pegboard.open(config) as board:
            agent = equip(plain, await board.session(agent="clerk", session_id="s"))
            state = await RunState.from_json(agent, json.loads(text))
            [waiting] = state.get_interruptions()
            state.approve(waiting) if allow else state.reject(waiting, rejection_message="Keep it.")
            done = await Runner.run(agent, state)

            assert (done.final_output, RAN) == ("Done.", ["shred"] if allow else [])
            [ended] = await board.approvals.list(ended=True)
            assert (ended.status, ended.message) == (("used", "") if allow else ("refused", "Keep it."))


async def test_a_picture_reaches_the_model(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    agent, _ = equipped(session, call("draw"), "Nice.")

    result = await Runner.run(agent, "Draw.")

    [[picture]] = outputs(result.to_input_list())
    assert picture["image_url"] == f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"


async def test_an_agent_without_tools_and_instructions_works(board: Pegboard) -> None:
    session = await board.session(agent="clerk", session_id="s")
    agent, script = equipped(session, LOAD_PAPERS, call("shred", paper=1), "No.")

    assert (await Runner.run(agent, "Go on.")).final_output == "No."
    assert "papers: What is done with papers" in script.calls[0].system
    assert "paper" in script.calls[2].results[0]


async def test_the_agent_s_own_tools_stay_and_win(board: Pegboard) -> None:
    @function_tool
    def note_list() -> str:
        """List the agent's own notes."""
        return "mine"

    session = await board.session(agent="assistant", session_id="s")
    agent, script = equipped(session, LOAD, LIST, "Mine.", tools=[note_list])

    await Runner.run(agent, "Go on.")

    assert script.calls[2].results == ("mine",)
    assert [one.tools.count("note_list") for one in script.calls] == [1, 1, 1]


# -- whose run it is


async def test_one_agent_serves_everybody_by_the_context_of_a_run(board: Pegboard) -> None:
    """S1: each run opens its own session."""

    async def opened(run: RunContextWrapper[str]) -> Session:
        return await board.session(agent="assistant", session_id="s", principal=run.context)

    agent, script = equipped(opened, LOAD, "Ada's.", "Bob's.")
    await Runner.run(agent, "Go on.", context="ada")
    await Runner.run(agent, "Go on.", context="bob")

    assert ["note_list" in one.tools for one in script.calls] == [False, True, False]


async def test_what_was_loaded_ahead_stays_at_its_place_and_is_defined_once(board: Pegboard) -> None:
    """D4: each request begins as the one before it, also in the next run."""
    session = await board.session(agent="eager", session_id="s", host=Host(delivery=("result",)))
    agent, script = equipped(session, "Milk.", "You are welcome.", "Milk.")
    items: list[Any] = []
    for message in ("List the notes that I have.", "Thanks!", "List the notes that I have."):
        run = await Runner.run(agent, [*items, {"role": "user", "content": message}])
        items = run.to_input_list()

    notes = [one.system for one in script.calls]
    assert [note.count('"name":"note_list"') for note in notes] == [1, 1, 1]
    assert all(now.startswith(before) for before, now in pairwise(notes))
    assert "note_list" not in json.dumps(items)


async def test_a_handoff_takes_the_message_to_the_tools_of_the_other(board: Pegboard) -> None:
    """S1, S5, S6: each has its own session, and each turn has ended."""
    first = await board.session(agent="clerk", session_id="s")
    second = await board.session(agent="eager", session_id="s")
    other, taken = equipped(second, LIST, "Milk.", name="Other")
    agent, _ = equipped(first, call("transfer_to_other"), handoffs=[other])

    result = await Runner.run(agent, "List my notes.")

    assert (result.final_output, result.last_agent, RAN) == ("Milk.", other, ["note_list"])
    assert "note_list" in taken.calls[0].tools
    assert [(await one.surface()).turn for one in (first, second)] == [2, 2]


async def test_what_is_delegated_has_the_context_counts_and_streams(board: Pegboard) -> None:
    """P8: by the name of the child's agent; what it takes is in the usage of the run that delegates."""
    events: list[str] = []
    seen: list[object] = []

    @function_tool
    def look(run: RunContextWrapper[Any]) -> str:
        """Look at the context."""
        seen.append(run.context)
        return "seen"

    worker, _ = agent_of(call("look"), "Done.", tools=[look])
    worker.model.set_default_usage(Usage(requests=1, input_tokens=10))  # type: ignore[union-attr]
    board.on_delegate = delegate_to({"clerk": worker}, events=lambda event: events.append(event.type))
    session = await board.session(agent="assistant", session_id="s")
    agent, script = equipped(session, call("delegate", task="Look.", agent="clerk"), "Good.")

    result = await Runner.run(agent, "Go on.", context={"user": "ada"})

    assert (seen, script.calls[1].results) == ([{"user": "ada"}], ("Done.",))
    assert result.context_wrapper.usage.input_tokens == 20
    assert "run_item_stream_event" in events


def test_a_run_that_blocks_takes_a_session_that_does(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        session = board.session(agent="assistant", session_id="s")
        agent, script = equipped(session, LOAD, LIST, "Milk.")

        result = Runner.run_sync(agent, "Go on.")

        assert (result.final_output, RAN, session.surface().turn) == ("Milk.", ["note_list"], 2)
        assert [("note_list" in one.tools) for one in script.calls] == [False, True, True]


# -- models


class Models(ModelProvider):
    """Models by name."""

    def __init__(self, **models: ScriptedModel) -> None:
        self.models = models

    def get_model(self, model_name: str | None) -> ScriptedModel:
        return self.models[str(model_name)]


async def test_a_model_that_is_named_is_asked_for_when_it_is_used(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    script = Script(LOAD, LIST, call("format_disk"), "Milk.")
    plain = Agent(name="A", model="house")
    agent = equip(plain, session, provider=Models(house=scripted(script)))

    result = await Runner.run(agent, "Go on.")

    assert (result.final_output, RAN, plain.model) == ("Milk.", ["note_list"], "house")
    assert "not found" in script.calls[3].results[0]


async def test_a_copy_has_the_same_session_and_what_it_changes(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    agent, _ = equipped(session)
    script = Script(LOAD, LIST, "Milk.")

    copy = agent.clone(name="B", model=scripted(script), instructions="Be kind.")
    result = await Runner.run(copy, "Go on.")

    assert (result.final_output, result.last_agent.name, RAN) == ("Milk.", "B", ["note_list"])
    assert script.calls[0].system.startswith("Be kind.\n\n")


async def test_an_agent_that_is_equipped_again_has_the_other_session(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    other = await board.session(agent="clerk", session_id="s")
    agent, script = equipped(session, "Done.")

    await Runner.run(equip(agent, other), "Go on.")

    assert "add_numbers" not in script.calls[0].tools
    assert ((await session.surface()).turn, (await other.surface()).turn) == (1, 2)


async def test_a_model_of_the_run_is_warned_of_once(board: Pegboard, caplog: pytest.LogCaptureFixture) -> None:
    """It takes the place of the agent's, with all that stands around that."""
    session = await board.session(agent="assistant", session_id="s")
    script = Script(*[call("add_numbers", first=1, second=2)] * 2, "3.")
    config = RunConfig(model=scripted(script))

    with caplog.at_level(logging.WARNING):
        result = await Runner.run(equip(Agent(name="A"), session), "Go on.", run_config=config)

    assert (result.final_output, script.calls[1].results) == ("3.", ("3",))
    assert sum("RunConfig.model" in one.message for one in caplog.records) == 1


async def test_the_words_of_an_empty_answer_are_asked_for_once_more(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    load = [function_call("load_tools", {"names": ["notes"]}, call_id="1")]
    model = ScriptedModel([load, ModelStep(output=[]), [assistant_message("Loaded.")]])

    result = await Runner.run(equip(Agent(name="A", model=model), session), "Go on.")

    assert result.final_output == "Loaded."
