"""MCP's wire objects as core values, nothing lost and nothing added (G7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pegboard.core.access.extensions import is_task, with_task_ids
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest, Tool
from pegboard.support.mcp_constants import CAPABILITIES_KEY, CLIENT_KEY, SUBSCRIPTION_KEY, VERSION_KEY

_OWN = frozenset({"name", "description", "inputSchema", "outputSchema", "annotations"})
_OF_RESULT = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_NO_ERROR: tuple[object, ...] = (None, False, 0, "", "false")
_ENVELOPE = frozenset({VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY, SUBSCRIPTION_KEY})


def tool_of(plugin: str, raw: Mapping[str, Any]) -> Tool:
    """Return a tool as its server lists it; what we have no field for is in ``extra``."""
    output = raw.get("outputSchema")
    return Tool(
        plugin=plugin,
        name=raw["name"],
        description=raw.get("description") or "",
        input_schema=Frozen(raw["inputSchema"]),
        output_schema=None if output is None else Frozen(output),
        annotations=Frozen(raw.get("annotations") or {}),
        extra=Frozen({key: value for key, value in raw.items() if key not in _OWN}),
    )


def manifest_of(
    plugin: str,
    tools: Iterable[Mapping[str, Any]],
    *,
    description: str | None,
    instructions: str | None,
    offers: frozenset[str] | None = None,
    declares: JsonObject = EMPTY,
    package: str = "",
    reached_by: Mapping[str, str] = EMPTY,
    excluded: Mapping[str, str] = EMPTY,
    cut: Mapping[str, str] = EMPTY,
) -> Manifest:
    """Return what a server says of itself, and how its package is described."""
    return Manifest(
        tools=tuple(tool_of(plugin, raw) for raw in tools),
        description=description or "",
        instructions=instructions or "",
        offers=offers,
        declares=declares,
        package=package,
        reached_by=Frozen(reached_by),
        excluded=Frozen(excluded),
        cut=Frozen(cut),
    )


def result_of(raw: Mapping[str, Any], task_id: Callable[[str], str]) -> CallResult:
    """Return the result of a call as its server gave it.

    One that stands for a task has nothing but that, with its ids as ``task_id`` makes them.
    """
    meta = raw.get("_meta")
    content = raw.get("content")
    if (content is None or raw.get("resultType") == "task") and is_task(raw):
        shown = with_task_ids(raw, task_id)
        meta, task = shown.get("_meta"), {key: value for key, value in shown.items() if key != "_meta"}
        return CallResult(meta=Frozen(meta) if isinstance(meta, dict) else EMPTY, more=Frozen(task))
    known = raw.keys() <= _OF_RESULT
    more = {} if known else {key: value for key, value in raw.items() if key not in _OF_RESULT}
    return CallResult(
        content=_blocks(content),
        structured=raw.get("structuredContent"),
        is_error=raw.get("isError") not in _NO_ERROR,
        meta=Frozen(meta) if isinstance(meta, dict) else EMPTY,
        more=Frozen(more) if more else EMPTY,
    )


def _blocks(content: Any) -> tuple[Frozen, ...]:
    """Return the blocks of a result; what is no block becomes text: the tool has run, and no result is lost."""
    if type(content) is list and len(content) == 1 and type(only := content[0]) is dict:
        return (Frozen(only),)
    blocks = content if isinstance(content, list) else [content]
    found = [Frozen(block) if type(block) is dict else _text_block(block) for block in blocks if block is not None]
    return tuple(found)


def _text_block(block: object) -> Frozen:
    text = block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)
    return Frozen({"type": "text", "text": text})


def meta_for_upstream(meta: JsonObject) -> dict[str, Any] | None:
    """Return a request's ``_meta`` without what belongs to one connection only."""
    if not meta:
        return None
    kept = {key: value for key, value in meta.items() if key != "progressToken" and key not in _ENVELOPE}
    return kept or None
