"""Every agent beside every toolkit: switches and pauses of one agent or all, before and after they are thrown (P2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, UndoForm, after_form, text_of
from pegboard.core.model.naming import one_line
from pegboard.errors import UsageError
from pegboard.operators.together import (
    BulkActionDone,
    BulkSwitch,
    BulkSwitchKind,
    preview_for_agents,
    set_for_agents,
    undo_for_agents,
)
from pegboard.support.visible_text import visible

_HOME: Final = "/console/access"
_MATRIX: Final = f"{_HOME}/matrix"
_VALUES: Final[Mapping[str, bool | None]] = {"on": True, "off": False, "unset": None}
_TEXTS: Final = {True: "on", False: "off", None: "unset"}
SHOWN: Final = 80
"""How many characters of a name are shown in a cell's label."""


async def matrix_page(context: Context, visit: OperatorRequest) -> Response:
    """Show every agent beside every toolkit."""
    found = await context.subjects.matrix.matrix([agent.name for agent in context.agents(visit)])
    return context.templates.page(
        "matrix.html", visit, matrix=found, labels=[visible(one_line(one.name, limit=SHOWN)) for one in found.agents]
    )


async def preview_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what a switch or pause would change for all agents that it is about, with the button that sets it."""
    given = visit.request.query_params
    kind, agent = _kind(given.get("kind", "")), visit.given("agent")
    value = _value(given.get("value") or "off")
    found = await preview_for_agents(
        context.services, context.subjects.previews, context.together(visit, kind, visit.given("name"), value, agent)
    )
    return context.templates.page(
        "together.html",
        visit,
        preview=found,
        texts=_TEXTS,
        agent=visit.names.shown(agent),
        back=_page_address(given.get("back", "")),
    )


async def set_together(context: Context, visit: OperatorRequest) -> Response:
    """Set the switch or pause, if all is as the operator was shown it; the notice can undo it."""
    form = await visit.request.form()
    meant = visit.names.meant
    kind, value, agent = _kind(text_of(form, "kind")), _value(text_of(form, "value")), meant(text_of(form, "agent"))
    given = context.together(visit, kind, meant(text_of(form, "name")), value, agent)
    done = await set_for_agents(
        context.services, given, by=visit.operator.name, seen=text_of(form, "seen"), may_grant=visit.operator.grants
    )
    back = _page_address(text_of(form, "back"))
    return after_form(context, visit, _notice(_sentence_of_switch(visit, given, agent), done, back), back=back)


async def undo_together(context: Context, visit: OperatorRequest) -> Response:
    """Restore what stood before an action; the notice can undo that as well."""
    form = await visit.request.form()
    back = _page_address(text_of(form, "back"))
    done = await undo_for_agents(
        context.services,
        text_of(form, "mark"),
        by=visit.operator.name,
        agents=visit.operator.agents,
        may_grant=visit.operator.grants,
    )
    count = len(done.agents)
    message = f"Every switch of that action is as it was before, for {count} {'agent' if count == 1 else 'agents'}."
    return after_form(context, visit, _notice(message, done, back), back=back)


def _notice(message: str, done: BulkActionDone, back: str) -> Notice:
    if not done.mark:
        return Notice(message="Nothing had to be changed.")
    undo = UndoForm(action=f"{_HOME}/undo", fields={"mark": done.mark, "back": back})
    return Notice(message=message, hint="It applies from the next call of every session.", undo=undo)


def _sentence_of_switch(visit: OperatorRequest, given: BulkSwitch, agent: str) -> str:
    """Return what was set, as a sentence."""
    name = one_line(visit.names.shown(given.name), limit=100)
    if agent:
        whom = f"agent {one_line(visit.names.shown(agent), limit=100)}"
    else:
        whom = f"{'every agent' if visit.operator.agents is None else 'every agent that you see'} ({len(given.agents)})"
    if given.kind == "pause":
        state = "is paused" if given.value else "works as before the pause"
        return f"{name} {state} for {whom}." if given.name else f"{whom[:1].upper()}{whom[1:]} {state}."
    what = {True: "is switched on", False: "is switched off", None: "no longer has a stored switch"}[given.value]
    return f"{name} {what} for {whom}."


def _kind(text: str) -> BulkSwitchKind:
    match text:
        case "switch" | "pause":
            return text
        case _:
            raise UsageError("Only switches and pauses are set here.", hint="Use the buttons of the page.")


def _value(text: str) -> bool | None:
    if text not in _VALUES:
        raise UsageError("A switch is on, off or unset.", hint="Use the buttons of the page.")
    return _VALUES[text]


def _page_address(address: str) -> str:
    """Return where a form came from, if that is a page of the console."""
    return address if address.startswith("/console/") else _MATRIX


PAGES: Final = (
    Page(_MATRIX, matrix_page),
    Page(f"{_HOME}/set", preview_page),
    Page(f"{_HOME}/set", set_together, "POST", "switch"),
    Page(f"{_HOME}/undo", undo_together, "POST", "switch"),
)
