"""What OpenAI and Gemini refuse of a tool: names, schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pegboard.testing.providers.replies import ProviderRefusal

MOST_TOOLS: Final = 128
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_NAME: Final = 64
_AT_NO_ROOT: Final = ("oneOf", "anyOf", "allOf", "enum", "const", "not")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")

Path = tuple[str | int, ...]


def parts_within(schema: Any, path: Path = ()) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield a schema and each one within it, with its place."""
    if not isinstance(schema, Mapping):
        return
    known = cast("Mapping[str, Any]", schema)
    yield path, known
    for key, value in known.items():
        within: list[tuple[str | int, Any]] = []
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            within = list(cast("Mapping[str, Any]", value).items())
        elif key in _LISTED and isinstance(value, list):
            within = [(str(number), part) for number, part in enumerate(cast("list[Any]", value))]
        elif key in ("items", "additionalProperties", "not"):
            yield from parts_within(value, (*path, key))
        for name, part in within:
            yield from parts_within(part, (*path, key, name))


def tools_refusal(tools: Sequence[Mapping[str, Any]], place: str, inside: str) -> ProviderRefusal | None:
    """Return what OpenAI refuses of the functions of a request, or None.

    Args:
        tools: the functions: ``name``, ``description``, ``parameters``, ``strict``.
        place: where the list is in the request, ``tools``.
        inside: what stands between an element and its fields, ``.function`` in Chat Completions.
    """
    if len(tools) > MOST_TOOLS:
        text = (
            f"Invalid '{place}': array too long. Expected an array with maximum length {MOST_TOOLS}, but got an array"
        )
        return ProviderRefusal(
            text=f"{text} with length {len(tools)} instead.", param=place, code="array_above_max_length"
        )
    for number, tool in enumerate(tools):
        where = f"{place}[{number}]{inside}"
        refused = _name_refusal(str(tool.get("name", "")), f"{where}.name")
        refused = refused or _description_refusal(tool.get("description"), f"{where}.description", inside)
        refused = refused or _schema_refusal(tool, f"{where}.parameters")
        if refused is not None:
            return refused
    return None


def _name_refusal(name: str, where: str) -> ProviderRefusal | None:
    if not _NAME.fullmatch(name):
        text = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        return ProviderRefusal(text=f"Invalid '{where}': {text}", param=where, code="invalid_value")
    return _too_long(name, where, _LONGEST_NAME)


def _description_refusal(text: object, where: str, inside: str) -> ProviderRefusal | None:
    return _too_long(text, where, 1024) if inside and isinstance(text, str) else None


def _too_long(text: str, where: str, longest: int) -> ProviderRefusal | None:
    if len(text) <= longest:
        return None
    said = f"Expected a string with maximum length {longest}, but got a string with length {len(text)} instead."
    return ProviderRefusal(
        text=f"Invalid '{where}': string too long. {said}", param=where, code="string_above_max_length"
    )


def _schema_refusal(tool: Mapping[str, Any], where: str) -> ProviderRefusal | None:
    schema: Any = tool.get("parameters")
    if schema is None:
        return None
    for said in _schema_problems(schema, strict=tool.get("strict") is True):
        text = f"Invalid schema for function '{tool['name']}': {said}"
        return ProviderRefusal(text=text, param=where, code="invalid_function_parameters")
    return None


def _schema_problems(schema: Any, *, strict: bool) -> Iterator[str]:
    """Yield what OpenAI says of a schema."""
    if not isinstance(schema, Mapping) or any(key in schema for key in _AT_NO_ROOT):
        listed = "/".join(f"'{key}'" for key in _AT_NO_ROOT)
        yield f"schema must have type 'object' and not have {listed} at the top level."
        return
    root = cast("Mapping[str, Any]", schema)
    if root.get("type") != "object":
        kind = "None" if root.get("type") is None else str(root.get("type"))
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if "properties" not in root:
        yield "In context=(), object schema missing properties."
    for path, part in parts_within(root):
        kinds = part.get("type")
        is_array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
        if is_array and "items" not in part:
            yield f"In context={path!r}, array schema missing items."
        elif "items" in part and not isinstance(part["items"], Mapping):
            yield f"In context={(*path, 'items')!r}, {part['items']!r} is not of type 'object', 'boolean'."
        if strict and (part.get("type") == "object" or "properties" in part):
            yield from _strict_problems(path, part)


def _strict_problems(path: Path, part: Mapping[str, Any]) -> Iterator[str]:
    """Yield what OpenAI says of an object in a schema that is strict."""
    if part.get("additionalProperties") is not False:
        yield f"In context={path!r}, 'additionalProperties' is required to be supplied and to be false."
    missing = [name for name in part.get("properties", ()) if name not in part.get("required", ())]
    if missing:
        needed = "'required' is required to be supplied and to be an array including every key in properties."
        yield f"In context={path!r}, {needed} Missing '{missing[0]}'."
