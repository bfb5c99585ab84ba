"""How a tool is called from the command line, as its schema has it: `pegboard call TOOL --help`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from pegboard.cli.tool_arguments import Parameter, parameters_of
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import Tool


def help_of(tool: Tool) -> str:
    """Return the help of a tool: what it does, an example line, and each argument with its type."""
    parameters = parameters_of(tool.input_schema)
    lines = [f"Usage: {example_of(tool)}", ""]
    if tool.description:
        lines += [tool.description.strip(), ""]
    lines += ["Arguments:", *_rows(parameters)] if parameters else ["It takes no arguments."]
    return "\n".join(lines)


def example_of(tool: Tool) -> str:
    """Return one line that calls a tool with the arguments that it requires, and one other where it requires none."""
    parameters = parameters_of(tool.input_schema)
    shown = [one for one in parameters if one.required]
    return " ".join(["pegboard call", shlex.quote(tool.wire), *(_example_value(one) for one in shown)])


def signature_of(tool: Tool, *, most: int = 8) -> str:
    """Return a tool with the names of its arguments, those that it does not require with a question mark.

    >>> signature_of(Tool(plugin="notes", name="add_note", wire="add_note"))
    'add_note()'
    """
    parameters = parameters_of(tool.input_schema)
    names = [one.name if one.required else f"{one.name}?" for one in parameters]
    return f"{tool.wire}({', '.join(names[:most])}{', …' if len(names) > most else ''})"


def _rows(parameters: tuple[Parameter, ...]) -> Iterator[str]:
    named = [(f"{one.name}={_kind(one)}", one) for one in parameters]
    width = min(max(len(text) for text, _ in named), 40)
    for text, one in named:
        notes = [one_line(one.description, limit=300)] if one.description else []
        notes += [] if one.required else [_default(one.schema)]
        yield f"  {text:<{width}}  {' '.join(notes)}".rstrip()


def _default(schema: Any) -> str:
    if "default" in schema and schema["default"] is not None:
        return f"[default: {one_line(json.dumps(schema['default'], ensure_ascii=False), limit=60)}]"
    return "[optional]"


def _kind(one: Parameter) -> str:
    values = one.schema.get("enum")
    if isinstance(values, list) and values:
        return one_line("|".join(str(each) for each in values), limit=60)
    kinds = sorted(one.types - {"null"})
    names = {"string": "TEXT", "integer": "NUMBER", "number": "NUMBER", "boolean": "true|false"}
    return "|".join(dict.fromkeys(names.get(kind, f"JSON-{kind}") for kind in kinds)) or "TEXT"


def _example_value(one: Parameter) -> str:
    """Return an example of an argument: its default, its first allowed value, or one of its type."""
    value: Any = next(
        (found for key in ("default", "const") if (found := one.schema.get(key)) is not None),
        next(iter(one.schema.get("enum") or one.schema.get("examples") or ()), None),
    )
    if value is None:
        samples = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
        kinds = [] if "string" in one.types else sorted(one.types & samples.keys())
        value = samples[kinds[0]] if kinds else "…"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shlex.quote(f"{one.name}={text}") if text != "…" else f"{one.name}=…"
