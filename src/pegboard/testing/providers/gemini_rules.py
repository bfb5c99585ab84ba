"""What Gemini refuses in its OpenAI form, in its words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pegboard.testing.providers.replies import ProviderRefusal
from pegboard.testing.providers.tool_rules import Path, parts_within
from pegboard.wire.gemini_schemas import FORMATS, KEYWORDS

Json = Mapping[str, Any]
_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_TAKEN_BESIDE: Final = frozenset({"$schema", "additionalProperties"})
_RULE_OF_NAMES: Final = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_PARTS: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)


def gemini_refusal(body: Json) -> ProviderRefusal | None:
    """Return what is refused of a request, or None."""
    said = next(_problems(body), None)
    return None if said is None else ProviderRefusal(text=said)


def _problems(body: Json) -> Iterator[str]:
    functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
    for number, function in enumerate(functions):
        where = f"GenerateContentRequest.tools[0].function_declarations[{number}]"
        if not _NAME.fullmatch(str(function.get("name", ""))):
            yield f"* {where}.name: {_RULE_OF_NAMES}\n"
        for path, part in parts_within(function.get("parameters") or {}):
            yield from _schema_problems(number, where, path, part)
    yield from _message_problems(body.get("messages") or (), signed="gemini-3" in str(body.get("model")).casefold())


def _schema_problems(number: int, where: str, path: Path, part: Json) -> Iterator[str]:
    place = f"{where}.parameters{_path_as_written(path)}"
    for key in part:
        if key not in KEYWORDS | _TAKEN_BESIDE:
            at = f"tools[0].function_declarations[{number}].parameters{_path_as_written(path)}"
            yield f"Invalid JSON payload received. Unknown name \"{key}\" at '{at}': Cannot find field."
    kind = part.get("type")
    if isinstance(kind, list):
        yield f"Invalid value at '{place}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), {kind}"
    if kind is None and not part.get("anyOf"):
        yield f"* {place}.type: must be specified when not using one_of, any_of or all_of fields\n"
    if kind == "array" and "items" not in part:
        yield f"* {place}.items: missing field.\n"
    if "enum" in part and (kind != "string" or not all(isinstance(value, str) for value in part["enum"])):
        yield f"* {place}.enum: only allowed for STRING type\n"
    if kind == "string" and part.get("format") not in (None, "enum", "date-time"):
        yield f"* {place}.format: only 'enum' and 'date-time' are supported for STRING type\n"
    elif part.get("format") not in (None, *FORMATS):
        yield f"* {place}.format: unsupported format\n"
    for name in part.get("required", ()):
        if name not in part.get("properties", ()):
            yield f"* {place}.required[0]: property is not defined\n"


def _path_as_written(path: Path) -> str:
    """Return a place as Gemini writes it: ``.properties[at].items``."""
    parts: list[str] = []
    for before, name in zip(("", *path), path, strict=False):
        parts.append(f"[{name}]" if before in ("properties", "anyOf", "$defs") else f".{name}")
    return "".join(parts)


def _message_problems(messages: Sequence[Json], *, signed: bool) -> Iterator[str]:
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                yield _PARTS
            else:
                waiting.remove(str(message["tool_call_id"]))
            continue
        if waiting:
            yield _PARTS
        calls: Sequence[Json] = message.get("tool_calls") or ()
        for place, call in enumerate(calls):
            yield from _call_problems(number, place, call, signed=signed)
        waiting = [str(call.get("id")) for call in calls]
    if waiting:
        yield _PARTS


def _call_problems(number: int, place: int, call: Json, *, signed: bool) -> Iterator[str]:
    function: Json = call.get("function") or {}
    try:
        read = json.loads(function.get("arguments") or "")
    except ValueError:
        read = None
    if not isinstance(read, dict):
        yield "Request contains an invalid argument."
    google: Json = (call.get("extra_content") or {}).get("google") or {}
    if signed and place == 0 and not google.get("thought_signature"):
        text = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
        name = function.get("name")
        yield f"{text} correctly. Additional data, function call `default_api:{name}` , position {number + 1}."
