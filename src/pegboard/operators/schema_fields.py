"""What a person fills in for the properties of a JSON schema, and what is wrong with it (A3, X2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.board.services import Services
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.operators.masked import Name, Verbatim

_AROUND: Final = ("$schema", "$id", "$defs", "definitions", "type")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOverview:
    """One field that a person fills in.

    Attributes:
        name: its name.
        title: its title, or nothing.
        description: what it is for, or nothing.
        type: ``string``, ``integer``, ``number``, ``boolean``, or ``json`` for any other value, written as JSON.
        choices: the texts that it may be, none where it may be any.
        required: whether it must be filled in.
        text: what it is where no one changes it.
    """

    name: Name
    title: str
    description: str
    type: Verbatim
    choices: tuple[Name, ...]
    required: bool
    text: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """What is wrong with what someone filled in for a field."""

    name: Name
    text: str


async def field_problems(
    services: Services, title: str, schema: JsonObject, given: Mapping[str, Any]
) -> tuple[FieldProblem, ...]:
    """Return what is wrong with what was filled in, each with the field that it is about.

    Args:
        given: what was filled in, by name; what was left empty is not there.
    """
    required, problems = _required_names(schema), list[FieldProblem]()
    for name, part in properties_of(schema).items():
        if name not in given:
            problems += [FieldProblem(name=name, text="A value is required.")] if name in required else []
            continue
        # What ties several properties to each other says nothing of one alone.
        around = {key: schema[key] for key in _AROUND if key in schema}
        alone: JsonObject = {**around, "properties": {name: part}, "required": list[str]()}
        form = Tool(plugin="", name=name, wire=f"{title} (field {name})", input_schema=alone)
        try:
            texts = await services.validator.problems(form, {name: given[name]})
        except ToolUnavailableError as error:
            texts = [error.text]
        problems += [FieldProblem(name=name, text=text.removeprefix(f"argument '{name}': ")) for text in texts]
    return tuple(problems)


def fields_of(schema: JsonObject) -> Iterator[FieldOverview]:
    """Yield a field for each property of a schema."""
    required = _required_names(schema)
    for name, part in properties_of(schema).items():
        choices = part.get("enum")
        texts = cast("list[Any]", choices) if isinstance(choices, list) else []
        untyped = "string" if texts and all(isinstance(text, str) for text in texts) else ""
        kind = types_of(part).removesuffix(" or null") or untyped
        plain = kind in ("string", "integer", "number", "boolean")
        yield FieldOverview(
            name=name,
            title=text_of(part, "title"),
            description=text_of(part, "description"),
            type=kind if plain else "json",
            choices=tuple(text for text in texts if isinstance(text, str)) if kind == "string" else (),
            required=name in required,
            text=value_text(default) if (default := part.get("default")) is not None else "",
        )


def properties_of(schema: JsonObject) -> dict[str, JsonObject]:
    """Return the properties of a schema; what is no schema is an empty one."""
    found: object = schema.get("properties")
    parts: Mapping[str, object] = cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}
    return {name: cast("JsonObject", part) if isinstance(part, Mapping) else {} for name, part in parts.items()}


def _required_names(schema: JsonObject) -> tuple[str, ...]:
    found: object = schema.get("required")
    return tuple(map(str, cast("list[object]", found))) if isinstance(found, list) else ()


def text_of(schema: JsonObject, name: str) -> str:
    """Return a text of a schema, or nothing."""
    found = schema.get(name)
    return found if isinstance(found, str) else ""


def types_of(schema: JsonObject) -> str:
    """Return the JSON types that a schema names."""
    match schema:
        case {"type": str(name)}:
            return name
        case {"type": [*names]}:
            return " or ".join(map(str, names))
        case {"anyOf": [*parts]} | {"oneOf": [*parts]}:
            found = (types_of(cast("JsonObject", part)) for part in parts if isinstance(part, Mapping))
            return " or ".join(dict.fromkeys(filter(None, found)))
        case _:
            return ""


def value_text(value: Any) -> str:
    """Return a value as text: a string as it is, anything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
