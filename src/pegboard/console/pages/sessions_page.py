"""The sessions of every process on the store, and one of them: what is loaded, why, its cost, its newest calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from starlette.responses import Response

from pegboard.board.session import Session
from pegboard.console.context import Context, Page
from pegboard.console.operated_sessions import operated_session, session_overview, unknown_session
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, after_form, kept_address, offset_of, text_of
from pegboard.console.templating import query
from pegboard.core.model.naming import label_problem, one_line
from pegboard.core.state.commands import Outcome
from pegboard.errors import UsageError
from pegboard.operators.sent import sent_to_model as read_sent
from pegboard.operators.sessions import LoadedRow, SessionOverview, list_sessions, remove_session
from pegboard.operators.timeline import timeline as read_timeline
from pegboard.ports import SessionKey

ROWS: Final = 50
KEEPS: Final = ("", "turn", "idle", "session")
TIMELINE: Final = 30
"""How many records of its timeline a session's page shows."""
NAMES: Final = 100
"""How many names a form loads at most."""


async def sessions_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the sessions, the newest change first."""
    given = {name: visit.request.query_params.get(name, "").strip() for name in ("agent", "principal", "q")}
    offset = offset_of(visit.request.query_params)
    agent = visit.given("agent").strip()
    if agent:
        context.agent(visit, agent)
    found = await list_sessions(
        context.services,
        context.subjects.counting,
        agent=agent or None,
        agents=visit.operator.agents,
        principal=visit.given("principal").strip() or None,
        query=given["q"],
        offset=offset,
        limit=ROWS,
    )
    here = query("/console/sessions", **given, offset=offset or None)
    agents = context.shown_agents(visit)
    return kept_address(
        context.templates.page(
            "sessions.html", visit, found=found, given=given, offset=offset, limit=ROWS, agents=agents, here=here
        ),
        here,
    )


async def session_page(context: Context, visit: OperatorRequest) -> Response:
    """Show one session."""
    key = key_of(context, visit, visit.request.query_params)
    found = await session_overview(context, visit, key)
    world = context.board.world
    loadouts = sorted({*map(visit.names.shown, world.loadouts), *([found.loadout] if found.loadout else [])})
    configured = key.agent in world.agents
    return context.templates.page(
        "session.html",
        visit,
        found=found,
        sent=await read_sent(context.services, key),
        timeline=await read_timeline(context.services, key, limit=TIMELINE),
        groups=group_loaded(found.loaded),
        configured=configured,
        loadouts=loadouts,
        keeps=KEEPS,
        here=_address(found),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedGroup:
    """Tools that are loaded together, until the same and because of the same."""

    key: int
    title: str
    lasts: str
    because: tuple[str, ...]
    pending: bool
    lease: str
    rows: tuple[LoadedRow, ...]

    @property
    def tokens(self) -> int:
        """Return what all of them take."""
        return sum(row.tokens for row in self.rows)

    @property
    def failing(self) -> int:
        """Return how many of them cannot run."""
        return sum(bool(row.unavailable) for row in self.rows)


def group_loaded(loaded: Sequence[LoadedRow]) -> tuple[LoadedGroup, ...]:
    """Return what is loaded, by what it was loaded with: what is said of each is said once."""
    found: dict[tuple[object, ...], list[LoadedRow]] = {}
    for row in loaded:
        found.setdefault((row.lease or row.plugin, row.lasts, row.because, row.pending), []).append(row)
    return tuple(
        LoadedGroup(
            key=crc32(repr(key).encode()),
            title=rows[0].lease.replace(":", " ", 1) or rows[0].plugin,
            lasts=rows[0].lasts,
            because=rows[0].because,
            pending=rows[0].pending,
            lease=rows[0].lease,
            rows=tuple(rows),
        )
        for key, rows in found.items()
    )


async def change(context: Context, visit: OperatorRequest) -> Response:
    """Load, unload, end the turn, or choose a loadout, as the form says."""
    form = await visit.request.form()
    key = key_of(context, visit, form)
    session = await operated_session(context, visit, key)
    outcome = await _apply_change(visit, session, text_of(form, "do"), form)
    return after_form(context, visit, _notice(outcome), back=_address(_shown_key(visit, key)))


async def delete(context: Context, visit: OperatorRequest) -> Response:
    """Delete a session."""
    form = await visit.request.form()
    key = key_of(context, visit, form)
    if not await remove_session(context.services, key, by=visit.operator.name):
        raise unknown_session(key)
    name = one_line(visit.names.shown(key.session), limit=100)
    message = f"Session {name} is deleted; the next use of its name starts a new session."
    if visit.partial:
        return Response(headers={"HX-Redirect": "/console/sessions"})
    return after_form(context, visit, Notice(message=message), back="/console/sessions")


async def delete_form(context: Context, visit: OperatorRequest) -> Response:
    """Ask whether a session is to be deleted."""
    key = _shown_key(visit, key_of(context, visit, visit.request.query_params))
    return context.templates.page("delete_session.html", visit, key=key, back=_address(key))


async def _apply_change(visit: OperatorRequest, session: Session, do: str, form: Mapping[str, Any]) -> Outcome:
    meant = visit.names.meant
    match do:
        case "load":
            names = [meant(name) for name in text_of(form, "names").replace(",", " ").split() if name]
            if not names:
                raise UsageError("Nothing is named.", hint="Write the name of a toolkit, plugin or tool.")
            if len(names) > NAMES:
                raise UsageError(f"{len(names):,} names are too many; at most {NAMES} are loaded at once.")
            return await session.load(*names, keep=text_of(form, "keep") or None)
        case "unload":
            return await session.unload(meant(text_of(form, "names")))
        case "end-turn":
            return await session.end_turn()
        case "loadout":
            return await session.use_loadout(meant(text_of(form, "loadout")) or None)
        case _:
            raise UsageError("This form has no known action.", hint="Load the page again.")


def _notice(outcome: Outcome) -> Notice:
    """Return what came of a change, item by item where there are items."""
    texts = " ".join(item.text or f"{item.name}: {item.status}." for item in outcome.items)
    done = f"Turn {outcome.turn} now." if not outcome.items else texts
    return Notice(message=done, kind="done" if outcome.status == "ok" else "error")


def key_of(context: Context, visit: OperatorRequest, given: Mapping[str, Any]) -> SessionKey:
    """Return which session is meant, also one whose agent is no longer configured.

    Raises:
        UsageError: it cannot be one.
    """
    agent, principal, session = (
        visit.names.meant(str(given.get(name, ""))) for name in ("agent", "principal", "session")
    )
    context.agent_of_list(visit, agent)
    for what, label in (("agent", agent), ("principal", principal), ("session", session)):
        if problem := label_problem(label):
            raise UsageError(f"The {what} {problem}", hint="Choose a session from the list.")
    return SessionKey(principal=principal, agent=agent, session=session)


def _shown_key(visit: OperatorRequest, key: SessionKey) -> SessionKey:
    """Return a session's key as it is shown."""
    shown = visit.names.shown
    return SessionKey(principal=shown(key.principal), agent=shown(key.agent), session=shown(key.session))


def _address(key: SessionKey | SessionOverview) -> str:
    """Return the address of a session, of its names as they are shown."""
    return query("/console/session", principal=key.principal, agent=key.agent, session=key.session)


PAGES: Final = (
    Page("/console/sessions", sessions_page),
    Page("/console/session", session_page),
    Page("/console/session", change, "POST", "switch"),
    Page("/console/session/delete", delete_form),
    Page("/console/session/delete", delete, "POST", "switch"),
)
