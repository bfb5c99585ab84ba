"""What every framework's adapter promises beyond one run: over processes, policies, other runs, real clients."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import pytest
from agents import ModelBehaviorError
from framework_drivers import Answer, Driver, Final, Ran, call
from framework_tools import RAN
from framework_world import CONFIG, DRIVERS

from pegboard import Host, Pegboard, UsageError
from pegboard.testing import CutReply, ModelAnswer, ProviderRefusal, StrictProvider

LOAD_NOTES = call("load_tools", names=["notes"])
LIST_NOTES = call("note_list")
SHRED = call("shred", paper="draft")
SUM = call("add_numbers", first=2, second=2)
Opened = Callable[[], AbstractAsyncContextManager[Pegboard]]


async def test_an_approval_is_resumed_in_another_process(driver: Driver, opened: Opened) -> None:
    """A2, A3: another process, another agent: the call runs once, and the run goes on with its result."""
    async with opened() as board:
        talk = driver.talk(await board.session(agent="clerk", session_id="s"))
        await talk.run("Shred it.", SHRED)
        stored = talk.stored()
    async with opened() as board:
        session = await board.session(agent="clerk", session_id="s")
        done = await driver.talk(session, stored=stored).decide("It is gone.", allow=True)

        assert (done.calls[0].results, done.answer, RAN) == (("draft is shredded",), "It is gone.", ["shred"])
        assert (await session.surface()).turn == 2
        [approval] = await board.approvals.list(ended=True)
        with pytest.raises(UsageError, match="was used already"):
            await board.approvals.allow(approval.id, by="grace")


async def test_an_approved_tool_that_its_run_began_without_runs(driver: Driver, opened: Opened) -> None:
    """A3: it was loaded in the same run, so the run's first tools lack it; in another process it runs all the same."""
    async with opened() as board:
        talk = driver.talk(await board.session(agent="archivist", session_id="s"))
        asked = await talk.run("Shred it.", call("load_tools", names=["papers"]), SHRED)
        assert ("shred" in asked.calls[0].tools, asked.waiting) == (False, ("shred",))
        stored = talk.stored()
    async with opened() as board:
        session = await board.session(agent="archivist", session_id="s")
        done = await driver.talk(session, stored=stored).decide("It is gone.", allow=True)

    assert (done.calls[0].results, done.answer, RAN) == (("draft is shredded",), "It is gone.", ["shred"])


async def test_a_refusal_in_another_process_reaches_the_model(driver: Driver, opened: Opened) -> None:
    """A3: nothing has run, nothing waits, and the model reads the words of the person."""
    async with opened() as board:
        talk = driver.talk(await board.session(agent="clerk", session_id="s"))
        await talk.run("Shred it.", SHRED)
        stored = talk.stored()
    async with opened() as board:
        session = await board.session(agent="clerk", session_id="s")
        talk = driver.talk(session, stored=stored)
        done = await talk.decide("Then I leave it.", allow=False, reason="It is still needed.")

        assert "It is still needed." in done.calls[0].results[0]
        assert (done.answer, RAN, await board.approvals.list()) == ("Then I leave it.", [], ())


async def test_a_policy_that_changed_meanwhile_is_asked_anew(driver: Driver, opened: Opened, tmp_path: Path) -> None:
    """A2, A6: what was said under other rules does not count; the run waits again, and then the call runs once."""
    async with opened() as board:
        talk = driver.talk(await board.session(agent="clerk", session_id="s"))
        await talk.run("Shred it.", SHRED)
        stored = talk.stored()
    (tmp_path / "pegboard.yaml").write_text(CONFIG.replace("{shred: always}", '{shred: {paper: ["draft*"]}}'))
    async with opened() as board:
        talk = driver.talk(await board.session(agent="clerk", session_id="s"), stored=stored)
        again = await talk.decide("It waits.", allow=True)
        assert (RAN, [one.status for one in await board.approvals.list()]) == ([], ["waiting", "waiting"])
        if "again" in driver.cannot:
            assert "needs the approval of a person" in again.calls[0].results[0]
            again = await talk.run("Shred it.", SHRED)
        assert again.waiting == ("shred",)

        done = await talk.decide("It is gone.", allow=True)

        assert (done.calls[0].results, done.answer, RAN) == (("draft is shredded",), "It is gone.", ["shred"])


async def test_a_call_that_is_denied_meanwhile_does_not_run(driver: Driver, opened: Opened) -> None:
    """P4, A2: a switch that is thrown between asking and resuming binds, whatever the person said."""
    async with opened() as board:
        talk = driver.talk(await board.session(agent="clerk", session_id="s"))
        await talk.run("Shred it.", SHRED)
        stored = talk.stored()
    async with opened() as board:
        await board.permissions.set("clerk", "shred", False)
        talk = driver.talk(await board.session(agent="clerk", session_id="s"), stored=stored)
        done = await talk.decide("I cannot.", allow=True)

    assert "not found" in done.calls[0].results[0]
    assert (done.answer, RAN) == ("I cannot.", [])


async def test_arguments_decide_what_a_person_approves(driver: Driver, board: Pegboard) -> None:
    """A1, A3: one call of a tool runs at once, another of the same step waits; the first does not run twice."""
    talk = driver.talk(await board.session(agent="payer", session_id="s"))

    asked = await talk.run("Pay.", [call("pay", to="ada"), call("pay", to="strangers inc")])
    assert (asked.waiting, RAN) == (("pay",), ["pay ada"])
    done = await talk.decide("Both are paid.", allow=True)

    assert done.calls[0].results == ("ada is paid", "strangers inc is paid")
    assert (done.answer, RAN) == ("Both are paid.", ["pay ada", "pay strangers inc"])


async def test_denials_and_refusals_reach_the_model_as_they_are(driver: Driver, board: Pegboard) -> None:
    """P9, X2: the texts are the session's own, without a list of other names."""
    session = await board.session(agent="strict", session_id="s")
    await session.load("notes")
    names = [call("note_add", text="eggs"), call("format_disk"), call("note_list", of="bob")]

    ran = await driver.talk(session).run("Go on.", *names, "I cannot.")

    for each, one in zip(ran.calls[1:], names, strict=True):
        answer = await session.call(one.name, one.arguments)
        assert json.dumps(answer.message)[1:-1] in json.dumps(each.results[0]).replace("\\\\", "")
        assert "vailable tools" not in each.results[0]


async def test_a_history_may_name_tools_that_are_denied_today(driver: Driver, board: Pegboard) -> None:
    """P4, P9: the conversation goes on; the tool is neither shown nor run, and no text of ours names it."""
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")
    talk = driver.talk(session)
    await talk.run("Go on.", LIST_NOTES, "One note.")
    await board.permissions.set("assistant", "note_list", False)

    ran = await talk.run("Once more.", LIST_NOTES, "I cannot.")

    assert "note_list" not in ran.calls[0].tools
    assert "note_list" not in ran.calls[0].system
    assert "not found" in ran.calls[1].results[0]
    assert (ran.answer, RAN) == ("I cannot.", ["note_list"])


async def test_a_run_that_is_given_up_leaves_the_session_whole(driver: Driver, board: Pegboard) -> None:
    """S6: nothing is left of its turn; the next run of the conversation goes on as any other."""
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes", keep="turn")
    talk, asked = driver.talk(session), asyncio.Event()

    async def never() -> Answer:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    run = asyncio.create_task(talk.run("Go on.", LIST_NOTES, never))
    await asked.wait()
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    ran = await talk.run("Go on.", call("add_numbers", first=1, second=2), "Three.")

    assert "note_list" not in ran.calls[0].tools
    assert (ran.calls[1].results, ran.answer, RAN) == (("3",), "Three.", ["note_list", "add_numbers"])


async def test_a_structured_answer_comes_beside_the_tools(driver: Driver, board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    if why := driver.cannot.get("structured"):
        assert why.endswith(".")
        return
    ran = await driver.talk(session, structured=True).run(
        "How many?", LOAD_NOTES, LIST_NOTES, Final(value={"count": 1})
    )

    assert ran.output == {"count": 1}
    assert "note_list" in ran.calls[1].tools
    assert (RAN, (await session.surface()).turn) == (["note_list"], 2)


async def test_a_subagent_has_what_its_parent_s_run_has(driver: Driver, board: Pegboard) -> None:
    """P8: dependencies reach it, and the framework counts its requests where it counts any for the run."""
    child = driver.delegate(board, LOAD_NOTES, LIST_NOTES, "One note.")
    talk = driver.talk(await board.session(agent="lead", session_id="s"), deps="ada")

    ran = await talk.run("Go on.", call("delegate", task="Read the notes.", agent="reader"), "Milk.")

    assert len(child.calls) == 3
    assert all("For ada." in each.system for each in child.calls) or "deps" in driver.cannot
    assert ran.requests == (0 if "usage" in driver.cannot else 5)


async def test_small_talk_changes_no_list(driver: Driver, board: Pegboard) -> None:
    """S5, D4: what needs no tool loads none, run for run."""
    talk = driver.talk(await board.session(agent="eager", session_id="s"))

    runs = [await talk.run(text) for text in ("hello", "Thanks!", "yes please do it", "ok, great", "Good night")]

    assert len({ran.calls[0].tools for ran in runs}) == 1
    assert len({ran.calls[0].system for ran in runs}) == 1


async def test_frameworks_share_a_board_in_one_process(driver: Driver, board: Pegboard) -> None:
    """S1: agents of every framework work at the same time, each in its session."""
    talks = [
        one.talk(await board.session(agent="assistant", session_id=f"{one.name} {n}"))
        for n, one in enumerate((driver, *DRIVERS))
    ]

    runs = await asyncio.gather(*(talk.run("Go on.", LOAD_NOTES, LIST_NOTES, "One note.") for talk in talks))

    assert [ran.answer for ran in runs] == ["One note."] * len(talks)
    assert ["note_list"] * len(talks) == RAN


async def test_a_result_of_50_mb_is_cut(driver: Driver, board: Pegboard) -> None:
    """P6: the model reads its beginning and how much is missing, a picture of such a size by name; the run goes on."""
    talk = driver.talk(await board.session(agent="scholar", session_id="s"))

    ran = await talk.run("Go on.", call("unroll"), call("engrave"), SUM, "It is long.")

    assert ran.calls[1].results[0].startswith("xxx")
    assert "more characters are not shown" in ran.calls[1].results[0][-200:]
    assert len(ran.calls[1].results[0]) < 201_000
    assert "bytes: not shown" in ran.calls[2].results[0]
    assert (ran.calls[3].results, ran.answer) == (("4",), "It is long.")


async def test_a_model_that_only_changes_its_tools_has_to_answer(driver: Driver, board: Pegboard) -> None:
    """X3: after four changes in a row none of its calls runs; it reads why, the run ends, and its turn with it."""
    session = await board.session(agent="assistant", session_id="s")
    back = call("unload_tools", names=["notes"])

    ran = await driver.talk(session).run("Go on.", *[LOAD_NOTES, back] * 9)

    assert len(ran.calls) in (6, 7)
    assert "Answer now" in ran.calls[5].system
    assert "Answer now" not in ran.calls[4].system
    assert (await session.surface()).turn == 2


def test_a_session_outlives_the_loop_of_a_run(driver: Driver, opened: Opened, tmp_path: Path) -> None:
    """S2: each `asyncio.run` closes its loop; the session of a blocking board goes on with what it has loaded."""
    opened()
    with Pegboard.open_sync(tmp_path / "pegboard.yaml") as board:
        session: Any = board.session(agent="assistant", session_id="s")
        talk = driver.talk(session)

        first = asyncio.run(talk.run("Go on.", LOAD_NOTES, LIST_NOTES, "One note."))
        second = asyncio.run(driver.talk(session).run("Go on.", LIST_NOTES, SUM, "Four."))

    assert (first.answer, second.answer) == ("One note.", "Four.")
    assert RAN == ["note_list", "note_list", "add_numbers"]


def test_a_board_whose_loop_is_closed_says_so(opened: Opened) -> None:
    """P6: a board that belongs to a loop ends with it; whoever asks from another loop reads what to do."""
    context = opened()
    board = asyncio.run(context.__aenter__())

    async def again() -> None:
        await (await board.session(agent="assistant", session_id="s")).surface()

    with pytest.raises(UsageError, match=r"The board is closed\. Open it again"):
        asyncio.run(again())


def test_one_session_serves_two_loops_at_once(driver: Driver, opened: Opened, tmp_path: Path) -> None:
    """S2: the session of a blocking board has a loop of its own, so that any loop may use it."""
    opened()
    both = threading.Barrier(2)
    with Pegboard.open_sync(tmp_path / "pegboard.yaml") as board, ThreadPoolExecutor(2) as threads:
        session: Any = board.session(agent="assistant", session_id="s")

        async def met() -> Answer:
            await asyncio.to_thread(both.wait, 30)
            return SUM

        def run(name: str) -> str:
            return asyncio.run(driver.talk(session).run(name, met, LIST_NOTES, "Done.")).answer

        session.load("notes")
        answers = list(threads.map(run, ("One.", "Two.")))

    assert answers == ["Done.", "Done."]
    assert sorted(RAN) == ["add_numbers"] * 2 + ["note_list"] * 2


async def test_a_session_is_used_in_no_other_loop_while_that_of_its_board_runs(opened: Opened) -> None:
    """S2: another thread's loop reads what to do, and nothing of the session changes; its own loop goes on."""
    async with opened() as board:
        session = await board.session(agent="assistant", session_id="s")
        await session.load("notes")

        async def elsewhere() -> None:
            uses = (session.surface, session.end_turn, lambda: session.call("note_list"), session.approvals.list)
            for use in uses:
                with pytest.raises(UsageError, match=r"loop of another thread.*open_sync"):
                    await use()

        await asyncio.to_thread(asyncio.run, elsewhere())
        turn = (await session.surface()).turn
        answer = await session.call("note_list")

    assert (turn, answer.status) == (1, "ok")


async def test_two_runs_of_one_session_at_once(driver: Driver, opened: Opened) -> None:
    """S2: what one run loads the other has in its next step, and the turn that the first ends takes nothing away."""
    async with opened() as board:
        session = await board.session(agent="assistant", session_id="s")
        loads, ends = asyncio.Event(), asyncio.Event()

        async def loaded() -> Answer:
            loads.set()
            return LIST_NOTES

        async def once_loaded() -> Answer:
            await asyncio.wait_for(loads.wait(), 30)
            return SUM

        async def once_the_other_ended() -> Answer:
            await asyncio.wait_for(ends.wait(), 30)
            return LIST_NOTES

        async def first() -> Ran:
            try:
                return await driver.talk(session).run("One.", LOAD_NOTES, loaded, "One note.")
            finally:
                ends.set()

        second = driver.talk(session).run("Two.", once_loaded, once_the_other_ended, "One note, too.")
        one, two = await asyncio.gather(first(), second)

    assert (one.answer, two.answer) == ("One note.", "One note, too.")
    assert RAN.count("note_list") == 2
    assert RAN.count("add_numbers") == 1


def ten_turns() -> list[ModelAnswer]:
    """Return what a model answers that needs something else in each of ten turns."""
    needs = ["notes", "printer", "papers", "purse", "pictures"]
    return [answer for name in needs for answer in ([("load_tools", {"names": [name]})], "Done.", "Good.")]


async def test_prefixes_stay_byte_for_byte_over_ten_turns(driver: Driver, board: Pegboard) -> None:
    """D1, D4: with the framework's real client each request begins with the one before, but for one in ten turns."""
    with StrictProvider(*ten_turns()) as server:
        talk = driver.talk(await board.session(agent="busy", session_id="s"), url=server.url)
        for message in ("List my notes.", "Thanks!", "Print a page.", "Good.", "Shred a paper.") * 2:
            await talk.run(message)

    assert (len(server.bodies), server.refusals) == (15, [])
    assert all(json.dumps(body).count('"load_tools"') for body in server.bodies)
    assert server.rewritten <= 1


@pytest.mark.cover(1)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_tool_that_the_provider_rejects_is_reported_and_the_rest_is_sent(
    driver: Driver, board: Pegboard, stream: bool
) -> None:
    """D4: the framework's real client; the run goes on without the tool, and so do those that follow."""
    reported: list[Any] = []
    board.on("rejected", reported.append)

    def strict(body: Mapping[str, Any]) -> ModelAnswer:
        return ProviderRefusal(text="Invalid schema for function 'unroll'.") if "unroll" in names_of(body) else "Hello."

    with StrictProvider(model=strict) as server:
        talk = driver.talk(await board.session(agent="scholar", session_id="s"), url=server.url)
        for message in ("Hello.", "Bye."):
            await talk.run(message, stream=stream)

    sent = [names_of(body) for body in server.bodies]
    assert len(sent) == 3
    assert set(sent[0]) - set(sent[1]) == {"unroll"}
    assert sent[1] == sent[2]
    assert "add_numbers" in sent[2]
    assert [(event["subject"], event["session"]) for event in reported] == [("tool:unroll", "s")]


@pytest.mark.cover(1)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_reply_that_its_length_cut_runs_no_call(driver: Driver, board: Pegboard, stream: bool) -> None:
    """X2: what a client makes of the beginning of its arguments may fit; where the run goes on, the model reads why."""
    cut = CutReply(name="note_add", written='{"text": "eggs", "mark": "ur', read={"text": "eggs"})
    session = await board.session(agent="assistant", session_id="s", host=Host())
    await session.load("notes")
    with StrictProvider(cut) as server:
        talk = driver.talk(session, url=server.url)
        with suppress(ModelBehaviorError):  # OpenAI Agents ends the run itself
            await talk.run("Add eggs, urgently.", stream=stream)

    assert RAN == []
    if driver.form == "anthropic":
        assert "limit of tokens" in json.dumps(server.bodies[1]["messages"])


async def test_an_error_of_the_provider_that_is_about_no_tool_ends_the_run(driver: Driver, board: Pegboard) -> None:
    """The framework's own handling of errors counts."""
    with StrictProvider(ProviderRefusal(text="The prompt is too long.")) as server:
        talk = driver.talk(await board.session(agent="scholar", session_id="s"), url=server.url)
        with suppress(Exception):
            assert (await talk.run("Hello.")).answer != "Done."

    assert len(server.bodies) == 1


def names_of(body: Mapping[str, Any]) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in body["tools"]]
