"""What a provider sends that goes back unchanged, and what may not go to it at all (D4)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from loop_talk import CHAT, talk

from pegboard import Pegboard
from pegboard.errors import UsageError
from pegboard.frameworks.loop import FormName, Loop
from pegboard.testing import ModelAnswer, RawReply

pytestmark = pytest.mark.cover(1)

CODE = """
import os

def listing(folder: str = "") -> str:
    "List files."
    return os.fsdecode(b"a\\x97b.txt")

def fails() -> str:
    "Fail."
    raise ValueError("bad \\udc97")
"""
ASKED = [{"role": "user", "content": "What is there?"}]


@pytest.fixture
def config(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    (tmp_path / "folder_tools.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    agent = {"tools": ["p"], "dialect": "pegboard", "anticipate": False}
    return {"store": "memory:", "plugins": {"p": {"python": "folder_tools"}}, "agents": {"a": agent}}


async def loop_of(board: Pegboard, form: FormName, model: str = "gpt-5.4") -> Loop:
    return Loop(await board.session(agent="a", session_id="s"), form=form, model=model, system="You are Mira.")


def completion(written: str | None, **more: Any) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "listing", "arguments": written}, **more}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_details": [{"data": "x"}]}
    return {"choices": [{"index": 0, "message": {**message, "annotations": []}, "finish_reason": "tool_calls"}]}


def breakpoints(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from [value["cache_control"]] if "cache_control" in value else ()
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from breakpoints(part)


async def test_what_a_provider_puts_into_a_message_or_a_call_goes_back_with_it(config: Mapping[str, Any]) -> None:
    """D4: Gemini refuses a call without its thought signature; what only replies have is not sent."""
    signature = {"google": {"thought_signature": "abc"}}
    async with Pegboard.open(config) as board:
        loop = await loop_of(board, "chat", "gemini-3-pro")
        await loop.request(ASKED)
        history = [*ASKED, *await loop.answer(completion("{}", extra_content=signature, index=0))]
        sent = (await loop.request(history))["messages"][2]
    assert sent["tool_calls"][0]["extra_content"] == signature
    assert sent["reasoning_details"] == [{"data": "x"}]
    assert "annotations" not in sent
    assert "index" not in sent["tool_calls"][0]


THOUGHTS: dict[str, Any] = {
    "reasoning_content": "Look into the folder.",
    "reasoning": "Look into the folder.",
    "thinking_blocks": [{"type": "thinking", "thinking": "Look.", "signature": "abc"}],
    "provider_specific_fields": {"signature": "abc"},
}
"""Where models of DeepSeek, Kimi and others have their thoughts, and proxies the signatures of them."""


@pytest.mark.parametrize("name", THOUGHTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_thoughts_go_back_with_the_call_that_they_led_to(
    config: Mapping[str, Any], name: str, stream: bool
) -> None:
    """D4: as the real client has them; a provider in thinking mode refuses the call without them."""
    function = {"name": "listing", "arguments": "{}"}
    message = {"role": "assistant", "content": None, name: THOUGHTS[name]}
    call = {"id": "c", "type": "function", "function": function}
    about = {"id": "x", "created": 1, "model": "m"}
    if stream:
        delta = {**message, "tool_calls": [{"index": 0, **call}]}
        chunks = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": "tool_calls"}]
        sent = [{**about, "object": "chat.completion.chunk", "choices": [{"index": 0, **one}]} for one in chunks]
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in sent) + "data: [DONE]\n\n"
        reply = RawReply(body=body, content_type="text/event-stream")
    else:
        choice = {"index": 0, "message": {**message, "tool_calls": [call]}, "finish_reason": "tool_calls"}
        reply = RawReply(body=json.dumps({**about, "object": "chat.completion", "choices": [choice]}))
    answers: list[ModelAnswer] = [reply, "Done."]
    async with Pegboard.open(config) as board:
        session = await board.session(agent="a", session_id="s")
        async with talk(session, CHAT, lambda _: answers.pop(0)) as going:
            assert await going.say("Look.", stream=stream) == "Done."
    [called] = [one for one in going.requests[-1] if one.get("tool_calls")]
    assert (called[name], going.server.refusals) == (THOUGHTS[name], [])


@pytest.mark.parametrize("written", ["", " ", "null", None])
async def test_arguments_that_are_empty_or_null_are_none(config: Mapping[str, Any], written: str | None) -> None:
    async with Pegboard.open(config) as board:
        loop = await loop_of(board, "chat")
        await loop.request(ASKED)
        added = await loop.answer(completion(written))
    assert added[-1]["content"] == "a\ufffdb.txt"


@pytest.mark.parametrize(("model", "asked"), [("gpt-5.4", True), ("o4-mini", True), ("gpt-4.1", False)])
async def test_a_model_that_reasons_is_asked_for_what_it_needs_back(
    config: Mapping[str, Any], model: str, asked: bool
) -> None:
    """D4: where the provider refuses that, it is no longer asked for."""
    async with Pegboard.open(config) as board:
        loop = await loop_of(board, "responses", model)
        assert ("include" in await loop.request(ASKED)) is asked
        assert await loop.rejected("Encrypted content is not supported with this model.") is asked
        assert "include" not in await loop.request(ASKED)


@pytest.mark.parametrize("own", [0, 1, 3, 4])
async def test_no_request_has_more_than_four_breakpoints(config: Mapping[str, Any], own: int) -> None:
    """D4: those of the host count, also within a result."""
    marked = [{"type": "text", "text": str(n), "cache_control": {"type": "ephemeral"}} for n in range(own)]
    used = {"type": "tool_use", "id": "t", "name": "listing", "input": {}}
    history = [
        *ASKED,
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": marked}]},
    ]
    async with Pegboard.open(config) as board:
        request = await (await loop_of(board, "anthropic", "claude-sonnet-4-6")).request(history)
    assert own <= len([*breakpoints(request)]) <= 4


@pytest.mark.parametrize("form", ["chat", "responses", "anthropic"])
async def test_half_a_character_reaches_no_provider(config: Mapping[str, Any], form: FormName) -> None:
    """D4: neither from the user, nor from an error, nor from the arguments that a model wrote."""
    async with Pegboard.open(config) as board:
        loop = await loop_of(board, form)
        request = await loop.request([{"role": "user", "content": "half \ud835"}])
        assert "half \ufffd" in json.dumps(request, ensure_ascii=False, default=dict).encode().decode()
        failed = await board.session(agent="a", session_id="s")
        assert "bad \ufffd" in str((await failed.call("fails")).result.content)


@pytest.mark.parametrize("form", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("reply", ["<html>Bad gateway</html>", [], {}, {"error": {"message": "Overloaded."}}])
async def test_what_is_no_reply_is_one_clear_error(config: Mapping[str, Any], form: FormName, reply: Any) -> None:
    async with Pegboard.open(config) as board:
        loop = await loop_of(board, form)
        await loop.request(ASKED)
        with pytest.raises(UsageError, match=r"Overloaded|no reply|mapping"):
            await loop.answer(reply)
