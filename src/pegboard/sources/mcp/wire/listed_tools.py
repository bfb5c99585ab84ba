"""Pages of tools as servers list them: each tool is judged alone, and what stands around the tools apart from them.

The SDK refuses a whole page for one field that it does not take. Imports the SDK: import late.
"""

from __future__ import annotations

from typing import Any, Final, cast

from mcp_types import ListToolsResult
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from pegboard.core.model.naming import one_line
from pegboard.sources.mcp.wire.open_connection import OpenConnection
from pegboard.support.odd_json import depth_of

_DISPENSABLE: Final = frozenset({"outputSchema", "icons", "title", "execution"})
"""The fields of a tool without which it can be called as well."""
_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Members of a schema that are objects; some languages write an empty one as a list."""
_NOTHING: Final = ([], {}, None)
_DEEPEST: Final = 200
"""How deep a tool may be nested: what validates arguments, and what models are sent, goes no deeper."""
_MODERN: Final = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
"""What a page has to have in the 2026 era. Nothing here uses it, so none of a server counts."""


def make_usable(page: dict[str, Any], live: OpenConnection) -> None:
    """Leave in a page of tools what the SDK takes, and report the rest: a field, else the tool, never the page."""
    tools: object = page["tools"]
    if not isinstance(tools, list):
        return
    cursor, meta = page.get("nextCursor"), page.get("_meta")
    if cursor is not None and not isinstance(cursor, str):
        live.exclude("the cursor after a page of its tools", f"its cursor is {type(cursor).__name__}, not a text")
    page.clear()
    page.update(_MODERN if live.modern else {})
    page.update({"_meta": meta} if isinstance(meta, dict) else {})
    page.update({"nextCursor": cursor} if isinstance(cursor, str) else {})
    page["tools"] = kept = list[Any]()
    for number, tool in enumerate(cast("list[Any]", tools), start=1):
        fault = _made_usable(tool, live)
        if fault is None:
            kept.append(tool)
        else:
            name: object = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
            live.drop(name if isinstance(name, str) and name else f"#{number}", fault)


def _made_usable(tool: Any, live: OpenConnection) -> str | None:
    """Return why a tool cannot be used, None where it can, without those of its fields perhaps that are wrong."""
    if not isinstance(tool, dict):
        return "it is not an object"
    tool = cast("dict[str, Any]", tool)
    if tool.get("name") == "":
        return "its name is empty"
    if depth_of(tool) > _DEEPEST:
        return f"it is nested more than {_DEEPEST} levels deep"
    if tool.get("annotations") == []:
        tool["annotations"] = {}
    if "inputSchema" in tool and tool["inputSchema"] in _NOTHING:
        tool["inputSchema"] = {}
    schema: object = tool.get("inputSchema")
    if isinstance(schema, dict):
        _correct_empty(cast("dict[str, Any]", schema))
    faults = _faults(tool, live)
    for name in faults.keys() & _DISPENSABLE:
        live.report_left_out(f"`{name}` of '{tool.get('name')}'", faults.pop(name))
        del tool[name]
    return next(iter(faults.values()), None)


def _correct_empty(schema: dict[str, Any]) -> None:
    """Write empty objects as such, and that the whole is an object: nothing else can be meant."""
    if schema.get("type") is None:
        schema["type"] = "object"
    pending: list[Any] = [schema]
    while pending:
        match pending.pop():
            case dict() as found:
                found = cast("dict[str, Any]", found)
                for key in _MAPS:
                    if key in found and found[key] in ([], None):
                        found[key] = {}
                if "required" in found and found["required"] in ({}, None):
                    found["required"] = []
                pending += found.values()
            case list() as found:
                pending += cast("list[Any]", found)
            case _:
                pass


def _faults(tool: dict[str, Any], live: OpenConnection) -> dict[str, str]:
    """Return what is wrong with a tool, the first of each of its fields."""
    found: dict[str, str] = {}
    page = {**(_MODERN if live.modern else {}), "tools": [tool]}
    try:
        validate_server_result("tools/list", live.version, page)
        ListToolsResult.model_validate(page, by_name=False)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_input=False, include_context=False):
            field = str(one["loc"][2]) if len(one["loc"]) > 2 else ""
            where = ".".join(str(part) for part in one["loc"][2:])
            found.setdefault(field, one_line(f"{where}: {one['msg']}" if where else one["msg"], limit=300))
    except KeyError:
        pass
    return found
