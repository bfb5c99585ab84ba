"""What is counted: the serialised schema of a tool, as a model provider takes it (F4)."""

from __future__ import annotations

import json

from pegboard.core.tools import Tool


def serialised(tool: Tool) -> str:
    """Return name, description and input schema as the compact JSON whose tokens are counted."""
    return json.dumps(
        {"name": tool.wire, "description": tool.description, "inputSchema": tool.input_schema},
        ensure_ascii=False,
        separators=(",", ":"),
    )
