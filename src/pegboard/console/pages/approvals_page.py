"""Calls that wait for a person: what they would do, the answers to them, and a rule from a card (A1–A3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from starlette.datastructures import FormData
from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.editing_page import to_proposal
from pegboard.console.pages.forms import Notice, UndoForm, after_form, kept_address, offset_of, text_of
from pegboard.console.sent_fields import FIELD, filled_in, meant_fields
from pegboard.console.templating import query
from pegboard.core.access.approvals.approval import ApprovalStatus, Lasting
from pegboard.errors import UsageError
from pegboard.operators.approvals import ApprovalOverview
from pegboard.operators.editable import ConfigurationChange

LIMIT: Final = 20
"""How many calls that wait, or rows, a page shows."""
_HOME: Final = "/console/approvals"


async def approvals(context: Context, visit: OperatorRequest) -> Response:
    """Show what waits, and what was allowed and still counts."""
    offset = offset_of(visit.request.query_params)
    agent = context.agent_of_list(visit, visit.given("agent"))
    sees = visit.operator.sees if agent is None else agent.__eq__
    found = await context.subjects.approvals.open(sees, offset=offset, limit=LIMIT)
    chosen = visit.names.shown(agent or "")
    here = query(_HOME, agent=chosen, offset=offset or None)
    page = context.templates.page(
        "approvals.html",
        visit,
        found=found,
        groups=group_similar(found.waiting),
        agents=context.shown_agents(visit),
        agent=chosen,
        offset=offset,
        limit=LIMIT,
        here=here,
    )
    return kept_address(page, here)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCalls:
    """Calls of one tool that wait because of the same rule."""

    tool: str
    reason: str
    calls: tuple[ApprovalOverview, ...]

    @property
    def ids(self) -> str:
        """Return the ids of those that can be answered together: what asks for fields is filled in one by one."""
        return ",".join(one.id for one in self.calls if one.kind == "confirm")

    @property
    def together(self) -> bool:
        """Return whether some of them can be answered at once."""
        return self.ids.count(",") > 0


def group_similar(waiting: Sequence[ApprovalOverview]) -> tuple[SimilarCalls, ...]:
    """Return the calls that wait, those of one tool and one rule together, in the order of the newest of each."""
    found: dict[tuple[str, str], list[ApprovalOverview]] = {}
    for one in waiting:
        found.setdefault((one.tool, one.reason), []).append(one)
    return tuple(SimilarCalls(tool=tool, reason=reason, calls=tuple(calls)) for (tool, reason), calls in found.items())


async def show_ended(context: Context, visit: OperatorRequest) -> Response:
    """Show what was refused, is used or has expired."""
    offset = offset_of(visit.request.query_params)
    found = await context.subjects.approvals.ended(visit.operator.sees, offset=offset, limit=LIMIT)
    return context.templates.page("ended_approvals.html", visit, found=found, offset=offset, limit=LIMIT)


async def show_waiting_count(context: Context, visit: OperatorRequest) -> Response:
    """Show how many calls wait."""
    found = await context.subjects.approvals.waiting(visit.operator.sees)
    return context.templates.page("waiting.html", visit, waiting=found)


async def approval(context: Context, visit: OperatorRequest) -> Response:
    """Show one approval, with all of its arguments."""
    named = visit.request.path_params.get("id") or visit.request.query_params.get("id", "")
    found = await context.subjects.approvals.one(named, visit.operator.sees)
    return context.templates.page("approval.html", visit, one=found)


async def several_form(context: Context, visit: OperatorRequest) -> Response:
    """Show every argument of several calls, with the button that answers all of them."""
    given = visit.request.query_params
    shown = await _approvals_of_ids(context, visit, given.get("ids", ""))
    return context.templates.page("several.html", visit, calls=shown, to=_parse_answer(given.get("to", "")))


async def answer_several(context: Context, visit: OperatorRequest) -> Response:
    """Answer several calls, each for itself: what was answered elsewhere meanwhile stays unchanged."""
    form = await visit.request.form()
    to, board = _parse_answer(text_of(form, "to")), context.board.approvals
    done, others = list[ApprovalOverview](), list[str]()
    for one in await _approvals_of_ids(context, visit, text_of(form, "ids")):
        try:
            if to == "allow":
                await board.allow(one.id, by=visit.operator.name, expected="waiting")
            else:
                reason = str(form.get("reason") or "")
                await board.refuse(one.id, by=visit.operator.name, reason=reason, expected="waiting")
            done.append(one)
        except UsageError as error:
            others.append(error.message)
    verb = "allowed, each once" if to == "allow" else "refused"
    calls = f"{len(done)} {'call' if len(done) == 1 else 'calls'} {verb}."
    kept = f"{len(others)} not: {others[0]}" if others else ""
    return after_form(context, visit, Notice(message=calls, hint=kept, kind="done" if done else "error"), back=_HOME)


async def _approvals_of_ids(context: Context, visit: OperatorRequest, ids: str) -> list[ApprovalOverview]:
    """Return the calls that are named; raises ``UsageError`` where there are none, too many, or some are not seen."""
    named = list(dict.fromkeys(filter(None, ids.split(","))))
    if not 0 < len(named) <= LIMIT:
        raise UsageError(f"From 1 to {LIMIT} calls are answered at once.", hint="Load the page again.")
    found = [await context.subjects.approvals.one(one, visit.operator.sees) for one in named]
    if any(one.kind != "confirm" for one in found):
        raise UsageError("One of these calls needs more than yes or no.", hint="Answer it on its own page.")
    return found


def _parse_answer(text: str) -> Literal["allow", "refuse"]:
    match text:
        case "allow" | "refuse":
            return text
        case _:
            raise UsageError("Calls are allowed or refused.", hint="Use the buttons of the page.")


async def show_allow_form(context: Context, visit: OperatorRequest) -> Response:
    """Show what a call can be allowed for, and the fields that it asks for."""
    found = await context.subjects.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    return _allow_form(context, visit, found)


async def show_refuse_form(context: Context, visit: OperatorRequest) -> Response:
    """Show where the words for the model go."""
    found = await context.subjects.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    return context.templates.page("refuse.html", visit, one=found)


async def allow(context: Context, visit: OperatorRequest) -> Response:
    """Allow a call as the form says."""
    form = await visit.request.form()
    found = await context.subjects.approvals.one(text_of(form, "id"), visit.operator.sees)
    fields = meant_fields(found.fields, filled_in(found.fields, form), visit.names)
    if found.fields:
        problems = await context.subjects.approvals.field_problems(found.id, fields, visit.operator.sees)
        if problems:
            wrong = {problem.name: problem.text for problem in reversed(problems)}
            return _allow_form(context, visit, found, given=form, wrong=wrong)
    allowed = await context.board.approvals.allow(
        found.id,
        by=visit.operator.name,
        lasts=cast("Lasting", text_of(form, "lasts")),  # the board refuses any other
        fields=fields if found.fields else None,
        expected=_expected_status(form),
    )
    undo = UndoForm(action=f"{_HOME}/refuse", fields={"id": found.id, "expected": "allowed"})
    notice = Notice(message=f"'{found.tool}': {_meaning_of_answer(found, allowed.lasts)}.", undo=undo)
    return after_form(context, visit, notice, back=_HOME)


async def refuse(context: Context, visit: OperatorRequest) -> Response:
    """Refuse a call, or take back what was allowed."""
    form = await visit.request.form()
    found = await context.subjects.approvals.one(text_of(form, "id"), visit.operator.sees)
    reason, expected = str(form.get("reason") or ""), _expected_status(form)
    await context.board.approvals.refuse(found.id, by=visit.operator.name, reason=reason, expected=expected)
    if found.lasts == "once":
        return after_form(context, visit, Notice(message=f"'{found.tool}' is refused."), back=_HOME)
    fields = {"id": found.id, "lasts": found.lasts, "expected": "refused"}
    notice = Notice(
        message=f"'{found.tool}': a call of it needs an approval again.",
        undo=UndoForm(action=f"{_HOME}/allow", fields=fields),
    )
    return after_form(context, visit, notice, back=_HOME)


def _allow_form(
    context: Context,
    visit: OperatorRequest,
    found: ApprovalOverview,
    *,
    given: Mapping[str, Any] | None = None,
    wrong: Mapping[str, str] | None = None,
) -> Response:
    texts = {one.name: str((given or {}).get(FIELD + one.name, one.text)) for one in found.fields}
    status = 422 if wrong else 200
    return context.templates.page(
        "allow.html", visit, status=status, one=found, texts=texts, wrong=wrong or {}, prefix=FIELD
    )


def _meaning_of_answer(found: ApprovalOverview, lasts: Lasting) -> str:
    """Return what an answer lets through, for people."""
    match lasts:
        case "once":
            return "this call may run once"
        case "session":
            return f"every call of it may run in session '{found.session}' of agent '{found.agent}'"
        case "always":
            return f"every call of it by agent '{found.agent}' for '{found.principal}' may run"


def _expected_status(form: Mapping[str, Any]) -> ApprovalStatus:
    """Return what the page showed; raises ``UsageError`` where the form does not say it."""
    text = text_of(form, "expected")
    for status in get_args(ApprovalStatus):
        if text == status:
            return status
    raise UsageError("`expected` is not a state of an approval.", hint="Load the page again.")


_RULE: Final = "/console/approvals/rule"
OWN: Final = "own"
"""What the form carries where the pattern is one's own."""


async def rule_form(context: Context, visit: OperatorRequest) -> Response:
    """Show which calls a person can be asked about instead of all of them."""
    context.require_every_agent(visit)
    found = await context.subjects.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    choices = await context.subjects.approvals.rule_choices(found.id, visit.operator.sees)
    return context.templates.page("rule.html", visit, one=found, choices=choices, own=OWN)


async def rule_sent(context: Context, visit: OperatorRequest) -> Response:
    """Propose a rule as an edit of the configuration."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    approvals, editor = context.subjects.approvals, context.editor(visit)
    found = await approvals.one(text_of(form, "id"), visit.operator.sees)
    argument, pattern = _chosen_argument(visit, form)
    rule = await approvals.proposed_rule(found.id, argument, pattern, visit.operator.sees)
    entry = await context.editing.entry(editor, rule.section, rule.plugin)
    change = ConfigurationChange(path=(*entry.path, *rule.keys), value=rule.value)
    edit = await context.editing.propose(editor, [change], what=rule.text)
    return to_proposal(edit, "/console/approvals")


def _chosen_argument(visit: OperatorRequest, form: FormData) -> tuple[str, str]:
    """Return the argument and the pattern of the form; raises ``UsageError`` where it has none."""
    text = text_of(form, "choice") if "choice" in form else OWN
    meant = visit.names.meant
    if text == OWN:
        return meant(text_of(form, "argument")), meant(text_of(form, "pattern"))
    try:
        match json.loads(text):
            case [str() as argument, str() as pattern]:
                return meant(argument), meant(pattern)
            case _:
                raise ValueError
    except (ValueError, RecursionError):
        raise UsageError("This is not one of the rules.", hint="Choose one of the page.") from None


PAGES: Final = (
    Page(_HOME, approvals),
    Page(f"{_HOME}/ended", show_ended),
    Page(f"{_HOME}/waiting", show_waiting_count),
    Page(f"{_HOME}/one", approval),
    Page(f"{_HOME}/several", several_form),
    Page(f"{_HOME}/several", answer_several, "POST", "approve"),
    Page(f"{_HOME}/allow", show_allow_form),
    Page(f"{_HOME}/refuse", show_refuse_form),
    Page(f"{_HOME}/allow", allow, "POST", "approve"),
    Page(f"{_HOME}/refuse", refuse, "POST", "approve"),
    Page(_RULE, rule_form),
    Page(_RULE, rule_sent, "POST", "configure"),
    Page(f"{_HOME}/{{id}}", approval),
)
"""The addresses of approvals."""
