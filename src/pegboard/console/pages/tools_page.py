"""All tools, by search; and the clients that are connected (F5, G1)."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, after_form, kept_address, offset_of
from pegboard.console.templating import query
from pegboard.core.access.permissions import LOCAL
from pegboard.operators.clients import connected_clients
from pegboard.operators.servers import ask_plugins, unasked_plugins
from pegboard.operators.tool_list import list_tools

ROWS: Final = 50
HITS: Final = 12
"""How much of what an agent finds is shown."""
_HOME: Final = "/console/tools"
LONGEST: Final = 200
"""How many characters of what is typed are looked for."""


async def tools_page(context: Context, visit: OperatorRequest) -> Response:
    """Show all tools, or what answers a text; of one agent as its model finds it, and why the rest is not for it."""
    given = visit.request.query_params
    text, offset = given.get("q", "")[:LONGEST], offset_of(given)
    agents = [agent.name for agent in context.agents(visit)]
    chosen = context.agent(visit, visit.given("agent")).name if given.get("agent") else ""
    principal, session = visit.given("principal").strip() or LOCAL, visit.given("session").strip()
    search, words = context.subjects.search, visit.names.meant(text)
    if chosen and words.strip():
        found = None
        hits = await search.for_agent(chosen, words, limit=HITS, principal=principal, session=session)
    else:
        among = [chosen] if chosen else agents
        found, hits = await list_tools(context.services, search, among, query=words, offset=offset, limit=ROWS), None
    asked = {"agent": chosen, "principal": principal if session else "", "session": session}
    asked = {name: visit.names.shown(one) for name, one in asked.items()}
    here = query(_HOME, q=text, **asked, offset=offset or None)
    page = context.templates.page(
        "tools.html",
        visit,
        found=found,
        hits=hits,
        asked=asked,
        names=context.shown_agents(visit),
        words=text,
        offset=offset,
        limit=ROWS,
        agents=1 if chosen else len(agents),
        unasked=[*map(visit.names.shown, unasked_plugins(context.services))],
        here=here,
    )
    return kept_address(page, here)


async def ask(context: Context, visit: OperatorRequest) -> Response:
    """Ask every plugin for its tools that was not asked yet."""
    context.require_every_agent(visit)
    late = await ask_plugins(context.services)
    hint = f"Not yet: {', '.join(late[:10])}." if late else ""
    message = "Some plugins have not answered yet." if late else "Every plugin was asked for its tools."
    return after_form(context, visit, Notice(message=message, hint=hint), back=_HOME)


async def clients_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the clients that reached this process."""
    found = await connected_clients(context.services, visit.operator.sees)
    return context.templates.page("clients.html", visit, clients=found)


PAGES: Final = (
    Page(_HOME, tools_page),
    Page(f"{_HOME}/ask", ask, "POST", "switch"),
    Page("/console/clients", clients_page),
)
"""The addresses of tools and clients."""
