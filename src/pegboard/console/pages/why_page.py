"""Why an agent can or cannot call a tool, and what would change that: a panel beside any tool, or a page (P3, F5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operated_sessions import begun_session
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, after_form, text_of
from pegboard.console.templating import query
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.naming import one_line
from pegboard.errors import UsageError
from pegboard.operators.explain import explain_for_operator
from pegboard.operators.search import who_may_use
from pegboard.operators.servers import restart_plugin
from pegboard.ports import SessionKey

_HOME: Final = "/console/why"


@dataclass(frozen=True, slots=True, kw_only=True)
class _WhyQuestion:
    """What the address asks: nothing for ``agent`` is every one, ``tool`` is what is to be explained."""

    agent: str
    principal: str
    session: str
    tool: str

    def address(self, *, tool: str | None = None) -> str:
        """Return the address of this, or of the same with another tool."""
        of_agent = {"principal": self.principal if self.session else "", "session": self.session}
        given = {"agent": self.agent, **(of_agent if self.agent else {})}
        return query(_HOME, **given, tool=self.tool if tool is None else tool)


async def why_page(context: Context, visit: OperatorRequest) -> Response:
    """Show why an agent can or cannot call something; without an agent, which agents may use it."""
    asked, services, shown = _read_question(context, visit), context.services, visit.names.shown
    if not asked.tool:
        raise UsageError("No tool is named.", hint="Choose one on the page Tools.")
    chosen, permissions = None, None
    if asked.agent:
        session = {"principal": asked.principal, "session": asked.session}
        chosen = await explain_for_operator(services, asked.agent, asked.tool, **session)
    else:
        permissions = await who_may_use(services, [agent.name for agent in context.agents(visit)], asked.tool)
    approvals = await _waiting_approvals(context, asked)
    asked = _WhyQuestion(**{field: shown(text) for field, text in asdict(asked).items()})
    return context.templates.page(
        "why.html",
        visit,
        asked=asked,
        chosen=chosen,
        permissions=permissions,
        approvals=approvals,
        restarts=visit.operator.agents is None,
        here=asked.address(),
    )


async def load(context: Context, visit: OperatorRequest) -> Response:
    """Load something in a session."""
    form, meant = await visit.request.form(), visit.names.meant
    agent, name = context.agent(visit, meant(text_of(form, "agent"))).name, meant(text_of(form, "name"))
    principal, session_id = meant(text_of(form, "principal")), meant(text_of(form, "session"))
    if not session_id:
        raise UsageError("Choose the session in which to load it.", hint="Load it on the page of a session.")
    session = await begun_session(context, visit, SessionKey(principal=principal, agent=agent, session=session_id))
    outcome = await session.load(name)
    kind = "error" if outcome.status == "refused" else "done"
    notice = Notice(message=outcome.message, kind=kind)
    return after_form(
        context, visit, notice, back=_return_address(form, visit.names.shown(agent), visit.names.shown(name))
    )


async def restart(context: Context, visit: OperatorRequest) -> Response:
    """Start a server again."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    name = visit.names.meant(text_of(form, "name"))
    state = await restart_plugin(context.services, name, by=visit.operator.name)
    notice = Notice(
        message=f"Server {one_line(state.name, limit=100)} was started again.", hint=f"It is {state.state} now."
    )
    return after_form(context, visit, notice, back=_return_address(form, "", state.name))


def _read_question(context: Context, visit: OperatorRequest) -> _WhyQuestion:
    given, seen = visit.given, context.agents(visit)
    agent = given("agent")
    if agent or len(seen) == 1:
        agent = context.agent(visit, agent).name if agent else seen[0].name
    return _WhyQuestion(
        agent=agent,
        principal=given("principal").strip() or LOCAL,
        session=given("session").strip(),
        tool=given("tool").strip(),
    )


async def _waiting_approvals(context: Context, asked: _WhyQuestion) -> tuple[str, ...]:
    """Return the approvals for which calls of a tool wait in the session."""
    if not (asked.agent and asked.session):
        return ()
    tool = context.services.world.catalog.find_tool(asked.tool)
    waiting = await context.board.approvals.list(agent=asked.agent) if tool is not None else ()
    key = asked.principal, asked.session
    return tuple(
        one.id
        for one in waiting
        if tool is not None and one.tool == tool.wire and one.status == "waiting"
        if (one.binding.principal, one.binding.session) == key
    )


def _return_address(form: Mapping[str, Any], agent: str, name: str) -> str:
    """Return where a form came from, if that is an address of this page."""
    back = text_of(form, "back")
    return back if back.startswith(f"{_HOME}?") else query(_HOME, agent=agent, tool=name)


PAGES: Final = (
    Page(_HOME, why_page),
    Page(f"{_HOME}/load", load, "POST", "switch"),
    Page(f"{_HOME}/restart", restart, "POST", "switch"),
)
