"""What someone filled in for fields, as the values that are meant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pegboard.errors import UsageError
from pegboard.operators.masked import ShownNames
from pegboard.operators.schema_fields import FieldOverview

FIELD: Final = "field."
"""What the name of an input begins with, before that of its field."""


def filled_in(fields: Iterable[FieldOverview], form: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was filled in, by the shown names of fields; an input that was left empty is not given."""
    texts = {one: form.get(FIELD + one.name) for one in fields}
    return {one.name: value_of(one, text) for one, text in texts.items() if isinstance(text, str) and text}


def value_of(field: FieldOverview, text: str) -> Any:
    """Return the value that a text stands for; a text that stands for none stays one, and does not fit."""
    match field.type:
        case "string":
            return text
        case "boolean":
            return {"true": True, "false": False}.get(text, text)
        case _:
            try:
                return parse_json(text)
            except (ValueError, RecursionError):
                return text


def parse_json(text: str) -> Any:
    """Return what JSON says; raises ``ValueError`` or ``RecursionError`` where it is none."""
    return json.loads(text, parse_constant=_no_number)


def meant_fields(fields: Iterable[FieldOverview], given: Mapping[str, Any], names: ShownNames) -> dict[str, Any]:
    """Return what was filled in, with the names of fields, and the choices and defaults of them, that are meant."""
    by_name = {field.name: field for field in fields}
    return {names.meant(name): _value_from_form(by_name.get(name), value, names) for name, value in given.items()}


def _value_from_form(field: FieldOverview | None, value: Any, names: ShownNames) -> Any:
    if field is None:
        return value
    if field.text and value == value_of(field, field.text):
        return value_of(field, names.meant(field.text))
    return names.meant(value) if value in field.choices else value


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def number_of_version(text: str) -> int:
    """Return the number of a version; raises ``UsageError`` where it is none."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise UsageError("There is no such version.", code="unknown_version", hint="Choose one of the history.")
    return int(text)
