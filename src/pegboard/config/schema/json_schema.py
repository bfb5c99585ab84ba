"""The JSON Schema of a configuration, for editors."""

from __future__ import annotations

from typing import Any

from pegboard.config.schema.sections import File


def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``pegboard.yaml`` (draft 2020-12); every key may be left without a value."""
    found = File.model_json_schema(by_alias=True)
    sections = found.pop("$defs", {})
    for section in (found, *sections.values()):
        for name, part in section.get("properties", {}).items():
            _relax_section(name, part)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "Pegboard configuration",
        "$defs": sections,
    }


def _relax_section(name: str, part: dict[str, Any]) -> None:
    """Let a section take what the file does: no value, a single rule, an address, needs of a whole plugin."""
    if name == "focus":
        rules = {key: part.pop(key) for key in ("type", "items")}
        part["anyOf"] = [rules, rules["items"], {"type": "string"}]
    if name == "store":
        part["anyOf"].append({"type": "string"})
    if name == "anticipate":
        part["anyOf"].append({"type": "boolean"})
    if name == "needs":
        own = part["additionalProperties"]
        names: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}}
        one = {"type": "string", "minLength": 1}
        part["properties"] = {"env": {"anyOf": [names, own]}, "when": {"anyOf": [one, own]}}
    inner = part.get("additionalProperties")
    if isinstance(inner, dict) and "$ref" in inner:
        part["additionalProperties"] = {"anyOf": [inner, {"type": "null"}]}
