"""The schema of a tool's arguments as one object: no provider takes a choice or a reference at its root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from pegboard.core.model.tools import JsonObject

UNIONS: Final = ("anyOf", "oneOf", "allOf")
_AT_NO_ROOT: Final = (*UNIONS, "enum", "const", "not")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTED: Final = (*UNIONS, "prefixItems")
_MOST_MERGED: Final = 200
"""How many schemas are merged into one object at most."""
_SINGLE: Final = ("items", "additionalProperties", "not", "propertyNames", "contains", "if", "then", "else")


def parts_of_schema(schema: Any, change: Callable[[Any], Any]) -> Any:
    """Return a schema with each schema within it as ``change`` returns it; the same one where all are the same.

    Args:
        schema: the schema; what is no mapping is returned as it is.
        change: takes a schema that stands directly within this one.
    """
    if not isinstance(schema, Mapping):
        return schema
    known = cast("Mapping[str, Any]", schema)
    made: dict[str, Any] = {}
    for key, value in known.items():
        if key in _NAMED and isinstance(value, Mapping):
            made[key] = _unchanged_or(value, {name: change(part) for name, part in cast("JsonObject", value).items()})
        elif (key in _LISTED or key == "items") and isinstance(value, list | tuple):
            parts = cast("Sequence[Any]", value)
            changed = [change(part) for part in parts]
            same = all(new is old for new, old in zip(changed, parts, strict=True))
            made[key] = value if same and isinstance(value, list) else changed
        else:
            made[key] = change(value) if key in _SINGLE and isinstance(value, Mapping) else value
    return known if isinstance(known, dict) and all(made[key] is known[key] for key in made) else made


def _unchanged_or(before: Any, made: dict[str, Any]) -> Any:
    return before if all(made[key] is before[key] for key in made) else made


def target_of(reference: object, root: JsonObject) -> JsonObject | None:
    """Return the schema within a root that a reference names, or None."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for part in reference[1:].split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        found = cast("JsonObject", found).get(step) if isinstance(found, Mapping) else None
    return cast("JsonObject", found) if isinstance(found, Mapping) else None


def as_one_object(schema: JsonObject, changes: list[str]) -> tuple[str, JsonObject]:
    """Return what is to be read beside a schema, and the schema as one object.

    Args:
        schema: the schema of a tool's arguments.
        changes: takes in what had to be changed.
    """
    beside: list[str] = []
    made = _Merger(schema, beside).flatten(schema, ())
    if made is not schema:
        changes.append("its schema is one object in place of a choice or a reference")
    if made.get("type") != "object":
        if made:
            changes.append("its schema is that of an object")
        made = {**made, "type": "object"}
    return " ".join(dict.fromkeys(beside)), made


def with_properties(schema: JsonObject) -> JsonObject:
    """Return the schema of an object that names its properties, also where there are none."""
    known = schema.get("properties")
    return schema if isinstance(known, Mapping) else {**schema, "properties": {}}


class _Merger:
    """What merges references and choices at the root of one schema."""

    def __init__(self, root: JsonObject, beside: list[str]) -> None:
        self._root, self._beside = root, beside
        self._left = _MOST_MERGED

    def flatten(self, schema: JsonObject, above: tuple[str, ...]) -> JsonObject:
        """Return a schema into which what is at its root is merged; ``above`` are the references behind it."""
        self._left -= 1
        reference = str(schema.get("$ref", ""))
        if reference in above or self._left < 0:
            return {"type": "object"}
        if reference and (target := target_of(reference, self._root)) is not None:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self.flatten({**target, **rest}, (*above, reference))
        if not any(key in schema for key in _AT_NO_ROOT):
            return schema
        made = {key: value for key, value in schema.items() if key not in _AT_NO_ROOT}
        properties: dict[str, Any] = dict(_as_mapping(made.get("properties")))
        required: list[str] = list(made.get("required") or ())
        for union in UNIONS:
            parts = schema.get(union)
            given = cast("Sequence[Any]", parts) if isinstance(parts, list | tuple) else ()
            branches = [self.flatten(cast("JsonObject", one), above) for one in given if isinstance(one, Mapping)]
            for branch in branches:
                for name, part in _as_mapping(branch.get("properties")).items():
                    properties[name] = _merge_alternatives(properties[name], part) if name in properties else part
            needed = [[name for name in branch.get("required") or () if name not in required] for branch in branches]
            if union == "allOf":
                required += dict.fromkeys(name for names in needed for name in names)
            elif needed:
                common = [name for name in needed[0] if all(name in names for names in needed)]
                required += common
                self._beside += _rule(union, [[name for name in names if name not in common] for names in needed])
        made |= {"properties": properties} if properties else {}
        return {**made, "required": required} if required else made


def _rule(union: str, needed: Sequence[Sequence[str]]) -> list[str]:
    """Return what a choice demands that its properties do not say."""
    if not all(needed):
        return []
    groups = "; ".join(" and ".join(names) for names in needed)
    return [f"Give {'exactly' if union == 'oneOf' else 'at least'} one of: {groups}."]


def _merge_alternatives(one: Any, other: Any) -> Any:
    if one == other or not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return one
    first = cast("JsonObject", one)
    known = first["anyOf"] if first.keys() == {"anyOf"} else [first]
    return first if other in known else {"anyOf": [*known, other]}


def _as_mapping(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}
