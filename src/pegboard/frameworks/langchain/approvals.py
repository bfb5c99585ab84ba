"""How a person is asked about a call in LangChain: an ``interrupt()`` inside it, answered by one of its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt
from pydantic import PlainValidator, WithJsonSchema

from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.tools import EMPTY, JsonObject, text_result
from pegboard.core.state.call_plans import CallAnswer
from pegboard.frameworks import runs

_ALLOWED: Final = {"confirm": ("approve", "edit", "reject"), "user_input": ("approve", "reject")}


def _as_decision(decided: Any) -> Any:
    """Return a decision as LangChain writes it; raises ``ValueError`` where it is none."""
    match decided:
        case bool():
            return {"type": "approve" if decided else "reject"}
        case {"decisions": [{"type": "approve" | "edit" | "reject" | "respond"} as one]}:
            return one
        case {"type": "approve" | "edit" | "reject" | "respond"}:
            return decided
        case _:
            raise ValueError(
                f"{decided!r:.200} does not answer a call that waits. Command(resume={{'type': 'approve'}}) does, or "
                "'reject' with a 'message'."
            )


_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["approve", "edit", "reject", "respond"]},
        "message": {"type": "string"},
        "fields": {"type": "object"},
        "edited_action": {"type": "object"},
        "by": {"type": "string"},
    },
    "required": ["type"],
}
_DECISION: Final[Any] = Annotated[Any, PlainValidator(_as_decision), WithJsonSchema(dict(_SCHEMA))]
"""What LangGraph checks an answer by: of one that decides nothing it keeps nothing, and the call waits on."""
_LOGIN: Final[JsonObject] = {"type": "login", "allowed_decisions": ["approve", "reject"]}
_CHECKPOINTER: Final = "__pregel_checkpointer"
"""Under which a run of LangGraph has what keeps it, in its own settings."""


def decision_of(answer: CallAnswer, name: str, call_id: str | None, since: float) -> Mapping[str, Any] | None:
    """Return what a person has decided about a call that waits; None for one that does not wait.

    Raises:
        GraphInterrupt: no one has decided, or what was decided was something else (A6): the run waits.
        pydantic.ValidationError: the answer decides nothing.
    """
    if (login := runs.about_login(answer)) is not None:
        question = {**_LOGIN, "tool_call_id": call_id, "name": name, "description": answer.message, "login": login}
        return interrupt(question, response_schema=_DECISION) if has_checkpointer() else None
    approval = answer.approval
    if answer.status != "needs_approval" or approval is None:
        return None
    if not has_checkpointer():
        runs.warn_once(
            "A call waits for a person, and the agent of LangChain has no checkpointer: its run ends here and cannot "
            "go on. Give it one, create_agent(checkpointer=...). `board.approvals` has the call, too."
        )
    decided: Mapping[str, Any] | None = None
    while True:  # each question of this call has its answer, in order; the newest is for what was asked last
        try:
            decided = interrupt(_question(approval, call_id), response_schema=_DECISION)
        except GraphInterrupt:
            if decided is None or runs.waits_since_before(answer, since) is None:
                raise
            return decided


def has_checkpointer() -> bool:
    """Return whether a run that waits can be gone on with."""
    return get_config().get("configurable", {}).get(_CHECKPOINTER) is not None


def _question(approval: Approval, call_id: str | None) -> dict[str, Any]:
    """Return what a person is asked, as LangChain's own approvals of single calls ask it, and what they fill in."""
    return {
        "type": "tool_approval",
        "tool_call_id": call_id,
        "name": approval.tool,
        "args": dict(approval.arguments),
        "description": approval.reason,
        "allowed_decisions": list(_ALLOWED.get(approval.kind, ("respond", "reject"))),
        "approval": approval.id,
        "fields": dict(approval.fields),
    }


async def decided_by(answer: CallAnswer, decision: Mapping[str, Any], session: Session) -> CallAnswer:
    """Return what a call comes to that a person has decided about (A3, T13)."""
    if answer.login is not None:
        if decision["type"] == "approve":
            return await session.resume(answer.login.id)
        words = str(decision.get("message") or "The user does not log in.")
        return CallAnswer(status="refused", result=text_result(words, is_error=True), message=words)
    approval, by = answer.approval, str(decision.get("by") or session.key.principal)
    assert approval is not None
    match decision["type"]:
        case "approve":
            return await runs.answer_allowed_call(session, approval, fields=decision.get("fields") or EMPTY, by=by)
        case "edit":
            edited = decision.get("edited_action") or EMPTY
            await runs.record_decision(session, approval.id, refused="The arguments were changed.", result=None)
            name = str(edited.get("name") or approval.tool)
            answer = await session.call(name, runs.own_arguments(name, edited.get("args") or {}, session))
            again = answer.approval if answer.status == "needs_approval" else None
            return answer if again is None else await runs.answer_allowed_call(session, again, fields=EMPTY, by=by)
        case "respond" if approval.kind == "external":
            return await session.resume(approval.id, result=decision.get("message") or "")
        case _:
            await runs.record_decision(session, approval.id, refused=str(decision.get("message") or ""), result=None)
            return await session.resume(approval.id)
