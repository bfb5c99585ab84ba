"""The sessions that operators see, page by page: what each has loaded, and what that costs now (S1, F4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.meta_tools import hint_form
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, looked_at, narrowed_above_of
from pegboard.board.views.surface import surface_to_come
from pegboard.core.model.leases import Lease
from pegboard.core.state.sessions import State
from pegboard.errors import UnknownAgentError
from pegboard.operators.counting import SOON, CatalogCounting
from pegboard.operators.known_sessions import KnownSession, known_sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session of a page.

    Attributes:
        principal: whose session it is.
        agent: the agent's name.
        session: its id.
        stored: whether it is stored; else it has changed nothing, and this process alone knows it.
        updated_at: when it changed last, or had a surface, in seconds since the epoch.
        turn: its turn, or None where its state cannot be read.
        label: the last turn label that a client gave.
        loadout: its active loadout (L7).
        leases: one short text for each of its leases, in the order of loading.
        tokens: those of what its model would be sent next, tools and texts, or None where that is not known, or is
            being counted.
        saved: what loading everything that it may use would cost more; None while a plugin is unknown as well.
        unknown: the plugins that it may use and whose tools are not known yet; they count in no figure.
        problem: why it cannot be read, or nothing.
    """

    principal: str
    agent: str
    session: str
    stored: bool
    updated_at: float
    turn: int | None = None
    label: str | None = None
    loadout: str | None = None
    leases: tuple[str, ...] = ()
    tokens: int | None = None
    saved: int | None = None
    unknown: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """A part of the sessions, and how many there are of which it is one."""

    rows: tuple[SessionRow, ...]
    total: int


async def list_sessions(
    services: Services,
    counting: CatalogCounting,
    *,
    agent: str | None,
    agents: frozenset[str] | None,
    principal: str | None,
    query: str,
    offset: int,
    limit: int,
) -> SessionPage:
    """Return a page of sessions, the newest change first.

    Raises:
        StoreError: they cannot be read.
    """
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    words = query.casefold().split()
    found = [
        known
        for known in await known_sessions(services, agent=agent, principal=principal)
        if (agents is None or known.key.agent in agents) and _fits(known, words)
    ]
    page = found[max(offset, 0) : max(offset, 0) + max(limit, 0)]
    counted = await counting.done()
    until = asyncio.get_running_loop().time() + SOON
    rows = [await _row(services, counting if counted else None, known, until) for known in page]
    return SessionPage(rows=tuple(rows), total=len(found))


def _fits(known: KnownSession, words: Iterable[str]) -> bool:
    """Return whether every word stands in a session's principal, agent or id."""
    text = f"{known.key.principal}\n{known.key.agent}\n{known.key.session}".casefold()
    return all(word in text for word in words)


async def _row(services: Services, counting: CatalogCounting | None, known: KnownSession, until: float) -> SessionRow:
    try:
        state = known.state()
    except ValueError:
        return row_of(known, problem=UNREADABLE)
    try:
        snapshot = await looked_at_now(services, known, state)
    except UnknownAgentError as error:
        return row_of(known, state, problem=services.masker.text(error.message))
    form = hint_form(services, snapshot.permissions, known.info.host)
    if counting is None or not await counting.knows_surface(snapshot.permissions, state.loadout, form, until):
        return row_of(known, snapshot.state)
    costs = (await surface_to_come(services, snapshot)).tokens
    return row_of(known, snapshot.state, tokens=costs.total, saved=costs.saved, unknown=costs.unknown)


UNREADABLE = "Its stored state is damaged: delete it, and the next use of its name begins anew."


async def looked_at_now(services: Services, known: KnownSession, state: State) -> Snapshot:
    """Return a session as of the last refresh; nothing is asked for, started or stored."""
    above = await narrowed_above_of(services, known.info) if known.info.parent is not None else ()
    return looked_at(services, known.info, state, narrowed_above=above)


def row_of(
    known: KnownSession,
    state: State | None = None,
    *,
    tokens: int | None = None,
    saved: int | None = None,
    unknown: tuple[str, ...] = (),
    problem: str = "",
) -> SessionRow:
    """Return the row of a session."""
    return SessionRow(
        principal=known.key.principal,
        agent=known.key.agent,
        session=known.key.session,
        stored=known.stored,
        updated_at=known.updated_at,
        turn=state.turn if state is not None else None,
        label=state.label if state is not None else None,
        loadout=state.loadout if state is not None else None,
        leases=tuple(_short(lease) for lease in state.leases) if state is not None else (),
        tokens=tokens,
        saved=saved,
        unknown=unknown,
        problem=problem,
    )


def _short(lease: Lease) -> str:
    """Return a lease in a few words: "devops until unload"."""
    return f"{lease.subject.name} until {lease.until}"
