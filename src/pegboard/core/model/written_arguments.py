"""Arguments in the shapes in which models write them, read in one way everywhere.

Weaker models write an object as a text of JSON, or twice so, nothing as null or an empty text, numbers as texts, and
ends of lines within texts as they are. What goes to another tool is never changed but for being an object:
that tool judges it (X2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.support.encodable import encodable

_WHOLE: Final = re.compile(r"[+-]?\d{1,15}(?:\.0+)?")
_TRUTH: Final = {"true": True, "false": False}


def parsed_arguments(written: object) -> JsonObject | None:
    """Return the arguments that a model wrote, nothing and null being an empty object; None where they are none.

    >>> parsed_arguments('{"a": "1"}'), parsed_arguments('"{}"'), parsed_arguments("null"), parsed_arguments("[1]")
    ({'a': '1'}, {}, {}, None)
    """
    found = _value_of(written)
    if isinstance(found, str) and found is not written:  # a text of a text of JSON
        found = _value_of(found)
    if isinstance(found, Mapping):
        return cast("JsonObject", found)
    return EMPTY if found is None or found == [] else None


def declared_arguments(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """Return arguments of a tool of our own as its schema wants them, as far as it is plain what was meant.

    What is null was not given, nor is an empty text where a number, a list or the like may be left out.
    """
    properties: Mapping[str, JsonObject] = schema.get("properties") or EMPTY
    required: list[str] = schema.get("required") or []
    return {
        name: declared_value(value, properties.get(name, EMPTY))
        for name, value in arguments.items()
        if value is not None
        and (value != "" or name in required or properties.get(name, EMPTY).get("type") in (None, "string"))
    }


def declared_value(value: Any, schema: JsonObject) -> Any:
    """Return a value in the kind that its schema wants, or as it is.

    >>> declared_value("5", {"type": "integer"}), declared_value("git", {"type": "array"})
    (5, ['git'])
    >>> declared_value('"git"', {"type": "array"})
    ['git']
    """
    match schema.get("type"):
        case "object" if (inner := parsed_arguments(value)) is not None:
            return inner
        case "array" if not isinstance(value, list):
            found = _value_of(value)
            return cast("list[Any]", found) if isinstance(found, list) else [found if isinstance(found, str) else value]
        case "integer" if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            return int(value.strip().partition(".")[0])
        case "boolean" if isinstance(value, str):
            return _TRUTH.get(value.strip().lower(), value)
        case "string" if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
            return cast("list[Any]", value)[0]
        case _:
            return value


def _value_of(written: object) -> object:
    """Return what a text of JSON says, None for nothing; anything else, and a text of no JSON, as it is.

    Half a character, which JSON may name and UTF-8 cannot carry, becomes U+FFFD.
    """
    if not isinstance(written, str):
        return written
    try:
        return encodable(json.loads(written, strict=False)) if written.strip() else None
    except (ValueError, RecursionError):
        return written
