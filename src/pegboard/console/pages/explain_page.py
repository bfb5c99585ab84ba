"""Find a tool as a model would, and see why an agent can or cannot call it, and what would change that (P3, F5)."""

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
from pegboard.operators.search import CommonAnswer, SearchAnswer, who_may_use
from pegboard.operators.servers import ask_plugins, restart_plugin, unasked_plugins
from pegboard.ports import SessionKey

HITS: Final = 12
_HOME: Final = "/console/explain"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the address asks: nothing for ``agent`` is every one, ``tool`` is what is to be explained."""

    agent: str
    principal: str
    session: str
    q: str
    tool: str

    def address(self, *, tool: str | None = None) -> str:
        """Return the address of this, or of the same with another tool."""
        of_agent = {"principal": self.principal if self.session else "", "session": self.session}
        given = {"agent": self.agent, **(of_agent if self.agent else {}), "q": self.q}
        return query(_HOME, **given, tool=self.tool if tool is None else tool)


async def explain_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what answers a text, and the explanation of what was chosen or is named."""
    asked, services, shown = _asked(context, visit), context.services, visit.names.shown
    agents = [agent.name for agent in context.agents(visit)]
    found: SearchAnswer | CommonAnswer
    if asked.agent:
        session = {"principal": asked.principal, "session": asked.session}
        found = await context.subjects.search.for_agent(asked.agent, asked.q, limit=HITS, **session)
        name = asked.tool or visit.names.meant(_named(found))
        chosen = await explain_for_operator(services, asked.agent, name, **session) if name else None
        permissions = None
    else:
        found = await context.subjects.search.for_agents(agents, asked.q, limit=HITS)
        name, chosen = asked.tool or visit.names.meant(_named(found)), None
        permissions = await who_may_use(services, agents, name) if name else None
    approvals = await _waiting(context, asked, name)
    asked = _Asked(**{field: shown(text) for field, text in asdict(asked).items()})
    return context.templates.page(
        "explain.html",
        visit,
        asked=asked,
        agents=context.shown_agents(visit),
        found=found,
        subject=shown(name),
        chosen=chosen,
        permissions=permissions,
        approvals=approvals,
        unasked=[*map(shown, unasked_plugins(services))],
        restarts=visit.operator.agents is None,
        here=asked.address(),
    )


async def load(context: Context, visit: OperatorRequest) -> Response:
    """Load something in a session."""
    form, meant = await visit.request.form(), visit.names.meant
    agent, name = context.agent(visit, meant(text_of(form, "agent"))).name, meant(text_of(form, "name"))
    principal, session_id = meant(text_of(form, "principal")), meant(text_of(form, "session"))
    if not session_id:
        raise UsageError("Something is loaded in a session, and none is named.", hint="Write its id beside the agent.")
    session = await begun_session(context, visit, SessionKey(principal=principal, agent=agent, session=session_id))
    outcome = await session.load(name)
    kind = "error" if outcome.status == "refused" else "done"
    notice = Notice(message=outcome.message, kind=kind)
    return after_form(context, visit, notice, back=_back(form, visit.names.shown(agent)))


async def ask(context: Context, visit: OperatorRequest) -> Response:
    """Ask every plugin for its tools that was not asked yet."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    late = await ask_plugins(context.services)
    hint = f"Not yet: {', '.join(late[:10])}." if late else ""
    message = "Some plugins have not answered yet." if late else "Every plugin was asked for its tools."
    return after_form(context, visit, Notice(message=message, hint=hint), back=_back(form, ""))


async def restart(context: Context, visit: OperatorRequest) -> Response:
    """Start a server again."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    name = visit.names.meant(text_of(form, "name"))
    state = await restart_plugin(context.services, name, by=visit.operator.name)
    notice = Notice(
        message=f"Server {one_line(state.name, limit=100)} was started again.", hint=f"It is {state.state} now."
    )
    return after_form(context, visit, notice, back=_back(form, ""))


def _asked(context: Context, visit: OperatorRequest) -> _Asked:
    given, seen = visit.given, context.agents(visit)
    agent = given("agent")
    if agent or len(seen) == 1:
        agent = context.agent(visit, agent).name if agent else seen[0].name
    return _Asked(
        agent=agent,
        principal=given("principal").strip() or LOCAL,
        session=given("session").strip(),
        q=given("q"),
        tool=given("tool"),
    )


def _named(found: SearchAnswer | CommonAnswer) -> str:
    """Return what a text names exactly, to be explained without another click."""
    hits = found.names if isinstance(found, SearchAnswer) else found.hits
    exact = next((hit for hit in hits if hit.match == "exact"), None)
    return name_of(exact.kind, exact.name) if exact is not None else ""


def name_of(kind: str, name: str) -> str:
    """Return the name with which an address means a tool, a toolkit or a plugin and nothing else."""
    return name if kind == "tool" else f"{kind}:{name}"


async def _waiting(context: Context, asked: _Asked, name: str) -> tuple[str, ...]:
    """Return the approvals for which calls of a tool wait in the session."""
    if not (name and asked.agent and asked.session):
        return ()
    tool = context.services.world.catalog.find_tool(name)
    waiting = await context.board.approvals.list(agent=asked.agent) if tool is not None else ()
    key = asked.principal, asked.session
    return tuple(
        one.id
        for one in waiting
        if tool is not None and one.tool == tool.wire and one.status == "waiting"
        if (one.binding.principal, one.binding.session) == key
    )


def _back(form: Mapping[str, Any], agent: str) -> str:
    """Return where a form came from, if that is an address of this page."""
    back = text_of(form, "back")
    return back if back.startswith(f"{_HOME}?") else query(_HOME, agent=agent)


PAGES: Final = (
    Page(_HOME, explain_page),
    Page(f"{_HOME}/ask", ask, "POST", "switch"),
    Page(f"{_HOME}/load", load, "POST", "switch"),
    Page(f"{_HOME}/restart", restart, "POST", "switch"),
)
