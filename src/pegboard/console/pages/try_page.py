"""A tool that an operator calls as an agent: what it takes, what would be decided, and what came of it (X1, X2, F5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import text_of
from pegboard.console.sent_fields import FIELD, filled_in, meant_fields, parse_json
from pegboard.console.templating import query
from pegboard.operators.explain import explain_for_operator
from pegboard.operators.trying import ToolForm, ToolTrial, build_tool_form, find_form_problems, make_trial_call

_HOME: Final = "/console/try"
_OTHER: Final = "other"
"""The input of arguments that have no field, and what is wrong with it, by this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FilledForm:
    """What was filled in: the texts by the names of inputs, what is wrong with them, and what came of the call."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    wrong: Mapping[str, str] = field(default_factory=dict[str, str])
    tried: ToolTrial | None = None


async def try_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what a tool takes, beside what would be decided about a call of it."""
    agent, tool = visit.given("agent"), visit.given("tool").strip()
    if not agent and len(context.agents(visit)) == 1:
        agent = context.agents(visit)[0].name
    if agent:
        agent = context.agent(visit, agent).name
    return await _page(context, visit, agent, tool, _FilledForm())


async def try_tool(context: Context, visit: OperatorRequest) -> Response:
    """Call the tool where what was filled in fits, and show what came of it."""
    form = await visit.request.form()
    agent = context.agent(visit, visit.names.meant(text_of(form, "agent"))).name
    tool = visit.names.meant(text_of(form, "tool"))
    shown = await build_tool_form(context.services, agent, tool)
    arguments, wrong = _arguments(visit, shown, form)
    problems = await find_form_problems(context.services, tool, arguments)
    fields = {one.name for one in shown.fields}
    for one in reversed(problems):
        wrong[one.name if one.name in fields else _OTHER] = (
            one.text if one.name in fields else f"{one.name}: {one.text}"
        )
    texts = {name: text for name, text in form.items() if isinstance(text, str)}
    if wrong:
        return await _page(context, visit, agent, tool, _FilledForm(texts=texts, wrong=wrong))
    tried = await make_trial_call(
        context.services, agent, tool, arguments, by=visit.operator.name, session=text_of(form, "session")
    )
    return await _page(context, visit, agent, tool, _FilledForm(texts=texts, tried=tried))


def _arguments(
    visit: OperatorRequest, shown: ToolForm, form: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments that were filled in, and what is wrong with those that have no field."""
    found = meant_fields(shown.fields, filled_in(shown.fields, form), visit.names)
    text = form.get(_OTHER)
    if not isinstance(text, str) or not text.strip():
        return found, {}
    try:
        other = parse_json(text)
    except (ValueError, RecursionError) as error:
        return found, {_OTHER: f"It is not JSON: {error}"}
    if not isinstance(other, dict):
        return found, {_OTHER: 'It has to be a JSON object, such as {"name": "value"}.'}
    others = cast("dict[str, Any]", other)
    if twice := found.keys() & others.keys():
        return found, {_OTHER: f"These are given above as well: {', '.join(sorted(map(visit.names.shown, twice)))}."}
    return {**found, **others}, {}


async def _page(context: Context, visit: OperatorRequest, agent: str, tool: str, given: _FilledForm) -> Response:
    services, shown = context.services, visit.names.shown
    explained = (
        await explain_for_operator(services, agent, tool, principal=visit.operator.name) if agent and tool else None
    )
    found = await build_tool_form(services, agent, tool) if agent and tool else None
    return context.templates.page(
        "try.html",
        visit,
        status=422 if given.wrong else 200,
        agents=context.shown_agents(visit),
        agent=shown(agent),
        tool=shown(tool),
        found=found,
        explained=explained,
        given=given,
        prefix=FIELD,
        here=query(_HOME, agent=shown(agent), tool=shown(tool)),
    )


PAGES: Final = (
    Page(_HOME, try_page),
    Page(_HOME, try_tool, "POST", "configure"),
)
