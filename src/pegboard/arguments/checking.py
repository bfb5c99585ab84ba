"""One schema and one value: whether they fit, and what is wrong. Also the program of a process that checks.

Knows nothing of Pegboard, so that such a process starts at once. It reads a line of JSON with ``schema`` and
``arguments``, and writes a line ``fits`` or ``wrong``, behind the latter one line of JSON with the texts.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MOST_TEXTS: Final = 5
"""How many problems are named."""
LONGEST: Final = 1200
"""How many characters of a problem's text are read."""
MOST_SECONDS: Final = 2
"""How many seconds of a processor one check has in a process of its own."""
PATTERN_BYTES: Final = 100_000
"""How large a compiled pattern may be where others wait for it."""
_MOST_PATTERN_BYTES: Final = 10_000_000
_BACKTRACKS: Final = 10_000
_MOST_BACKTRACKS: Final = 5_000_000
_VALUES: Final = frozenset({"enum", "const", "default", "examples"})
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_CHOOSE: Final = frozenset(
    {"enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$ref", "$dynamicRef", "$recursiveRef"}
)
"""What may refuse null although a schema's type takes it."""
_BACKTRACKED: Final = "backtracking count exceeded"


def compile_schema(
    schema: dict[str, Any], *, pattern_bytes: int = PATTERN_BYTES, backtracks: int = _BACKTRACKS
) -> Validator | None:
    """Return a compiled schema, or None for one that is not valid, points outside itself, or has a larger pattern.

    Patterns run in linear time, but for those with look-around or back-references, whose steps are limited.
    """
    import jsonschema_rs

    def refuse(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema")

    if _allows_null_anywhere(schema):
        schema = _allowing_null(schema)
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=backtracks, size_limit=pattern_bytes)
    try:
        return jsonschema_rs.validator_for(schema, retriever=refuse, pattern_options=options)
    except (ValueError, TypeError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return None


def _allows_null_anywhere(value: Any) -> bool:
    """Return whether `nullable: true` is anywhere in a value."""
    pending: list[Any] = [value]
    while pending:
        match pending.pop():
            case dict() as found:
                if found.get("nullable") is True:
                    return True
                pending += found.values()
            case list() as found:
                pending += found
            case _:
                pass
    return False


def _allowing_null(schema: Any) -> Any:
    """Return a schema that takes null wherever it says `nullable: true`, as OpenAPI writes it.

    >>> _allowing_null({"type": "string", "nullable": True})
    {'type': ['string', 'null']}
    >>> _allowing_null({"$ref": "#/$defs/a", "nullable": True})
    {'anyOf': [{'$ref': '#/$defs/a'}, {'type': 'null'}]}
    """
    if isinstance(schema, list):
        return [_allowing_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _part_with_null(name, part) for name, part in schema.items()}
    if found.get("nullable") is not True:
        return found
    del found["nullable"]
    kinds = found.get("type", [])
    if kinds and not found.keys() & _CHOOSE:
        return {**found, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    return {"anyOf": [found, {"type": "null"}]}


def _part_with_null(name: str, part: Any) -> Any:
    if name in _VALUES:
        return part
    if name in _MAPS and isinstance(part, dict):
        return {key: _allowing_null(one) for key, one in part.items()}
    return _allowing_null(part)


def first_problem_texts(compiled: Validator, instance: Any) -> list[tuple[str, str]]:
    """Return the argument and what is wrong with it, for the first problems of a value that does not fit."""
    return [
        (".".join(str(part) for part in error.instance_path), str(error.message)[:LONGEST])
        for error in islice(compiled.iter_errors(instance), MOST_TEXTS)
    ]


def took_too_many_steps(texts: list[tuple[str, str]]) -> bool:
    """Return whether a value was refused because a pattern took too many steps, not because it does not match."""
    return any(_BACKTRACKED in text for _, text in texts)


def main() -> None:
    """Check what standard input has, within the limit of the processor's time."""
    try:
        import resource
    except ImportError:  # not on Windows, where the parent's clock alone ends this
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        os.nice(10)
    asked = json.loads(sys.stdin.buffer.read())
    schema, instance = asked["schema"], asked["arguments"]
    compiled = compile_schema(schema, pattern_bytes=_MOST_PATTERN_BYTES, backtracks=_MOST_BACKTRACKS)
    try:
        fits = compiled is None or compiled.is_valid(instance)
        print("fits" if fits else "wrong", flush=True)  # noqa: T201
        found = [] if compiled is None or fits else first_problem_texts(compiled, instance)
    except ValueError as error:  # nested deeper than the validator goes
        print("wrong", flush=True)  # noqa: T201
        found = [("", f"they are not JSON ({error})")]
    print(json.dumps(found), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
