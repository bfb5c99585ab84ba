"""Sessions as operators see them: a page of them, one of them, and the deletion of one (S1, F4, F5, X4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.meta_tools import hint_form
from pegboard.board.services import Services
from pegboard.board.session_info import pool_user_of
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.surface import surface_to_come
from pegboard.core.access.approvals.approval import Approval, next_end
from pegboard.core.access.instances import session_scope
from pegboard.core.access.permissions import tool_fault
from pegboard.core.model.leases import Lease
from pegboard.core.state.active_tools import LoadedTool, active_tools
from pegboard.core.state.sessions import State
from pegboard.core.surface.explanations import lease_of, loaded_because
from pegboard.core.surface.surfaces import Costs, Surface
from pegboard.errors import UnknownAgentError
from pegboard.operators.counting import SOON, CatalogCounting
from pegboard.operators.masked import Name, ShownNames, Verbatim, mask_value, shown_names
from pegboard.operators.snapshots import KnownSession, known_by_key, known_sessions, looked_at_now
from pegboard.ports import AuditRecord, ScopedSource, SessionKey

NEWEST_CALLS: Final = 20

UNREADABLE = "Its stored state is damaged: delete it, and the next use of its name starts a new session."

_SUBJECT: Final = "session"

_REASON: Final = "The session was deleted."


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

    principal: Name
    agent: Name
    session: Name
    stored: bool
    updated_at: float
    turn: int | None = None
    label: str | None = None
    loadout: Name | None = None
    leases: tuple[Name, ...] = ()
    tokens: int | None = None
    saved: int | None = None
    unknown: tuple[Name, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """A part of the sessions, and how many there are of which it is one."""

    rows: tuple[SessionRow, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRow:
    """A tool that is loaded in a session.

    Attributes:
        name: its wire name.
        plugin: its plugin.
        tokens: those of its schema.
        until: until when it is loaded (S5).
        lasts: the same in words.
        because: why, as ``explain`` says it, the reason that put it into its place first (F5).
        lease: what was loaded that it is part of (``toolkit:devops``), or nothing.
        pending: whether it is loaded from the next request on (D2).
        unavailable: why it cannot run now, or nothing (P6).
    """

    name: Name
    plugin: Name
    tokens: int
    until: Verbatim
    lasts: Verbatim
    because: tuple[str, ...]
    lease: Name = ""
    pending: bool = False
    unavailable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """A lease of a session.

    ``lasts`` is ``until`` in words, ``excluded`` are ids of what was unloaded from it one by one.
    """

    subject: Name
    until: Verbatim
    lasts: Verbatim
    because: Verbatim
    loaded_turn: int
    used_turn: int
    excluded: tuple[Name, ...] = ()
    pending: bool = False
    by: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentCall:
    """A call from the audit trail; ``at`` in seconds since the epoch, ``duration`` in milliseconds.

    ``id`` is the number under which it has a page.
    ``error`` is why it failed, nothing where it did not.
    """

    at: float
    tool: Name
    decision: Verbatim
    outcome: Verbatim
    duration: float | None
    turn: int
    error: str
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOverview:
    """One session (S1).

    Attributes:
        principal: whose session it is.
        agent: the agent's name.
        session: its id.
        stored: whether it is stored.
        updated_at: when it changed last, or had a surface, in seconds since the epoch; None where only calls of it
            are known.
        turn: its turn, or None where its state cannot be read.
        label: the last turn label that a client gave.
        loadout: its active loadout (L7).
        shrunk: the loadout that narrows what is loaded from the start to fit the budget (S9).
        loaded: every tool that is loaded, meta-tools among them, in the order of the surface; without these while the
            tokens are being counted.
        leases: its leases, in the order of loading.
        tokens: those of what its model would be sent next, tools and texts, or None where that is not known, or is
            being counted.
        tool_tokens: those of the tools alone.
        saved: what loading everything that it may use would cost more; None while a plugin is unknown.
        unknown: the plugins that it may use and whose tools are not known yet; they count in no figure.
        hints: how many lines of hints there are beside the tools.
        calls: its newest calls, the newest first.
        approvals: the ids of calls in it that wait for a person.
        next_end: when the first of these expires, in seconds since the epoch, or None.
        problem: why it cannot be read, or nothing.
    """

    principal: Name
    agent: Name
    session: Name
    stored: bool
    updated_at: float | None
    turn: int | None = None
    label: str | None = None
    loadout: Name | None = None
    shrunk: Name | None = None
    loaded: tuple[LoadedRow, ...] = ()
    leases: tuple[LeaseRow, ...] = ()
    tokens: int | None = None
    tool_tokens: int | None = None
    saved: int | None = None
    unknown: tuple[Name, ...] = ()
    hints: int = 0
    calls: tuple[RecentCall, ...] = ()
    approvals: tuple[Verbatim, ...] = ()
    next_end: float | None = None
    problem: str = ""


async def list_sessions(
    services: Services,
    counting: CatalogCounting,
    *,
    agent: str | None = None,
    agents: frozenset[str] | None = None,
    principal: str | None = None,
    query: str = "",
    offset: int = 0,
    limit: int = 50,
) -> SessionPage:
    """Return a page of the sessions that are stored or had a surface in this process, the newest change first.

    Of ``agent``, ``principal`` and ``agents`` None is every one; every word of ``query`` is in principal, agent or id.
    """
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    words, names = query.casefold().split(), await shown_names(services)
    found = [
        known
        for known in await known_sessions(services, agent=agent, principal=principal)
        if (agents is None or known.key.agent in agents) and _matches_words(names, known, words)
    ]
    page = found[max(offset, 0) : max(offset, 0) + max(limit, 0)]
    counted = await counting.done()
    until = asyncio.get_running_loop().time() + SOON
    rows = [await _row(services, counting if counted else None, known, until) for known in page]
    return SessionPage(rows=mask_value(tuple(rows), names), total=len(found))


def _matches_words(names: ShownNames, known: KnownSession, words: Iterable[str]) -> bool:
    """Return whether every word is in a session's principal, agent or id, as they are shown."""
    text = "\n".join(map(names.shown, (known.key.principal, known.key.agent, known.key.session))).casefold()
    return all(word in text for word in words)


async def _row(services: Services, counting: CatalogCounting | None, known: KnownSession, until: float) -> SessionRow:
    try:
        state = known.state()
    except ValueError:
        return row_of(known, problem=UNREADABLE)
    try:
        snapshot = await looked_at_now(services, known, state)
    except UnknownAgentError as error:
        return row_of(known, state, problem=error.message)
    form = hint_form(services, snapshot.permissions, known.info.host)
    if counting is None or not await counting.knows_surface(snapshot.permissions, state.loadout, form, until):
        return row_of(known, snapshot.state)
    costs = (await surface_to_come(services, snapshot)).tokens
    return row_of(known, snapshot.state, tokens=costs.total, saved=costs.saved, unknown=costs.unknown)


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
        leases=tuple(_short_lease(lease) for lease in state.leases) if state is not None else (),
        tokens=tokens,
        saved=saved,
        unknown=unknown,
        problem=problem,
    )


def _short_lease(lease: Lease) -> str:
    """Return a lease in a few words: "devops until it is unloaded"."""
    return f"{lease.subject.name} {lease.until.in_words}"


async def describe_session(services: Services, counting: CatalogCounting, key: SessionKey) -> SessionOverview | None:
    """Return a session, or None where nothing is known of it; no server is started, nothing stored."""
    return mask_value(await _find_session(services, counting, key), await shown_names(services))


async def _find_session(services: Services, counting: CatalogCounting, key: SessionKey) -> SessionOverview | None:
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    known = await known_by_key(services, key)
    calls, approvals = await asyncio.gather(_calls(services, key), _waiting_approvals(services, key))
    if known is None:
        calls = await _since_deletion(services, key, calls)
        return _overview(key, None, calls, approvals) if calls or approvals else None
    try:
        state = known.state()
    except ValueError:
        return _overview(key, known, calls, approvals, problem=UNREADABLE)
    try:
        snapshot = await looked_at_now(services, known, state)
    except UnknownAgentError as error:
        return _overview(key, known, calls, approvals, state=state, problem=error.message)
    form = hint_form(services, snapshot.permissions, known.info.host)
    until = asyncio.get_running_loop().time() + SOON
    ready = await counting.done() and await counting.knows_surface(snapshot.permissions, state.loadout, form, until)
    surface = await surface_to_come(services, snapshot) if ready else None
    return _complete(services, known, snapshot, calls, approvals, surface)


async def _calls(services: Services, key: SessionKey) -> tuple[RecentCall, ...]:
    found = await services.store.session_trail(key, kinds=("call",), limit=NEWEST_CALLS)
    return tuple(_call(one.number, one.record) for one in found)


async def _since_deletion(services: Services, key: SessionKey, calls: tuple[RecentCall, ...]) -> tuple[RecentCall, ...]:
    """Return the calls of a session that begins again where it was deleted: those before are not its own."""
    if not calls:
        return ()
    found = await services.store.session_trail(key, kinds=("unload",), limit=NEWEST_CALLS)
    deleted = next((one.record.at.timestamp() for one in found if is_deletion(one.record)), 0.0)
    return tuple(call for call in calls if call.at > deleted)


def _call(number: int, record: AuditRecord) -> RecentCall:
    return RecentCall(
        id=number,
        at=record.at.timestamp(),
        tool=record.subject,
        decision=record.decision,
        outcome=record.outcome,
        duration=record.duration,
        turn=record.turn,
        error=record.reason,
    )


async def _waiting_approvals(services: Services, key: SessionKey) -> tuple[Approval, ...]:
    now = time.time()
    found = await services.store.approvals(principal=key.principal, agent=key.agent, session=key.session)
    return tuple(one for one in found if one.as_of(now).status == "waiting")


def _complete(
    services: Services,
    known: KnownSession,
    snapshot: Snapshot,
    calls: tuple[RecentCall, ...],
    approvals: tuple[Approval, ...],
    surface: Surface | None,
) -> SessionOverview:
    loaded = tuple(_loaded_row(services, snapshot, one) for one in _every_loaded(snapshot, surface))
    return _overview(
        known.key,
        known,
        calls,
        approvals,
        state=snapshot.state,
        loaded=loaded,
        costs=surface.tokens if surface is not None else None,
        hints=len(surface.hints) if surface is not None else 0,
    )


def _every_loaded(snapshot: Snapshot, surface: Surface | None) -> Iterator[LoadedTool]:
    """Yield what is on the surface, then what is loaded and not on it: it is to come, cannot run or is not listed."""
    shown = surface.tools if surface is not None else ()
    listed = {one.tool.id for one in shown}
    yield from shown
    active = active_tools(snapshot.permissions, snapshot.state)
    yield from (one for tool_id, one in active.items() if tool_id not in listed)


def _loaded_row(services: Services, snapshot: Snapshot, loaded: LoadedTool) -> LoadedRow:
    permissions, state = snapshot.permissions, snapshot.state
    leases = (lease_of(permissions, state, loaded, because) for because in loaded.because)
    managed = loaded.tool.plugin not in permissions.world.catalog.plugins
    return LoadedRow(
        name=loaded.tool.wire,
        plugin=loaded.tool.plugin,
        tokens=services.prices((loaded.tool,)),
        until=str(loaded.until),
        lasts=loaded.until.in_words,
        because=tuple(reason.text for reason in loaded_because(permissions, state, loaded)),
        lease=next((str(lease.subject) for lease in leases if lease is not None), ""),
        pending=loaded.pending,
        unavailable="" if managed else tool_fault(permissions, loaded.tool, loaded.key),
    )


def _lease_row(lease: Lease, turn: int) -> LeaseRow:
    return LeaseRow(
        subject=str(lease.subject),
        until=str(lease.until),
        lasts=lease.until.in_words,
        because=lease.because.value,
        loaded_turn=lease.loaded_turn,
        used_turn=lease.used_turn,
        excluded=tuple(sorted(lease.excluded)),
        pending=lease.pending(turn),
        by=lease.by,
    )


def _overview(
    key: SessionKey,
    known: KnownSession | None,
    calls: tuple[RecentCall, ...],
    approvals: tuple[Approval, ...],
    *,
    state: State | None = None,
    loaded: tuple[LoadedRow, ...] = (),
    costs: Costs | None = None,
    hints: int = 0,
    problem: str = "",
) -> SessionOverview:
    return SessionOverview(
        principal=key.principal,
        agent=key.agent,
        session=key.session,
        stored=known is not None and known.stored,
        updated_at=known.updated_at if known is not None else None,
        turn=state.turn if state is not None else None,
        label=state.label if state is not None else None,
        loadout=state.loadout if state is not None else None,
        shrunk=state.shrunk if state is not None else None,
        loaded=loaded,
        leases=tuple(_lease_row(lease, state.turn) for lease in state.leases) if state is not None else (),
        tokens=costs.total if costs is not None else None,
        tool_tokens=costs.tools if costs is not None else None,
        saved=costs.saved if costs is not None else None,
        unknown=costs.unknown if costs is not None else (),
        hints=hints,
        calls=calls,
        approvals=tuple(one.id for one in approvals),
        next_end=next_end(approvals),
        problem=problem,
    )


async def remove_session(services: Services, key: SessionKey, *, by: str, approvals: bool = True) -> bool:
    """Return whether there was something to delete; the next use of the name begins again.

    Without ``approvals`` those of its calls go on waiting.
    """
    entry = services.recorder.entry(key, 0, "unload", _SUBJECT, "allowed", reason=_REASON, outcome="unloaded", by=by)
    recorded = await _remove_state(services, key, entry)
    waited = approvals and bool(await services.store.remove_approvals(**asdict(key)))
    kept = await services.store.forget_session_data(key)
    gone = recorded or waited or kept or services.live.get(key) is not None
    if gone and not recorded:
        await services.store.record(entry)
    services.live.forget(key)
    scope = session_scope(key.agent, pool_user_of(key))
    for source in services.loader.sources:
        if isinstance(source, ScopedSource):
            await source.end_scope(scope)
    services.conversations.begin_anew(key)
    services.metrics.steps.forget(key)
    if gone:
        services.recorder.emit("unloaded", entry)
    return gone


async def _remove_state(services: Services, key: SessionKey, entry: AuditRecord) -> bool:
    """Remove a session's state; another writer's change in between is removed as well."""
    while (stored := await services.store.load(key)) is not None:
        if await services.store.save(key, None, expected=stored.version, audit=[entry]) is not None:
            return True
    return False


def is_deletion(record: AuditRecord) -> bool:
    """Return whether a record says that its session was deleted."""
    return (record.kind, record.subject, record.reason) == ("unload", _SUBJECT, _REASON)
