"""Functions of Agno, run as its own agents run them, without an agent: hooks, caches, injected values, results."""

from __future__ import annotations

import base64
import importlib
import inspect
from collections.abc import Iterator
from typing import Any, cast

from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, text_result
from pegboard.ports.framework_runs import FrameworkResult
from pegboard.sources.signatures import as_result, failure, image_type, is_abandoned, run_in_thread
from pegboard.sources.stdout import plugin_output


async def run_function(function: Any, arguments: JsonObject, beside: FrameworkResult) -> CallResult:
    """Return what a function returned; a failure is an error result, and what was raised stands beside it."""
    with plugin_output():
        try:
            outcome = await _execute_function(function, arguments)
            if outcome.status != "success":
                return text_result(str(outcome.error or "the tool failed"), is_error=True)
            return _result_of(await _collect_generator(outcome.result))
        except BaseException as error:  # whatever a toolkit raises is the tool's own failure
            if is_abandoned(error):
                raise
            beside.raised = error
            return failure(error)


async def _execute_function(function: Any, arguments: JsonObject) -> Any:
    call: Any = importlib.import_module("agno.tools.function").FunctionCall
    request = call(function=function, arguments=dict(arguments))
    if inspect.iscoroutinefunction(function.entrypoint) or inspect.isasyncgenfunction(function.entrypoint):
        return await request.aexecute()
    return await run_in_thread(request.execute)


async def _collect_generator(value: Any) -> Any:
    """Return what a generator yields, joined where it is text."""
    parts: list[Any]
    if inspect.isasyncgen(value):
        parts = [part async for part in value]
    elif inspect.isgenerator(value):
        parts = await run_in_thread(lambda: list(cast("Iterator[Any]", value)))
    else:
        return value
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


def _result_of(value: Any) -> CallResult:
    """Return what a function returned; a ``ToolResult`` with its images, sounds and files."""
    if type(value).__name__ != "ToolResult":
        return as_result(value)
    blocks: list[JsonObject] = [{"type": "text", "text": value.content}]
    for kind, fallback in (("images", "image/png"), ("audios", "audio/mpeg"), ("videos", "video/mp4"), ("files", "")):
        blocks.extend(_media_block(item, fallback) for item in getattr(value, kind, None) or ())
    extra = dict(value.metadata or {})
    return CallResult(
        content=tuple(blocks), structured=extra.get("structured_content"), meta=extra.get("meta") or EMPTY
    )


def _media_block(item: Any, fallback: str) -> JsonObject:
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
