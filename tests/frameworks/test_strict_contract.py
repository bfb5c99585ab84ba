"""What every road promises over a provider that refuses what real ones refuse: loops, adapters, a session alone."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from agents.exceptions import ModelBehaviorError
from framework_drivers import Driver, definitions_of, parts
from framework_tools import RAN
from loop_talk import FORMS, Form, talk
from openai import AsyncOpenAI

from pegboard import Pegboard
from pegboard.dialects.names import CALL
from pegboard.frameworks.loop import Loop
from pegboard.testing import CutReply, ModelAnswer, ProviderRefusal, StrictProvider

pytestmark = pytest.mark.cover(1)

NEEDS = [
    ("notes", "note_list", {}, "note_list"),
    ("papers", "shred", {"paper": "draft"}, "shred"),
    ("purse", "pay", {"to": "ada"}, "pay ada"),
    ("pictures", "measure_picture", {}, ""),
    ("notes", "note_add", {"text": "eggs"}, "note_add"),
]
"""What each turn needs: what is loaded, the tool that is called, its arguments, what has run then."""


def listed(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schemas that a request lists or reveals, by the names of the tools."""
    tools = [*body.get("tools", ()), *(one for part in parts(body) for one in part.get("tools", ()))]
    functions = [tool.get("function", tool) for tool in tools]
    return {one["name"]: one.get("parameters") or one["input_schema"] for one in functions}


def calling(body: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> ModelAnswer:
    """Return a call of a tool in the way that the request has for it."""
    if name in listed(body):
        return [(name, dict(arguments))]
    return [(CALL, {"name": name, "arguments": dict(arguments)})]


class Traveller:
    """A model that in each of ten turns loads what it needs, calls it, answers, and unloads it in the next."""

    def __init__(self) -> None:
        self.turn, self.step = 0, 0

    def __call__(self, body: Mapping[str, Any]) -> ModelAnswer:
        plugin, name, arguments, _ = NEEDS[self.turn % len(NEEDS)]
        before = NEEDS[(self.turn - 1) % len(NEEDS)][0]
        self.step += 1
        match self.step:
            case 1 if self.turn:
                return [("unload_tools", {"names": [before]}), ("load_tools", {"names": [plugin]})]
            case 1:
                return [("load_tools", {"names": [plugin]})]
            case 2:
                return calling(body, name, arguments)
            case _:
                self.turn, self.step = self.turn + 1, 0
                return "Done."


async def test_tools_come_and_go_over_ten_turns_while_the_history_is_shortened(driver: Driver, board: Pegboard) -> None:
    """D4, A3: nothing is refused: calls have results, schemas are taken; a person approves, and every tool runs."""
    model = Traveller()
    with StrictProvider(model=model) as server:
        going = driver.talk(await board.session(agent="traveller", session_id="s"), url=server.url)
        for turn in range(10):
            if turn in (3, 6):
                await going.summarise(f"They have done {turn} things.")
            ran = await going.run(f"Do number {turn}.")
            if ran.waiting:
                assert ran.waiting == ("shred",)
                ran = await going.decide(allow=True)
            assert ran.answer.strip() == "Done."

    assert server.refusals == []
    assert [one for one in RAN if one] == [ran for *_, ran in NEEDS * 2 if ran]


@pytest.mark.parametrize("form", FORMS, ids=str)
async def test_a_loop_in_every_form_goes_on_over_ten_turns(board: Pegboard, form: Form) -> None:
    """D4, A3: the same of a loop by hand, whose host drops the oldest messages."""
    RAN.clear()
    async with talk(await board.session(agent="traveller", session_id="s"), form, Traveller()) as going:
        for turn in range(10):
            if turn in (3, 6):
                going.stored = json.dumps([{"role": "user", "content": "They have done some things."}])
            if not await going.say(f"Do number {turn}."):
                for approval in going.loop.waiting.values():
                    await board.approvals.allow(approval.id, by="grace")
                going.stored = json.dumps([*going.messages, *await going.loop.resume(going.messages)])
                await going.go_on()

    assert going.server.refusals == []
    assert [ran for *_, ran in NEEDS * 2 if ran] == RAN


async def test_a_loop_by_hand_reaches_gemini_in_its_openai_form(board: Pegboard) -> None:
    """D4: signatures of thoughts go back, and its keywords are the only ones of a schema."""
    RAN.clear()
    model = Traveller()
    session = await board.session(agent="traveller", session_id="s")
    loop, messages = Loop(session, form="chat", model="gemini-3-pro"), list[Any]()
    with StrictProvider(model=model) as server:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            for turn in range(4):
                messages.append({"role": "user", "content": f"Do number {turn}."})
                while not loop.done or messages[-1]["role"] == "user":
                    reply = await client.chat.completions.create(**await loop.request(messages))
                    messages += await loop.answer(reply)
                    for approval in loop.waiting.values():
                        await board.approvals.allow(approval.id, by="grace")
                    messages += await loop.resume(messages) if loop.waiting else []

    assert (server.refusals, RAN) == ([], [ran for *_, ran in NEEDS[:4] if ran])


async def test_a_session_alone_has_what_a_provider_takes(board: Pegboard) -> None:
    """D4: a host with a loop of its own sends the tools of functions as they are: tuples have items."""
    RAN.clear()
    session = await board.session(agent="traveller", session_id="s")
    await session.load("notes")
    names = ("pin", "note_list")
    with StrictProvider(*[[(name, {"at": [1, 2]} if name == "pin" else {})] for name in names]) as server:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            messages: list[Any] = [{"role": "user", "content": "Go on."}]
            while messages[-1]["role"] != "assistant" or messages[-1].get("tool_calls"):
                tools = [one.tool for one in (await session.surface()).tools if len(one.tool.description) <= 1024]
                functions: Any = [
                    {
                        "type": "function",
                        "function": {
                            "name": one.wire,
                            "description": one.description,
                            "parameters": one.input_schema,
                        },
                    }
                    for one in tools
                ]
                reply = await client.chat.completions.create(model="gpt-5.4", messages=messages, tools=functions)
                message: Any = reply.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or ():
                    answer = await session.call(call.function.name, json.loads(call.function.arguments))
                    text = answer.result.content[0]["text"]
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    assert (server.refusals, RAN) == ([], ["pin (1.0, 2.0) 1", "note_list"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_a_provider_would_refuse_is_changed_and_reported_once(
    driver: Driver, board: Pegboard, stream: bool
) -> None:
    """D4, X2: the call reaches the function under the names that it has."""
    reported: list[Any] = []
    board.on("adapted", reported.append)

    def model(body: Mapping[str, Any]) -> ModelAnswer:
        properties = listed(body)["pin"]["properties"]
        size = next(name for name in properties if name.startswith("gr"))
        is_new = "pin (" not in json.dumps(RAN)
        return [("pin", {"at": [1, 2], size: 3})] if is_new else "Done."

    with StrictProvider(model=model) as server:
        going = driver.talk(await board.session(agent="traveller", session_id="s"), url=server.url)
        for message in ("Pin it.", "Thanks."):
            await going.run(message, stream=stream)

    assert (server.refusals, RAN) == ([], ["pin (1.0, 2.0) 3"])
    changed = {"anthropic": ["tool:pin"], "chat": ["tool:find_way"], "responses": []}
    assert [event["subject"] for event in reported] == changed[driver.form]


async def test_a_tool_that_is_refused_all_the_same_leaves_alone(driver: Driver, board: Pegboard) -> None:
    """D4: one bad schema ends no run; what is loaded beside it runs."""

    def model(body: Mapping[str, Any]) -> ModelAnswer:
        if "pin" in listed(body):
            return ProviderRefusal(text="Invalid schema for function 'pin': In context=('properties', 'at'), no.")
        return "Done." if RAN else [("find_way", {"stops": [[1, 2], [3, 4]]})]

    with StrictProvider(model=model) as server:
        going = driver.talk(await board.session(agent="traveller", session_id="s"), url=server.url)
        assert (await going.run("Find the way.")).answer.strip() == "Done."
        assert (await going.run("Thanks.")).answer.strip() == "Done."

    assert ["pin" in listed(body) for body in server.bodies] == [True, False, False, False]
    assert RAN == ["find_way [(1.0, 2.0), (3.0, 4.0)] None"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_goes_on_behind_a_reply_that_was_cut(
    driver: Driver, board: Pegboard, stream: bool
) -> None:
    """X2: nothing of the cut call has run, and nothing that is sent back is refused."""
    cut = CutReply(name="find_way", written='{"stops": [[1, 2]', read={"stops": [[1, 2]]})
    with StrictProvider(cut, "It was too long.", "Done.") as server:
        going = driver.talk(await board.session(agent="traveller", session_id="s"), url=server.url)
        for message in ("Find the way.", "Go on."):
            with suppress(ModelBehaviorError):  # OpenAI Agents ends the run itself
                await going.run(message, stream=stream)

    assert (server.refusals, RAN) == ([], [])


async def test_two_runs_at_once_are_not_refused(driver: Driver, board: Pegboard) -> None:
    """S2: two conversations over one session; each history has its own pairs."""
    session = await board.session(agent="traveller", session_id="s")
    with StrictProvider(model=Traveller()) as one, StrictProvider(model=Traveller()) as other:
        talks = [driver.talk(session, url=server.url) for server in (one, other)]
        runs = await asyncio.gather(*(going.run("Do number 0.") for going in talks))

    assert [ran.answer.strip() for ran in runs] == ["Done.", "Done."]
    assert (one.refusals, other.refusals, RAN) == ([], [], ["note_list", "note_list"])


async def test_what_is_loaded_is_defined_again_once_where_the_history_was_shortened(
    driver: Driver, board: Pegboard
) -> None:
    """D4, F2: the next request has its definition, those behind it no second one; no text says it is not loaded."""
    answers = [[("load_tools", {"names": ["notes"]})], "Loaded.", "Yes.", "Still."]
    with StrictProvider(*answers) as server:
        going = driver.talk(await board.session(agent="traveller", session_id="s"), url=server.url)
        await going.run("Load my notes.")
        await going.summarise("They have loaded the notes.")
        for message in ("Go on.", "And now?"):
            await going.run(message)

    found = [definitions_of("note_add", body) for body in server.bodies]
    assert (server.refusals, found) == ([], [0, 1, 1, 1])
    assert not any("not loaded" in json.dumps(body).casefold() for body in server.bodies)


@pytest.mark.parametrize("form", FORMS, ids=str)
async def test_a_loop_defines_again_what_its_host_dropped(board: Pegboard, form: Form) -> None:
    """D4: likewise in every form of a loop, whether its history reveals tools or an answer defines them."""
    answers: list[ModelAnswer] = [[("load_tools", {"names": ["notes"]})], "Loaded.", "Yes.", "Still."]
    session = await board.session(agent="traveller", session_id="s")
    async with talk(session, form, lambda _: answers.pop(0)) as going:
        await going.say("Load my notes.")
        going.stored = json.dumps([{"role": "user", "content": "They have loaded the notes."}])
        await going.say("Go on.")
        await going.say("And now?")

    found = [definitions_of("note_add", body) for body in going.server.bodies]
    assert (going.server.refusals, found) == ([], [0, 1, 1, 1])
