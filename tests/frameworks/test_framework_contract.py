"""What every framework's adapter promises, asked of each of them through its own agent and scripted model."""

import asyncio
import inspect
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from framework_drivers import Answer, Call, Driver, ModelCall, call, in_turn
from framework_tools import RAN, repeat
from framework_world import WITH_SERVER

from pegboard import Pegboard

LOAD_NOTES = call("load_tools", names=["notes"])
UNLOAD_NOTES = call("unload_tools", names=["notes"])
LIST_NOTES = call("note_list")
SHRED = call("shred", paper="draft")

Opened = Callable[[], AbstractAsyncContextManager[Pegboard]]


def shown(calls: list[ModelCall], name: str) -> list[bool]:
    """Return for each call of the model whether it carried this tool."""
    return [name in each.tools for each in calls]


async def test_a_tool_is_there_after_its_load_and_gone_after_its_unload(driver: Driver, board: Pegboard) -> None:
    """D2, S10: the model sees it at the next step, calls it, unloads it, and does not see it any longer."""
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    calls = await in_turn(driver, talk, LOAD_NOTES, LIST_NOTES, UNLOAD_NOTES)

    assert shown(calls, "note_list") == [False, True, True, False]
    assert RAN == ["note_list"]


async def test_a_call_beside_the_load_of_its_tool_does_not_run(driver: Driver, board: Pegboard) -> None:
    """D2: what is loaded counts from the next step on, never in the same parallel batch."""
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    ran = await talk.run("Go on.", [LOAD_NOTES, LIST_NOTES], LIST_NOTES)

    assert (RAN, ran.calls[2].results) == (["note_list"], ('["ada: milk"]',))


async def test_a_result_is_what_the_tool_returned(driver: Driver, board: Pegboard) -> None:
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    ran = await talk.run("What is 2 and 3?", call("add_numbers", first=2, second=3), "It is 5.")

    assert ran.calls[1].results == ("5",)
    assert ran.answer == "It is 5."


async def test_a_schema_reaches_the_model_as_it_is(driver: Driver, board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")

    ran = await driver.talk(session).run("Go on.")

    entry = (await session.surface()).find("note_add")
    assert entry is not None
    assert ran.calls[0].schemas["note_add"] == entry.tool.input_schema


async def test_what_the_message_needs_is_loaded_before_the_model_asks(driver: Driver, board: Pegboard) -> None:
    """S5: the user's message reaches the session, and the first call of the model carries the tool."""
    talk = driver.talk(await board.session(agent="eager", session_id="s"))

    ran = await talk.run("List my notes.")

    assert "note_list" in ran.calls[0].tools


async def test_a_lease_that_idles_ends_with_its_turn(driver: Driver, board: Pegboard) -> None:
    """S7: each run is a turn; after the second without a use the tool is gone."""
    session = await board.session(agent="reader", session_id="s")
    talk = driver.talk(session)
    await session.load("notes")

    runs = [await talk.run("Go on.") for _ in range(4)]

    assert ["note_list" in ran.calls[0].tools for ran in runs] == [True, True, True, False]


async def test_a_tool_that_is_used_stays(driver: Driver, board: Pegboard) -> None:
    """S7: use refreshes."""
    session = await board.session(agent="reader", session_id="s")
    talk = driver.talk(session)
    await session.load("notes")

    runs = [await talk.run("Go on.", LIST_NOTES) for _ in range(4)]

    assert all("note_list" in ran.calls[0].tools for ran in runs)


async def test_a_static_tool_cannot_be_unloaded(driver: Driver, board: Pegboard) -> None:
    """S10: it is sticky; the model reads so, and keeps the tool."""
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    calls = await in_turn(driver, talk, call("unload_tools", names=["sums"]))

    assert shown(calls, "add_numbers") == [True, True]


async def test_a_load_that_conflicts_is_refused_and_changes_nothing(driver: Driver, board: Pegboard) -> None:
    """T5: the same tools with other settings; the first ones stay."""
    session = await board.session(agent="assistant", session_id="s")
    talk = driver.talk(session)

    ran = await talk.run("Go on.", LOAD_NOTES, call("load_tools", names=["others"]))
    again = await talk.run("Go on.", LIST_NOTES)

    assert "conflict" in ran.calls[2].results[0]
    assert "ada: milk" in again.calls[1].results[0]


async def test_a_denied_tool_is_neither_shown_nor_run(driver: Driver, board: Pegboard) -> None:
    """P3, P9: the model names it anyway, and reads that there is no such tool."""
    session = await board.session(agent="strict", session_id="s")
    await session.load("notes")

    ran = await driver.talk(session).run("Go on.", call("note_add", text="eggs"), "I cannot.")

    assert "note_list" in ran.calls[0].tools
    assert "note_add" not in ran.calls[0].tools
    assert "note_add" not in ran.calls[0].system
    assert "not found" in ran.calls[1].results[0]
    assert (RAN, ran.answer) == ([], "I cannot.")


async def test_a_switch_binds_a_call_that_the_model_has_made_already(driver: Driver, board: Pegboard) -> None:
    """P4: the model saw the tool; before its call arrives the tool is denied."""
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")

    async def denied_meanwhile() -> Answer:
        await board.permissions.set("assistant", "note_list", False)
        return LIST_NOTES

    ran = await driver.talk(session).run("Go on.", denied_meanwhile)
    later = await driver.talk(session).run("Go on.")

    assert "note_list" in ran.calls[0].tools
    assert "not found" in ran.calls[1].results[0]
    assert "note_list" not in later.calls[0].tools
    assert RAN == []


async def test_a_tool_that_is_not_loaded_does_not_run(driver: Driver, board: Pegboard) -> None:
    """X1: a model that names what it does not see reads that it is not loaded, as often as it tries."""
    talk = driver.talk(await board.session(agent="strict", session_id="s"))

    ran = await talk.run("Go on.", LIST_NOTES, LIST_NOTES, LIST_NOTES, "I give up.")

    assert all("not loaded" in each.results[0] for each in ran.calls[1:])
    assert (RAN, ran.answer) == ([], "I give up.")


async def test_a_call_of_a_hinted_tool_loads_it_first(driver: Driver, board: Pegboard) -> None:
    """X1: the answer has its schema; nothing has run; the same call made again runs."""
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    ran = await talk.run("Go on.", LIST_NOTES)
    assert "inputSchema" in ran.calls[1].results[0]
    assert RAN == []

    again = await talk.run("Go on.", LIST_NOTES)
    assert "note_list" in again.calls[0].tools
    assert RAN == ["note_list"]


async def test_a_name_that_means_nothing_ends_no_run(driver: Driver, board: Pegboard) -> None:
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    ran = await talk.run("Go on.", call("format_disk"), call("format_disk"), call("format_disk"), "Enough.")

    assert ran.answer == "Enough."


async def test_calls_in_parallel_each_get_their_own_result(driver: Driver, board: Pegboard) -> None:
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    ran = await talk.run("Go on.", [call("add_numbers", first=n, second=n) for n in range(5)])

    assert ran.calls[1].results == ("0", "2", "4", "6", "8")


async def test_a_run_that_streams_loads_and_calls_like_any_other(driver: Driver, board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")

    ran = await driver.talk(session).run("Go on.", LOAD_NOTES, "They are loaded now.", stream=True)
    again = await driver.talk(session).run("Go on.", LIST_NOTES, "One note: milk.", stream=True)

    assert (ran.answer.strip(), again.answer.strip()) == ("They are loaded now.", "One note: milk.")
    assert len(again.pieces) > 1
    assert "note_list" in again.calls[0].tools
    assert "ada: milk" in again.calls[1].results[0]
    assert (await session.surface()).turn == 3


async def test_two_agents_in_one_session_share_nothing(driver: Driver, board: Pegboard) -> None:
    """S1: state is per agent, in a team too that works at the same time."""
    first = driver.talk(await board.session(agent="assistant", session_id="team"))
    second = driver.talk(await board.session(agent="reader", session_id="team"))

    await asyncio.gather(first.run("Go on.", LOAD_NOTES), second.run("Go on.", call("add_numbers", first=1, second=1)))
    one, other = await asyncio.gather(first.run("Go on."), second.run("Go on."))

    assert "note_list" in one.calls[0].tools
    assert "note_list" not in other.calls[0].tools


async def test_what_is_loaded_survives_a_restart(driver: Driver, opened: Opened) -> None:
    """S2: a new process, a new agent, the same session."""
    async with opened() as board:
        await driver.talk(await board.session(agent="assistant", session_id="s")).run("Go on.", LOAD_NOTES)
    async with opened() as board:
        session = await board.session(agent="assistant", session_id="s")
        ran = await driver.talk(session).run("Go on.", LIST_NOTES)

        assert "note_list" in ran.calls[0].tools
        assert (RAN, (await session.surface()).turn) == (["note_list"], 3)


async def test_policy_and_hints_reach_the_model(driver: Driver, board: Pegboard) -> None:
    """F2, T6: policy of what is loaded at the start, and what can be loaded; a load brings its own policy."""
    talk = driver.talk(await board.session(agent="reader", session_id="s"))

    ran = await talk.run("Go on.", LOAD_NOTES)

    assert "Never do sums in your head." in ran.calls[0].system
    assert "notes: The notes of the user" in ran.calls[0].system
    assert "Read the notes" not in ran.calls[0].system
    assert "Read the notes before you add one." in ran.calls[1].results[0]


async def test_a_focus_requires_a_call_at_its_step_alone(driver: Driver, board: Pegboard) -> None:
    """F3: by the choice of tools; the list is not edited."""
    talk = driver.talk(await board.session(agent="reader", session_id="s"))

    ran = await talk.run("sum up 1 and 2", call("add_numbers", first=1, second=2), "Three.")
    later = await talk.run("Thanks!")

    assert [one.required for one in (*ran.calls, *later.calls)] == [True, False, False]
    assert ran.calls[0].tools == ran.calls[1].tools
    assert (ran.answer, RAN) == ("Three.", ["add_numbers"])


async def test_arguments_that_do_not_fit_can_be_put_right(driver: Driver, board: Pegboard) -> None:
    """X2: the model reads what was expected; nothing has run until then."""
    talk = driver.talk(await board.session(agent="assistant", session_id="s"))

    ran = await talk.run(
        "Go on.", call("add_numbers", first="two"), call("add_numbers", first=2, second=2), "It is four."
    )

    assert "second" in ran.calls[1].results[0]
    assert ran.calls[2].results == ("4",)
    assert (RAN, ran.answer) == (["add_numbers"], "It is four.")


@pytest.mark.cover(1)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_arguments_of_any_name_reach_the_tool(driver: Driver, board: Pegboard, stream: bool) -> None:
    """X2: also of names that the framework or the provider's client uses itself, at any depth, and null."""
    talk = driver.talk(await board.session(agent="parrot", session_id="s"))
    inner = {"parsed": "p", "nothing": None, "name": "n", "deeper": [{"parsed_output": "o", "input": {}}]}
    objects = ("input", "arguments", "parameters", "kwargs")
    given: dict[str, Any] = dict.fromkeys(inspect.signature(repeat).parameters, "text")
    given |= {"args": ["one"], "nothing": None, **dict.fromkeys(objects, inner)}

    ran = await talk.run("Go on.", Call(name="repeat", arguments=given), stream=stream)

    assert json.loads(ran.calls[1].results[0]) == given


async def test_a_tool_that_raises_is_an_answer(driver: Driver, board: Pegboard) -> None:
    """P6: the model reads why, as often as it tries, and the run goes on."""
    session = await board.session(agent="assistant", session_id="s")
    await session.load("printer")
    page = call("print_page", text="hello")

    ran = await driver.talk(session).run("Print it.", page, page, page, "It burns.")

    assert all("the printer is on fire" in each.results[0] for each in ran.calls[1:])
    assert ran.answer == "It burns."


async def test_a_tool_that_hangs_ends_at_its_time_limit(driver: Driver, tmp_path: Path) -> None:
    """G8: the limit is the server's; the other call of the same step is answered as ever."""
    (tmp_path / "pegboard.yaml").write_text(WITH_SERVER)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        session = await board.session(agent="assistant", session_id="s")
        step = [call("slow__slow"), call("add_numbers", first=1, second=2)]
        ran = await driver.talk(session).run("Go on.", step, "It is slow.")

    assert "0.5" in ran.calls[1].results[0]
    assert ran.calls[1].results[1] == "3"
    assert ran.answer == "It is slow."


async def test_a_turn_ends_with_its_run(driver: Driver, board: Pegboard) -> None:
    """S6: the counter grows once a run, and what was loaded for one turn is gone."""
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes", keep="turn")
    talk = driver.talk(session)

    first, second = await talk.run("Go on.", LIST_NOTES, LIST_NOTES), await talk.run("Go on.")

    assert "note_list" in first.calls[2].tools
    assert "note_list" not in second.calls[0].tools
    assert (await session.surface()).turn == 3


async def test_an_approved_call_runs_once(driver: Driver, board: Pegboard) -> None:
    """A2, A3: the run goes on with its result; the same call made again waits again."""
    session = await board.session(agent="clerk", session_id="s")
    talk = driver.talk(session)
    await talk.run("Shred it.", SHRED)

    done = await talk.decide("It is gone.", allow=True)

    assert (done.calls[0].results, done.answer, RAN) == (("draft is shredded",), "It is gone.", ["shred"])
    assert (await session.surface()).turn == 2
    again = await talk.run("Once more.", SHRED)
    assert (again.waiting, RAN) == (("shred",), ["shred"])


async def test_an_operator_s_refusal_stands(driver: Driver, board: Pegboard) -> None:
    """A3: what was refused elsewhere meanwhile does not run, whatever is said in the framework."""
    talk = driver.talk(await board.session(agent="clerk", session_id="s"))
    await talk.run("Shred it.", SHRED)
    [waiting] = await board.approvals.list()
    await board.approvals.refuse(waiting.id, by="grace", reason="Not on a Sunday.")

    done = await talk.decide("Not today.", allow=True)

    assert "Not on a Sunday." in done.calls[0].results[0]
    assert (done.answer, RAN) == ("Not today.", [])


async def test_a_task_is_delegated_to_an_agent_of_the_framework(driver: Driver, board: Pegboard) -> None:
    """P8: the child has its own profile and tools; its answer is the result of the call."""
    child = driver.delegate(board, LOAD_NOTES, LIST_NOTES, "There is one note: milk.")
    talk = driver.talk(await board.session(agent="lead", session_id="s"))

    ran = await talk.run("Go on.", call("delegate", task="Read the notes.", agent="reader"), "Milk.")

    assert "There is one note: milk." in ran.calls[1].results[0]
    assert (ran.answer, RAN) == ("Milk.", ["note_list"])
    assert [("note_list" in each.tools, "delegate" in each.tools) for each in child.calls] == [
        (False, False),
        (True, False),
        (True, False),
    ]
