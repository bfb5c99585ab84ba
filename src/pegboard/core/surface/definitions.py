"""The definitions of tools in texts that a model reads: what it needs to call them, and what a text defines already."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pegboard.core.model.naming import first_sentence, one_line
from pegboard.core.model.tools import EMPTY, JsonObject, Tool

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_OF_A_SCHEMA: Final = frozenset({"$schema", "additionalProperties", "properties", "required", "title", "type"})
_OF_AN_ARGUMENT: Final = frozenset({"default", "description", "enum", "items", "title", "type"})
_MOST_CHARACTERS: Final = 40
"""How long the values of a required argument are at most, for them to stand in a result that is not loaded."""

Texts = Literal["whole", "first sentence", "none"]
"""How much of the description of an optional argument is given."""


def brief_schema(schema: JsonObject, optional: Texts = "whole") -> dict[str, Any] | None:
    """Return the arguments by name, ``?`` behind those that are optional: type or values, default, description.

    An argument that takes more to describe keeps its own schema, and a schema of which more than arguments is stated
    has no brief form. With less than the whole text of optional arguments, such an argument has its type alone.

    >>> brief_schema({"type": "object", "required": ["city"], "properties": {
    ...     "city": {"type": "string", "description": "Where."}, "days": {"type": "integer", "default": 3},
    ...     "unit": {"enum": ["c", "f"]}, "box": {"type": "object", "minProperties": 1}}})
    {'city': 'string: Where.', 'days?': 'integer = 3', 'unit?': 'c|f', 'box?': {'type': 'object', 'minProperties': 1}}
    >>> brief_schema({"properties": {"days": {"type": "integer", "description": "All. At most 9."}}}, "first sentence")
    {'days?': 'integer: All.'}
    """
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if schema.keys() - _OF_A_SCHEMA or not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
        return None
    if isinstance(schema.get("additionalProperties"), Mapping):
        return None
    known = cast("Mapping[str, Any]", properties)
    return {
        name if name in required else f"{name}?": _brief_argument(argument, "whole" if name in required else optional)
        for name, argument in known.items()
    }


def _brief_argument(argument: Any, texts: Texts) -> Any:
    """Return an argument as one text, or as it is where that would lose something that was asked for."""
    if not isinstance(argument, Mapping):
        return argument
    read = cast("Mapping[str, Any]", argument)
    kind, default = _kind(read), read.get("default")
    if not kind or read.keys() - _OF_AN_ARGUMENT or isinstance(default, dict | list | tuple):
        return read if texts == "whole" else str(read.get("type") or "any")
    if default is not None:
        kind = f"{kind} = {default}"
    description = "" if texts == "none" else one_line(str(read.get("description") or ""))
    text = description if texts == "whole" else first_sentence(description)
    return f"{kind}: {text}" if text else kind


def _kind(argument: Mapping[str, Any]) -> str:
    """Return the type of an argument, or its values; nothing where one word cannot state it."""
    values: object = argument.get("enum")
    if values is not None:
        return _values(values)
    kind: object = argument.get("type")
    if kind == "array":
        return _array(argument.get("items"))
    if isinstance(kind, list | tuple):
        kinds = cast("Sequence[object]", kind)
        return "|".join(map(str, kinds)) if all(one in _TYPES for one in kinds) else ""
    return kind if isinstance(kind, str) and kind in _TYPES and "items" not in argument else ""


def _array(items: object) -> str:
    if not isinstance(items, Mapping | None) or (items and items.keys() - {"type", "enum"}):
        return ""
    of = _kind(cast("Mapping[str, Any]", items)) if items else "any"
    return f"({of})[]" if "|" in of else f"{of}[]" if of else ""


def _values(values: object) -> str:
    """Return the values that an argument may have, where they cannot be taken for types or for each other."""
    if not isinstance(values, list | tuple) or not values:
        return ""
    texts = cast("Sequence[object]", values)
    plain = all(isinstance(text, str) and text.isprintable() and not set("|:=") & {*text} for text in texts)
    return "|".join(map(str, texts)) if plain and not _TYPES.intersection(map(str, texts)) else ""


def required_arguments(schema: JsonObject) -> tuple[str, ...]:
    """Return the names of required arguments, each with its type (where it is no string) or its few values.

    >>> required_arguments({"properties": {"city": {"type": "string"}, "days": {"type": "integer"},
    ...     "unit": {"enum": ["c", "f"]}}, "required": ["city", "days", "unit"]})
    ('city', 'days: integer', 'unit: c|f')
    """
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(required, list | tuple):
        return ()
    known = cast("Mapping[str, Any]", properties if isinstance(properties, Mapping) else {})
    names = [name for name in cast("Sequence[object]", required) if isinstance(name, str)]
    return tuple(_required_argument(one_line(name), known.get(name)) for name in names)


def _required_argument(name: str, argument: object) -> str:
    if not isinstance(argument, Mapping):
        return name
    read = cast("Mapping[str, Any]", argument)
    kind = _kind(read)
    if not kind or len(kind) > _MOST_CHARACTERS:
        kind = str(read.get("type", "")) if read.get("type") in _TYPES else ""
    return name if kind in ("", "string") else f"{name}: {kind}"


_BEGINS: Final = re.compile(r'\{"name":\s?"')
DEFINING: Final = frozenset({"activate_tool", "invokeother_tool", "load_tools", "search_tools"})
"""The meta-tools whose answers define tools; what any other tool returns defines nothing."""
AHEAD: Final = "Loaded, to be called through call_tool:"
"""How a text begins that defines what is loaded ahead."""
_DECODER: Final = json.JSONDecoder()
_ARGUMENTS: Final = ("arguments", "inputSchema")


def definition(tool: Tool, texts: Texts = "whole") -> JsonObject:
    """Return what a model needs to call a tool, its schema in the brief form where it has one."""
    description = tool.description if texts == "whole" else first_sentence(tool.description)
    arguments = brief_schema(tool.input_schema, texts)
    if arguments is None:
        return {"description": description, "inputSchema": tool.input_schema}
    return {"description": description, "arguments": arguments}


def definitions(tools: Iterable[Tool], before: Iterable[Tool] = ()) -> list[JsonObject]:
    """Return definitions that stand in one text, with their names.

    What is stated of an argument stands once: where an argument of the same name has the same description in one of
    the tools ``before`` it, it has its type alone.
    """
    stated = {pair for tool in before for pair in _descriptions(tool)}
    found: list[JsonObject] = []
    for tool in tools:
        whole = definition(tool)
        brief: Mapping[str, Any] = whole.get("arguments", EMPTY)
        if brief:
            own = dict(_descriptions(tool))
            whole = {**whole, "arguments": {name: _brief_once(name, text, own, stated) for name, text in brief.items()}}
            stated.update(own.items())
        found.append({"name": tool.wire, **whole})
    return found


def _descriptions(tool: Tool) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a tool with their descriptions."""
    properties: Any = tool.input_schema.get("properties")
    for name, argument in cast("Mapping[str, Any]", properties if isinstance(properties, Mapping) else EMPTY).items():
        if isinstance(argument, Mapping):
            text = one_line(str(cast("Mapping[str, Any]", argument).get("description") or ""))
            if text:
                yield name, text


def _brief_once(name: str, brief: Any, own: Mapping[str, str], stated: set[tuple[str, str]]) -> Any:
    """Return an argument in its brief form, without a description that is stated already."""
    key = name.removesuffix("?")
    text = own.get(key, "")
    known = isinstance(brief, str) and (key, text) in stated
    return cast("str", brief).removesuffix(f": {text}") if known else brief


def definitions_ahead(tools: Iterable[Tool]) -> str:
    """Return the definitions of tools that are loaded ahead, for the end of a history; nothing without any (S5)."""
    defined = definitions(tools)
    return f"{AHEAD} {json.dumps(defined, ensure_ascii=False, separators=(',', ':'))}" if defined else ""


@lru_cache(maxsize=256)
def defined_in(text: str) -> Mapping[str, JsonObject]:
    """Return the definitions that stand in a text, by the names of their tools; a history has the same texts again."""
    return dict(_find_definitions(text))


def all_defined_in(texts: Iterable[str]) -> Mapping[str, JsonObject]:
    """Return the definitions that stand in texts, by the names of their tools; the newest of a name counts."""
    return {name: found for text in texts for name, found in defined_in(text).items()}


def _find_definitions(text: str) -> Iterator[tuple[str, JsonObject]]:
    for begins in _BEGINS.finditer(text):
        try:
            found, _ = _DECODER.raw_decode(text, begins.start())
        except ValueError:
            continue
        if "description" in found and any(key in found for key in _ARGUMENTS):
            yield str(found["name"]), found


def is_definition_of(found: JsonObject | None, tool: Tool) -> bool:
    """Return whether a definition that was found in a text is that of a tool as it is now."""
    now = definition(tool)
    if found is None or found.get("description") != now["description"]:
        return False
    before, arguments = found.get("arguments"), now.get("arguments")
    if before is None and found.get("inputSchema") == tool.input_schema:
        return True
    if not isinstance(before, Mapping) or not isinstance(arguments, Mapping):
        return found.get("inputSchema") == now.get("inputSchema") and before == arguments
    known, brief = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", arguments)
    return known.keys() == brief.keys() and all(_is_same_argument(known[name], text) for name, text in brief.items())


def not_defined(tools: Iterable[Tool], known: Mapping[str, JsonObject], called: Collection[str] = ()) -> list[Tool]:
    """Return those of some loaded tools of which a history says nothing that a model could call them by.

    Args:
        tools: what is loaded and is in no list.
        known: the definitions that the history has.
        called: the names of tools that the history has calls of.
    """
    return [tool for tool in tools if tool.wire not in called and not is_definition_of(known.get(tool.wire), tool)]


def _is_same_argument(before: Any, now: Any) -> bool:
    """Return whether an argument is the same; its description may stand elsewhere."""
    both = isinstance(before, str) and isinstance(now, str)
    return before == now or (both and cast("str", now).startswith(f"{before}: "))
