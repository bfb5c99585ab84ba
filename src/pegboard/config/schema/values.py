"""The small things a configuration is written with: names, durations, booleans, entries of lists."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from pegboard.config.documents.document import Expanded, YamlWord, is_list, is_mapping
from pegboard.config.documents.expansion import references_as_written
from pegboard.core.model.naming import one_line
from pegboard.core.model.recording import MOST_DAYS, MOST_RESULT
from pegboard.core.principals.bearer_tokens import OPERATOR, RIGHTS, Right

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNITS: Final[Mapping[str | None, float]] = {None: 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?b|[kmg]ib)?", re.IGNORECASE)
_BYTES: Final[Mapping[str, int]] = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
_LARGEST: Final = 1024**4
_LONGEST: Final = 366 * 86400


def kind_found(value: Any) -> str:
    """Return what kind of value was found; text is not repeated, it may be a secret.

    >>> kind_found("x"), kind_found(5), kind_found(True), kind_found([1]), kind_found(None)
    ('a string', 'the number 5', 'true', 'a list', 'nothing')
    """
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}" if abs(value) < 1e15 else "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "something else"


def wrong(expected: str, value: Any, hint: str = "") -> PydanticCustomError:
    """Return the error that something else was expected."""
    message = f"expected {expected}, found {kind_found(value)}."
    return PydanticCustomError("wrong_type", "{message}", {"message": message, "hint": hint})


def bad(message: str, hint: str = "") -> PydanticCustomError:
    """Return the error that a value of the right kind cannot be meant."""
    return PydanticCustomError("bad_value", "{message}", {"message": message, "hint": hint})


def plain(value: Any) -> Any:
    """Return free data with unquoted ``yes`` and ``no`` as booleans, and all text as plain text."""
    if isinstance(value, str):
        return value.truth if isinstance(value, YamlWord) else str(value)
    if is_mapping(value):
        return {key: plain(inner) for key, inner in value.items()}
    if is_list(value):
        return [plain(inner) for inner in value]
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        if "\0" in value:
            raise bad("contains a NUL character.", "Remove it.")
        return str(value)
    hint = f'Write "{str(value).lower() if isinstance(value, bool) else value}" in quotes.'
    raise wrong("a string", value, hint if isinstance(value, bool | int | float) else "")


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong("a name", value, f'Write "{value}" in quotes.' if isinstance(value, int | float) else "")
    if not value or value != value.strip():
        raise bad("a name is empty." if not value.strip() else "a name begins or ends with a space.")
    if not value.isprintable():
        raise bad("a name contains a control character.")
    return str(value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, YamlWord):
        return value.truth
    if isinstance(value, Expanded) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise wrong("true or false", value, "Write it without quotes." if isinstance(value, str) else "")


def _validate_disabled(value: Any) -> bool | str:
    if isinstance(value, str) and not isinstance(value, YamlWord | Expanded) and " " in value.strip():
        return _text(value).strip()
    try:
        return _flag(value)
    except PydanticCustomError:
        raise wrong("true, false or a sentence that says why", value) from None


def _count(value: Any) -> int:
    if isinstance(value, Expanded) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        hint = "Write it without quotes." if isinstance(value, str) and value.isdigit() else ""
        raise wrong("a whole number", value, hint)
    if value < 0 or value > 10**15:
        raise bad("expected a whole number that is not negative." if value < 0 else "the number is too large.")
    return value


def seconds(value: Any) -> float:
    """Return a duration in seconds; raises ``PydanticCustomError``."""
    hint = "Write it as 60s, 2m or 500ms, or as a number of seconds."
    if isinstance(value, str) and not isinstance(value, YamlWord):
        read = _DURATION.fullmatch(value.strip())
        if read is None or (read[2] is None and not isinstance(value, Expanded)):
            raise PydanticCustomError("bad_duration", "{message}", {"message": "this is not a duration.", "hint": hint})
        value = float(read[1]) * _UNITS[read[2]]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("a duration", value, hint)
    if not math.isfinite(value) or not 0 < value <= _LONGEST:
        message = "expected a duration of more than nothing and at most a year."
        raise PydanticCustomError("bad_duration", "{message}", {"message": message, "hint": hint})
    return float(value)


def _size(value: Any) -> int:
    hint = "Write it as 32MiB, 500kB or 1GB, or as a number of bytes."
    if isinstance(value, str) and not isinstance(value, YamlWord):
        read = _SIZE.fullmatch(value.strip())
        if read is None or (read[2] is None and not isinstance(value, Expanded)):
            raise bad("this is not a size.", hint)
        value = int(float(read[1]) * _BYTES[(read[2] or "").lower()])
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong("a size", value, hint)
    if not 0 < value <= _LARGEST:
        raise bad("expected a size of at least one byte and at most 1024GiB.", hint)
    return value


def _kept_size(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0
    size = _size(value)
    if size > MOST_RESULT:
        raise bad(f"expected a size of at most {MOST_RESULT // 1000:,}kB.", "Write it as 4kB or 100kB; 0 keeps none.")
    return size


def _days(value: Any) -> int:
    days = _count(value)
    if not 1 <= days <= MOST_DAYS:
        raise bad(f"expected a whole number of days from 1 to {MOST_DAYS}.")
    return days


def _any_mapping(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not is_mapping(value):
        raise wrong("a mapping", value)
    return plain(value)


class EntryWithOverrides(tuple[str, dict[str, Any]]):  # noqa: SLOT001 - a tuple can have no slots
    """An entry of a list of tools: a name, and the overrides that stand with it (T1).

    ``written`` is the text of overrides that refer to variables, with the references, and nothing for others.
    """

    written: str = ""


_FILTERS: Final = ("include_tools", "exclude_tools")


def _entry(value: Any) -> EntryWithOverrides:
    if isinstance(value, str):
        return EntryWithOverrides((_name(value), {}))
    hint = "Write a name, or one name with its settings: {name: {key: value}}."
    if not is_mapping(value):
        raise wrong("a tool", value, hint)
    if len(value) != 1:
        message = f"expected one name with its settings, found {len(value)} keys."
        hint = "Write each tool as an entry of its own; indent its settings below its name." if value else hint
        raise bad(message, hint)
    ((name, settings),) = value.items()
    if settings is not None and not is_mapping(settings):
        raise wrong(f"settings of '{name}' as a mapping", settings, f"Write {{{name}: {{key: value}}}}.")
    entry = EntryWithOverrides((_name(name), _settings(settings or {})))
    if (written := references_as_written(settings)) is not None:
        entry.written = json.dumps(written, sort_keys=True, default=str)
    return entry


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    for key in _FILTERS:
        names = settings.get(key)
        if names is not None and (not is_list(names) or not all(isinstance(n, str) for n in names)):
            raise wrong(f"a list of function names in '{key}'", names, "Write [name].")
    rest = {key: value for key, value in settings.items() if not (key in _FILTERS and value is None)}
    filters = {key: [str(n) for n in rest.pop(key)] for key in _FILTERS if key in rest}
    return {**plain(rest), **filters}


def _rules(value: Any) -> Any:
    if isinstance(value, str):
        return [{"python": value}]
    return [value] if isinstance(value, dict) else value


APPROVALS: Final = ("always", "destructive")
"""What may stand in place of patterns where a rule demands an approval (A1)."""


def _approve(value: Any) -> Any:
    """Return when a call needs an approval: a word, or by argument the patterns of which one matches."""
    hint = "Write always, destructive, or {argument: [pattern]}."
    if isinstance(value, str):
        if value not in APPROVALS:
            raise bad("is not always or destructive.", hint)
        return str(value)
    if not is_mapping(value):
        raise wrong("always, destructive or a mapping of arguments", value, hint)
    if not value:
        raise bad("names no argument.", hint)
    if isinstance(value.get("by"), str):
        return _normalize_answerer(value)
    for argument, patterns in value.items():
        if not is_list(patterns):
            raise wrong(f"a list of patterns for '{argument}'", patterns, "Write [pattern].")
        if not patterns:
            raise bad(f"names no pattern for '{argument}'.", "Write [pattern].")
    return {str(name): tuple(_text(pattern) for pattern in patterns) for name, patterns in value.items()}


def _normalize_answerer(value: Any) -> Any:
    """Return a rule that says who may answer a call (A5); an argument `by` has a list of patterns."""
    hint = "Write {when: always, by: operator}."
    if set(value) != {"when", "by"}:
        raise bad("needs 'when' next to 'by', and nothing else.", hint)
    if value["by"] not in ("operator", "client"):
        raise bad("has a 'by' that is neither operator nor client.", hint)
    return {"when": _approve(value["when"]), "by": str(value["by"])}


def _rights(value: Any) -> Any:
    """Return the rights of an operator, in their order; any of them comes with seeing what it is about (A5)."""
    hint = f"Write true, false, or a list of {', '.join(RIGHTS)}."
    if not is_list(value):
        try:
            return tuple(right for right in RIGHTS if right in OPERATOR) if _flag(value) else ()
        except PydanticCustomError:
            raise wrong("true, false or a list of rights", value, hint) from None
    given = [_text(one) for one in value]
    if unknown := next((one for one in given if one not in RIGHTS), None):
        raise bad(f"has '{one_line(unknown, limit=80)}', which is not a right of an operator.", hint)
    if not given:
        raise bad("names no right.", hint)
    return tuple(right for right in RIGHTS if right in given or right == "see")


def _bounds(value: Any) -> Any:
    """Return bounds for a switch: those of the defaults, or of nothing."""
    switched = value.truth if isinstance(value, YamlWord) else value
    return ({} if switched else {"tools": 0, "tokens": 0}) if isinstance(switched, bool) else value


def _expand_switch(value: Any) -> Any:
    """Return what a switch stands for where a mapping may stand: all as it is by default, or nothing."""
    switched = value.truth if isinstance(value, YamlWord) else value
    if isinstance(switched, bool):
        return {} if switched else None
    if not is_mapping(value):
        raise wrong("true or a mapping", value, "Write true, or {write: [folder], read: [folder], network: none}.")
    return value


_MOST_PORTS: Final = 1000


def _network(value: Any) -> Any:
    """Return the ports that are left of the network; none at all for the word."""
    hint = "Write none, or a list of ports: [443]."
    if value == "none":
        return ()
    if not is_list(value):
        raise wrong("none or a list of ports", value, hint)
    ports = [_count(port) for port in value]
    if any(not 0 < port < 65536 for port in ports) or len(ports) > _MOST_PORTS:
        raise bad("has a port that is not one of 1 to 65535.", hint)
    return tuple(dict.fromkeys(ports))


_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def _address(value: Any) -> str:
    """Return an address that is asked over TLS, or on this machine."""
    text, hint = _text(value), "Write https://…; http is for this machine alone."
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise bad("is no address.", hint) from None
    if not text.isascii() or not text.isprintable() or " " in text or parts.fragment or not host:
        raise bad("is no address.", hint)
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        raise bad("is neither https nor on this machine.", hint)
    return text


_APPROVE_SCHEMA: Final = {
    "anyOf": [
        {"enum": list(APPROVALS)},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        },
        {
            "type": "object",
            "properties": {"when": {"type": ["string", "object"]}, "by": {"enum": ["operator", "client"]}},
            "required": ["when", "by"],
            "additionalProperties": False,
        },
    ]
}
_RIGHTS_SCHEMA: Final = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "array", "minItems": 1, "items": {"enum": list(RIGHTS)}},
    ]
}
_SETTINGS: Final = {"type": ["object", "null"], "additionalProperties": True}
_ENTRY: Final = {
    "description": "A plugin or tool by name, or one name with its settings.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _SETTINGS},
    ],
}
_DURATION_SCHEMA: Final = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^(\d+(\.\d+)?\s*(ms|s|m|h|d)|\$\{.*\})$"},
    ]
}
_PRICE_SCHEMA: Final = {"type": ["number", "string"], "minimum": 0}
_PRICES: Final = ("input", "cached", "written", "output")
MODEL_KEYS: Final = frozenset({"prices", "currency", *_PRICES})
"""The keys of a model that mean something here; the others are free."""
_MODEL_SCHEMA: Final = {
    "type": ["object", "null"],
    "additionalProperties": True,
    "properties": {
        "prices": {
            "description": "What a million tokens cost: input, cached and written input, output.",
            "type": "object",
            "additionalProperties": False,
            "required": ["input", "output"],
            "properties": {
                **dict.fromkeys(_PRICES, _PRICE_SCHEMA),
                "currency": {"type": "string", "minLength": 1, "maxLength": 12},
            },
        }
    },
}
_SIZE_SCHEMA: Final = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^(\d+(\.\d+)?\s*([kKmMgG]?[bB]|[kKmMgG][iI][bB])|\$\{.*\})$"},
    ]
}

TextValue = Annotated[str, BeforeValidator(_text)]
Name = Annotated[str, BeforeValidator(_name), WithJsonSchema({"type": "string", "minLength": 1})]
Disabled = Annotated[bool | str, BeforeValidator(_validate_disabled)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Count = Annotated[int, BeforeValidator(_count), Strict(), WithJsonSchema({"type": "integer", "minimum": 0})]
Seconds = Annotated[float, BeforeValidator(seconds), WithJsonSchema(_DURATION_SCHEMA)]
ByteSize = Annotated[int, BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
KeptSize = Annotated[
    int,
    BeforeValidator(_kept_size),
    WithJsonSchema({"anyOf": [{"const": 0}, *_SIZE_SCHEMA["anyOf"]]}),
]
Days = Annotated[
    int, BeforeValidator(_days), Strict(), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_DAYS})
]
Address = Annotated[str, BeforeValidator(_address), WithJsonSchema({"type": "string", "format": "uri"})]
Free = Annotated[dict[str, Any], BeforeValidator(_any_mapping)]
Model = Annotated[dict[str, Any], BeforeValidator(_any_mapping), WithJsonSchema(_MODEL_SCHEMA)]
ToolEntry = Annotated[Any, BeforeValidator(_entry), WithJsonSchema(_ENTRY)]
OperatorRights = Annotated[tuple[Right, ...], BeforeValidator(_rights), WithJsonSchema(_RIGHTS_SCHEMA)]
ApproveRule = Annotated[Any, BeforeValidator(_approve), WithJsonSchema(_APPROVE_SCHEMA)]


def _function_name(value: str) -> str:
    if value.count(":") != 1 or not all(part.isidentifier() for part in re.split(r"[.:]", value)):
        raise bad("is not module:function.", "Name a function of a module beside this file.")
    return value


FunctionName = Annotated[Name, AfterValidator(_function_name)]
"""The name of a function: ``module:function``."""


class HookName(str):
    """The name of a function that stands where a text may stand: ``{python: "module:function"}``."""

    __slots__ = ()


def _policy(value: Any) -> str:
    if not is_mapping(value):
        return _text(value)
    if list(value) != ["python"]:
        raise bad("is neither text nor a hook.", "Write the text, or {python: module:function}.")
    return HookName(_function_name(_name(value["python"])))


def _needs(data: Any) -> Any:
    """Return needs by tool, those of the whole plugin under no name: a tool's are a mapping, its are not."""
    if not is_mapping(data):
        return data
    own = {key: data[key] for key in ("env", "when") if key in data and not is_mapping(data[key])}
    return {**{key: value for key, value in data.items() if key not in own}, "": own} if own else data


def _named_store(value: Any) -> Any:
    """Return the section of a store whose address stands for all of it."""
    return value if is_mapping(value) else {"url": _text(value)}


SwitchedOn = BeforeValidator(_expand_switch)
NamedStore = BeforeValidator(_named_store)
Network = Annotated[
    Any,
    BeforeValidator(_network),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "none"},
                {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
            ]
        }
    ),
]
NameList = list[Name]
Entries = list[ToolEntry]
Rules = BeforeValidator(_rules)
SwitchedBounds = BeforeValidator(_bounds)
NeedsOfPlugin = BeforeValidator(_needs)
PolicyValue = Annotated[
    Any,
    BeforeValidator(_policy),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"python": {"type": "string"}},
                    "required": ["python"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
