"""One call as it came, and how one that is refused is answered (P9, X4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pegboard.board.observability.audit import times_of_call
from pegboard.board.observability.call_details import EndedCall, details_of
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.shown_to_model import ShownToModel
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.recording import Recording
from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer, Refuse, answer, refused_by_guard
from pegboard.dialects.names import recorded_name
from pegboard.errors import ToolUnavailableError
from pegboard.ports import Client, Progress

Answered = tuple[Snapshot, CallAnswer]
"""The session after a call, and what came of it."""


@dataclass(slots=True, kw_only=True)
class CallRequest:
    """One call as it came: what is called with what, what binds it, and the way back to the caller.

    Attributes:
        services: the services of the board.
        name: the wire name that the model wrote.
        arguments: its arguments, not validated yet.
        shown: what the model was shown last, which binds the call (F3, D3).
        request: the request that it came with, in flight until it is answered (D2).
        passed_on: whether it came through ``call_tool`` or ``call_read_only_tool`` (X1).
        lost: returns why what was written beside its arguments would not reach a tool, or nothing; None where nothing
            was (X2).
        read_only: whether only a tool that counts as read-only may run (G6).
        progress: takes what the tool reports, or None.
        client: takes what an upstream asks and reports, and can be asked for an approval; or None.
        meta: the request's ``_meta`` for an upstream.
        waiting: entered while the client is asked for an approval.
        approval: the approval that the call is resumed with, or None.
        awaiting: the id of the waiting call that is resumed, or empty.
        deciding: whether it is only decided: nothing is loaded, recorded or run, and no approval is used up.
        asks: whether a person is asked about a call that is only decided.
        unread: what it is answered where the schema of its tool, which the model may not have read, is needed first.
        cautious: whether no person is asked, since the model may not have read that schema.
        came: when it came (``time.monotonic()``).
        waited: for how many milliseconds a person was asked through the client.
        approved: the id of the approval that lets it run, once the gate has found one.
        result: what the call came to where it was run elsewhere (T13), or None.
        handed: whether it was handed to its plugin, and not refused for want of a login.
        started: when it began to be carried out (``time.monotonic()``).
        ran: when it was handed to its plugin (``time.monotonic()``), or None.
        digest: the keyed digest of its arguments, once it is taken.
        sent: how many characters its arguments have as JSON, once they are counted and where they are JSON.
    """

    services: Services
    name: str
    arguments: JsonObject
    shown: ShownToModel
    request: Request
    passed_on: bool = False
    lost: Callable[[Tool], str] | None = None
    read_only: bool = False
    progress: Progress | None = None
    client: Client | None = None
    meta: JsonObject = EMPTY
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext
    approval: Approval | None = None
    awaiting: str = ""
    result: CallResult | None = None
    deciding: bool = False
    asks: bool = True
    came: float = field(default_factory=time.monotonic)
    unread: CallAnswer | Refuse | None = field(default=None, init=False)
    cautious: bool = field(default=False, init=False)
    waited: float | None = field(default=None, init=False)
    approved: str = field(default="", init=False)
    handed: bool = field(default=False, init=False)
    started: float = field(default=0.0, init=False)
    ran: float | None = field(default=None, init=False)
    digest: str = field(default="", init=False)
    sent: int | None = field(default=None, init=False)


async def arguments_fit(call: CallRequest, tool: Tool) -> bool:
    """Return whether the arguments of a call fit a tool; False too where that takes too long to see (X2)."""
    validator = call.services.validator
    if validator.fits(tool, call.arguments):
        return True
    try:
        return not await validator.problems(tool, call.arguments)
    except ToolUnavailableError:
        return False


def recording_of(services: Services, snapshot: Snapshot, tool: Tool | None) -> Recording:
    """Return what is kept of a call: the narrower of what its agent and its plugin say."""
    spec = services.loader.specs.get(tool.plugin) if tool is not None else None
    kept = snapshot.permissions.agent.record
    return kept if spec is None else kept.within(spec.record)


async def deny_call(
    call: CallRequest, snapshot: Snapshot, refusal: Refuse, name: str, *, result: CallResult | None = None
) -> CallAnswer:
    """Audit a refusal with its true reason, and return what the model reads of it (P9).

    A call that is only decided leaves no record. ``name`` is what was called, for the trail where it is no tool;
    ``result`` is what the model reads where that is more than the message.
    """
    tool, reason, services = refusal.tool, refusal.reason, call.services
    if not call.deciding:
        numbers = times_of_call(call.came, None, time.monotonic(), waited=call.waited, sent=call.sent)
        ended = EndedCall(tool.id if tool is not None else "", call.arguments, numbers, because=reason)
        await services.recorder.record_denial(
            snapshot.info.key,
            snapshot.state.turn,
            subject=recorded_name(tool) if tool is not None else name,
            reason=reason.text,
            outcome=reason.code,
            by=snapshot.info.by,
            details=details_of(services.masker, recording_of(services, snapshot, tool), ended),
        )
    made = answer(refusal.status, refusal.message, tool=tool)
    return made._replace(result=made.result if result is None else result, reason=reason.code)


async def refuse_by_guard(call: CallRequest, snapshot: Snapshot, tool: Tool, result: CallResult) -> CallAnswer:
    """Audit that a guard of the plugin refused the call, before anything ran (T10), and return its answer."""
    text = " ".join(str(block.get("text", "")) for block in result.content)
    return await deny_call(call, snapshot, refused_by_guard(tool, text), tool.wire, result=result)
