"""What Anthropic's Messages refuse, in their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pegboard.testing.providers.replies import ProviderRefusal
from pegboard.testing.providers.tool_rules import parts_within
from pegboard.wire.anthropic_messages import BETA

Json = Mapping[str, Any]
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ARGUMENT_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_MOST_BREAKPOINTS: Final = 4
_DRAFT: Final = "https://json-schema.org/draft/2020-12"


def anthropic_refusal(body: Json, beta: str = "") -> ProviderRefusal | None:
    """Return what is refused of a request, or None.

    Args:
        body: the request.
        beta: the header ``anthropic-beta``.
    """
    said = next(_problems(body, beta), None)
    return None if said is None else ProviderRefusal(text=said)


def _problems(body: Json, beta: str) -> Iterator[str]:
    if "max_tokens" not in body:
        yield "max_tokens: Field required"
    yield from _tool_problems(body)
    found = _breakpoints(body.get("system")) + _breakpoints(body.get("tools")) + _breakpoints(body.get("messages"))
    if found > _MOST_BREAKPOINTS:
        yield f"A maximum of {_MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."
    messages: Sequence[Json] = body.get("messages") or ()
    if not messages:
        yield "messages: at least one message is required"
    yield from _message_problems(messages, beta)
    yield from _pair_problems(messages)
    yield from _reference_problems(messages, {str(tool.get("name")) for tool in body.get("tools") or ()})


def _tool_problems(body: Json) -> Iterator[str]:
    tools: Sequence[Json] = body.get("tools") or ()
    names = [str(tool.get("name")) for tool in tools]
    for number, tool in enumerate(tools):
        if tool.get("type", "custom") != "custom":
            continue
        where = f"tools.{number}.custom"
        if not _TOOL_NAME.fullmatch(names[number]):
            yield f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        yield from _schema_problems(tool.get("input_schema"), f"{where}.input_schema")
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    choice: Json = body.get("tool_choice") or {}
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"Tool '{choice.get('name')}' not found in provided tools"
    elif choice and not names:
        yield "tool_choice may only be specified while providing tools"


def _schema_problems(schema: object, where: str) -> Iterator[str]:
    from jsonschema_rs import meta

    if not isinstance(schema, Mapping) or "type" not in schema:
        yield f"{where}.type: Field required"
        return
    known = cast("Json", schema)
    if known["type"] != "object":
        yield f"{where}.type: Input should be 'object'"
    if any(key in known for key in ("oneOf", "allOf", "anyOf")):
        yield f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level"
    for _, part in parts_within(known):
        if not all(_ARGUMENT_NAME.fullmatch(name) for name in part.get("properties", ())):
            yield f"{where}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
    if not meta.is_valid({**known, "$schema": f"{_DRAFT}/schema"}):
        yield f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12 ({_DRAFT})."


def _message_problems(messages: Sequence[Json], beta: str) -> Iterator[str]:
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") and not (role == "system" and BETA in beta):
            yield f"messages.{number}.role: Input should be 'user' or 'assistant'"
        if not content and not (role == "assistant" and number == len(messages) - 1):
            rule = "all messages must have non-empty content except for the optional final assistant message"
            yield f"messages.{number}: {rule}"
        for place, block in enumerate(blocks_of(message)):
            where = f"messages.{number}.content.{place}"
            inner = blocks_of(block) if block.get("type") == "tool_result" else []
            for part in (block, *inner) if isinstance(block.get("content"), list) else (block,):
                if part.get("type") == "text" and not str(part.get("text") or "").strip():
                    rule = "contain non-whitespace text" if part.get("text") else "be non-empty"
                    yield f"messages: text content blocks must {rule}"
            if block.get("type") == "tool_use":
                if not isinstance(block.get("input"), Mapping):
                    yield f"{where}.tool_use.input: Input should be a valid dictionary"
                if not _ID.fullmatch(str(block.get("id"))):
                    yield f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"


def _pair_problems(messages: Sequence[Json]) -> Iterator[str]:
    """Yield what is wrong with calls and results: the message behind a reply begins with the results of its calls."""
    known: set[str] = set()
    asked: list[str] = []
    for number, message in enumerate(messages):
        blocks = blocks_of(message)
        leading: list[str] = []
        for block in blocks:
            if block.get("type") != "tool_result":
                break
            leading.append(str(block.get("tool_use_id")))
        missing = [call_id for call_id in asked if call_id not in leading]
        if missing:
            yield _without_results(number - 1, missing)
        for place, block in enumerate(blocks):
            found = str(block.get("tool_use_id"))
            if block.get("type") == "tool_result" and found not in asked:
                where = f"messages.{number}.content.{place}"
                rule = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                yield f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {found}. {rule}"
        if len(leading) > len(set(leading)):
            text = f"messages.{number}.content.{len(leading) - 1}: each tool_use must have a single result."
            yield f"{text} Found multiple `tool_result` blocks with id: {leading[-1]}"
        asked = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if known.intersection(asked) or len(set(asked)) < len(asked):
            yield f"messages.{number}: `tool_use` ids must be unique"
        known.update(asked)
    if asked:
        yield _without_results(len(messages) - 1, asked)


def _without_results(number: int, missing: Sequence[str]) -> str:
    text = f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after:"
    rule = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    return f"{text} {', '.join(missing)}. {rule}"


def _reference_problems(messages: Sequence[Json], declared: set[str]) -> Iterator[str]:
    for number, message in enumerate(messages):
        for place, block in enumerate(blocks_of(message)):
            if block.get("type") in ("tool_addition", "tool_removal"):
                name = str((block.get("tool") or {}).get("name"))
                if name not in declared:
                    yield f"messages.{number}.content.{place}: Tool reference '{name}' not found in available tools"


def blocks_of(message: Json) -> list[Json]:
    """Return the blocks of a message's content."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [cast("Json", block) for block in content or () if isinstance(block, Mapping)]


def _breakpoints(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_breakpoints, cast("list[Any]", value)))
    if not isinstance(value, Mapping):
        return 0
    block = cast("Json", value)
    return (block.get("cache_control") is not None) + _breakpoints(block.get("content"))
