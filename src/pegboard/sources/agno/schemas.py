"""What the schemas of Agno mean: what it validates nothing by must not be refused here."""

from __future__ import annotations

from typing import Any, Final, cast

from pegboard.core.model.tools import Frozen, JsonObject

_ANYTHING: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}
"""How Agno writes ``Any``: an object that may have no property. It never validates by it."""
_BY_NAME: Final = ("properties", "$defs")
_LISTED: Final = ("anyOf", "allOf", "oneOf")
_SINGLE: Final = ("items", "additionalProperties", "propertyNames")


def parameters_schema(schema: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters in which ``Any`` takes anything.

    >>> parameters_schema({"type": "object", "properties": {"value": {**_ANYTHING, "description": "A value."}}})
    {'type': 'object', 'properties': {'value': {'description': 'A value.'}}}
    """
    return Frozen(_inside(schema))


def _inside(schema: JsonObject) -> dict[str, Any]:
    clean = dict(schema)
    for key in _BY_NAME:
        if isinstance(parts := clean.get(key), dict):
            clean[key] = {name: _opened(part) for name, part in cast("dict[str, Any]", parts).items()}
    for key in _LISTED:
        if isinstance(parts := clean.get(key), list):
            clean[key] = [_opened(part) for part in cast("list[Any]", parts)]
    for key in _SINGLE:
        if key in clean:
            clean[key] = _opened(clean[key])
    return clean


def _opened(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    if {key: value for key, value in given.items() if key != "description"} == _ANYTHING:
        return {key: value for key, value in given.items() if key == "description"}
    return _inside(given)
