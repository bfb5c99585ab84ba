"""Go on with a call that waited for a person (A3, T13)."""

from __future__ import annotations

import json
from typing import Any, cast

from pegboard.board.calls import pipeline
from pegboard.board.calls.approval_gate import ended_answer
from pegboard.board.calls.call_request import CallRequest
from pegboard.board.services import AwaitingCall, Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.shown_to_model import ShownToModel
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.access.approvals.digests import canonical, digest
from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, text_result
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.errors import UsageError
from pegboard.ports import SessionKey


async def resume(services: Services, snapshot: Snapshot, shown: ShownToModel, waits_as: str, result: Any) -> CallAnswer:
    """Return what came of a call that waited; everything about it is decided again.

    ``waits_as`` is the id of its approval, or of the waiting call itself where it waits for a login. ``result`` is what
    a call came to that was run elsewhere; None where there is none.

    Raises ``UsageError`` where a result is handed in for a call that runs here.
    """
    awaiting = services.awaiting_login.waiting_call(snapshot.info.key, waits_as)
    if awaiting is not None:
        if result is not None:
            raise _runs_here_error(awaiting.name)
        return await _run_again(services, snapshot, shown, awaiting)
    approval = await services.store.approval(waits_as)
    if approval is None or not _belongs_to(approval, snapshot.info.key):
        return answer("not_found", f"There is no approval and no waiting call '{waits_as[:100]}' in this session.")
    if result is not None and approval.kind != "external":
        raise _runs_here_error(approval.tool)
    if (over := ended_answer(approval, services.store.clock())) is not None:
        return over
    arguments = await _arguments_as_asked(services, approval)
    if arguments is None:
        message = (
            f"The arguments of '{approval.tool}' hold a secret and are not stored. Make the same call again: it runs "
            "once it is allowed."
        )
        return answer("refused", message)
    with snapshot.info.conversation.requests.start() as request:
        handed_in = None if result is None else result_from_program(result)
        call = CallRequest(
            services=services,
            name=approval.binding.tool,
            arguments=arguments,
            shown=shown,
            request=request,
            approval=approval,
            result=handed_in,
        )
        return (await pipeline.run_call(call, snapshot))[1]


async def _run_again(services: Services, snapshot: Snapshot, shown: ShownToModel, awaiting: AwaitingCall) -> CallAnswer:
    """Return what came of a call that waited for a login: it runs once, and waits on for as long as it has not run."""
    if awaiting.resumed:
        message = f"'{awaiting.name}' was not called: the waiting call {awaiting.id} has been resumed already."
        return answer("refused", message)
    calls, key = services.awaiting_login, snapshot.info.key
    calls.put(key, awaiting._replace(arguments=EMPTY, resumed=True))
    with snapshot.info.conversation.requests.start() as request:
        call = CallRequest(
            services=services,
            name=awaiting.name,
            arguments=awaiting.arguments,
            shown=shown,
            request=request,
            passed_on=awaiting.passed_on,
            read_only=awaiting.read_only,
            awaiting=awaiting.id,
        )
        answered: CallAnswer | None = None
        try:
            answered = (await pipeline.run_call(call, snapshot))[1]
            return answered
        finally:
            by_approval = answered is not None and answered.status == "needs_approval"  # it is resumed by that id now
            if not call.handed and not by_approval:
                calls.put(key, awaiting)


def _runs_here_error(tool: str) -> UsageError:
    return UsageError(f"'{tool}' runs here: no result can be passed in for it.", code="approval_kind")


def _belongs_to(approval: Approval, key: SessionKey) -> bool:
    own = approval.binding
    return (own.principal, own.agent, own.session) == (key.principal, key.agent, key.session)


async def _arguments_as_asked(services: Services, approval: Approval) -> JsonObject | None:
    """Return the arguments as the model gave them, or None where this process does not have them."""
    given = services.unkept.get(approval.id) or approval.arguments
    fields = approval.fields.get("properties", {})
    arguments = {name: value for name, value in given.items() if name not in fields}
    key = await services.store.digest_key()
    return arguments if digest(key, canonical(arguments)) == approval.asked else None


def result_from_program(value: Any) -> CallResult:
    """Return what a program hands in as the result of a call: text, a result, or any JSON value."""
    match value:
        case CallResult():
            return value
        case str():
            return text_result(value)
        case _:
            text = json.dumps(value, ensure_ascii=False, default=str)
            structured = cast("JsonObject", value) if isinstance(value, dict) else None
            return CallResult(content=({"type": "text", "text": text},), structured=structured)
