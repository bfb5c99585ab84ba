"""One call as operators see it: what it was given and answered, its times, what came before and after it (X4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.board.observability.call_details import StoredCall, call_of_text, tokens_of_call
from pegboard.board.services import Services
from pegboard.core.model.recording import UNLESS_STATED
from pegboard.errors import UsageError
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.timeline import CALLS, TimelineLine, line_of
from pegboard.operators.trying import ToolTrial, make_trial_call, waiting_session
from pegboard.ports import AuditRecord, CallDetails, CallNumbers, SessionKey

BESIDE: Final = 4
"""How many records before and after a call are shown."""
AGAIN: Final = ("call", "deny")
"""The records of calls of tools: what can be made again is one of them."""
KEPT: Final = (*AGAIN, "search")
"""The records of which more can be kept than their line."""
Sees = Callable[[str], bool]
"""Whether an operator sees an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBlock:
    """One block of an answer as it was kept: its text, or what it is where it is no text.

    ``bytes`` is how large what is not kept was; ``structured`` is whether the text is JSON.
    """

    type: str
    text: str = ""
    mime: str = ""
    uri: str = ""
    bytes: int | None = None
    structured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOverview:
    """One call.

    Attributes:
        id: the number of its record on the audit trail.
        at: when it ended, ISO text.
        kind: call, deny, search, read or prompt.
        principal: whose session it was made in.
        agent: whose model made it.
        session: in which session.
        turn: in which turn.
        tool: the wire name that was called.
        plugin: the plugin of the tool, or nothing.
        decision: whether it was allowed.
        outcome: what became of it.
        reason: why it failed or was refused, in a line.
        by: the operator who made it, or nothing.
        because: why it was allowed to run or not.
        where: where the configuration says so, or nothing.
        approval: the id of the approval that let it run, or nothing.
        approved_by: who gave it, where that is still known.
        duration: how long it took, in milliseconds; this and the next are null where they were not measured.
        queued: from its arrival until it ran, without the next.
        waited: for a person who was asked through the client.
        upstream: in the plugin that answered.
        sent_tokens: those of its arguments, which a model wrote.
        received_tokens: those of its answer, which a model reads.
        estimated: whether one of both is estimated, of how many characters there were.
        digest: the keyed digest of its arguments.
        arguments: as JSON, or nothing.
        arguments_cut: whether some of them is missing.
        arguments_missing: what keeps them, where they are not kept.
        error: the error text, or nothing.
        error_cut: whether some of it is missing.
        answer: the blocks of its answer.
        answer_cut: whether some of it is missing.
        answer_missing: what keeps it, where it is not kept.
        not_again: why it cannot be made again, or nothing.
        before: what came before it in its session, the newest first.
        after: what came after it, the oldest first.
    """

    id: int
    at: Verbatim
    kind: Verbatim
    principal: Name
    agent: Name
    session: Name
    turn: int
    tool: Name
    plugin: Name
    decision: Verbatim
    outcome: str
    reason: str
    by: Name
    because: str
    where: str
    approval: str
    approved_by: str
    duration: float | None
    queued: float | None
    waited: float | None
    upstream: float | None
    sent_tokens: int | None
    received_tokens: int | None
    estimated: bool
    digest: Verbatim
    arguments: str
    arguments_cut: bool
    arguments_missing: str
    error: str
    error_cut: bool
    answer: tuple[CallBlock, ...]
    answer_cut: bool
    answer_missing: str
    not_again: str
    before: tuple[TimelineLine, ...]
    after: tuple[TimelineLine, ...]


async def call(services: Services, number: int, sees: Sees) -> CallOverview:
    """Return one call.

    Raises:
        UsageError: there is none of this number, not any longer, or the operator does not see its agent.
    """
    record, numbers, kept = await _find_call(services, number, sees)
    key = SessionKey(principal=record.principal, agent=record.agent, session=record.session)
    before = await services.store.session_trail(key, before=number, limit=BESIDE)
    after = await services.store.session_trail(key, after=number, limit=BESIDE)
    approval = await services.store.approval(kept.approval) if kept is not None and kept.approval else None
    found = CallOverview(
        id=number,
        at=record.at.isoformat(),
        kind=record.kind,
        principal=record.principal,
        agent=record.agent,
        session=record.session,
        turn=record.turn,
        tool=record.subject,
        plugin=kept.tool.partition("/")[0] if kept is not None else "",
        decision=record.decision,
        outcome=record.outcome,
        reason=record.reason,
        by=record.by,
        approved_by=approval.by if approval is not None else "",
        duration=record.duration,
        digest=record.arguments,
        not_again=_not_again(services, record, kept),
        before=tuple(map(line_of, before)),
        after=tuple(map(line_of, after)),
        queued=numbers.queued,
        waited=numbers.waited,
        upstream=numbers.upstream,
        **_of_kept(services, record, numbers, kept),
    )
    return mask_value(found, await shown_names(services))


async def call_again(services: Services, number: int, sees: Sees, *, by: str) -> ToolTrial:
    """Make a call once more as its agent, for an operator as the principal, and return what came of it.

    The session is as for any call that an operator makes: no one else's connections are used. Where the call waited
    for a person it is that session again, in which it runs once it is allowed.

    Args:
        services: the services of the board.
        number: that of its record.
        sees: whether the operator sees an agent.
        by: who calls.

    Raises:
        UsageError: there is no such call, or it cannot be made again.
        UnknownAgentError: its agent is no longer configured.
        StoreError: something cannot be read or stored.
    """
    record, _, kept = await _find_call(services, number, sees)
    if why := _not_again(services, record, kept):
        raise UsageError(f"This call cannot be made again: {why}", code="not_again", hint="Its page says what is kept.")
    assert kept is not None
    arguments = json.loads(kept.arguments)
    session = await waiting_session(services, record.agent, kept.tool, arguments, by=by)
    return await make_trial_call(services, record.agent, kept.tool, arguments, by=by, session=session)


async def _find_call(services: Services, number: int, sees: Sees) -> tuple[AuditRecord, CallNumbers, StoredCall | None]:
    record = await services.store.numbered(number) if 0 < number < 2**63 else None
    if record is None or record.kind not in CALLS or not sees(record.agent):
        raise unknown_call()
    details = await services.store.call_details(number) or CallDetails()
    return record, details.numbers, call_of_text(details.text)


def unknown_call() -> UsageError:
    """Return the error that there is no such call, or none that an operator sees."""
    return UsageError(
        "There is no such call, or it was deleted.",
        code="unknown_call",
        hint="Calls are kept for the days of `record:`, seven by default.",
    )


def _of_kept(services: Services, record: AuditRecord, numbers: CallNumbers, kept: StoredCall | None) -> dict[str, Any]:
    """Return what is shown of what is kept, and what would keep the rest."""
    ran = record.decision == "allowed" and record.outcome == "ok"
    missing = _nothing_kept(services, record, ran=ran) if kept is None else ""
    kept = kept or StoredCall(kept=UNLESS_STATED)
    blocks = _blocks(kept.result)
    whole = "\n".join(block.text for block in blocks)
    exact = blocks and not kept.result_cut and all(block.bytes is None for block in blocks)
    tokens = tokens_of_call(
        services.counter,
        kept.arguments if kept.arguments and not kept.arguments_cut else numbers.sent,
        whole if exact else kept.error if kept.error and not kept.error_cut else numbers.received,
    )
    why_no_arguments = missing or f"Not kept. {_lines_to_keep(services, record, kept, 'arguments')}"
    why_no_answer = f"Not kept. {_lines_to_keep(services, record, kept, 'results')}" if ran and not missing else ""
    return {
        "because": kept.because,
        "where": kept.where,
        "approval": kept.approval,
        "sent_tokens": tokens.sent,
        "received_tokens": tokens.received,
        "estimated": tokens.estimated,
        "arguments": kept.arguments,
        "arguments_cut": kept.arguments_cut,
        "arguments_missing": "" if kept.arguments else why_no_arguments,
        "error": kept.error,
        "error_cut": kept.error_cut,
        "answer": blocks,
        "answer_cut": kept.result_cut,
        "answer_missing": "" if kept.result else why_no_answer,
    }


def _nothing_kept(services: Services, record: AuditRecord, *, ran: bool) -> str:
    """Return why a record has its line of the trail alone: nothing more was kept, or it was and its days are over."""
    if record.kind not in KEPT:
        return "Only this line is stored of resources and prompts."
    if not ran:
        return "Its details were deleted after their days: `record: {days: 30}` keeps them longer."
    return (
        "Nothing is kept of it but this line. Of a call that worked and asked nobody more is kept only where arguments "
        f"or results are. {_lines_to_keep(services, record, None, 'arguments', 'results')}"
    )


_LINES: Final[Mapping[str, str]] = {"arguments": "`record: {arguments: true}`", "results": "`record: {results: 4kB}`"}


def _lines_to_keep(services: Services, record: AuditRecord, kept: StoredCall | None, *parts: str) -> str:
    """Return the lines of the configuration that keep parts of calls to come, and where they belong."""
    lines = " or ".join(_LINES[part] for part in parts)
    where = f"in `agents: {record.agent}`, or at the top where that says nothing else,"
    spec = services.loader.specs.get(_plugin(services, record, kept))
    if spec is not None and not any(getattr(spec.record, part) for part in parts):
        where = f"{where} and under '{spec.name}', which says less now,"
    return f"{lines} {where} stores those of future calls."


def _plugin(services: Services, record: AuditRecord, kept: StoredCall | None) -> str:
    """Return the plugin whose tool was called; where that is not kept, the one that has a tool of this name now."""
    if kept is not None:
        return kept.tool.partition("/")[0]
    tool = services.world.catalog.by_id(record.subject)
    return tool.plugin if tool is not None else ""


def _blocks(text: str) -> tuple[CallBlock, ...]:
    try:
        found: Any = json.loads(text) if text else []
    except ValueError:
        return ()
    blocks = cast("list[Any]", found if isinstance(found, list) else [])
    return tuple(_block(cast("dict[str, Any]", block)) for block in blocks if isinstance(block, dict))


def _block(block: Mapping[str, Any]) -> CallBlock:
    if block.get("type") == "structured":
        value = json.dumps(block.get("value"), indent=2, ensure_ascii=False)
        return CallBlock(type="structured", text=value, structured=True)
    texts = {name: str(block.get(name, "")) for name in ("type", "text", "mimeType", "uri")}
    size = block.get("bytes")
    return CallBlock(
        type=texts["type"],
        text=texts["text"],
        mime=texts["mimeType"],
        uri=texts["uri"],
        bytes=size if isinstance(size, int) else None,
    )


def _not_again(services: Services, record: AuditRecord, kept: StoredCall | None) -> str:
    """Return why a call cannot be made again as it was, or nothing: it needs a tool, and its arguments kept whole."""
    if record.kind not in AGAIN:
        return "it called no tool."
    if kept is not None and not kept.tool:
        return "its name was that of no tool."
    if kept is None or not kept.arguments:
        return f"its arguments are not kept. {_lines_to_keep(services, record, kept, 'arguments')}"
    if not kept.exact:
        return "its arguments are kept without what is secret in them, or cut."
    return ""
