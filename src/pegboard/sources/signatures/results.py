"""Calls of functions as tools, and their results in MCP's shapes."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final, cast

from pegboard.core.model.tools import CallResult, JsonObject, text_result
from pegboard.ports import HookAnswer
from pegboard.sources.signatures.functions import Described
from pegboard.sources.stdout import IN_PLUGIN
from pegboard.support.threads import in_thread, settled

HOOK_SECONDS: Final = 2.0
"""How long a hook that judges a call may take."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


async def run(tool: Described, arguments: JsonObject, *, principal: str) -> CallResult:
    """Return what the function returned; what it raised, or its guard's refusal, is an error result.

    Functions that are not coroutines run in a thread. A refusal of the guard has
    ``{"pegboard/refused_by": "guard"}`` in its ``meta`` (T10).
    """
    token = IN_PLUGIN.set(True)
    try:
        positional, named = tool.bound(arguments)
        if tool.mark.guard is not None:
            refusal = await in_thread(tool.mark.guard, principal, arguments)
            if refusal:
                return _refused(tool.name, refusal)
        return as_result(await _returned(tool.function, positional, named))
    except BaseException as error:  # whatever user code raises is the tool's own failure
        if given_up(error):
            raise
        return failure(error)
    finally:
        IN_PLUGIN.reset(token)


async def hook_answer(tool: Described, arguments: JsonObject, *, principal: str) -> HookAnswer:
    """Return what the guard and the approval hook of a function say to a call; one that fails demands an approval."""
    token = IN_PLUGIN.set(True)
    try:
        if tool.mark.guard is not None and (refusal := await in_thread(tool.mark.guard, principal, arguments)):
            return HookAnswer(refused=_refusal(tool.name, refusal))
        hook = tool.mark.requires_confirmation
        if not callable(hook):
            return HookAnswer()
        async with asyncio.timeout(HOOK_SECONDS):
            answer = await in_thread(hook, principal, arguments)
        return HookAnswer(approval=answer if isinstance(answer, str) else "its hook says so" if answer else "")
    except BaseException as error:  # whatever user code raises
        if given_up(error):
            raise
        return HookAnswer(approval=f"its hook failed with {type(error).__name__}")
    finally:
        IN_PLUGIN.reset(token)


def given_up(error: BaseException) -> bool:
    """Return whether an exception means that nobody waits any more, and was not raised by the tool itself."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failure(error: BaseException) -> CallResult:
    """Return an error result with the exception's type and message, without a traceback."""
    name = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # an exception without a text of its own
        text = ""
    return text_result(f"{name}: {text}" if text else name, is_error=True)


def as_result(value: Any) -> CallResult:
    """Return a value in MCP's shapes.

    Text stays text and None is empty text; images are image blocks, other bytes embedded
    resources; everything else is JSON text, objects also structured content.
    """
    match value:
        case CallResult():
            return value
        case None:
            return text_result("")
        case str():
            return text_result(value)
        case bytes() | bytearray():
            return CallResult(content=(_binary(bytes(value)),))
        case _:
            return _json_result(value)


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


async def _returned(function: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    target = _target(function)
    if inspect.iscoroutinefunction(target):
        return await function(*positional, **named)
    if inspect.isasyncgenfunction(target):
        return await _collected(function(*positional, **named))
    value = await in_thread(_drained, function, positional, named)
    return await settled(value) if inspect.isawaitable(value) else value


def blocks(tool: Described) -> bool:
    """Return whether a function runs in a thread."""
    target = _target(tool.function)
    return not inspect.iscoroutinefunction(target) and not inspect.isasyncgenfunction(target)


def _target(function: Callable[..., Any]) -> Any:
    target = inspect.unwrap(function)
    return target if inspect.isroutine(target) else getattr(target, "__call__", target)  # noqa: B004


def _drained(function: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    value = function(*positional, **named)
    return _joined(list(cast("Iterator[Any]", value))) if inspect.isgenerator(value) else value


async def _collected(parts: AsyncIterator[Any]) -> Any:
    return _joined([part async for part in parts])


def _joined(parts: list[Any]) -> Any:
    return "".join(parts) if parts and all(isinstance(part, str) for part in parts) else parts


def _refused(name: str, reason: str) -> CallResult:
    block = {"type": "text", "text": _refusal(name, reason)}
    return CallResult(content=(block,), is_error=True, meta={"pegboard/refused_by": "guard"})


def _refusal(name: str, reason: str) -> str:
    return f"{name} was refused by its guard: {reason}"


def _binary(data: bytes) -> JsonObject:
    encoded = base64.b64encode(data).decode()
    kind = image_type(data)
    if kind is not None:
        return {"type": "image", "data": encoded, "mimeType": kind}
    resource = {"uri": "pegboard://result", "mimeType": "application/octet-stream", "blob": encoded}
    return {"type": "resource", "resource": resource}


def _json_result(value: Any) -> CallResult:
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings", fallback=str)
    if isinstance(plain, str):
        return text_result(plain)
    text = json.dumps(plain, ensure_ascii=False)
    structured = dict(cast("Mapping[str, Any]", plain)) if isinstance(plain, dict) else None
    return CallResult(content=({"type": "text", "text": text},), structured=structured)
