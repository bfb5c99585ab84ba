"""Agno's functions as tools: descriptions, schemas, annotations, and what a person does before they run (T13)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.core.model.tools import Confirmation, Frozen, JsonObject, Tool
from pegboard.sources.signatures import adapter_for, without_fields

_ANYTHING: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}
"""How Agno writes ``Any``: an object that may have no property. It never validates by it."""
_BY_NAME: Final = ("properties", "$defs")
_LISTED: Final = ("anyOf", "allOf", "oneOf")
_SINGLE: Final = ("items", "additionalProperties", "propertyNames")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgnoFunction:
    """A function of a toolkit: what runs, and the one that describes it.

    Of two functions of one name the asynchronous one runs, and the other has the description that people wrote.
    """

    runs: Any
    described: Any

    def tool(self, plugin: str) -> Tool:
        """Return the tool as the catalog knows it."""
        schema, confirmation = _split_confirmation(self.described, parameters_schema(self.described.parameters))
        return Tool(
            plugin=plugin,
            name=self.runs.name,
            description=self.described.description or "",
            input_schema=schema,
            annotations=_annotations(self.described, confirmation),
            confirmation=confirmation,
        )


def functions_of(toolkit: Any) -> Mapping[str, AgnoFunction]:
    """Return the functions of a toolkit by name, ready to run; the toolkit's own stay as they are."""
    written: Mapping[str, Any] = toolkit.get_functions()
    return Frozen(
        {
            name: AgnoFunction(runs=_ready(function), described=_ready(written.get(name, function)))
            for name, function in toolkit.get_async_functions().items()
        }
    )


def _ready(function: Any) -> Any:
    copied = function.model_copy()
    copied.process_entrypoint()
    return copied


def _annotations(function: Any, confirmation: Confirmation | None) -> JsonObject:
    """Return MCP's annotations, as far as Agno knows them: what asks for confirmation changes something."""
    found = dict(function.annotations or {})
    if function.title:
        found["title"] = function.title
    if function.has_side_effects is not None:
        found.setdefault("readOnlyHint", not function.has_side_effects)
    if confirmation is not None and confirmation.kind == "confirm" and not found.get("readOnlyHint"):
        found.setdefault("readOnlyHint", False)
        found.setdefault("destructiveHint", True)
    return Frozen(found)


def _split_confirmation(function: Any, schema: JsonObject) -> tuple[JsonObject, Confirmation | None]:
    """Return what the model gives, and what a person does before the function runs (T13)."""
    if function.external_execution:
        return schema, Confirmation(kind="external")
    if function.requires_user_input:
        return _without_filled_fields(function, schema)
    return schema, Confirmation(kind="confirm") if function.requires_confirmation else None


def _without_filled_fields(function: Any, schema: JsonObject) -> tuple[JsonObject, Confirmation]:
    """Return the schema without the fields that a person fills in: those that are named, else all."""
    described = {field.name: field for field in function.user_input_schema or ()}
    names = [name for name in function.user_input_fields or described if name in described]
    parameters = inspect.signature(function.entrypoint).parameters
    fields = {name: _field_schema(described[name]) for name in names}
    needed = [name for name in names if name in parameters and parameters[name].default is inspect.Parameter.empty]
    whole = {
        **schema,
        "properties": {**schema.get("properties", {}), **fields},
        "required": [*(name for name in schema.get("required", ()) if name not in names), *needed],
    }
    return without_fields(whole, names)


def _field_schema(field: Any) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = dict(adapter_for(field.field_type).json_schema())
    except Exception:  # a type that JSON cannot express: any value is tried
        schema = {}
    return {**schema, "description": field.description} if field.description else schema


# -- what the schemas of Agno mean: what it validates nothing by must not be refused here ----------


def parameters_schema(schema: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters in which ``Any`` takes anything.

    >>> parameters_schema({"type": "object", "properties": {"value": {**_ANYTHING, "description": "A value."}}})
    {'type': 'object', 'properties': {'value': {'description': 'A value.'}}}
    """
    return Frozen(_clean_schema(schema))


def _clean_schema(schema: JsonObject) -> dict[str, Any]:
    clean = dict(schema)
    for key in _BY_NAME:
        if isinstance(parts := clean.get(key), dict):
            clean[key] = {name: _open_schema(part) for name, part in cast("dict[str, Any]", parts).items()}
    for key in _LISTED:
        if isinstance(parts := clean.get(key), list):
            clean[key] = [_open_schema(part) for part in cast("list[Any]", parts)]
    for key in _SINGLE:
        if key in clean:
            clean[key] = _open_schema(clean[key])
    return clean


def _open_schema(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    if {key: value for key, value in given.items() if key != "description"} == _ANYTHING:
        return {key: value for key, value in given.items() if key == "description"}
    return _clean_schema(given)
