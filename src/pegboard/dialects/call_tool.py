"""The two tools through which every tool can be called that a client does not list."""

from __future__ import annotations

from pegboard.core.model.tools import JsonObject, Tool
from pegboard.dialects.names import READ_ONLY, meta_tool

CALL = "call_tool"
CALL_READ_ONLY = "call_read_only_tool"
PASS_ON = frozenset({CALL, CALL_READ_ONLY})
"""The meta-tools that pass ``arguments`` on to the tool that they name."""
_PROPERTIES = {"name": {"type": "string"}, "arguments": {"type": "object"}}
_WORST: JsonObject = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}


def call_through_tools() -> tuple[Tool, ...]:
    """Return both definitions; the annotations of ``call_tool`` are the honest worst case (G6)."""
    return (
        meta_tool(
            CALL,
            "Call a loaded tool that is not listed.",
            _PROPERTIES,
            required=("name",),
            annotations=_WORST,
        ),
        meta_tool(
            CALL_READ_ONLY,
            "Like call_tool, for tools that only read.",
            _PROPERTIES,
            required=("name",),
            annotations=READ_ONLY,
        ),
    )
