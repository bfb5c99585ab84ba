"""What a person does before a tool runs, taken out of what the model gives (T13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.core.model.tools import Confirmation, Frozen, JsonObject


def without_fields(schema: JsonObject, names: Sequence[str]) -> tuple[JsonObject, Confirmation]:
    """Return the schema without the parameters that a person fills in, and what demands them.

    Raises ``KeyError`` with a name that the schema does not have.
    """
    properties: dict[str, Any] = dict(schema.get("properties") or {})
    asked = {name: properties.pop(name) for name in names}
    required: list[str] = list(schema.get("required") or ())
    given = {**schema, "properties": properties, "required": [name for name in required if name not in asked]}
    form: dict[str, Any] = {"type": "object", "properties": asked}
    if wanted := [name for name in required if name in asked]:
        form["required"] = wanted
    if "$defs" in schema:
        form["$defs"] = schema["$defs"]
    if not given["required"]:
        del given["required"]
    return Frozen(given), Confirmation(kind="user_input", fields=tuple(asked), schema=Frozen(form))
