"""Definitions of tools as each provider of models takes them: the one place that repairs a schema.

A provider refuses a whole request for one schema. What it would refuse is changed before it is sent: the session still
checks arguments against the tool's own schema (X2). Every repair is listed in ``docs/frameworks.md``.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pegboard.core.model.array_schemas import items_beside
from pegboard.core.model.tools import Frozen, JsonObject, Tool
from pegboard.wire.gemini_schemas import as_gemini_takes
from pegboard.wire.root_schemas import as_one_object, parts_of_schema, with_properties

SchemaProvider = Literal["anthropic", "responses", "chat", "gemini", "any"]
"""Whose rules count; ``any`` are those that all of them have."""
LONGEST_DESCRIPTION: Final[Mapping[str, int]] = {"chat": 1024}
"""How many characters the description of a tool has at most."""
_ARGUMENT_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_.-]+")
_RENAMED: Final = re.compile(r"_[0-9a-f]{6}$")
_SENTENCE_ENDS: Final = re.compile(r"[.!?](?=\s)|\n")
_ARRAY: Final = "an array has 'items' for all of its places"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptableSchema:
    """A schema as a provider takes it, what its description has to say besides, and what was changed."""

    schema: JsonObject
    beside: str = ""
    changes: tuple[str, ...] = ()


def provider_of(form: str, model: str) -> SchemaProvider:
    """Return whose rules count for a model, which may be reached by another provider's form.

    Args:
        form: ``anthropic``, ``responses``, ``chat``, or anything else where it is not known.
        model: the name of the model, with or without its provider in front.

    >>> provider_of("chat", "gpt-5.4"), provider_of("chat", "models/gemini-3-pro"), provider_of("", "test")
    ('chat', 'gemini', 'any')
    """
    name = model.casefold()
    if "gemini" in name:
        return "gemini"
    if "claude" in name or form == "anthropic":
        return "anthropic"
    return cast("SchemaProvider", form) if form in ("responses", "chat") else "any"


def tool_for_provider(tool: Tool, provider: SchemaProvider) -> tuple[Tool, tuple[str, ...]]:
    """Return a tool as a provider takes it, the same one where nothing has to change, and what was changed.

    >>> point = {"type": "object", "properties": {"at": {"type": "array", "prefixItems": [{"type": "number"}]}}}
    >>> taken, changes = tool_for_provider(Tool(plugin="map", name="pin", input_schema=Frozen(point)), "chat")
    >>> taken.input_schema["properties"]["at"]["items"], changes
    ({'type': 'number'}, ("an array has 'items' for all of its places",))
    """
    found = _find_acceptable(tool.input_schema, provider) if isinstance(tool.input_schema, Frozen) else None
    found = found or _repair_schema(tool.input_schema, provider)
    description = f"{tool.description}\n{found.beside}".strip() if found.beside else tool.description
    changes, longest = found.changes, LONGEST_DESCRIPTION.get(provider)
    if longest is not None and len(description) > longest:
        description = _shorten_text(description, longest)
        changes = (*changes, f"its description is cut to {longest:,} characters")
    if found.schema is tool.input_schema and description is tool.description:
        return tool, ()
    return replace(tool, input_schema=found.schema, description=description), changes


def original_arguments(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Return arguments under the names that the tool itself has for them.

    Args:
        tool: whose call it is.
        arguments: as a model wrote them, which may know them by other names.
    """
    names = {renamed: name for name in _names_in(tool.input_schema) if (renamed := _taken_name(name)) != name}
    return cast("JsonObject", _with_names(arguments, names)) if names else arguments


@lru_cache(maxsize=4096)
def _find_acceptable(schema: Frozen, provider: SchemaProvider) -> AcceptableSchema:
    """Return what is found of a schema: its value is never edited, so that this is asked once."""
    return _repair_schema(schema, provider)


def _repair_schema(schema: JsonObject, provider: SchemaProvider) -> AcceptableSchema:
    try:
        changes: list[str] = []
        beside, taken = as_one_object(schema, changes)
        taken = _with_items(taken, changes)
        if provider == "anthropic":
            taken = _with_taken_names(taken, changes)
        elif provider == "gemini":
            taken = as_gemini_takes(taken, changes)
        else:
            taken = with_properties(taken)
    except RecursionError:  # no provider takes a schema of such a depth
        return AcceptableSchema(schema=schema)
    made = schema if taken is schema else Frozen(taken)
    return AcceptableSchema(schema=made, beside=beside, changes=tuple(dict.fromkeys(changes)))


def _with_items(schema: Any, changes: list[str]) -> Any:
    """Return a schema whose arrays have one schema for all of their places, whatever they have for each."""
    schema = parts_of_schema(schema, lambda part: _with_items(part, changes))
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    kind, items, places = parts.get("type"), parts.get("items"), parts.get("prefixItems")
    if isinstance(items, list):  # as drafts before 2020-12 wrote places
        changes.append(_ARRAY)
        listed, after = cast("list[Any]", items), parts.get("additionalItems")
        rest = {key: value for key, value in parts.items() if key not in ("items", "additionalItems")}
        rest = {**rest, "maxItems": len(listed)} if after is False and "maxItems" not in rest else rest
        return {**rest, "prefixItems": listed, "items": items_beside(listed)}
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind) or isinstance(places, list)
    if not is_array or isinstance(items, dict):
        return parts
    changes.append(_ARRAY)
    known = cast("list[Any]", places) if isinstance(places, list) else []
    if items is False and "maxItems" not in parts:
        parts = {**parts, "maxItems": len(known)}
    return {**parts, "items": items_beside(known)}


def _with_taken_names(schema: Any, changes: list[str]) -> Any:
    """Return a schema whose arguments have names that the provider takes; each is titled by its own."""
    schema = parts_of_schema(schema, lambda part: _with_taken_names(part, changes))
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, Mapping):
        return schema
    named = {str(name): _taken_name(str(name)) for name in cast("Mapping[str, Any]", properties)}
    changed = {name: taken for name, taken in named.items() if name != taken}
    if not changed:
        return schema
    changes += [f"the argument {name!r} is called {taken!r}" for name, taken in changed.items()]
    made: dict[str, Any] = {**schema, "properties": {}}
    for name, part in cast("Mapping[str, Any]", properties).items():
        about = {"title": name, **part} if name in changed and isinstance(part, Mapping) else part
        made["properties"][named[name]] = about
    if isinstance(made.get("required"), list | tuple):
        made["required"] = [named.get(name, name) for name in made["required"]]
    made.pop("dependentRequired", None)
    made.pop("dependentSchemas", None)
    return made


def _taken_name(name: str) -> str:
    """Return the name of an argument as every provider takes it: it ends in a digest where it had to be changed.

    >>> _taken_name("city"), _taken_name("größe")
    ('city', 'groe_d353a2')
    """
    if _ARGUMENT_NAME.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:6]
    return f"{_NOT_IN_NAMES.sub('_', plain).strip('_')[:50] or 'argument'}_{digest}"


def _names_in(schema: Any) -> list[str]:
    """Return the names of all arguments of a schema, those within others too."""
    found: list[str] = []

    def collect_names(part: Any) -> Any:
        found.extend(_names_in(part))
        return part

    parts_of_schema(schema, collect_names)
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return [*found, *map(str, cast("Mapping[str, Any]", properties))] if isinstance(properties, Mapping) else found


def has_renamed(value: Any) -> bool:
    """Return whether the name of an argument, at any depth, looks like one that was changed for a provider."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return any((isinstance(key, str) and bool(_RENAMED.search(key))) or has_renamed(part) for key, part in pairs)
    return isinstance(value, list | tuple) and any(map(has_renamed, cast("Sequence[Any]", value)))


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {names.get(key, key): _with_names(part, names) for key, part in pairs}
    if isinstance(value, list | tuple):
        return [_with_names(part, names) for part in cast("Sequence[Any]", value)]
    return value


def _shorten_text(text: str, longest: int) -> str:
    """Return the beginning of a text that is too long: to the end of a sentence, where one ends in its second half."""
    room = text[: longest - 2]
    ends = [found.end() for found in _SENTENCE_ENDS.finditer(room)]
    end = ends[-1] if ends and ends[-1] > longest // 2 else max(room.rfind(" "), longest // 2)
    return f"{room[:end].rstrip()} …"
