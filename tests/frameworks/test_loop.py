"""Plain loops: requests and replies of each provider's form, with its real client."""

import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from framework_tools import PICTURE, RAN
from loop_talk import (
    ANTHROPIC,
    CHAT,
    FORMS,
    OLDER_ANTHROPIC,
    RESPONSES,
    Form,
    Talk,
    results_of,
    revealed,
    talk,
    unmarked,
)

from pegboard import Host, Pegboard, UsageError
from pegboard.frameworks.loop import Loop, SyncLoop
from pegboard.testing import CutReply, ProviderRefusal, StrictProvider, scripted_model

CONFIG = """
plugins:
  notes: {python: "framework_tools:Notes"}
  sums: {python: "framework_tools:Sums"}
  printer: {python: "framework_tools:Printer"}
  pictures: {python: "framework_tools:Pictures"}
  shredder: {python: "framework_tools:Shredder", approve: {shred: always}}
  many: {python: "many_tools"}
toolkits:
  notes: {description: The notes of the user, tools: [notes], policy: Read the notes before you add one.}
  many: {description: The rooms of a house, tools: [many]}
  sums:
    {description: Arithmetic, tools: [sums], focus: [{when: "^sum", tools: [add_numbers], choice: required}]}
defaults: {anticipate: false, dialect: pegboard}
agents:
  assistant: {tools: [sums, pictures, printer], allowed_toolkits: [notes]}
  eager: {tools: [printer], allowed_toolkits: [notes, sums], anticipate: {tools: 5}}
  clerk: {tools: [shredder]}
  focused: {allowed_toolkits: [sums], initial_toolkits: [sums]}
  housekeeper: {allowed_toolkits: [many, notes]}
  forgetful: {allowed_toolkits: [notes], lease: {kind: idle, turns: 1}}
"""
MANY = "\n\n".join(
    f'def clean_{room}(how: str) -> str:\n    """Clean the {room}.\n\n    Args:\n        how: With what.\n    """\n'
    f'    return "clean {room}"'
    for room in ("attic", "bath", "cellar", "den", "entry", "flat")
)
MILK = ('["ada: milk"]', False)
LOAD_NOTES = [("load_tools", {"names": ["notes"]})]
UNLOAD_NOTES = [("unload_tools", {"names": ["notes"]})]
SHRED = [("shred", {"paper": "draft"})]

Opened = Callable[[], AbstractAsyncContextManager[Pegboard]]


def named(form: Form, called: str, /, **arguments: Any) -> list[tuple[str, Any]]:
    """Return the call of a loaded tool, as a model of this form makes it."""
    return [(called, arguments)] if form.reveals else [("call_tool", {"name": called, "arguments": arguments})]


@pytest.fixture(params=FORMS, ids=str)
def form(request: pytest.FixtureRequest) -> Form:
    return request.param


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Return what opens a board over a stored file; opened again, it is as after a restart."""
    RAN.clear()
    (tmp_path / "many_tools.py").write_text(MANY)
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return lambda: Pegboard.open(tmp_path / "pegboard.yaml")


@pytest.fixture
async def board(opened: Opened) -> AsyncIterator[Pegboard]:
    async with opened() as board:
        yield board


async def test_calls_in_parallel_are_answered_in_order_and_failures_are_marked(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    calls = [("add_numbers", {"first": 1, "second": 2}), ("print_page", {"text": "x"}), ("none", {})]
    async with talk(session, form, scripted_model(calls, "Done.")) as one:
        await one.say("Add and print.")
        first, second, third = results_of(one.messages)
        assert first == ("3", False)
        assert (second[1], third[1]) == (True, True)
        assert "the printer is on fire" in second[0]
        assert "Tool 'none' was not found." in third[0]


async def test_a_picture_reaches_the_model_as_one(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, form, scripted_model([("draw", {})], "Seen.", "Bye.")) as one:
        await one.say("Draw.")
        await one.say("Thanks.")
        assert b64encode(PICTURE).decode() in json.dumps(one.messages)
        assert [kind in json.dumps(one.messages) for kind in ('"image"', '"input_image"', '"image_url"')] == [
            form.form == "anthropic",
            form.form == "responses",
            form.form in ("responses", "chat"),
        ]


async def test_what_a_stream_ended_with_is_a_reply(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, form, scripted_model(LOAD_NOTES, named(form, "note_list"), "Milk.", "Bye.")) as one:
        assert await one.say("What did I note?", stream=True) == "Milk."
        assert results_of(one.messages)[-1] == MILK
        assert await one.say("Thanks.", stream=True) == "Bye."
        assert "parsed" not in one.stored


TEN = {
    name: [f"{verb}_{name}" for verb in ("list", "create", "update", "find", "count")]
    for name in ("ticket", "mail", "deal", "invoice", "event", "branch", "secret", "picture", "road", "song")
}


@pytest.fixture
async def wide(tmp_path: Path) -> AsyncIterator[Pegboard]:
    """Return a board with ten toolkits of five tools."""
    (tmp_path / "ten").mkdir()
    for name, tools in TEN.items():
        functions = [f'def {tool}(name: str) -> str:\n    """{tool.title()}."""\n    return name\n' for tool in tools]
        (tmp_path / "ten" / f"{name}s.py").write_text("\n\n".join(functions))
    plugins = {f"{name}s": {"python": f"{name}s"} for name in TEN}
    agents = {"a": {"allowed_toolkits": [f"{name}s" for name in TEN], "dialect": "pegboard"}}
    toolkits = {name: {"description": f"The {name} of a team", "tools": [name]} for name in plugins}
    config = {"store": "memory:", "plugins": plugins, "toolkits": toolkits, "agents": agents}
    (tmp_path / "ten" / "pegboard.yaml").write_text(json.dumps(config))
    async with Pegboard.open(tmp_path / "ten" / "pegboard.yaml") as board:
        yield board


async def ten_turns(one: Talk) -> None:
    for name, (tool, *_) in TEN.items():
        await one.say(f"{tool.replace('_', ' ')} of the team")
        assert results_of(one.messages)[-1] == (name, False)


async def test_ten_turns_with_another_need_each_break_no_prefix(wide: Pegboard, form: Form) -> None:
    """D4: tools and system stay byte-equal, and so does the history, of which nothing is rewritten."""
    session = await wide.session(session_id="s")
    steps: list[Any] = []
    for name, (tool, *_) in TEN.items():
        steps += [[("load_tools", {"names": [f"{name}s"]})], named(form, tool, name=name), "Done."]
    async with talk(session, form, scripted_model(*steps)) as one:
        await ten_turns(one)
        assert one.server.breaks == 0
        for before, now in pairwise(one.requests):
            assert unmarked(now)[: len(before)] == unmarked(before)


@pytest.mark.parametrize("form", [ANTHROPIC, RESPONSES], ids=str)
async def test_a_message_reveals_two_tools_ahead_at_most(wide: Pegboard, form: Form) -> None:
    """S5, D4: each is read again with every request to come."""
    session = await wide.session(session_id="s")
    async with talk(session, form, scripted_model()) as one:
        await one.say("list the ticket, list the mail, list the deal, list the invoice")
        assert len(revealed(one.requests[0])) == 2


@pytest.mark.parametrize("form", [ANTHROPIC, OLDER_ANTHROPIC], ids=str)
async def test_every_prefix_that_is_written_to_the_cache_comes_again(wide: Pegboard, form: Form) -> None:
    """D4: what stands before a breakpoint is the beginning of the next request."""
    session = await wide.session(session_id="s")
    steps: list[Any] = []
    for name, (tool, *_) in TEN.items():
        steps += [[("load_tools", {"names": [f"{name}s"]})], named(form, tool, name=name), "Done."]
    async with talk(session, form, scripted_model(*steps)) as one:
        await ten_turns(one)
    blocks = [[block for message in messages for block in message["content"]] for messages in one.requests]
    for before, now in pairwise(blocks):
        written = max(place for place, block in enumerate(before) if "cache_control" in block)
        assert written == len(before) - 1
        assert unmarked(now[: written + 1]) == unmarked(before[: written + 1])
    marks = [json.dumps(body).count("cache_control") for body in one.server.bodies]
    assert max(marks) <= 4


async def test_what_the_message_needs_is_there_at_the_first_request(board: Pegboard, form: Form) -> None:
    """S5, D4: it is revealed behind the message, where it breaks nothing; its policy comes with it."""
    session = await board.session(agent="eager", session_id="s")
    async with talk(session, form, scripted_model("Hello.", named(form, "note_list"), "Milk.")) as one:
        await one.say("Hello!")
        await one.say("List the notes that I have.")
        assert len(one.server.bodies) == 3
        assert one.server.breaks == 0
        assert ("note_list" in revealed(one.requests[1])) is form.reveals
        assert "note_list" in json.dumps(one.requests[1][-2:])
        assert "Read the notes before you add one." in json.dumps(one.requests[1][-2:])
        assert "note_list" not in json.dumps(one.requests[0][1:])


@pytest.mark.parametrize("form", [ANTHROPIC, RESPONSES], ids=str)
async def test_a_load_of_many_tools_is_defined_in_its_answer_and_one_of_few_is_revealed(
    board: Pegboard, form: Form
) -> None:
    """D1, D4: a definition takes half of the tokens there; nothing is defined twice, and the list stays unchanged."""
    session = await board.session(agent="housekeeper", session_id="s")
    clean = [("call_tool", {"name": "clean_den", "arguments": {"how": "soap"}})]
    steps = ([("load_tools", {"names": ["many"]})], clean, "Clean.", LOAD_NOTES, [("note_list", {})], "Milk.")
    async with talk(session, form, scripted_model(*steps)) as one:
        assert await one.say("Clean the den.") == "Clean."
        assert ("clean den", False) in results_of(one.messages)
        assert revealed(one.messages) == []
        assert one.stored.count("Clean the attic.") == one.stored.count("With what.") == 1
        assert await one.say("What did I note?") == "Milk."
        assert revealed(one.messages) == ["note_list", "note_add"]
        assert one.server.breaks == 0


@pytest.mark.parametrize("form", [ANTHROPIC, RESPONSES], ids=str)
async def test_a_denied_tool_is_neither_deferred_nor_named_by_the_history(board: Pegboard, form: Form) -> None:
    """D4, P4: from the next request on, and what else the history has stays unchanged."""
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, form, scripted_model(LOAD_NOTES, "Loaded.", [("note_list", {})], "No.")) as one:
        await one.say("Load the notes.")
        assert revealed(one.requests[1]) or revealed(one.messages) == []
        await board.permissions.set("assistant", "note_list", False)
        await one.say("List them.")
    last = one.server.bodies[-1]
    assert revealed(one.requests[-1]) == ["note_add"]
    assert "note_list" not in [tool["name"] for tool in last["tools"]]
    assert "Tool 'note_list' was not found." in results_of(one.messages)[-1][0]
    assert unmarked(one.requests[-1][0]) == unmarked(one.requests[0][0])


async def test_what_is_unloaded_is_taken_away_in_the_history_and_given_again(board: Pegboard) -> None:
    """S10: by name, without a change of the list."""
    session = await board.session(agent="assistant", session_id="s")
    steps = (LOAD_NOTES, UNLOAD_NOTES, "Gone.", LOAD_NOTES, "There.")
    async with talk(session, ANTHROPIC, scripted_model(*steps)) as one:
        await one.say("Load and unload.")
        await one.say("Load again.")
        changes = [
            (block["type"], block["tool"]["name"])
            for message in one.messages
            for block in message["content"]
            if isinstance(block, dict) and block["type"].startswith("tool_") and "tool" in block
        ]
    assert changes == [
        (f"tool_{what}", f"note_{name}") for what in ("addition", "removal", "addition") for name in ("list", "add")
    ]
    assert one.server.breaks == 0


@pytest.mark.parametrize("form", [ANTHROPIC, RESPONSES], ids=str)
async def test_what_lapsed_stays_in_the_history_and_a_call_renews_it(board: Pegboard, form: Form) -> None:
    """D3, D4: taking it away would cost more than it saves."""
    session = await board.session(agent="forgetful", session_id="s")
    steps = (LOAD_NOTES, "One.", "Two.", "Three.", "Four.", [("note_list", {})], "Five.")
    async with talk(session, form, scripted_model(*steps)) as one:
        for number in range(5):
            await one.say(f"Message {number}")
        assert results_of(one.messages)[-1] == MILK
        assert revealed(one.messages) == ["note_list", "note_add"]
        assert "tool_removal" not in one.stored
        assert one.server.breaks == 0


async def test_a_host_that_the_session_was_given_counts(board: Pegboard, form: Form) -> None:
    """D1: here plain arrays, the list of which changes with a load."""
    session = await board.session(agent="assistant", session_id="s", host=Host())
    async with talk(session, form, scripted_model(LOAD_NOTES, [("note_list", {})], "Milk.")) as one:
        assert await one.say("What did I note?") == "Milk."
        assert results_of(one.messages)[-1] == MILK
        assert revealed(one.messages) == []
    names = [[tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in one.server.bodies]
    assert ["note_list" in each for each in names] == [False, True, True]
    assert one.server.breaks == 1


async def test_an_approved_call_runs_once_in_a_new_process(opened: Opened, form: Form) -> None:
    """A2, A3: the messages of the old one and the same session are enough."""
    steps = (SHRED, "Shredded.")
    async with opened() as board:
        session = await board.session(agent="clerk", session_id="s")
        async with talk(session, form, scripted_model(*steps)) as one:
            assert await one.say("Shred the draft.") == ""
            (approval,) = one.loop.waiting.values()
            assert (approval.tool, RAN) == ("shred", [])
            assert results_of(one.messages) == []
            stored = one.stored
            with pytest.raises(UsageError, match=r"no result yet: shred"):
                await one.loop.request(one.messages)
    async with opened() as board:
        session = await board.session(agent="clerk", session_id="s")
        async with talk(session, form, scripted_model("Shredded."), stored) as one:
            assert await one.loop.resume(one.messages) == []
            assert [waiting.id for waiting in one.loop.waiting.values()] == [approval.id]
            await session.approvals.allow(approval.id, by="grace")
            one.stored = json.dumps([*one.messages, *await one.loop.resume(one.messages)])
            assert await one.go_on() == "Shredded."
            assert results_of(one.messages) == [("draft is shredded", False)]
            assert await one.loop.resume(one.messages) == []
    assert RAN == ["shred"]


async def test_results_that_did_not_wait_are_kept_beside_a_call_that_does(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="clerk", session_id="s")
    async with talk(session, form, scripted_model([*SHRED, ("none", {})], "Kept.")) as one:
        await one.say("Shred the draft.")
        assert len(results_of(one.messages)) == 1
        (approval,) = one.loop.waiting.values()
        await session.approvals.refuse(approval.id, by="grace", reason="It is still needed.")
        one.stored = json.dumps([*one.messages, *await one.loop.resume(one.messages)])
        assert await one.go_on() == "Kept."
        assert "grace refused it: It is still needed." in results_of(one.messages)[-1][0]
        if form.form == "anthropic":
            *_, sent = one.requests[-1]
            assert [block["type"] for block in sent["content"]] == ["tool_result", "tool_result"]


async def test_a_result_from_elsewhere_is_handed_in(board: Pegboard) -> None:
    """T13: by the id of the call."""
    session = await board.session(agent="clerk", session_id="s")
    async with talk(session, CHAT, scripted_model([("post", {"paper": "draft"})], "Posted.")) as one:
        await one.say("Post the draft.")
        (call_id,) = one.loop.waiting
        one.stored = json.dumps([*one.messages, *await one.loop.resume(one.messages, {call_id: "posted by hand"})])
        assert await one.go_on() == "Posted."
        assert results_of(one.messages) == [("posted by hand", False)]


async def test_a_tool_that_the_provider_rejects_is_reported_and_the_rest_is_sent(
    board: Pegboard, form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    session = await board.session(agent="assistant", session_id="s")
    seen: list[Any] = []
    board.on("rejected", seen.append)
    place = [one.tool.wire for one in (await session.surface()).tools].index("print_page")
    word = (
        "tools.{}.custom.input_schema: JSON schema is invalid"
        if form.form == "anthropic"
        else "Invalid schema for function '{}'"
    )
    refusal = ProviderRefusal(text=word.format(place if form.form == "anthropic" else "print_page"))
    async with talk(session, form, scripted_model(refusal, "Hello.", "Bye.")) as one:
        with caplog.at_level(logging.WARNING):
            assert await one.say("Hello!") == "Hello."
        await one.say("Bye!")
    sent = [[tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in one.server.bodies]
    assert set(sent[0]) - set(sent[1]) == {"print_page"}
    assert sent[1] == sent[2]
    assert [(event["subject"], event["agent"]) for event in seen] == [("tool:print_page", "assistant")]
    assert "tool:print_page was rejected by the model provider" in caplog.text


@pytest.mark.parametrize("form", [ANTHROPIC, RESPONSES], ids=str)
async def test_a_form_that_the_provider_rejects_falls_back_once(board: Pegboard, form: Form) -> None:
    """D4: what was revealed is defined in the history from then on, and called through `call_tool`."""
    session = await board.session(agent="assistant", session_id="s")
    refusal = ProviderRefusal(text="messages.3: tool_addition and additional_tools are not supported by this model")
    call = [("call_tool", {"name": "note_list", "arguments": {}})]
    async with talk(session, form, scripted_model(LOAD_NOTES, refusal, call, "Milk.", refusal)) as one:
        assert await one.say("What did I note?") == "Milk."
        assert results_of(one.messages)[-1] == MILK
        for body in one.server.bodies[2:]:
            text = json.dumps(body)
            assert [word in text for word in ("tool_addition", "additional_tools", "defer_loading")] == [False] * 3
            assert "Can be called through call_tool:" in text
        assert one.server.breaks <= 1
        with pytest.raises(Exception, match="not supported"):
            await one.say("Again.")


async def test_an_error_that_is_not_about_tools_is_the_host_s(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    async with talk(
        session,
        form,
        scripted_model(ProviderRefusal(text="prompt is too long"), ProviderRefusal(text="busy", status=529)),
    ) as one:
        with pytest.raises(Exception, match="prompt is too long"):
            await one.say("Hello!")
        with pytest.raises(Exception, match="busy"):
            await one.go_on()
        assert await one.loop.rejected("Connection reset") is False


async def test_a_closed_board_is_one_clear_error(opened: Opened, form: Form) -> None:
    async with opened() as board:
        session = await board.session(agent="assistant", session_id="s")
        async with talk(session, form, scripted_model([("add_numbers", {"first": 1, "second": 2})])) as one:
            request = await one.loop.request([{"role": "user", "content": "Add."}])
            reply = await one.ask(request)
    assert "The board is closed" in json.dumps(await one.loop.answer(reply))
    with pytest.raises(UsageError, match="The board is closed"):
        await one.loop.request([{"role": "user", "content": "Add."}])


async def test_objects_of_the_client_are_messages_too(board: Pegboard) -> None:
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, ANTHROPIC, scripted_model([("add_numbers", {"first": 1, "second": 2})], "3.")) as one:
        messages: list[Any] = [{"role": "user", "content": "Add."}]
        reply = await one.ask(await one.loop.request(messages))
        *_, result = await one.loop.answer(reply)
        messages += [{"role": "assistant", "content": reply.content}, result]
        await one.ask(await one.loop.request(messages))
    assert [message["role"] for message in one.requests[-1]] == ["user", "assistant", "user"]
    assert one.requests[-1][1]["content"][0]["name"] == "add_numbers"


async def test_an_empty_answer_after_a_change_is_asked_for_once_more(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, form, scripted_model(LOAD_NOTES, "", named(form, "note_list"), "Milk.")) as one:
        assert await one.say("What did I note?") == "Milk."
        assert "Go on with the request." in json.dumps(one.requests[2])


@pytest.mark.parametrize("form", [RESPONSES, CHAT], ids=str)
async def test_arguments_that_are_no_json_are_an_answer(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, form, scripted_model([("add_numbers", '{"first": 1')], "Sorry.")) as one:
        assert await one.say("Add.") == "Sorry."
        ((text, failed),) = results_of(one.messages)
        assert ("not a JSON object" in text, failed, RAN) == (True, True, [])


@pytest.mark.parametrize(
    ("form", "stream"),  # a stream of Chat that was cut is an error of the client itself
    [(ANTHROPIC, False), (ANTHROPIC, True), (RESPONSES, False), (RESPONSES, True), (CHAT, False)],
    ids=str,
)
@pytest.mark.parametrize("filtered", [False, True], ids=["by its length", "by a filter"])
async def test_a_reply_that_was_cut_runs_no_call(board: Pegboard, form: Form, stream: bool, filtered: bool) -> None:
    """X2: what there is of its arguments may fit; the model reads why, and its provider takes the history back."""
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")
    cut = CutReply(name="note_add", written='{"text": "eggs", "mark": "ur', read={"text": "eggs"}, filtered=filtered)
    async with talk(session, form, scripted_model(cut, [("note_add", {"text": "milk"})], "Added.")) as one:
        assert await one.say("Add eggs, urgently.", stream=stream) == "Added."
        (first, failed), (second, _) = results_of(one.messages)
    assert (failed, RAN, second) == (True, ["note_add"], "milk (new)")
    assert ("filter" if filtered else "limit of tokens") in first
    sent = one.requests[1]
    texts = [item["arguments"] for item in sent if item.get("type") == "function_call"]
    texts += [call["function"]["arguments"] for item in sent for call in item.get("tool_calls") or ()]
    assert all(isinstance(json.loads(text), dict) for text in texts)


@pytest.mark.parametrize("form", [ANTHROPIC, RESPONSES, CHAT], ids=str)
async def test_a_focus_narrows_one_step_without_an_edit_of_the_list(board: Pegboard, form: Form) -> None:
    """F3: by the choice of tools."""
    session = await board.session(agent="focused", session_id="s")
    async with talk(session, form, scripted_model([("add_numbers", {"first": 1, "second": 2})], "3.")) as one:
        await one.say("sum of 1 and 2")
    first, second = (body.get("tool_choice") for body in one.server.bodies)
    assert ("any" if form.form == "anthropic" else "required") in json.dumps(first)
    assert second is None
    assert one.server.breaks == 0


async def test_what_is_stale_is_not_sent_and_nothing_else_is_touched(board: Pegboard, form: Form) -> None:
    """D4: a result without its call is dropped, a call that no one answered is answered."""
    session = await board.session(agent="assistant", session_id="s")
    async with talk(session, form, scripted_model([("add_numbers", {"first": 1, "second": 2})], "3.", "Bye.")) as one:
        await one.say("Add.")
        call, result = (
            place
            for place, each in enumerate(one.messages)
            if "call_1_0" in json.dumps(each) or "toolu_1_0" in json.dumps(each)
        )
        without_call = [each for place, each in enumerate(one.messages) if place != call]
        without_result = [each for place, each in enumerate(one.messages) if place != result]
        bye = {"role": "user", "content": "Bye."}
        sent = await one.loop.request([*without_call, bye])
        assert results_of(sent.get("messages") or sent["input"]) == []
        sent = await one.loop.request([*without_result, bye])
        ((text, _),) = results_of(sent.get("messages") or sent["input"])
        assert "This call has not run." in text


async def test_a_reply_of_another_form_is_one_clear_error(board: Pegboard, form: Form) -> None:
    session = await board.session(agent="assistant", session_id="s")
    loop = Loop(session, form=form.form, model=form.model)
    with pytest.raises(UsageError, match=f"That is no reply of the form '{form.form}'"):
        await loop.answer({"answer": "42"})
    with pytest.raises(UsageError, match="not a int"):
        await loop.answer(42)
    with pytest.raises(UsageError, match="There is no form 'gemini'"):
        Loop(session, form="gemini", model="x")  # type: ignore


def test_a_loop_that_blocks_is_the_twin(tmp_path: Path) -> None:
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    RAN.clear()
    steps = (LOAD_NOTES, [("note_list", {})], "Milk.", ProviderRefusal(text="anthropic-beta is not known"), "Bye.")
    with Pegboard.open_sync(tmp_path / "pegboard.yaml") as board, StrictProvider(*steps) as server:
        loop = SyncLoop(board.session(agent="assistant", session_id="s"), form="anthropic", model="claude-opus-5")
        client = Anthropic(api_key="none", base_url=server.url, max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "What did I note?"}]
        while True:
            messages += loop.answer(client.messages.create(**loop.request(messages), max_tokens=100))
            if loop.done or loop.waiting:
                break
        assert loop.text == "Milk."
        assert (loop.resume(messages), loop.rejected("anthropic-beta is not known")) == ([], True)
    with pytest.raises(UsageError, match="SyncLoop needs a session that blocks"):
        SyncLoop(None, form="chat", model="x")  # type: ignore
