"""Test calls that wait for a person in Agno's own terms: its requirements, its teams, its stored runs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agno.agent import Agent
from agno.run.agent import RunOutput, RunPausedEvent
from agno.team import Team
from agno_driver import ScriptedModel, agent_of
from framework_drivers import Script, Step, call
from framework_tools import RAN

from pegboard import Pegboard, Session
from pegboard.frameworks.agno import equip

CONFIG = """
store: "memory:"
plugins:
  shredder: {python: "framework_tools:Shredder", approve: {shred: {paper: [draft*]}}}
agents:
  clerk: {tools: [shredder], dialect: pegboard}
"""


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
    return await board.session(agent="clerk", session_id="s")


def scripted(*steps: Step) -> ScriptedModel:
    return ScriptedModel(script=Script(*steps))


async def test_a_person_fills_the_fields_in(session: Session) -> None:
    """T13: the model never saw the field; the call runs with what was filled in."""
    model = scripted(call("sign", paper="lease"), "Signed.")
    agent = equip(agent_of(model), session)

    run = await agent.arun("Sign it.")
    [requirement] = run.active_requirements
    assert "signature" not in model.script.calls[0].schemas["sign"]["properties"]
    assert [field.name for field in requirement.user_input_schema or ()] == ["signature"]
    requirement.provide_user_input({"signature": "Ada"})
    run = await agent.acontinue_run(run, requirements=run.requirements)

    assert (run.content, model.script.calls[1].results) == ("Signed.", ("lease is signed by Ada",))


async def test_what_runs_elsewhere_is_handed_in(session: Session, board: Pegboard) -> None:
    """T13: nothing runs here, and the session knows that it is done."""
    model = scripted(call("post", paper="letter"), "On its way.")
    agent = equip(agent_of(model), session)

    run = await agent.arun("Post it.")
    [requirement] = run.active_requirements
    requirement.set_external_execution_result("posted at noon")
    run = await agent.acontinue_run(run, requirements=run.requirements)

    assert (run.content, RAN, await board.approvals.list()) == ("On its way.", [], ())
    assert "posted at noon" in model.script.calls[1].results[0]


async def test_a_run_that_waits_in_a_stream_goes_on_in_one(session: Session) -> None:
    agent = equip(agent_of(scripted(call("shred", paper="draft"), "Gone.")), session)

    events = [event async for event in agent.arun("Shred it.", session_id="talk", stream=True, stream_events=True)]
    [paused] = [event for event in events if isinstance(event, RunPausedEvent)]
    for requirement in paused.requirements or ():
        requirement.confirm()
    rest = agent.acontinue_run(
        run_id=paused.run_id, session_id="talk", requirements=paused.requirements, stream=True, yield_run_output=True
    )
    [run] = [event async for event in rest if isinstance(event, RunOutput)]

    assert (str(run.content).strip(), RAN) == ("Gone.", ["shred"])


async def test_an_operator_decides_what_agno_only_goes_on_with(session: Session, board: Pegboard) -> None:
    """A2, A3: the approval of the command counts, and once."""
    agent = equip(agent_of(scripted(call("shred", paper="draft"), "Gone.")), session)
    run = await agent.arun("Shred it.")

    [waiting] = await board.approvals.list()
    assert [tool.approval_id for tool in run.tools or ()] == [waiting.id]
    await board.approvals.allow(waiting.id, by="grace")
    run.active_requirements[0].confirm()
    run = await agent.acontinue_run(run, requirements=run.requirements)

    assert (run.content, RAN, await board.approvals.list()) == ("Gone.", ["shred"], ())


async def test_a_member_of_a_team_waits_and_the_team_with_it(session: Session) -> None:
    member = equip(Agent(name="Clerk", model=scripted(call("shred", paper="draft"), "Gone."), telemetry=False), session)
    leader = scripted(call("delegate_task_to_member", member_id="clerk", task="Shred it."), "The clerk has done it.")
    team = Team(members=[member], model=leader, telemetry=False)

    run = await team.arun("Shred it.", session_id="team")
    assert (run.is_paused, RAN) == (True, [])
    for requirement in run.active_requirements:
        requirement.confirm()
    run = await team.acontinue_run(run, requirements=run.requirements)

    assert (run.content, RAN) == ("The clerk has done it.", ["shred"])


def test_a_run_that_blocks_waits_too(config: Path) -> None:
    with Pegboard.open_sync(config) as board:
        session = board.session(agent="clerk", session_id="s")
        model = scripted(call("shred", paper="draft"), "Gone.", call("shred", paper="draft 2"), "Then not.")
        agent = equip(agent_of(model), session)

        run = agent.run("Shred it.")
        run.active_requirements[0].confirm()
        run = agent.continue_run(run, requirements=run.requirements)
        assert (run.content, RAN) == ("Gone.", ["shred"])

        run = agent.run("And the second.")
        run.active_requirements[0].reject("Keep it.")
        run = agent.continue_run(run, requirements=run.requirements)
        assert (run.content, RAN, board.approvals.list()) == ("Then not.", ["shred"], ())
        assert "Keep it." in model.script.calls[3].results[0]
