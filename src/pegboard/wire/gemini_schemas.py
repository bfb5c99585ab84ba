"""Schemas as Gemini takes them, also by its OpenAI form: the keywords of its own ``Schema``, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pegboard.core.model.tools import JsonObject
from pegboard.wire.root_schemas import UNIONS, target_of

KEYWORDS: Final = frozenset(
    {
        *("anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength"),
        *("maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern"),
        *("properties", "propertyOrdering", "required", "title", "type"),
    }
)
FORMATS: Final = frozenset({"date-time", "double", "enum", "float", "int32", "int64"})
_UNCHANGED_MEANING: Final = frozenset({"$comment", "$defs", "$id", "$schema", "additionalProperties", "definitions"})
"""What is not sent and says nothing that a model has to know."""
_MOST_PARTS: Final = 2_000
"""How many parts a schema has at most once its references are written out."""


def as_gemini_takes(schema: JsonObject, changes: list[str]) -> JsonObject:
    """Return a schema with Gemini's keywords alone.

    Args:
        schema: a schema whose arrays have ``items``.
        changes: takes in what a model reads no more.
    """
    writer = _Writer(schema)
    made = writer.schema_within_root(schema, ())
    if writer.dropped:
        changes.append(f"Gemini does not take {', '.join(sorted(writer.dropped))}, which it is sent without")
    return schema if made == schema else made


class _Writer:
    """What writes one schema again."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MOST_PARTS
        self.dropped: set[str] = set()
        """The keywords that are not sent."""

    def schema_within_root(self, schema: Any, above: tuple[str, ...]) -> dict[str, Any]:
        """Return a schema within the root, with what its references name in their places.

        Args:
            schema: the part.
            above: the references that it is behind; one that leads back is an object of any kind.
        """
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0:
            return {"type": "string" if self._left >= 0 else "object"}
        known = dict(cast("JsonObject", schema))
        reference = str(known.pop("$ref", ""))
        if reference in above:
            return {"type": "object"}
        if (target := target_of(reference, self._root)) is not None:
            return self.schema_within_root({**target, **known}, (*above, reference))
        for part in cast("Sequence[Any]", known.pop("allOf", ())):
            inner = target_of(part.get("$ref"), self._root) or part
            merged = {**known.get("properties", {}), **inner.get("properties", {})}
            known = {**inner, **known, **({"properties": merged} if merged else {})}
        made = {key: value for key, value in known.items() if key in KEYWORDS and key not in ("enum", *UNIONS)}
        if made.get("format") not in (None, *FORMATS):
            del made["format"]
        self.dropped |= known.keys() - made.keys() - _UNCHANGED_MEANING - {"const", "enum", "format", *UNIONS}
        self._type(made, known, above)
        _values(made, known)
        if isinstance(made.get("properties"), Mapping):
            made["properties"] = {
                str(name): self.schema_within_root(part, above) for name, part in made["properties"].items()
            }
            made["required"] = [name for name in made.get("required") or () if name in made["properties"]]
            if not made["required"]:
                del made["required"]
        if made.get("type") == "array":
            made["items"] = self.schema_within_root(made.get("items") or {}, above)
        return made

    def _type(self, made: dict[str, Any], known: JsonObject, above: tuple[str, ...]) -> None:
        """Take in the type of a value: one, with ``nullable`` beside it, or a choice of schemas."""
        choices: list[Any] = [*(known.get("anyOf") or ()), *(known.get("oneOf") or ())]
        kinds = made.get("type")
        if isinstance(kinds, list | tuple):
            several = [str(kind) for kind in cast("Sequence[Any]", kinds)]
            made.pop("type")
            items = {"items": made["items"]} if "items" in made else {}
            choices = [{"type": kind, **(items if kind == "array" else {})} for kind in several]
        if choices:
            others = [one for one in choices if not (isinstance(one, Mapping) and one.get("type") == "null")]
            if len(others) < len(choices):
                made["nullable"] = True
            taken = [self.schema_within_root(one, above) for one in others]
            if len(taken) == 1:
                made.update({key: value for key, value in taken[0].items() if key not in made})
            elif taken:
                made.pop("items", None)
                made["anyOf"] = taken
        elif "type" not in made:
            made["type"] = "object" if "properties" in made else "array" if "items" in made else "string"
        if made.get("type") == "null":
            made |= {"type": "string", "nullable": True}


def _values(made: dict[str, Any], known: JsonObject) -> None:
    """Take in the values that there may be: as an enumeration where they are texts, else in the description."""
    values: list[Any] = [known["const"]] if "const" in known else list(known.get("enum") or ())
    texts = [value for value in values if value is not None]
    if len(texts) < len(values):
        made["nullable"] = True
    if not texts:
        return
    if all(isinstance(value, str) for value in texts):
        made.update({"type": "string", "enum": texts})
        made.pop("anyOf", None)
    else:
        rule = f"One of: {', '.join(map(str, texts))}."
        made["description"] = f"{made['description']} {rule}" if made.get("description") else rule
        if "const" in known or "type" not in known:
            made["type"] = _NAMES.get(type(texts[0]), "string")


_NAMES: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number"}
