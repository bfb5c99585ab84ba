"""The arguments of a tool on a command line: `name=value`, `--name value`, or one JSON object."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

from pegboard.core.model.naming import did_you_mean
from pegboard.errors import UsageError

MOST_INPUT: Final = 32 * 1024 * 1024
"""How many bytes standard input may have."""
QUOTING: Final = 'Write NAME=VALUE, or an object in single quotes: \'{"name": "value"}\', or - to read it from stdin.'
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a tool takes, as its schema has it."""

    name: str
    types: frozenset[str]
    required: bool
    description: str
    schema: Mapping[str, Any]


def parameters_of(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Return the arguments that a schema names, the required ones first."""
    required = {str(name) for name in _list(schema.get("required"))}
    found = [
        Parameter(name, _types(one, schema), name in required, str(_as_mapping(one).get("description") or ""), one)
        for name, one in ((name, _as_mapping(each)) for name, each in _as_mapping(schema.get("properties")).items())
    ]
    return tuple(sorted(found, key=lambda one: not one.required))


def from_words(
    words: Sequence[str], schema: Mapping[str, Any], *, tool: str, read: str | None = None
) -> dict[str, Any]:
    """Return the arguments that the words of a command line give.

    Args:
        words: what is behind the name of the tool.
        schema: that of the tool's arguments; empty where it is not known.
        tool: its name, for messages.
        read: what was read from standard input, where a word is ``-``.

    Raises:
        UsageError: ``bad_arguments`` where a word cannot be understood, or gives what another one gives.
    """
    _require_text(words)
    if not words:
        return {}
    if len(words) == 1 and _is_json(words[0]):
        return parse_arguments(cast("str", read) if words[0] == "-" else words[0])
    known = {one.name: one for one in parameters_of(schema)}
    found: dict[str, Any] = {}
    for name, value in _arguments_of_words(words, known, schema, tool=tool):
        if name in found:
            raise _bad_arguments_error(f"The argument '{name[:_SHOWN]}' of '{tool}' is given twice.", "Give it once.")
        found[name] = value
    return found


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call; raises ``UsageError`` that says where the text is no JSON object."""
    value = _json(text, "The arguments are")
    if not isinstance(value, dict):
        raise _bad_arguments_error(f"The arguments are {_KINDS[type(value)]}, not a JSON object.")
    return cast("dict[str, Any]", value)


def decode_input(data: bytes) -> str:
    """Return what standard input has as text; raises ``UsageError`` where it is too much or no UTF-8."""
    if len(data) > MOST_INPUT:
        raise _bad_arguments_error(
            f"Standard input has more than {MOST_INPUT // 1024 // 1024} MiB.", "Name a file in an argument."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _bad_arguments_error(
            f"Standard input is not UTF-8 at byte {error.start}.", "Give JSON in UTF-8."
        ) from None


def _arguments_of_words(
    words: Sequence[str], known: Mapping[str, Parameter], schema: Mapping[str, Any], *, tool: str
) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that words give; an option takes the next word where it has no value of its own."""
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            yield _split_pair(word, known, tool=tool)
            continue
        parameter, negated = _option(name[2:], known, schema, tool=tool)
        takes_none = not equals and "boolean" in parameter.types and not (rest and rest[-1] in _BOOLEANS)
        if negated or takes_none:
            if equals:
                raise _bad_arguments_error(f"The option '{name}' of '{tool}' takes no value.", f"Write {name} alone.")
            yield parameter.name, not negated
            continue
        if not equals:
            if not rest or (rest[-1].startswith("--") and rest[-1] != "--"):
                raise _bad_arguments_error(f"The option '{name}' of '{tool}' has no value.", f"Write {name}=VALUE.")
            value = rest.pop()
        yield parameter.name, _value(parameter, value)


def _split_pair(word: str, known: Mapping[str, Parameter], *, tool: str) -> tuple[str, Any]:
    """Return the name and the value that `name=value` or `name:=JSON` gives."""
    if _is_json(word):
        raise _bad_arguments_error(
            f"The arguments of '{tool}' are given in two ways, one of which is {_short_quoted(word)}.",
            "Give either one JSON object, or every argument by its name.",
        )
    name, equals, value = word.partition("=")
    if not equals or not name:
        wanted = [one.name for one in known.values() if one.required] or list(known)
        example = (
            f"Write {shlex.quote(f'{wanted[0]}={word[:_SHOWN]}')}."
            if len(wanted) == 1 and not word.startswith("-")
            else QUOTING
        )
        raise _bad_arguments_error(f"The argument {_short_quoted(word)} of '{tool}' has no name.", example)
    if name.endswith(":") and name not in known:
        return name[:-1], _json(value, f"The argument '{name[:-1][:_SHOWN]}' is")
    parameter = known.get(name)
    return name, value if parameter is None else _value(parameter, value)


def _option(
    name: str, known: Mapping[str, Parameter], schema: Mapping[str, Any], *, tool: str
) -> tuple[Parameter, bool]:
    """Return the argument that an option means, and whether `--no-…` switches it off."""
    if (found := _find_parameter(name, known)) is not None:
        return found, False
    if name.startswith("no-") and (found := _find_parameter(name[3:], known)) is not None and "boolean" in found.types:
        return found, True
    if not known or schema.get("additionalProperties") not in (None, False):
        return Parameter(name, frozenset(), False, "", {}), False
    hint = did_you_mean(name, known) or f"It takes: {', '.join(known)}."
    raise _bad_arguments_error(
        f"'{tool}' has no argument '{name[:_SHOWN]}', and `pegboard call` has no such option.", hint
    )


def _find_parameter(name: str, known: Mapping[str, Parameter]) -> Parameter | None:
    """Return the argument of this name, else the only one that differs in case, `-` and `_`."""
    if name in known:
        return known[name]
    alike = [one for key, one in known.items() if _without_separators(key) == _without_separators(name)]
    return alike[0] if len(alike) == 1 else None


def _without_separators(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()


def _value(parameter: Parameter, text: str) -> Any:
    """Return a value of the type that the schema asks for; what does not fit stays text, and is refused by it."""
    types = parameter.types
    if not types or "string" in types:
        return text
    if "null" in types and text == "null":
        return None
    if "boolean" in types and text in _BOOLEANS:
        return text == "true"
    if types & {"integer", "number"} and _NUMBER.fullmatch(text):
        return json.loads(text)
    if types & {"object", "array"} and text[:1] in ("{", "["):
        return _json(text, f"The argument '{parameter.name}' is")
    return text


_BOOLEANS: Final = ("true", "false")
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,999})(\.\d{1,999})?([eE][+-]?\d{1,3})?")


def _types(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """Return the types of JSON that a schema lets pass, as far as it names them."""
    one = _as_mapping(schema)
    if depth > 8:
        return frozenset()
    stated = one.get("type")
    if isinstance(stated, str):
        return frozenset({stated})
    if isinstance(stated, list):
        return frozenset(str(each) for each in cast("list[object]", stated))
    if isinstance(reference := one.get("$ref"), str):
        return _types(_resolve_reference(reference, root), root, depth + 1)
    values = [one["const"]] if "const" in one else _list(one.get("enum"))
    if values:
        return frozenset(_JSON_TYPES.get(type(each), "string") for each in values)
    parts = [*_list(one.get("anyOf")), *_list(one.get("oneOf")), *_list(one.get("allOf"))]
    return frozenset[str]().union(*(_types(each, root, depth + 1) for each in parts))


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = _as_mapping(found).get(step.replace("~1", "/").replace("~0", "~"))
    return found


def _json(text: str, subject: str) -> Any:
    """Return a value of JSON; raises ``UsageError`` that says where the text is none."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _bad_arguments_error(f"{subject} not valid JSON at {where}: {error.msg}.") from None
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _bad_arguments_error(f"{subject} not valid JSON: {why}.") from None


def _require_text(words: Sequence[str]) -> None:
    for number, word in enumerate(words, 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word.encode(errors="backslashreplace").decode()
            raise _bad_arguments_error(
                f"Argument {number} is not valid UTF-8: {_short_quoted(shown)}.", "Give text in UTF-8."
            ) from None


def _is_json(word: str) -> bool:
    return word == "-" or word[:1] in ("{", "[", '"') or word in ("null", *_BOOLEANS) or bool(_NUMBER.fullmatch(word))


def _short_quoted(word: str) -> str:
    return f"'{word}'" if len(word) <= _SHOWN else f"'{word[:_SHOWN]}…'"


def _bad_arguments_error(message: str, hint: str = QUOTING) -> UsageError:
    return UsageError(message, code="bad_arguments", hint=hint)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


_KINDS: Final = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
_JSON_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}
