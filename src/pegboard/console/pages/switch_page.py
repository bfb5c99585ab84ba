"""The agents, and the switches of one: what each decides, what it would change, and throwing it (P2, F5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from pegboard.board.permissions import Permissions
from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, UndoForm, after_form, offset_of, text_of
from pegboard.console.templating import query
from pegboard.core.model.agents import Agent
from pegboard.core.model.naming import one_line
from pegboard.errors import UsageError
from pegboard.operators.agent_figures import agent_figures, compare_agents
from pegboard.operators.switches import GroupKind, pauses_by_agent

PAGE: Final = 50
MEMBERS: Final = 100
_MEMBERS: Final = "/console/agent/members"
_VALUES: Final[Mapping[str, bool | None]] = {"on": True, "off": False, "unset": None}
_TEXTS: Final = {True: "on", False: "off", None: "unset"}


async def agents_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the agents that the operator sees."""
    mask = context.board.services.masker.text
    seen = [
        replace(_shown_agent(visit, one), display_name=mask(one.display_name), role=mask(one.role))
        for one in context.agents(visit)
    ]
    paused = {
        visit.names.shown(name) for name, pauses in (await pauses_by_agent(context.services)).items() if pauses.agent
    }
    figures = {
        one.agent: one for one in await agent_figures(context.services, [one.name for one in context.agents(visit)])
    }
    return context.templates.page("access.html", visit, agents=seen, paused=paused, figures=figures)


async def compare_page(context: Context, visit: OperatorRequest) -> Response:
    """Show two agents beside each other."""
    agents = context.agents(visit)
    given = [visit.given(name) for name in ("one", "two")]
    chosen = [context.agent(visit, name) for name in given if name]
    found = await compare_agents(context.services, *chosen) if len(chosen) == len(given) else None
    shown = [visit.names.shown(agent.name) for agent in agents]
    typed = [visit.names.shown(name) for name in given]
    return context.templates.page("compare.html", visit, found=found, agents=shown, one=typed[0], two=typed[1])


async def agent_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the toolkits, plugins and tools of an agent with their switches."""
    given = visit.request.query_params
    agent = context.agent(visit, visit.given("agent"))
    words, offset = given.get("q", ""), offset_of(given)
    rows = await context.subjects.panels.page(
        agent.name, query=visit.given("q"), offset=offset, limit=PAGE, permitted_first=True
    )
    pauses = (await pauses_by_agent(context.services))[agent.name]
    return context.templates.page(
        "agent.html",
        visit,
        agent=_shown_agent(visit, agent),
        paused=replace(pauses, plugins=frozenset(map(visit.names.shown, pauses.plugins))),
        rows=rows,
        words=words,
        offset=offset,
        limit=PAGE,
        back=_address(visit.names.shown(agent.name), words, offset),
    )


async def members_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the tools of a toolkit or plugin with their switches."""
    given = visit.request.query_params
    agent = context.agent(visit, visit.given("agent"))
    kind, name, offset = given.get("kind", ""), given.get("name", ""), offset_of(given)
    words = given.get("q", "")
    rows = await context.subjects.panels.members(
        agent.name, _group(kind), visit.given("name"), query=visit.given("q"), offset=offset, limit=MEMBERS
    )
    return context.templates.page(
        "members.html",
        visit,
        agent=_shown_agent(visit, agent),
        kind=kind,
        name=name,
        rows=rows,
        words=words,
        offset=offset,
        limit=MEMBERS,
        back=query(
            "/console/agent/members", agent=given.get("agent"), kind=kind, name=name, q=words, offset=offset or None
        ),
    )


async def preview_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what a switch would change, with the button that throws it."""
    given = visit.request.query_params
    agent = context.agent(visit, visit.given("agent"))
    found = await context.subjects.previews.of_switch(agent.name, visit.given("name"), _value(given.get("value")))
    back = _own_address(given.get("back", ""), found.agent)
    return context.templates.page("switch.html", visit, preview=found, texts=_TEXTS, back=back)


async def throw(context: Context, visit: OperatorRequest) -> Response:
    """Set the switch, if it still is what the operator was shown; the notice can undo it."""
    form = await visit.request.form()
    agent = context.agent(visit, visit.names.meant(text_of(form, "agent")))
    name, value = visit.names.meant(text_of(form, "name")), _value(text_of(form, "value"))
    expected = _value(text_of(form, "expected"))
    by, may_grant = visit.operator.name, visit.operator.grants
    await Permissions(context.services).set(agent.name, name, value, by=by, expected=expected, may_grant=may_grant)
    shown = {"agent": visit.names.shown(agent.name), "name": visit.names.shown(name)}
    back = _own_address(text_of(form, "back"), shown["agent"])
    undo = {**shown, "value": _TEXTS[expected], "expected": _TEXTS[value], "back": back}
    what = {True: "is switched on", False: "is switched off", None: "no longer has a stored switch"}[value]
    message = f"{one_line(shown['name'], limit=100)} {what} for agent {one_line(shown['agent'], limit=100)}."
    hint = "It applies from the next call of every session."
    return after_form(
        context,
        visit,
        Notice(message=message, hint=hint, undo=UndoForm(action="/console/switch", fields=undo)),
        back=back,
    )


def _shown_agent(visit: OperatorRequest, agent: Agent) -> Agent:
    return replace(agent, name=visit.names.shown(agent.name))


def _group(kind: str) -> GroupKind:
    match kind:
        case "toolkit" | "plugin":
            return kind
        case _:
            raise UsageError("Only toolkits and plugins have members.", hint="Use the links of the page.")


def _value(text: Any) -> bool | None:
    if text not in _VALUES:
        raise UsageError("A switch is on, off or unset.", hint="Use the buttons of the page.")
    return _VALUES[text]


def _address(agent: str, words: str, offset: int) -> str:
    return query("/console/agent", agent=agent, q=words, offset=offset or None)


def _own_address(address: str, agent: str) -> str:
    """Return where a form came from, if that is a page of the console."""
    return address if address.startswith("/console/") else _address(agent, "", 0)


PAGES: Final = (
    Page("/console/access", agents_page),
    Page("/console/access/compare", compare_page),
    Page("/console/agent", agent_page),
    Page(_MEMBERS, members_page),
    Page("/console/switch", preview_page),
    Page("/console/switch", throw, "POST", "switch"),
)
