"""Tools and results in the form of the protocol, nothing added and nothing lost (G7), and digests of lists."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pegboard.core.access.extensions import is_task
from pegboard.core.model.leases import LeaseReason
from pegboard.support.mcp_constants import ALWAYS_LOAD_KEY

if TYPE_CHECKING:
    from pegboard.core.model.tools import CallResult, Tool
    from pegboard.core.surface.surfaces import Surface

MOST_DIGESTS: Final = 1_000
"""Of how many lists a digest is kept; those that were asked for longest ago go first."""
_IN_VIEW: Final[dict[str, Any]] = {"_meta": {ALWAYS_LOAD_KEY: True}}


def tools_of(surface: Surface, *, modern: bool) -> list[dict[str, Any]]:
    """Return the tools of a surface as ``tools/list`` has them, in order.

    Clients that defer tools are asked to keep the meta-tools in view: a model would have to search for the search.
    """
    return [
        {**tool_of(out.tool, modern=modern), **(_IN_VIEW if LeaseReason.META in out.because else {})}
        for out in surface.tools
    ]


def tool_of(tool: Tool, *, modern: bool) -> dict[str, Any]:
    """Return one tool on the wire; ``title``, ``icons`` and ``_meta`` pass through unchanged.

    Clients of the handshake era refuse a whole list for one output schema that is not an object.
    """
    wire: dict[str, Any] = {"name": tool.wire}
    if tool.description:
        wire["description"] = tool.description
    wire["inputSchema"] = _object_schema(tool.input_schema)
    output = tool.output_schema
    if output is not None and (modern or output.get("type") == "object"):
        wire["outputSchema"] = output
    if tool.annotations:
        wire["annotations"] = tool.annotations
    return {**{k: v for k, v in tool.extra.items() if v is not None}, **wire}


def _object_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema if schema.get("type") == "object" else {**schema, "type": "object"}


def result_of(result: CallResult, *, modern: bool) -> dict[str, Any]:
    """Return a result on the wire; structured content that is no object is a text before 2026-07-28, if it is all."""
    if result.more and is_task(result.more):
        return {**result.more, **({"_meta": dict(result.meta)} if result.meta else {})}
    content = [dict(block) for block in result.content]  # any other mapping is written at a third of the speed
    wire: dict[str, Any] = {"content": content, "isError": result.is_error}
    structured = result.structured
    if structured is not None and (modern or isinstance(structured, Mapping)):
        wire["structuredContent"] = structured
    elif structured is not None and not content:
        content.append({"type": "text", "text": json.dumps(structured, ensure_ascii=False, default=list)})
    if result.meta:
        wire["_meta"] = dict(result.meta)
    return {**result.more, **wire} if result.more else wire


def digest(tools: Iterable[Mapping[str, Any]]) -> str:
    """Return a text that differs where a list differs in any byte."""
    text = json.dumps(list(tools), ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


class ListDigests:
    """The digests of lists by the surface that they are of, which is kept: no other object has its identity."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, bool], tuple[object, str]] = OrderedDict()

    def digest_of(self, surface: Surface, *, modern: bool) -> str:
        """Return the digest of a surface as ``tools/list`` has it."""
        key = id(surface.tools), modern  # a focus is put around the same tools
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known[1]
        found = digest(tools_of(surface, modern=modern))
        self._known[key] = surface.tools, found
        if len(self._known) > MOST_DIGESTS:
            self._known.popitem(last=False)
        return found
