"""Pages of tools of which one bad tool never costs the rest (G8). Imports the SDK: import late."""

from __future__ import annotations

from typing import Any, cast

from mcp_types import ListToolsResult
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from pegboard.sources.mcp.wire.record import ConnectionRecord


def drop_invalid_tools(result: dict[str, Any], record: ConnectionRecord) -> None:
    """Leave in a page of tools only those that the SDK takes, and report the others."""
    tools: object = result["tools"]
    if not isinstance(tools, list):
        return
    if record.modern:  # required there, and nothing that we use: a server without them still has tools
        result.setdefault("ttlMs", 0)
        result.setdefault("cacheScope", "private")
        result.setdefault("resultType", "complete")
    kept: list[Any] = []
    for number, tool in enumerate(cast("list[Any]", tools)):
        fault = _fault({**result, "tools": [tool]}, record.version)
        if fault is None:
            kept.append(tool)
            continue
        name: object = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
        record.diagnostics.drop(name if isinstance(name, str) and name else f"#{number + 1}", fault)
    result["tools"] = kept


def _fault(page: dict[str, Any], version: str) -> str | None:
    """Return what is wrong with a page that has one tool."""
    tool: object = page["tools"][0]
    if isinstance(tool, dict) and cast("dict[str, Any]", tool).get("name") == "":
        return "its name is empty"
    try:
        validate_server_result("tools/list", version, page)
        ListToolsResult.model_validate(page, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][2:])
        return f"{where}: {first['msg']}" if where else first["msg"]
    except KeyError:
        return None
    return None
