"""Servers and other plugins: what they do, what is wrong with them, what they printed; and their restart (F5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, after_form, kept_address, offset_of, text_of
from pegboard.console.templating import query
from pegboard.errors import UsageError
from pegboard.operators.server_usage import ServerUsage
from pegboard.operators.server_usage import server_usage as read_server_usage
from pegboard.operators.servers import (
    ServerPhase,
    ServerState,
    printed_lines,
    restart_plugin,
    server_state,
    server_states,
    server_tools,
)
from pegboard.operators.switches import pauses_by_agent

ROWS: Final = 50
"""How many servers or tools a page shows."""
PHASES: Final[tuple[ServerPhase, ...]] = get_args(ServerPhase)
_FAILED: Final = "failed"
_TROUBLED: Final[tuple[ServerPhase, ...]] = ("unavailable", "down", "backing_off")
"""The states of what failed, the gravest first."""
_OFTEN: Final[tuple[ServerPhase, ...]] = ("up", "idle", "not_started")
_HOME: Final = "/console/servers"
_ONE: Final = "/console/server"


async def servers(context: Context, visit: OperatorRequest) -> Response:
    """Show the servers that are wanted, and how many plugins there are besides."""
    return await _show_list(context, visit, "servers.html", _HOME, servers=True)


async def plugins(context: Context, visit: OperatorRequest) -> Response:
    """Show the plugins that run in this process."""
    return await _show_list(context, visit, "plugins.html", f"{_HOME}/plugins", servers=False)


async def _show_list(
    context: Context, visit: OperatorRequest, template: str, address: str, *, servers: bool
) -> Response:
    context.require_every_agent(visit)
    given = visit.request.query_params
    text, phase, offset = given.get("q", "").strip(), given.get("state", ""), offset_of(given)
    if phase and phase not in (*PHASES, _FAILED):
        raise UsageError("There is no such state of a server.", hint=f"States: {_FAILED}, {', '.join(PHASES)}.")
    states = await server_states(context.services, context.subjects.counting)
    lately = {one.name: one for one in await read_server_usage(context.services)}
    own = [state for state in states if (state.kind == "server") is servers]
    found = rank_servers([state for state in own if _matches_filter(state, text, phase)], lately)
    here = query(address, q=text, state=phase, offset=offset or None)
    page = context.templates.page(
        template,
        visit,
        rows=found[offset : offset + ROWS],
        found=len(found),
        total=len(own),
        lately=lately,
        plugins=len(states) - len(own),
        failing=_count_failing([state for state in states if state.kind != "server"]),
        text=text,
        phase=phase,
        shown_phases=[(one, one.replace("_", " ")) for one in PHASES if one in (phase, *_OFTEN)],
        offset=offset,
        limit=ROWS,
        here=here,
    )
    return kept_address(page, here) if servers else page


def rank_servers(states: Sequence[ServerState], lately: Mapping[str, ServerUsage]) -> list[ServerState]:
    """Return servers, what failed first, then those of which most calls failed, then the busiest."""

    def place(state: ServerState) -> tuple[int, int, int]:
        usage = lately.get(state.name)
        errors, calls = (usage.errors, usage.calls) if usage is not None else (0, 0)
        return _order_of_state(state), -errors, -calls

    return sorted(states, key=place)


def _matches_filter(state: ServerState, text: str, phase: str) -> bool:
    wanted = state.state in _TROUBLED if phase == _FAILED else not phase or state.state == phase
    return wanted and (not text or text.casefold() in state.name.casefold())


def _order_of_state(state: ServerState) -> int:
    """Return where a server stands: what failed first, then what warns or waits, then in the order of the file."""
    if state.state in _TROUBLED:
        return _TROUBLED.index(state.state)
    return len(_TROUBLED) if state.warnings or state.unavailable else len(_TROUBLED) + 1


def _count_failing(states: Sequence[ServerState]) -> int:
    return sum(bool(state.unavailable) for state in states)


async def server(context: Context, visit: OperatorRequest) -> Response:
    """Show everything that is known of a server or plugin."""
    context.require_every_agent(visit)
    name, offset = visit.given("name"), offset_of(visit.request.query_params)
    state, standing = await server_head(context, name)
    wanted = await context.subjects.logins.logins_wanted(visit.operator.name) if state.login != "none" else ()
    return context.templates.page(
        "server.html",
        visit,
        one=state,
        standing=standing,
        tools=await server_tools(context.services, name, offset=offset, limit=ROWS),
        wanted=next((one for one in wanted if visit.names.meant(one.server) == name), None),
        offset=offset,
        limit=ROWS,
        saying=await context.subjects.pins.tools_with_findings(name) if state.kind == "server" else (),
        here=query(_ONE, name=state.name, offset=offset or None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStanding:
    """What the head of a server's page says beside its state: for how many agents it is paused, what waits of it."""

    paused: int
    agents: int
    waiting: int


async def server_head(context: Context, name: str) -> tuple[ServerState, ServerStanding]:
    """Return what the head of each view of a server or plugin shows; raises ``UsageError`` where there is none."""
    state = await server_state(context.services, name)
    paused = sum(name in one.plugins for one in (await pauses_by_agent(context.services)).values())
    waiting = len(await context.subjects.pins.listed(name, waiting=True)) if state.kind == "server" else 0
    return state, ServerStanding(paused=paused, agents=len(context.board.world.agents), waiting=waiting)


async def server_log(context: Context, visit: OperatorRequest) -> Response:
    """Show what a server printed."""
    context.require_every_agent(visit)
    name = visit.given("name")
    state, standing = await server_head(context, name)
    lines = await printed_lines(context.services, name)
    return context.templates.page("server_log.html", visit, one=state, standing=standing, lines=lines)


async def restart(context: Context, visit: OperatorRequest) -> Response:
    """Restart a server; where that breaks off calls, ask first."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    name = visit.names.meant(text_of(form, "name"))
    state = await server_state(context.services, name)
    if state.in_flight and "sure" not in form:
        response = context.templates.page("restart.html", visit, one=state)
        response.headers.update({"HX-Retarget": "#dialog", "HX-Reswap": "innerHTML", "HX-Reselect": "#restart"})
        return response
    after = await restart_plugin(context.services, name, by=visit.operator.name)
    return after_form(context, visit, _outcome(after), back=query(_ONE, name=after.name))


def _outcome(state: ServerState) -> Notice:
    name = f"'{state.name}'"
    if state.unavailable:
        return Notice(kind="error", message=f"{name} was restarted and cannot run.", hint=state.unavailable[0])
    match state.state:
        case "up":
            return Notice(message=f"{name} was restarted and is up.")
        case "starting":
            return Notice(message=f"{name} was restarted and is still starting.", hint="This page shows when it is up.")
        case "idle" | "not_started":
            return Notice(message=f"{name} was restarted and starts when it is needed.")
        case _:
            return Notice(kind="error", message=f"{name} was restarted and did not come up.", hint=state.last_error)


PAGES: Final = (
    Page(_HOME, servers),
    Page(f"{_HOME}/plugins", plugins),
    Page(_ONE, server),
    Page(f"{_ONE}/log", server_log),
    Page(f"{_ONE}/restart", restart, "POST", "switch"),
)
"""The addresses of servers."""
