"""One session as it was read at the beginning of a request, and the one way to change it (S2, S3, P4).

A request reads once, works on values and stores once: :func:`read`, then helpers that take the snapshot and return
what comes of it, then :func:`change`. Whoever waited for something outside reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from pegboard.board.meta_tools import command_context, meta_tools_by_name, session_hints, view
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo, sessions_above
from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.settings.predicates import conditions
from pegboard.core.model.recording import UNLESS_STATED, Recording
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.active_tools import LoadedTool
from pegboard.core.state.sessions import ShownHints, State, from_text, to_text
from pegboard.core.state.shrinking import fit_to_budget
from pegboard.core.state.subjects import remove_dead_leases
from pegboard.dialects.names import View
from pegboard.errors import StoreError
from pegboard.ports import AuditRecord, Source, StateChange, StoredState

if TYPE_CHECKING:
    from pegboard.core.access.approvals.demands import ToolRules
    from pegboard.core.access.decisions import Reason
    from pegboard.core.surface.surfaces import Surface

T = TypeVar("T")
Note = tuple[AuditRecord, str | None]
"""A record of the audit trail, and the event that goes with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedCall:
    """A call that may run: the tool, whose it is, and who runs it.

    It counts for the permissions and the stored state that it was decided on. ``renews``: the call is the first use
    of a lease in this turn (S7). ``rules`` is what may demand that a person approves it; None where nothing does.
    ``because`` is why the tool is loaded, ``record`` what is kept of the call (X4).
    """

    permissions: CompiledPermissions
    stored: State
    tool: LoadedTool
    spec: PluginSpec
    source: Source
    scope: str
    owner: LoginOwner
    guards: JsonObject
    renews: bool
    rules: ToolRules | None = None
    because: Reason | None = None
    record: Recording = UNLESS_STATED


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfocusedSurface:
    """A surface without the focus of a step, and all that it was made of."""

    made_of: tuple[object, ...]
    surface: Surface


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """A session at one moment: who it is, what it may, its state.

    ``permissions`` is ``base`` with what predicates hold back now; ``conditional`` says that there are some (T12).

    ``stored`` is the state as it was read, of which ``version`` is the version (0: nothing is stored); ``state`` is
    the same healed and within its budget (S3, S9). ``as_of`` is the moment, see ``PermissionCompiler.refresh``.
    ``meta_tools`` are those of the session by name, ``narrowed_above`` the active loadouts of the sessions above it,
    the nearest first (L7, P8), ``unloaded`` the wire names of what this request unloaded by name. ``decided`` keeps
    the newest calls that were decided for this session object with this ``permissions``, so that an equal one is not
    decided again; ``rendered`` its newest surfaces, with what is loaded (True) and without. ``sharing`` are the
    sessions of other agents that the change in hand counts for too (S1).
    """

    info: SessionInfo
    base: CompiledPermissions
    permissions: CompiledPermissions
    stored: State
    state: State
    version: int
    as_of: object
    conditional: bool
    meta_tools: Mapping[str, Tool]
    narrowed_above: tuple[str | None, ...] = ()
    unloaded: frozenset[str] = frozenset()
    decided: dict[str, DecidedCall] = field(default_factory=dict[str, DecidedCall])
    rendered: dict[bool, UnfocusedSurface] = field(default_factory=dict[bool, UnfocusedSurface])
    sharing: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedChange(Generic[T]):
    """What was decided on a snapshot: the state after it, the answer, and what is noted of it.

    ``beside`` are the states after it of the sessions that share it, in their order.
    """

    state: State
    result: T
    notes: Sequence[Note] = ()
    beside: Sequence[State] = ()


async def read_snapshot(
    services: Services, info: SessionInfo, since: float | None = None, *, known: Snapshot | None = None
) -> Snapshot:
    """Return the session as of ``since``, a time of ``time.monotonic()``, or as of now.

    What was stored by ``since`` is enough (P4). ``known`` is an earlier snapshot of the session, returned where nothing
    has changed since.
    """
    as_of = await services.compiler.refresh(since)
    if (
        known is not None
        and known.as_of is as_of
        and known.info is info
        and (not known.conditional or await services.availability.apply(info, known.base) is known.permissions)
    ):
        return known
    narrowed, row = await narrowed_above_of(services, info), await _row(services, info)
    if known is not None and known.info is info and _is_still_current(services, known, row, narrowed):
        return replace(known, as_of=as_of)
    snapshot = await _snapshot(services, info, narrowed, as_of, *_state_of(info, row))
    if known is not None and known.info is info and known.permissions is snapshot.permissions:
        return replace(snapshot, decided=known.decided, rendered=known.rendered)
    return snapshot


def _is_still_current(
    services: Services, known: Snapshot, row: StoredState | None, narrowed: tuple[str | None, ...]
) -> bool:
    """Return whether what has changed since a session was read is nothing that it was read from."""
    if known.version != _version_of(row) or known.narrowed_above != narrowed:
        return False
    base = services.compiler.permissions(known.info, narrowed)
    return base is known.base and not (services.loader.conditional and conditions(base))


def known_if_unchanged(
    services: Services, info: SessionInfo, since: float | None, known: Snapshot | None
) -> Snapshot | None:
    """Return what :func:`read` would, where that is ``known`` and nothing is waited for; else None."""
    if known is None or since is None or known.conditional or known.info is not info:
        return None
    return known if services.compiler.known(since) is known.as_of else None


async def read_start(services: Services, info: SessionInfo) -> Snapshot:
    """Return the session as if nothing had been stored of it: what no load changes (G4)."""
    as_of = await services.compiler.refresh()
    return await _snapshot(services, info, await narrowed_above_of(services, info), as_of, info.start, 0)


async def narrowed_above_of(services: Services, info: SessionInfo) -> tuple[str | None, ...]:
    """Return the active loadouts of the sessions above one, the nearest first (L7, P8)."""
    if info.parent is None:
        return ()
    return tuple([(await stored_state(services, above))[0].loadout for above in sessions_above(info)])


async def _snapshot(
    services: Services,
    info: SessionInfo,
    narrowed_above: tuple[str | None, ...],
    as_of: object,
    stored: State,
    version: int,
) -> Snapshot:
    base = permissions = services.compiler.permissions(info, narrowed_above)
    conditional = services.loader.conditional and bool(conditions(base))
    if conditional:
        permissions = await services.availability.apply(info, base)
    return Snapshot(
        info=info,
        base=base,
        permissions=permissions,
        stored=stored,
        state=settle_state(services, info, permissions, stored),
        version=version,
        as_of=as_of,
        conditional=conditional,
        meta_tools=meta_tools_by_name(services, info, permissions, stored),
        narrowed_above=narrowed_above,
    )


def snapshot_without_refresh(
    services: Services, info: SessionInfo, stored: State, *, narrowed_above: tuple[str | None, ...] = ()
) -> Snapshot:
    """Return a session as of the last refresh, for whoever only looks: no predicate is asked again.

    ``stored`` is its state as it was read, ``narrowed_above`` the active loadouts of the sessions above it, the nearest
    first (L7, P8).
    """
    base = services.compiler.permissions(info, narrowed_above)
    permissions = services.availability.with_known_faults(info, base) if services.loader.conditional else base
    return Snapshot(
        info=info,
        base=base,
        permissions=permissions,
        stored=stored,
        state=settle_state(services, info, permissions, stored),
        version=0,
        as_of=object(),
        conditional=services.loader.conditional,
        meta_tools=meta_tools_by_name(services, info, permissions, stored),
        narrowed_above=narrowed_above,
    )


def settle_state(services: Services, info: SessionInfo, permissions: CompiledPermissions, stored: State) -> State:
    """Return a state healed, and within its budget where that can be (S3, S9)."""
    state = remove_dead_leases(permissions, stored)
    if not permissions.budgeted or not (permissions.agent.budget.shrink or state.loadout is not None):
        return state
    return fit_to_budget(permissions, state, command_context(services, info, permissions))


async def stored_state(services: Services, info: SessionInfo) -> tuple[State, int]:
    """Return the state as it is stored, and its version; that of a new session where nothing is."""
    return _state_of(info, await _row(services, info))


async def _row(services: Services, info: SessionInfo) -> StoredState | None:
    return await services.store.load(info.key) if info.stable else None


def _version_of(row: StoredState | None) -> int:
    return 0 if row is None else row.version


def _state_of(info: SessionInfo, row: StoredState | None) -> tuple[State, int]:
    if row is None:
        return info.start, 0
    try:
        return from_text(row.text), row.version
    except ValueError as error:
        raise StoreError(
            f"The stored state of session '{info.key.session[:60]}' cannot be read: {error}",
            code="state_damaged",
            hint="Delete it with `pegboard session delete`.",
        ) from error


async def change(
    services: Services, snapshot: Snapshot, decide: Callable[[Snapshot], DecidedChange[T]]
) -> tuple[Snapshot, T]:
    """Return the session after what is decided on it, and the answer; state and audit are stored in one transaction.

    Where another writer was first, everything is read again and decided again (S2).
    """
    while True:
        decided = decide(snapshot)
        after = await _stored_change(services, snapshot, decided)
        if after is not None:
            for record, event in decided.notes:
                services.recorder.emit(event, record)
            return after, decided.result
        sharing = tuple([await read_snapshot(services, other.info) for other in snapshot.sharing])
        snapshot = replace(await read_snapshot(services, snapshot.info), sharing=sharing)


async def change_without_storing(
    services: Services, snapshot: Snapshot, decide: Callable[[Snapshot], DecidedChange[T]]
) -> tuple[Snapshot, T]:
    """Return what :func:`change` would, for whoever only decides: nothing is stored, recorded or emitted."""
    decided = decide(snapshot)
    return _snapshot_after(services, snapshot, decided.state, snapshot.version), decided.result


async def _stored_change(services: Services, snapshot: Snapshot, decided: DecidedChange[T]) -> Snapshot | None:
    """Return the session as it is stored, or None where another writer was first."""
    info, state = snapshot.info, decided.state
    records = [record for record, _ in decided.notes]
    version: int | None = snapshot.version
    if any(other.stored != after for other, after in zip(snapshot.sharing, decided.beside, strict=False)):
        return await _stored_together(services, snapshot, decided, records)
    if state != snapshot.stored and info.stable:
        state = _with_hints(services, snapshot, state)
        text = to_text(state, start=info.start)
        version = await services.store.save(info.key, text, expected=snapshot.version, audit=records)
    elif records:
        if info.stable and await services.store.catch_up():
            return None
        await services.store.record(*records)
    return _snapshot_after(services, snapshot, state, version) if version is not None else None


async def _stored_together(
    services: Services, snapshot: Snapshot, decided: DecidedChange[T], records: Sequence[AuditRecord]
) -> Snapshot | None:
    """Return the session once its state and those that share the change are stored, all or none; None as above."""
    state = _with_hints(services, snapshot, decided.state)
    states = ((snapshot, state), *zip(snapshot.sharing, decided.beside, strict=True))
    changes = [
        StateChange(key=one.info.key, text=to_text(state, start=one.info.start), expected=one.version)
        for one, state in states
    ]
    versions = await services.store.save_together(changes, audit=records)
    return _snapshot_after(services, snapshot, state, versions[0]) if versions is not None else None


def _with_hints(services: Services, snapshot: Snapshot, state: State) -> State:
    """Return the state with the hints that its model is shown: they are stored with the first change (F2)."""
    if snapshot.info.host.calls_through:
        return state
    shown = session_hints(services, snapshot.info, snapshot.permissions, state)
    return (
        state
        if shown == (state.hints or ShownHints(form=shown.form, loadout=shown.loadout))
        else replace(state, hints=shown)
    )


def _snapshot_after(services: Services, snapshot: Snapshot, stored: State, version: int) -> Snapshot:
    if stored == snapshot.stored and version == snapshot.version:
        return replace(snapshot, sharing=()) if snapshot.sharing else snapshot
    state = settle_state(services, snapshot.info, snapshot.permissions, stored)
    return replace(snapshot, stored=stored, state=state, version=version, as_of=object(), sharing=())


def view_of(services: Services, snapshot: Snapshot) -> View:
    """Return what the dialect sees of the session."""
    return view(services, snapshot.info, snapshot.permissions, snapshot.state)
