"""What a model wrote for a meta-tool under names that it does not have, and the call that would be right (X2).

Clients add keys of their own to every call, and these change nothing. What can only be an argument that was written
under another name, or beside ``arguments``, would be lost without a word: such a call is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.model.written_arguments import declared_value, parsed_arguments

_LONGEST: Final = 2_000
"""How many characters of a call are shown."""
_OTHER_NAMES: Final = (
    (
        ("names", "name", "toolkit", "plugin", "query", "keyword"),
        "name names tool tools toolname toolnames toolid function functionname",
    ),
    (("names", "toolkit", "plugin", "query", "keyword"), "toolkit toolkits toolkitname plugin plugins pluginname"),
    (("queries", "query", "keyword"), "query queries q search searchquery keyword keywords need needs"),
    (("arguments",), "args argument parameters params input inputs toolargs toolarguments toolinput kwargs"),
    (("mode", "action"), "mode action operation"),
    (("keep",), "until lease"),
    (("limit",), "maxresults topk"),
)
"""Which of these parameters a meta-tool has is meant by these other names, written in one word."""
_MEANT: Final = tuple((parameters, frozenset(others.split())) for parameters, others in _OTHER_NAMES)


_ARGUMENTS: Final = frozenset({"arguments", *dict(_MEANT)["arguments",]})
"""What models call the arguments of a tool."""


def why_mistaken(tool: Tool, arguments: JsonObject, problems: list[str]) -> str:
    """Return why a call of a meta-tool is not carried out, with the right call, or nothing.

    ``problems`` is why its arguments do not fit its schema; what else it passes on is asked by :func:`lost`.
    """
    renamed = dict(_misnamed_parameters(tool, arguments))
    if not problems and not renamed:
        return ""
    if problems:
        why = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
    else:
        why = f"'{tool.wire}' has no argument {_quote(renamed)}, and has done nothing."
    right = _corrected_arguments(tool, arguments, renamed)
    given = {name: value for name, value in arguments.items() if name in _properties(tool)}
    return why if problems and right == given else f"{why} {_call(tool, right)}"


def why_arguments_lost(tool: Tool, arguments: JsonObject, target: Tool) -> str:
    """Return why a call is not passed on to its target: something written beside would not reach it; else nothing."""
    own: JsonObject = arguments.get("arguments") or {}
    is_open = target.input_schema.get("additionalProperties") is not False
    beside = dict(_arguments_beside(tool, arguments, _properties(target), is_open=is_open))
    if not beside:
        return _why_wrapped(tool, arguments, target)
    right = dict(own)
    for key, value in beside.items():
        other = None if key in _properties(target) else _parameter(tool, key)
        if other == "arguments" and (inner := _object(value)) is not None:
            right.update({name: one for name, one in inner.items() if name not in own})
        elif other is None and (key in _properties(target) or is_open):
            right.setdefault(key, value)
    name = str(arguments["name"])
    return (
        f"'{tool.wire}' passes 'arguments' on and nothing else: {_quote(beside)} would not reach '{name}', which has "
        f"not run. {_call(tool, {'name': name, 'arguments': right})}"
    )


def _why_wrapped(tool: Tool, arguments: JsonObject, target: Tool) -> str:
    """Return why a call is not passed on whose arguments are all inside another `arguments`; else nothing."""
    own: JsonObject = arguments.get("arguments") or {}
    properties = _properties(target)
    if len(own) != 1:
        return ""
    ((key, value),) = own.items()
    inner = _object(value)
    if (
        key in properties
        or _normalized_name(key) not in _ARGUMENTS
        or not inner
        or not inner.keys() <= properties.keys()
    ):
        return ""
    name = str(arguments["name"])
    return (
        f"'{name}' has no argument '{key}', and what is inside it would not reach it. It has not run. "
        f"{_call(tool, {'name': name, 'arguments': inner})}"
    )


def _arguments_beside(
    tool: Tool, arguments: JsonObject, properties: JsonObject, *, is_open: bool
) -> Iterator[tuple[str, Any]]:
    """Yield what is written beside ``arguments`` and is meant for the tool, by the name that the tool has for it."""
    own: JsonObject = arguments.get("arguments") or {}
    for key, value in arguments.items():
        if key in ("name", "arguments") or value is None or _is_own_name(value, tool):
            continue
        if key.startswith("_") and key not in properties:  # a client's own, not the model's
            continue
        parameter = _similar_parameter(key, properties)
        if parameter is not None:
            if parameter not in own or own[parameter] != value:
                yield parameter, value
        elif (other := _parameter(tool, key)) is not None:
            if value and (_object(value) != own if other == "arguments" else value != arguments[other]):
                yield key, value
        elif "arguments" not in arguments and (properties or is_open):
            yield key, value


def _misnamed_parameters(tool: Tool, arguments: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each key that can only stand for a parameter of a meta-tool, and that parameter."""
    for key, value in arguments.items():
        parameter = _parameter(tool, key)
        if parameter is None or ("arguments" in _properties(tool) and "name" in arguments):  # see `lost`
            continue
        if value in (None, "", []) or key.startswith("_") or _is_own_name(value, tool):
            continue
        schema = _properties(tool)[parameter]
        if not _is_repeated(_convert_value(value, schema), _convert_value(arguments.get(parameter), schema)):
            yield key, parameter


def _is_own_name(value: object, tool: Tool) -> bool:
    """Return whether a value is the name of the meta-tool, also as a client names it: ``mcp__pegboard__call_tool``."""
    return isinstance(value, str) and (
        value == tool.wire or value.endswith((f"_{tool.wire}", f".{tool.wire}", f"/{tool.wire}"))
    )


def _is_repeated(value: object, given: object) -> bool:
    """Return whether a value is given already: it, or what it lists."""
    if isinstance(value, list) and isinstance(given, list):
        return all(one in cast("list[object]", given) for one in cast("list[object]", value))
    return value == given


def _parameter(tool: Tool, key: str) -> str | None:
    """Return the real parameter of a meta-tool that an unknown key stands for, or None."""
    properties = _properties(tool)
    if key in properties:
        return None
    if (alike := _similar_parameter(key, properties)) is not None:
        return alike
    word = _normalized_name(key)
    named = (parameter for parameters, others in _MEANT if word in others for parameter in parameters)
    return next((parameter for parameter in named if parameter in properties), None)


def _corrected_arguments(tool: Tool, arguments: JsonObject, renamed: Mapping[str, str]) -> dict[str, object]:
    """Return the arguments under the names of the parameters, each that is required among them."""
    properties = _properties(tool)
    right: dict[str, object] = {
        name: _convert_value(value, properties[name]) for name, value in arguments.items() if name in properties
    }
    for key, parameter in renamed.items():
        value = _convert_value(arguments[key], properties[parameter])
        right[parameter] = _merge_values(right[parameter], value) if parameter in right else value
    required: list[str] = tool.input_schema.get("required", [])
    return {**{name: _placeholder(properties[name]) for name in required if name not in right}, **right}


def _merge_values(first: object, second: object) -> object:
    """Return two values of one parameter as one, where it is a list; else the first."""
    if isinstance(first, list) and isinstance(second, list):
        mine, more = cast("list[object]", first), cast("list[object]", second)
        return [*mine, *(value for value in more if value not in mine)]
    return cast("object", first)


def _convert_value(value: object, schema: JsonObject) -> object:
    """Return a value in the kind that its parameter has; several texts for one as one text."""
    if schema.get("type") == "string" and isinstance(value, list):
        return ",".join(map(str, cast("list[object]", value)))
    return declared_value(value, schema)


def _object(value: object) -> JsonObject | None:
    """Return an object, also one that is written as a text; None for anything else."""
    return parsed_arguments(value) if value else None


def _placeholder(schema: JsonObject) -> Any:
    text = " | ".join(schema.get("enum", ())) or "…"
    return [text] if schema.get("type") == "array" else text


def _similar_parameter(key: str, properties: JsonObject) -> str | None:
    """Return the parameter whose name is a key but for case and separators."""
    return (
        key
        if key in properties
        else next((name for name in properties if _normalized_name(name) == _normalized_name(key)), None)
    )


def _normalized_name(name: str) -> str:
    """Return a name in one word of small letters.

    >>> _normalized_name("tool_Name"), _normalized_name("toolName")
    ('toolname', 'toolname')
    """
    return "".join(character for character in name if character.isalnum()).casefold()


def _properties(tool: Tool) -> JsonObject:
    return tool.input_schema.get("properties") or {}


def _quote(names: Mapping[str, object]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _call(tool: Tool, arguments: JsonObject) -> str:
    try:
        text = json.dumps(arguments, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        text = "{…}"
    return f"Write: {tool.wire} {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}"
