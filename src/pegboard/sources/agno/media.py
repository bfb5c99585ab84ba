"""What Agno's functions return, in MCP's shapes."""

from __future__ import annotations

import base64
from typing import Any

from pegboard.core.model.tools import EMPTY, CallResult, JsonObject
from pegboard.sources.signatures import as_result, image_type


def result_of(value: Any) -> CallResult:
    """Return what a function returned; a ``ToolResult`` with its images, sounds and files."""
    if type(value).__name__ != "ToolResult":
        return as_result(value)
    blocks: list[JsonObject] = [{"type": "text", "text": value.content}]
    for kind, fallback in (("images", "image/png"), ("audios", "audio/mpeg"), ("videos", "video/mp4"), ("files", "")):
        blocks.extend(_medium(item, fallback) for item in getattr(value, kind, None) or ())
    extra = dict(value.metadata or {})
    return CallResult(
        content=tuple(blocks), structured=extra.get("structured_content"), meta=extra.get("meta") or EMPTY
    )


def _medium(item: Any, fallback: str) -> JsonObject:
    """Return a block for one of Agno's media: its bytes, else a link to it."""
    data = item.content if isinstance(getattr(item, "content", None), bytes) else b""
    kind = getattr(item, "mime_type", None) or image_type(data) or fallback or "application/octet-stream"
    name = getattr(item, "filename", None) or getattr(item, "id", None) or "result"
    if not data:
        uri = str(getattr(item, "url", None) or getattr(item, "filepath", None) or f"pegboard://{name}")
        return {"type": "resource_link", "uri": uri, "name": str(name), "mimeType": kind}
    encoded = base64.b64encode(data).decode()
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": encoded, "mimeType": kind}
    return {"type": "resource", "resource": {"uri": f"pegboard://{name}", "mimeType": kind, "blob": encoded}}
