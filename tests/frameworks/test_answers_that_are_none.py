"""A provider that answers no reply: the page of a proxy, a list, half of a stream, an error with status 200."""

import json
from contextlib import suppress
from typing import Any

import pytest
from anthropic import AnthropicError
from framework_drivers import Driver
from framework_tools import RAN
from loop_talk import FORMS, Form, talk
from openai import OpenAIError

from pegboard import Pegboard, PegboardError
from pegboard.testing import ModelAnswer, RawReply, ScriptedModel, StrictProvider

PAGE = RawReply(body="<html><title>Bad gateway</title></html>", content_type="text/html")
LIST = RawReply(body="[]")
ERROR = RawReply(body=json.dumps({"error": {"message": "The model is overloaded.", "type": "overloaded_error"}}))
NOTHING = RawReply(body="{}")
HALVES = {
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m",
         "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "t1", "name": "note_add", "input": {}}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "input_json_delta", "partial_json": '{"text": "eggs"'}},
    ],
    "responses": [
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "object": "response",
         "created_at": 1, "status": "in_progress", "model": "m", "output": [], "parallel_tool_calls": True,
         "tool_choice": "auto", "tools": []}},
    ],
    "chat": [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0,
         "finish_reason": None, "delta": {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1",
         "type": "function", "function": {"name": "note_add", "arguments": '{"text": "eggs"'}}]}}]},
    ],
}  # fmt: skip


def half(form: str) -> RawReply:
    events = "".join(f"event: {one.get('type', '')}\ndata: {json.dumps(one)}\n\n" for one in HALVES[form])
    return RawReply(body=events, content_type="text/event-stream")


def once(answer: ModelAnswer) -> ScriptedModel:
    """Return a model that answers so once, then "Done."."""
    left = [answer]
    return lambda _: left.pop() if left else "Done."


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("answer", [PAGE, LIST, ERROR, NOTHING], ids=["page", "list", "error", "nothing"])
async def test_a_loop_says_what_it_was_given_and_goes_on(board: Pegboard, form: Form, answer: RawReply) -> None:
    """P6: one error, nothing is kept of the answer; asked again, the same turn goes on."""
    async with talk(await board.session(agent="assistant", session_id="s"), form, once(answer)) as going:
        with pytest.raises((PegboardError, OpenAIError, AnthropicError)) as failed:
            await going.say("Hello.")
        said = str(failed.value)
        assert "overloaded" in said if answer is ERROR else said
        assert "'NoneType' object" not in said
        assert "object has no attribute" not in said
        assert len(going.messages) == 1
        assert await going.go_on() == "Done."


@pytest.mark.parametrize("form", FORMS, ids=str)
async def test_half_of_a_stream_runs_no_call(board: Pegboard, form: Form) -> None:
    """X2: whether the client raises, or returns what there was: nothing runs, and the turn can be asked for again."""
    RAN.clear()
    session = await board.session(agent="assistant", session_id="s")
    await session.load("notes")
    async with talk(session, form, once(half(form.form))) as going:
        with suppress(PegboardError, OpenAIError):
            await going.say("Note eggs.", stream=True)
        if not going.loop.done:
            await going.go_on()
        assert going.loop.text == "Done."

    assert (RAN, going.server.refusals) == ([], [])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("answer", [PAGE, LIST, ERROR, NOTHING], ids=["page", "list", "error", "nothing"])
async def test_the_error_of_a_framework_ends_the_run_and_the_next_one_works(
    driver: Driver, board: Pegboard, answer: RawReply, stream: bool
) -> None:
    """P6: the framework's own handling of such an answer counts; the session is whole."""
    session: Any = await board.session(agent="assistant", session_id="s")
    with StrictProvider(model=once(answer)) as server:
        going = driver.talk(session, url=server.url)
        with suppress(Exception):
            await going.run("Hello.", stream=stream)
        assert (await driver.talk(session, url=server.url).run("Again.")).answer.strip() == "Done."

    assert (RAN, server.refusals) == ([], [])
