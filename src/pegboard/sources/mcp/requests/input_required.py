"""Calls that a server of the 2026-07-28 era answers with questions first (MRTR). Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from pegboard.core.model.tools import JsonObject
from pegboard.ports import AskRefusedError
from pegboard.sources.mcp.wire.request_outcomes import InvalidAnswerError
from pegboard.sources.mcp.wire.server_requests import ASKED, ask
from pegboard.sources.mcp.wire.upstream_call import Call
from pegboard.support.backoff import Backoff

MOST_ROUNDS: Final = 10
"""How often one call may be asked back."""

RawResult = dict[str, Any]
Again = Callable[[dict[str, Any]], Awaitable[RawResult]]
"""Make the call again with these parameters beside its own."""


async def final_result(first: RawResult, call: Call, again: Again) -> RawResult:
    """Return the final result of a call: what the server asks is asked of the client, then it is called again.

    Raises ``InvalidAnswerError`` where the client does not answer, or the server asks without end.
    """
    result, backoff = first, Backoff(first=0.05, longest=0.25)
    for _ in range(MOST_ROUNDS):
        if result.get("resultType") != "input_required":
            return result
        requests: object = result.get("inputRequests")
        more: dict[str, Any] = {}
        if isinstance(requests, dict) and requests:
            more["inputResponses"] = await _collect_answers(cast("dict[str, Any]", requests), call)
            backoff.reset()
        else:  # the server only wants to be called again
            await backoff.wait()
        state: object = result.get("requestState")
        if state is not None:
            more["requestState"] = state
        result = await again(more)
    if result.get("resultType") == "input_required":
        raise InvalidAnswerError(f"it asked for input more than {MOST_ROUNDS} times in one call")
    return result


async def _collect_answers(requests: dict[str, Any], call: Call) -> dict[str, JsonObject]:
    """Return the answers by key, all asked for at once; the first refusal ends the others."""
    tasks = [asyncio.ensure_future(_answer_question(key, request, call)) for key, request in requests.items()]
    try:
        answers = await asyncio.gather(*tasks)
    except AskRefusedError as error:
        raise InvalidAnswerError(f"it asks for input that it cannot get: {error.message.removesuffix('.')}") from None
    finally:
        for task in tasks:
            task.cancel()
    return {key: dict(answer) for key, answer in zip(requests, answers, strict=True)}


async def _answer_question(key: str, request: Any, call: Call) -> JsonObject:
    match request:
        case {"method": str() as method} if method in ASKED:
            params: object = cast("dict[str, Any]", request).get("params")
            return await ask(call, method, cast("JsonObject", params) if isinstance(params, dict) else {})
        case _:
            raise InvalidAnswerError(f"its input request {key!r} is not part of the protocol")
