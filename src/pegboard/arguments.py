"""Check the arguments of a call against the tool's schema before anything runs (X2)."""

from __future__ import annotations

from itertools import islice
from typing import Any, Protocol

from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject, Tool

_LONGEST = 300
_MOST = 5


class _Validator(Protocol):
    def is_valid(self, instance: Any) -> bool: ...
    def iter_errors(self, instance: Any) -> Any: ...


class SchemaValidator:
    """A check of arguments with validators that are compiled once for each schema.

    A schema that is itself not valid, or that points outside itself, checks nothing: the tool
    judges its arguments then.
    """

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[JsonObject, _Validator | None]] = {}

    def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return one sentence per problem, naming the argument and what was expected."""
        known = self._compiled.get(tool.wire)
        validator = known[1] if known is not None and known[0] is tool.input_schema else self._compile(tool)
        instance = arguments if isinstance(arguments, dict) else dict(arguments)
        try:
            return [] if validator is None or validator.is_valid(instance) else _errors(validator, instance)
        except (ValueError, RecursionError) as error:  # a lone surrogate, a cycle, an object, too deep
            return [f"they are not JSON ({one_line(str(error), limit=_LONGEST)})"]

    def _compile(self, tool: Tool) -> _Validator | None:
        validator = _compile(tool.input_schema)
        self._compiled[tool.wire] = (tool.input_schema, validator)
        return validator


def _errors(validator: _Validator, instance: Any) -> list[str]:
    found: list[str] = []
    for error in islice(validator.iter_errors(instance), _MOST):
        path = ".".join(str(part) for part in error.instance_path)
        text = one_line(str(error.message), limit=_LONGEST)
        found.append(f"argument '{path}': {text}" if path else text)
    return found


def _compile(schema: JsonObject) -> _Validator | None:
    import jsonschema_rs

    def refuse(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema")

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=refuse)
    except (ValueError, TypeError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return None
