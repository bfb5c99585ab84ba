"""Test what is Agno's own: runs that go on while their tools change, teams, runs that block."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agno.agent import Agent
from agno.models.message import Message
from agno.run import RunContext, RunStatus
from agno.run.agent import RunCompletedEvent
from agno.team import Team
from agno_driver import ScriptedModel, agent_of
from framework_drivers import Answer, Script, Step, call
from framework_tools import PICTURE, RAN

from pegboard import Host, Pegboard, Session, UsageError
from pegboard.frameworks.agno import delegate_to, equip

CONFIG = """
store: "memory:"
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
  pictures: {python: "framework_tools:Pictures"}
toolkits:
  notes: {description: The notes of the user, tools: [notes]}
  sums: {description: Arithmetic, tools: [sums]}
  others: {description: The notes of somebody else, tools: [{notes: {owner: bob}}]}
defaults: {anticipate: false}
agents:
  assistant: {tools: [sums], allowed_toolkits: [notes, others], dialect: pegboard}
  reader: {allowed_toolkits: [notes, sums], dialect: pegboard}
  eager: {allowed_toolkits: [notes], dialect: pegboard, anticipate: {tools: 5}}
  painter: {tools: [pictures]}
  later: {allowed_toolkits: [notes], dialect: toolkits}
"""
LOAD = call("load_tools", names=["notes"])
UNLOAD = call("unload_tools", names=["notes"])
LIST = call("note_list")
NOTE = "Can be called now: note_list, note_add. Go on with the request."


@pytest.fixture
def config(tmp_path: Path) -> Path:
    RAN.clear()
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


@pytest.fixture
async def session(board: Pegboard) -> Session:
    return await board.session(agent="assistant", session_id="s")


def scripted(*steps: Step) -> ScriptedModel:
    return ScriptedModel(script=Script(*steps))


def shown(model: ScriptedModel, name: str = "note_list") -> list[bool]:
    return [name in carried.tools for carried in model.script.calls]


async def test_after_a_load_the_same_run_goes_on_with_a_note(session: Session) -> None:
    """MR49, MR68, MI3: nothing ends, no message of the user is between; the note names what can be called now."""
    model = scripted(LOAD, LIST, "Milk.")

    run = await equip(agent_of(model), session).arun("What is on my list?")

    assert (run.content, shown(model), RAN) == ("Milk.", [False, True, True], ["note_list"])
    assert [NOTE in carried.system for carried in model.script.calls] == [False, True, False]
    assert [tool.tool_name for tool in run.tools or ()] == ["load_tools", "note_list"]


async def test_after_an_unload_too(session: Session) -> None:
    """MR69: the note names what cannot be called any longer."""
    model = scripted(LOAD, UNLOAD, "Gone.")

    await equip(agent_of(model), session).arun("Tidy up.")

    assert shown(model) == [False, True, False]
    assert "Cannot be called any more: note_list, note_add." in model.script.calls[2].system


async def test_after_a_load_that_failed_the_run_goes_on_and_no_note_promises_anything(session: Session) -> None:
    """MR70, MI2: the model reads why; that is no change of its tools, and counts as none."""
    model = scripted(*[call("load_tools", names=[f"nothing-{n}"]) for n in range(6)], "I have no such tool.")

    run = await equip(agent_of(model), session).arun("Fly.")

    assert run.content == "I have no such tool."
    assert all("not_found" in carried.results[0] for carried in model.script.calls[1:])
    assert all("Go on" not in carried.system for carried in model.script.calls)


async def test_an_answer_of_another_tool_that_looks_like_a_load_changes_nothing(session: Session) -> None:
    """MR71: what is loaded is asked of the session, never read out of a text."""

    def load_more() -> str:
        """Look like a loader."""
        return json.dumps({"status": "loaded", "tool": "dynamic_tools", "loaded": ["note_list"]})

    model = scripted(call("load_more"), "Done.")
    agent = Agent(model=model, tools=[load_more], telemetry=False)

    await equip(agent, session).arun("Go on.")

    assert "dynamic_tools" in model.script.calls[1].results[0]
    assert shown(model) == [False, False]
    assert "Go on" not in model.script.calls[1].system


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_whose_tools_only_change_has_to_answer(session: Session, stream: bool) -> None:
    """MR72, MR73, MR75: one answer says that it did not settle; what the model called in it reaches no one."""
    model = scripted(*[LOAD, UNLOAD] * 9)
    agent = equip(agent_of(model), session, limit=4)

    if stream:
        events = [event async for event in agent.arun("Go on.", stream=True, stream_events=True)]
        completed = [event for event in events if isinstance(event, RunCompletedEvent)]
        (content,) = [event.content for event in completed]
    else:
        content = (await agent.arun("Go on.")).content

    assert content == (
        "(Stopped: the tools changed more than 4 times in a row, the last time by 'load_tools', "
        "and none of them was used.)"
    )
    assert len(model.script.calls) == 6
    assert "Answer now" in model.script.calls[5].system
    assert (await session.surface()).turn == 2


async def test_tools_that_are_used_may_change_as_often_as_it_takes(session: Session) -> None:
    model = scripted(*[LOAD, LIST, UNLOAD] * 4, "All read.")

    run = await equip(agent_of(model), session, limit=2).arun("Go on.")

    assert (run.content, len(RAN)) == ("All read.", 4)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_empty_answer_after_a_change_is_asked_for_once_more(session: Session, stream: bool) -> None:
    """MR74: it counts as a change; the run has one answer."""
    model = scripted(LOAD, "", "Loaded.")
    agent = equip(agent_of(model), session)

    if stream:
        pieces = [getattr(event, "content", "") or "" async for event in agent.arun("Go on.", stream=True)]
        content = "".join(map(str, pieces)).strip()
    else:
        content = (await agent.arun("Go on.")).content

    assert (content, len(model.script.calls)) == ("Loaded.", 3)


async def test_in_pieces_or_in_one_the_model_gets_the_same(board: Pegboard) -> None:
    """MR60: the requests of both runs have the same tools, notes and results."""

    async def requests(name: str, stream: bool) -> Sequence[Any]:
        model = scripted(LOAD, LIST, UNLOAD, "Done.")
        agent = equip(agent_of(model), await board.session(agent="assistant", session_id=name))
        if stream:
            assert [event async for event in agent.arun("Go on.", stream=True)]
        else:
            await agent.arun("Go on.")
        return model.script.calls

    assert await requests("one", False) == await requests("two", True)


async def test_a_run_that_is_cancelled_behind_a_load_keeps_its_record(session: Session) -> None:
    """MR76, S6: what was called is in the run; the next one begins a turn of its own."""
    await session.load("notes", keep="turn")

    async def cancel() -> Answer:
        assert agent.cancel_run("cancelled")
        return "Never read."

    model = scripted(call("add_numbers", first=1, second=1), cancel)
    agent = equip(agent_of(model), session)
    run = await agent.arun("Go on.", run_id="cancelled", session_id="talk")
    model.script = Script("Hello.")
    agent.model.script = model.script  # type: ignore[union-attr]
    await agent.arun("Hello?", session_id="talk")

    assert run.status is RunStatus.cancelled
    assert [message.tool_name for message in run.messages or () if message.role == "tool"] == ["add_numbers"]
    assert shown(model) == [False]


async def test_in_the_dialect_of_the_seed_a_load_counts_from_the_next_run(board: Pegboard) -> None:
    """D2, MR44: the run that loads ends without the tools; the next message has them."""
    load = call("load_tools", toolkit="notes")
    model = scripted(load, LIST, "On your next message.", LIST, "Milk.")
    agent = equip(agent_of(model), await board.session(agent="later", session_id="s"))

    first = await agent.arun("Load my notes.", session_id="talk")
    second = await agent.arun("Go ahead.", session_id="talk")

    assert (first.content, second.content, RAN) == ("On your next message.", "Milk.", ["note_list"])
    assert shown(model) == [False, False, False, True, True]
    assert "Toolkit 'notes' will be available on the next request in this session." in model.script.calls[1].results[0]


async def test_members_of_a_team_load_for_themselves_and_go_on_with_their_model(board: Pegboard) -> None:
    """MR77, S1: each has its own state in the team's session; a model that is replaced meanwhile counts later."""

    def opens(name: str) -> Any:
        return lambda run: board.session(agent=name, session_id=run.session_id, principal=run.user_id or "local")

    async def replace_model() -> Answer:
        first.model = scripted("Of another model.")
        return LIST

    one, other = scripted(LOAD, replace_model, "Milk."), scripted(call("note_list"), "I cannot.")
    first = equip(Agent(name="First", model=one, telemetry=False), opens("assistant"))
    second = equip(Agent(name="Second", model=other, telemetry=False), opens("reader"))
    leader = scripted(
        call("delegate_task_to_member", member_id="first", task="Read the list."),
        call("delegate_task_to_member", member_id="second", task="Read the list."),
        "Milk, says the first.",
    )
    team = Team(members=[first, second], model=leader, telemetry=False)

    run = await team.arun("What is on my list?", session_id="team", user_id="ada")

    assert run.content == "Milk, says the first."
    assert (shown(one), shown(other), RAN) == ([False, True, True], [False, True], ["note_list"])
    assert "was not run" in other.script.calls[1].results[0]
    loaded = [await board.session(agent=name, session_id="team", principal="ada") for name in ("assistant", "reader")]
    assert [len((await each.snapshot()).state.leases) for each in loaded] == [1, 1]


async def test_a_leader_of_a_team_may_have_a_session_too(session: Session) -> None:
    member = Agent(name="Member", model=scripted("I am here."), telemetry=False)
    model = scripted(LOAD, LIST, call("delegate_task_to_member", member_id="member", task="Say so."), "Milk.")
    team = equip(Team(members=[member], model=model, telemetry=False), session)

    run = await team.arun("Go on.")

    assert (run.content, shown(model)) == ("Milk.", [False, True, True, True])


async def test_each_user_and_session_of_agno_has_its_own(board: Pegboard) -> None:
    async def opened(run: RunContext) -> Session:
        return await board.session(agent="assistant", session_id=run.session_id, principal=run.user_id or "local")

    model = scripted(LOAD, "Done.")
    agent = equip(agent_of(model), opened)
    await agent.arun("Load.", session_id="a", user_id="ada")
    for user, session_id in (("ada", "a"), ("ada", "b"), ("bob", "a")):
        await agent.arun("Hello.", session_id=session_id, user_id=user)

    assert shown(model)[2:] == [True, False, False]


async def test_a_copy_of_an_agent_has_the_same_session(session: Session) -> None:
    model = scripted(LOAD, "Done.")
    agent = equip(agent_of(model), session)
    await agent.arun("Load.")

    await agent.deep_copy().arun("Hello.")

    assert shown(model) == [False, True, True]


async def test_the_tools_of_the_agent_itself_stay_and_win(session: Session) -> None:
    def add_numbers(first: int, second: int) -> str:
        """Add badly."""
        return "my own"

    model = scripted([call("add_numbers", first=1, second=2), LOAD], LIST, "Done.")
    agent = Agent(model=model, tools=[add_numbers], telemetry=False)

    await equip(agent, session).arun("Go on.")

    assert model.script.calls[0].tools.count("add_numbers") == 1
    assert "my own" in model.script.calls[1].results[0]
    assert RAN == ["note_list"]


async def test_arguments_arrive_as_the_model_wrote_them(session: Session) -> None:
    """X2: Agno alone makes a truth value, or nothing, of a text that looks like one."""
    await session.load("notes")
    model = scripted(call("note_add", text="true"), call("note_add", text="None"))

    await equip(agent_of(model), session).arun("Go on.")

    assert [carried.results[0] for carried in model.script.calls[1:]] == ["true (new)", "None (new)"]


async def test_pictures_reach_the_model_as_agnos_own(board: Pegboard) -> None:
    model = scripted(call("draw"), "A picture.")
    seen: list[Sequence[Message]] = []
    model.watch = seen.append
    session = await board.session(agent="painter", session_id="s")

    await equip(agent_of(model), session).arun("Draw.")

    (picture,) = [image for message in seen[1] for image in message.images or ()]
    assert (picture.mime_type, picture.content) == ("image/png", PICTURE)


async def test_the_history_of_agno_keeps_neither_hints_nor_notes(session: Session) -> None:
    agent = equip(agent_of(scripted(LOAD, LIST, "Milk.")), session)

    run = await agent.arun("Go on.")

    texts = [message.get_content_string() for message in run.messages or ()]
    assert not any("<system>" in text or "Can be loaded" in text for text in texts)


async def test_what_was_loaded_ahead_stays_behind_its_message_and_is_defined_again_without_it(board: Pegboard) -> None:
    """D4: once as long as Agno sends that message again, and once more where its window has left it behind."""
    session = await board.session(agent="eager", session_id="s", host=Host(delivery=("result",)))
    model = scripted("Milk.", "You are welcome.", "Milk.")
    agent = agent_of(model)
    agent.num_history_runs = 1
    agent = equip(agent, session)
    for message in ("List the notes that I have.", "Thanks!", "Thanks again!"):
        await agent.arun(message, session_id="s")

    notes = [one.system for one in model.script.calls]
    assert [note.count('"name":"note_list"') for note in notes] == [1, 1, 1]


def test_a_run_that_blocks_takes_a_session_that_does(config: Path) -> None:
    """D2, S6: the same steps without an event loop; the call in the batch of its load has not run."""
    with Pegboard.open_sync(config) as board:
        session = board.session(agent="assistant", session_id="s")
        model = scripted([LOAD, LIST], [LIST, call("add_numbers", first=2, second=3)], "Milk, and five.")
        agent = equip(agent_of(model), session)

        run = agent.run("What is on my list?")
        events = list(agent.run("And now?", stream=True))

        assert (run.content, shown(model)) == ("Milk, and five.", [False, True, True, True])
        assert sorted(RAN) == ["add_numbers", "note_list"]
        assert events
        assert session.surface().turn == 3


async def test_a_session_that_blocks_serves_other_runs_too(config: Path) -> None:
    board = Pegboard.open_sync(config)
    opened = await asyncio.to_thread(board.__enter__)
    session = await asyncio.to_thread(lambda: opened.session(agent="assistant", session_id="s"))
    model = scripted(LOAD, LIST, "Milk.")

    run = await equip(agent_of(model), session).arun("Go on.")

    assert (run.content, RAN) == ("Milk.", ["note_list"])
    await asyncio.to_thread(board.__exit__, None, None, None)


async def test_a_run_that_blocks_says_which_session_it_needs(session: Session) -> None:
    agent = equip(agent_of(scripted("Hello.")), session)

    run = await asyncio.to_thread(agent.run, "Hello?")

    assert run.status is RunStatus.error
    assert "needs a session that does" in str(run.content)


async def test_an_agent_without_a_model_is_refused(session: Session) -> None:
    with pytest.raises(UsageError, match="no model of its own"):
        equip(Agent(telemetry=False), session)


async def test_a_delegated_task_has_the_dependencies_of_the_run_and_an_agent_of_its_own(tmp_path: Path) -> None:
    """P8: by the name of the child's agent or by its kind; its events go where the host says."""
    config = {"store": "memory:", "agents": {"lead": {"tools": ["delegate"], "may_delegate": ["scribe"]}, "scribe": {}}}
    seen: list[object] = []
    events: list[Any] = []

    def noted(run_context: RunContext) -> str:
        seen.append(run_context.dependencies)
        return "Write."

    scribe = agent_of(ScriptedModel(script=Script("written")))
    scribe.instructions = noted
    scout = agent_of(ScriptedModel(script=Script("explored")))
    async with Pegboard.open(config) as board:
        board.on_delegate = delegate_to({"scribe": scribe, "explore": scout}, events=events.append)
        session = await board.session(agent="lead", session_id="s")
        steps = (
            call("delegate", task="Write.", agent="scribe"),
            call("delegate", task="Look.", kind="explore"),
            "Done.",
        )
        model = ScriptedModel(script=Script(*steps))
        done = await equip(agent_of(model), session).arun("Go on.", session_id="talk", dependencies={"desk": "north"})
        assert [str(tool.result).strip() for tool in done.tools or ()] == ["written", "explored"]
    assert (done.content, seen) == ("Done.", [{"desk": "north"}])
    assert "RunStarted" in {event.event for event in events}
