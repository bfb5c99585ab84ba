"""The definitions of tools in texts that a model reads: what it needs to call them, and what a text defines already."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast

from pegboard.core.model.naming import first_sentence, one_line
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.surface.brief_schema import Texts, brief_schema

_BEGINS: Final = re.compile(r'\{"name":\s?"')
DEFINING: Final = frozenset({"load_tools", "search_tools"})
"""The meta-tools whose answers define tools; what any other tool returns defines nothing."""
AHEAD: Final = "Loaded, to be called through call_tool:"
"""How a text begins that defines what is loaded ahead."""
_DECODER: Final = json.JSONDecoder()
_ARGUMENTS: Final = ("arguments", "inputSchema")


def definition(tool: Tool, texts: Texts = "whole") -> JsonObject:
    """Return what a model needs to call a tool, its schema in the brief form where it has one."""
    description = tool.description if texts == "whole" else first_sentence(tool.description)
    arguments = brief_schema(tool.input_schema, texts)
    if arguments is None:
        return {"description": description, "inputSchema": tool.input_schema}
    return {"description": description, "arguments": arguments}


def definitions(tools: Iterable[Tool], before: Iterable[Tool] = ()) -> list[JsonObject]:
    """Return definitions that stand in one text, with their names.

    What is stated of an argument stands once: where an argument of the same name has the same description in one of
    the tools ``before`` it, it has its type alone.
    """
    stated = {pair for tool in before for pair in _descriptions(tool)}
    found: list[JsonObject] = []
    for tool in tools:
        whole = definition(tool)
        brief: Mapping[str, Any] = whole.get("arguments", EMPTY)
        if brief:
            own = dict(_descriptions(tool))
            whole = {**whole, "arguments": {name: _once(name, text, own, stated) for name, text in brief.items()}}
            stated.update(own.items())
        found.append({"name": tool.wire, **whole})
    return found


def _descriptions(tool: Tool) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a tool with their descriptions."""
    properties: Any = tool.input_schema.get("properties")
    for name, argument in cast("Mapping[str, Any]", properties if isinstance(properties, Mapping) else EMPTY).items():
        if isinstance(argument, Mapping):
            text = one_line(str(cast("Mapping[str, Any]", argument).get("description") or ""))
            if text:
                yield name, text


def _once(name: str, brief: Any, own: Mapping[str, str], stated: set[tuple[str, str]]) -> Any:
    """Return an argument in its brief form, without a description that is stated already."""
    key = name.removesuffix("?")
    text = own.get(key, "")
    known = isinstance(brief, str) and (key, text) in stated
    return cast("str", brief).removesuffix(f": {text}") if known else brief


def definitions_ahead(tools: Iterable[Tool]) -> str:
    """Return the definitions of tools that are loaded ahead, for the end of a history; nothing without any (S5)."""
    defined = definitions(tools)
    return f"{AHEAD} {json.dumps(defined, ensure_ascii=False, separators=(',', ':'))}" if defined else ""


@lru_cache(maxsize=256)
def defined_in(text: str) -> Mapping[str, JsonObject]:
    """Return the definitions that stand in a text, by the names of their tools; a history has the same texts again."""
    return dict(_defined_in(text))


def all_defined_in(texts: Iterable[str]) -> Mapping[str, JsonObject]:
    """Return the definitions that stand in texts, by the names of their tools; the newest of a name counts."""
    return {name: found for text in texts for name, found in defined_in(text).items()}


def _defined_in(text: str) -> Iterator[tuple[str, JsonObject]]:
    for begins in _BEGINS.finditer(text):
        try:
            found, _ = _DECODER.raw_decode(text, begins.start())
        except ValueError:
            continue
        if "description" in found and any(key in found for key in _ARGUMENTS):
            yield str(found["name"]), found


def defines(found: JsonObject | None, tool: Tool) -> bool:
    """Return whether a definition that was found in a text is that of a tool as it is now."""
    now = definition(tool)
    if found is None or found.get("description") != now["description"]:
        return False
    before, arguments = found.get("arguments"), now.get("arguments")
    if not isinstance(before, Mapping) or not isinstance(arguments, Mapping):
        return found.get("inputSchema") == now.get("inputSchema") and before == arguments
    known, brief = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", arguments)
    return known.keys() == brief.keys() and all(_agrees(known[name], text) for name, text in brief.items())


def _agrees(before: Any, now: Any) -> bool:
    """Return whether an argument is the same; its description may stand elsewhere."""
    both = isinstance(before, str) and isinstance(now, str)
    return before == now or (both and cast("str", now).startswith(f"{before}: "))
