"""A rule from a card: chosen beside the call that it is about, and proposed as an edit of the configuration (A1)."""

from __future__ import annotations

import json
from typing import Final

from starlette.datastructures import FormData
from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.editing_page import to_proposal
from pegboard.console.pages.forms import text_of
from pegboard.errors import UsageError
from pegboard.operators.editable import ConfigurationChange

_ADDRESS: Final = "/console/approvals/rule"
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
    argument, pattern = _chosen(visit, form)
    rule = await approvals.proposed_rule(found.id, argument, pattern, visit.operator.sees)
    entry = await context.editing.entry(editor, rule.section, rule.plugin)
    change = ConfigurationChange(path=(*entry.path, *rule.keys), value=rule.value)
    edit = await context.editing.propose(editor, [change], what=rule.text)
    return to_proposal(edit, "/console/approvals")


def _chosen(visit: OperatorRequest, form: FormData) -> tuple[str, str]:
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
        raise UsageError("This is none of the rules.", hint="Choose one of the page.") from None


PAGES: Final = (
    Page(_ADDRESS, rule_form),
    Page(_ADDRESS, rule_sent, "POST", "configure"),
)
"""The addresses of rules from cards; before that of a card, which any other word there names."""
