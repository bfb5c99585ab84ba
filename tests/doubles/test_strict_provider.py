"""The strict provider refuses what providers refuse, so that an agent which passes here is not refused there."""

from functools import partial
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic import BadRequestError as AnthropicBadRequest
from httpx import RemoteProtocolError
from openai import APIConnectionError, APIStatusError, OpenAI

from pegboard.testing import CutReply, RawReply, StrictProvider

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
UNION = {**CITY, "anyOf": [{"required": ["city"]}]}
PAIR = {"type": "object", "properties": {"at": {"type": "array", "prefixItems": [{"type": "number"}]}}}
UMLAUT = {"type": "object", "properties": {"größe": {"type": "string"}}}
CALLED = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "4"}]}
HELLO = {"role": "user", "content": "Hello."}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CHAT_CALLED = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
CHAT_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4"}
ITEM_CALLED = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
ITEM_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "4"}
CACHED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
FIVE_CACHED = {"role": "user", "content": [CACHED] * 5}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
CONST = {"type": "object", "properties": {"n": {"const": 1}}}


def ask(provider: StrictProvider, form: str, messages: list[Any], tools: list[Any], **more: Any) -> Any:
    """Ask with the provider's own client; tools are pairs of a name and a schema."""
    if form == "anthropic":
        listed: Any = [{"name": name, "input_schema": schema} for name, schema in tools]
        client = Anthropic(base_url=provider.url, api_key="none", max_retries=0)
        return client.messages.create(model="claude-opus-5", max_tokens=9, messages=messages, tools=listed, **more)
    openai: Any = OpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
    functions = [{"name": name, "description": "Looks.", "parameters": schema} for name, schema in tools]
    if form == "responses":
        about = {"model": "gpt-5.4", "input": messages, "tools": [{"type": "function", **one} for one in functions]}
        return openai.responses.create(**(about | more))
    model = "gemini-3-pro" if form == "gemini" else "gpt-5.4"
    listed = [{"type": "function", "function": one} for one in functions]
    return openai.chat.completions.create(**({"model": model, "messages": messages, "tools": listed} | more))


@pytest.mark.parametrize(
    ("form", "messages", "tools", "more", "words"),
    [
        ("anthropic", [HELLO], [("look", UNION)], {}, "tools.0.custom.input_schema: input_schema does not"),
        ("anthropic", [HELLO], [("look", UMLAUT)], {}, "Property keys should match pattern"),
        ("anthropic", [HELLO], [("a b", CITY)], {}, "tools.0.custom.name: String should match pattern"),
        ("anthropic", [HELLO], [("look", CITY)] * 2, {}, "Tool names must be unique"),
        ("anthropic", [HELLO], [("look", {**CITY, "required": "city"})], {}, "must match JSON Schema draft 2020-12"),
        ("anthropic", [HELLO, CALLED], [], {}, "`tool_use` ids were found without `tool_result` blocks immediately"),
        ("anthropic", [HELLO, CALLED, HELLO], [], {}, "without `tool_result` blocks immediately after: t1"),
        ("anthropic", [HELLO, RESULT], [], {}, "unexpected `tool_use_id` found in `tool_result` blocks: t1"),
        ("anthropic", [HELLO, CALLED, RESULT, CALLED, RESULT], [], {}, "`tool_use` ids must be unique"),
        ("anthropic", [FIVE_CACHED], [], {}, "A maximum of 4 blocks with cache_control"),
        ("anthropic", [{"role": "system", "content": "x"}], [], {}, "Input should be 'user' or 'assistant'"),
        ("chat", [HELLO], [("look", PAIR)], {}, "function 'look': In context=('properties', 'at'), array"),
        ("chat", [HELLO], [("look", UNION)], {}, "schema must have type 'object' and not have 'oneOf'/'anyOf'"),
        ("chat", [HELLO], [("look", {"type": "object"})], {}, "object schema missing properties"),
        ("chat", [HELLO], [("a b", CITY)], {}, "Invalid 'tools[0].function.name': string does not match pattern"),
        ("chat", [HELLO], [("x" * 65, CITY)], {}, "maximum length 64, but got a string with length 65"),
        ("chat", [HELLO], [(f"t{n}", CITY) for n in range(129)], {}, "Invalid 'tools': array too long"),
        ("chat", [HELLO, CHAT_CALLED, HELLO], [], {}, "must be followed by tool messages responding to each"),
        ("chat", [HELLO, CHAT_RESULT], [], {}, "messages with role 'tool' must be a response"),
        ("responses", [HELLO], [("look", PAIR)], {}, "array schema missing items"),
        ("responses", [HELLO, ITEM_CALLED], [], {}, "No tool output found for function call c1."),
        ("responses", [HELLO, ITEM_RESULT], [], {}, "No tool call found for function call output with call_id c1."),
        ("responses", [HELLO], [], {"previous_response_id": "resp_9"}, "Previous response with id 'resp_9' not found."),
        ("responses", [HELLO, THOUGHT], [], {"store": False}, "Item with id 'rs_1'"),
        ("responses", [HELLO, THOUGHT, HELLO], [], {}, "required following item"),
        ("gemini", [HELLO], [("1st", CITY)], {}, "Invalid function name. Must start with a letter"),
        ("gemini", [HELLO], [("look", CONST)], {}, 'Unknown name "const"'),
        ("gemini", [HELLO], [("look", PAIR)], {}, "prefixItems"),
        ("gemini", [HELLO, CHAT_CALLED, CHAT_RESULT], [], {}, "missing a thought_signature"),
        ("gemini", [HELLO, CHAT_RESULT], [], {}, "the number of function response parts is equal"),
    ],
)  # fmt: skip
def test_what_a_provider_refuses_is_refused_in_its_words(
    form: str, messages: list[Any], tools: list[Any], more: dict[str, Any], words: str
) -> None:
    """D4: the provider's own client raises what it raises with the real one; the script is not used up."""
    with StrictProvider("Hello.") as provider:
        with pytest.raises((AnthropicBadRequest, APIStatusError)) as refused:
            ask(provider, form, messages, tools, **more)
        assert "Hello." in str(ask(provider, form, [HELLO], [("look", CITY)]))

    assert words in said(refused.value.response.json())
    assert [words in one.text for one in provider.refusals] == [True]


def said(body: Any) -> str:
    """Return the sentence of a refusal; Gemini's is in a list."""
    return str((body[0] if isinstance(body, list) else body)["error"]["message"])


@pytest.mark.parametrize("form", ["anthropic", "responses", "chat", "gemini"])
def test_what_a_provider_takes_is_answered(form: str) -> None:
    """D4: a call, its result and the answer, as the client returns them."""
    with StrictProvider([("look", {"city": "Rome"})], "Sunny.") as provider:
        first = ask(provider, form, [HELLO], [("look", CITY)])
        messages: list[Any] = [HELLO]
        if form == "anthropic":
            [used] = first.content
            messages.append({"role": "assistant", "content": [used.model_dump(exclude_none=True)]})
            messages.append({"role": "user", "content": [{**RESULT["content"][0], "tool_use_id": used.id}]})
        elif form == "responses":
            [used] = first.output
            messages += [used.model_dump(exclude_none=True), {**ITEM_RESULT, "call_id": used.call_id}]
        else:
            message = first.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages.append({**CHAT_RESULT, "tool_call_id": message.tool_calls[0].id})
        second = ask(provider, form, messages, [("look", CITY)])

    assert "Rome" in str(first)
    assert "Sunny." in str(second)
    assert (provider.refusals, provider.breaks, provider.rewritten) == ([], 0, 0)


@pytest.mark.parametrize(
    ("form", "reason"), [("anthropic", "max_tokens"), ("responses", "incomplete"), ("chat", "length")]
)
def test_a_reply_can_be_cut(form: str, reason: str) -> None:
    with StrictProvider(CutReply(name="look", written='{"city": "Ro', read={})) as provider:
        assert reason in str(ask(provider, form, [HELLO], [("look", CITY)]))


def test_an_answer_can_be_no_provider_s() -> None:
    with (
        StrictProvider(RawReply(body="<html>Bad gateway</html>", content_type="text/html", status=502)) as provider,
        pytest.raises(APIStatusError) as failed,
    ):
        ask(provider, "chat", [HELLO], [])
    assert "Bad gateway" in failed.value.response.text


def test_a_connection_can_be_lost_within_an_answer() -> None:
    with (
        StrictProvider(RawReply(body='{"id": "1", "choices": [', lost=True), "Hello.") as provider,
        OpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0) as client,
    ):
        messages: Any = [HELLO]
        ask = partial(client.chat.completions.create, model="gpt-5.4", messages=messages)
        with pytest.raises((APIConnectionError, RemoteProtocolError)):
            ask()
        assert ask().choices[0].message.content == "Hello."
