"""A rule from a card: chosen beside the call that it is about, shown as a change of the file, and saved (A1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.pages.forms import Notice, after_form, text_of
from pegboard.console.visits import Visit
from pegboard.errors import UsageError
from pegboard.operators.approval_rules import ProposedRule

_ADDRESS: Final = "/console/approvals/rule"
OWN: Final = "own"
"""What the form carries where the pattern is one's own."""


async def rule_form(context: Context, visit: Visit) -> Response:
    """Show which calls a person can be asked about instead of all of them."""
    context.require_every_agent(visit)
    found = await context.operations.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    choices = await context.operations.approvals.rule_choices(found.id, visit.operator.sees)
    return context.templates.page("rule.html", visit, one=found, choices=choices, own=OWN)


async def rule_preview(context: Context, visit: Visit) -> Response:
    """Show a rule as a change of the file, with the button that saves it."""
    context.require_every_agent(visit)
    given = visit.request.query_params
    found = await context.operations.approvals.one(given.get("id", ""), visit.operator.sees)
    argument, pattern = _chosen(visit, given)
    rule = await _rule(context, visit, found.id, argument, pattern)
    edit = context.board.proposed_value(rule.keys, rule.value)
    return context.templates.page(
        "rule_preview.html",
        visit,
        one=found,
        text=visit.names.masker.text(rule.text),
        edit=edit,
        argument=visit.names.shown(argument),
        pattern=visit.names.shown(pattern),
    )


async def save(context: Context, visit: Visit) -> Response:
    """Save a rule as it was shown."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    found = await context.operations.approvals.one(text_of(form, "id"), visit.operator.sees)
    argument, pattern = visit.names.meant(text_of(form, "argument")), visit.names.meant(text_of(form, "pattern"))
    rule = await _rule(context, visit, found.id, argument, pattern)
    await context.board.save_value(rule.keys, rule.value, seen=text_of(form, "seen"))
    waits = " It lets calls through, so that it waits to be accepted." if context.board.waiting else ""
    notice = Notice(
        message=f"The rule of '{found.tool}' is saved.",
        hint=f"This call was asked about under the old one, and has to be made again.{waits}",
    )
    return after_form(context, visit, notice, back="/console/approvals")


async def _rule(context: Context, visit: Visit, approval: str, argument: str, pattern: str) -> ProposedRule:
    return await context.operations.approvals.proposed_rule(approval, argument, pattern, visit.operator.sees)


def _chosen(visit: Visit, given: Mapping[str, Any]) -> tuple[str, str]:
    """Return the argument and the pattern of the form; raises ``UsageError`` where it has none."""
    text = given.get("choice", OWN)
    if text == OWN:
        return visit.given("argument"), visit.given("pattern")
    try:
        match json.loads(text):
            case [str() as argument, str() as pattern]:
                return visit.names.meant(argument), visit.names.meant(pattern)
            case _:
                raise ValueError
    except (ValueError, RecursionError):
        raise UsageError("This is none of the rules.", hint="Choose one of the page.") from None


PAGES: Final = (
    Page(_ADDRESS, rule_form),
    Page(f"{_ADDRESS}/preview", rule_preview),
    Page(_ADDRESS, save, "POST", "configure"),
)
"""The addresses of rules from cards; before that of a card, which any other word there names."""
