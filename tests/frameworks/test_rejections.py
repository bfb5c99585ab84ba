"""What a provider's refusal is about, in the words of its clients, and whom it counts for (D4)."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import APIStatusError as AnthropicStatusError
from framework_world import CONFIG
from openai import APIStatusError

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
SENT = ["search", "pay", "tag", "role", "tool"]


class RefusedError(Exception):
    status_code = 400


def openai_error(body: Any, status: int = 400) -> APIStatusError:
    """Return what OpenAI's client raises for an answer with this body."""
    response = httpx2.Response(status, json=body, request=httpx2.Request("POST", "http://provider/v1"))
    inner = body.get("error", body) if isinstance(body, dict) else body
    return APIStatusError("Error", response=response, body=inner)


def anthropic_error(message: str) -> AnthropicStatusError:
    """Return what Anthropic's client raises for a refusal."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    response = httpx2.Response(400, json=body, request=httpx2.Request("POST", "http://provider/v1"))
    return AnthropicStatusError(f"Error code: 400 - {body}", response=response, body=body)


def stated(message: str, param: str | None = None, code: str | None = None) -> APIStatusError:
    return openai_error({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


IN_CONTEXT = "Invalid schema for function 'tag': In context=('properties', 'role'), array schema missing items."


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


@pytest.mark.parametrize(
    "error",
    [
        stated(IN_CONTEXT, "tools[2].function.parameters", "invalid_function_parameters"),
        stated(IN_CONTEXT, "tools[2].parameters", "invalid_function_parameters"),
        stated(IN_CONTEXT, None, "invalid_function_parameters"),
        stated("Invalid 'tools[2].function.description': string too long.", "tools[2].function.description"),
        stated("Invalid value.", "tools[2]"),
        RefusedError(IN_CONTEXT),
        RefusedError(json.dumps({"error": {"message": IN_CONTEXT}})),
        anthropic_error("tools.2.custom.input_schema: JSON schema is invalid. It must match draft 2020-12"),
        anthropic_error("tools.2.custom.input_schema.properties: Property keys should match pattern '^[a-z]$'"),
        openai_error(
            [
                {
                    "error": {
                        "code": 400,
                        "status": "INVALID_ARGUMENT",
                        "message": "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties"
                        "[role].items: missing field.",
                    }
                }
            ]
        ),
        openai_error({"detail": [{"type": "missing", "loc": ["body", "tools", 2, "function"]}]}, 422),
        openai_error({"object": "error", "message": "Invalid parameters for tool tag: not an object", "code": 400}),
        openai_error({"error": "Tool 'tag' has an unsupported schema for its argument 'role'"}),
    ],
)
def test_the_tool_that_a_provider_refuses_is_the_only_one_that_leaves(error: Exception) -> None:
    """D4: what else the refusal names, as arguments do, is called like other tools of the request."""
    rejection = rejection_of(error, SENT)
    assert (rejection.kind, rejection.names) == ("tool", ("tag",))


def test_what_a_framework_raises_from_a_refusal_is_read_by_its_cause() -> None:
    wrapped = RefusedError("The request was not taken.")
    wrapped.__cause__ = stated("Not taken.", "tools[1].function.parameters")
    assert rejection_of(wrapped, SENT).names == ("pay",)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (stated("Unknown parameter.", "tool_choice.allowed_tools"), "choice"),
        (stated("Tool choice 'pay' is not in the request.", "tool_choice"), "choice"),
        (stated("Invalid value: 'additional_tools'.", "input[4].type"), "form"),
        (anthropic_error("tools.2.defer_loading: Extra inputs are not permitted"), "form"),
        (anthropic_error("messages.3.role: unexpected value"), "form"),
        (stated("The image could not be read.", "messages[3].content"), "other"),
        (stated("You exceeded your quota.", None, "insufficient_quota"), "other"),
        (openai_error("<html><body>Bad gateway</body></html>"), "other"),
        (openai_error([]), "other"),
        (openai_error({"error": None}), "other"),
        (openai_error({"error": {"message": ["pay"], "param": 7}}, 503), "other"),
    ],
)
def test_a_refusal_of_anything_else_takes_no_tool_away(error: Exception, kind: str) -> None:
    rejection = rejection_of(error, SENT)
    assert (rejection.kind, rejection.names) == (kind, ())


@pytest.mark.parametrize(("had", "names"), [(5, ("role", "tool")), (6, ("tag", "role", "tool"))])
def test_tools_beyond_the_number_that_a_provider_takes_are_too_many(had: int, names: tuple[str, ...]) -> None:
    """D4: nothing is wrong with them; what the host has sent beside is counted where the provider says how many."""
    text = "Invalid 'tools': array too long. Expected an array with maximum length 3, but got an array with length"
    error = stated(f"{text} {had}.", "tools", "array_above_max_length")
    rejection = rejection_of(error, SENT)
    assert (rejection.kind, rejection.names) == ("many", names)


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
    assert list(await reject_tools(RefusedError(f"Invalid schema for function '{name}'."), [*own], own, ann)) == [name]
    again = await board.session(agent="scholar", session_id="s", principal="ann")
    assert rejected_of(again, own.values()) == {name}
    assert rejected_of(again, [replace(own[name], description="Mended.")]) == frozenset()
    assert rejected_of(bob, own.values()) == frozenset()
