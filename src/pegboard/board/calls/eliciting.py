"""Ask the client of a call for an approval that it needs: by elicitation, for this once (A3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from pegboard.board.calls.approvals import Approvals
from pegboard.board.calls.call_request import CallRequest
from pegboard.board.services import Services
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.errors import StoreError, UsageError
from pegboard.ports import AskRefusedError, Client
from pegboard.support.backoff import Backoff
from pegboard.support.visible_text import visible

LOOK_EVERY: Final = 1.0
"""How often it is looked whether an operator has answered what a client is asked, in seconds; sooner at first."""
LONGEST: Final = 16_000
"""How many characters of arguments a client is shown."""
_FORM: Final[JsonObject] = {"type": "object", "properties": {}}
_PRIMITIVE: Final = frozenset({"string", "number", "integer", "boolean"})


async def asked_client(call: CallRequest, client: Client, approval: Approval) -> str:
    """Return nothing once the client has answered, or an operator of any process; else why nobody did.

    While it is asked no call is in flight, so that neither other calls nor the end of the turn wait for it.
    """
    if approval.decider == "operator":
        return "An operator answers it, not the user of the client."
    shown = visible(json.dumps(approval.arguments, ensure_ascii=False, indent=1))
    form = _form(approval)
    if form is None or len(shown) > LONGEST:
        return "It cannot be asked for by a form."
    message = (
        f"Agent '{approval.binding.agent}' wants to call '{approval.tool}': {visible(approval.reason)}.\n"
        f"Arguments: {shown}\nAllow this call once?"
    )
    asked = client.ask(
        "elicitation/create", {"message": message, "requestedSchema": form}, about=f"approval {approval.id}"
    )
    try:
        with call.waiting():
            answer = await _first(call.services, approval, asked)
    except AskRefusedError as error:
        return error.message
    if answer is None:
        return ""
    try:
        return await _answered(call.services, approval, answer)
    except UsageError as error:
        newest = await call.services.store.approval(approval.id)
        decided = newest is None or newest.status != "waiting"
        return "" if decided else error.message


async def _first(services: Services, approval: Approval, asked: Coroutine[Any, Any, JsonObject]) -> JsonObject | None:
    """Return what the client answers, or None where an operator of any process is first; then it is asked no more."""
    answering, deciding = asyncio.create_task(asked), asyncio.create_task(_decided(services, approval))
    both = {answering, deciding}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        for task in both:
            task.cancel()
        await asyncio.wait(both)


async def _decided(services: Services, approval: Approval) -> None:
    """Return once an approval waits no more; a store that cannot be read is looked at again."""
    newest: Approval | None = approval
    pauses = Backoff(first=0.1, longest=LOOK_EVERY)
    while newest is not None and newest.status == "waiting":
        await pauses.wait()
        with suppress(StoreError):
            newest = await services.store.approval(approval.id)


async def _answered(services: Services, approval: Approval, answer: JsonObject) -> str:
    approvals, by = Approvals(services, elicited=True), approval.binding.principal
    match answer.get("action"):
        case "accept":
            content: object = answer.get("content")
            given = cast("JsonObject", content) if isinstance(content, Mapping) else EMPTY
            fields = given if approval.kind == "user_input" else None
            await approvals.allow(approval.id, by=by, fields=fields, expected="waiting")
            return ""
        case "decline":
            reason = "Refused by the user of the client."
            await approvals.refuse(approval.id, by=by, reason=reason, expected="waiting")
            return ""
        case _:
            return "The user of the client has closed the question."


def _form(approval: Approval) -> JsonObject | None:
    """Return the form that a client is to show, or None where no form can hold what is to be filled in."""
    match approval.kind:
        case "confirm":
            return _FORM
        case "external":
            return None
        case "user_input":
            properties: Mapping[str, Any] = approval.fields.get("properties", {})
            plain = all(part.get("type") in _PRIMITIVE for part in properties.values())
            return {key: value for key, value in approval.fields.items() if key != "$defs"} if plain else None
