"""What a provider's refusal is about, in the words of its clients, and whom it counts for (D4)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from framework_world import CONFIG

from pegboard import Pegboard
from pegboard.frameworks.runs import reject_tools, rejected_of
from pegboard.wire.rejections import rejection_of

TOO_LONG = (
    (
        "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', "
        "'message': 'prompt is too long: 214315 tokens > 200000 maximum'}, 'request_id': 'req_1'}"
    ),
    (
        "status_code: 400, model_name: gpt-5, body: {'message': \"This model's maximum context length is "
        "128000 tokens.\", 'type': 'invalid_request_error', 'param': 'messages', 'code': 'context_length_exceeded'}"
    ),
)
WORDS = ("message", "error", "type", "code", "param", "request_id", "messages", "invalid_request_error")


class RefusedError(Exception):
    status_code = 400


@pytest.mark.parametrize("text", TOO_LONG)
def test_the_words_of_an_error_are_no_tools_that_happen_to_be_called_so(text: str) -> None:
    assert rejection_of(text, [*WORDS, "context_length_exceeded"]).kind == "other"


@pytest.mark.parametrize(
    "text",
    [
        (
            "Error code: 400 - {'error': {'message': \"Invalid schema for function 'message': None is not valid\", "
            "'type': 'invalid_request_error', 'param': 'tools[1].function.parameters', 'code': 'x'}}"
        ),
        "{'error': {'message': 'Invalid schema for function \\'message\\'.'}}",
    ],
)
def test_a_tool_that_a_refusal_names_is_found_whatever_it_is_called(text: str) -> None:
    assert rejection_of(text, ["code", "message"]).names == ("message",)


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    async with Pegboard.open(path) as opened:
        yield opened


async def test_a_rejected_tool_is_left_out_of_its_session_alone_and_only_as_it_was_defined(board: Pegboard) -> None:
    """D4: another user's session has it; with a schema that was mended it is sent again."""
    ann, bob = [await board.session(agent="scholar", session_id="s", principal=name) for name in ("ann", "bob")]
    own = {loaded.tool.wire: loaded.tool for loaded in (await ann.surface()).tools}
    name = next(iter(own))
    assert list(reject_tools(RefusedError(f"Invalid schema for function '{name}'."), [*own], own, ann)) == [name]
    again = await board.session(agent="scholar", session_id="s", principal="ann")
    assert rejected_of(again, own.values()) == {name}
    assert rejected_of(again, [replace(own[name], description="Mended.")]) == frozenset()
    assert rejected_of(bob, own.values()) == frozenset()
