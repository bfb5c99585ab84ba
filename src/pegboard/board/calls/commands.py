"""Carry out what changes a session: bring in what it needs, decide, store, and record it (S2, X4)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import assert_never

from pegboard.board.calls.anticipating import anticipation_of, notes_of_anticipation
from pegboard.board.discover import discover_loaded, discover_named
from pegboard.board.meta_tools import command_context, session_hints
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Change, Note, Snapshot, change, read, would_change
from pegboard.board.views.check_input import check_texts
from pegboard.board.views.policy_hooks import later_policy
from pegboard.core.access.names import lookup
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints, once_per_permissions
from pegboard.core.state.commands import (
    SUCCEEDED,
    Command,
    EndTurn,
    Fallback,
    Item,
    Load,
    MarkTurn,
    Outcome,
    SetLoadout,
    Unload,
    Use,
)
from pegboard.core.state.sessions import State
from pegboard.core.surface import policy
from pegboard.core.surface.outcomes import apply
from pegboard.errors import PegboardError, StoreUnavailableError
from pegboard.ports import AuditKind, SessionKey


def check_names(command: Command) -> None:
    """Raise ``UsageError`` for a command with a name that is no text."""
    names: tuple[object, ...] = command.names if isinstance(command, Load | Unload) else ()
    for name in names:
        if not isinstance(name, str):
            check_texts(name=name)


async def carry_out(
    services: Services,
    snapshot: Snapshot,
    command: Command,
    request: Request | None = None,
    *,
    deciding: bool = False,
) -> tuple[Snapshot, Outcome]:
    """Return the session after a command, and its outcome; what is loaded or named has been seen before.

    No other call that is in flight with ``request`` runs on what it loads (D2). With ``deciding`` it is what it would
    come to: nothing is stored or recorded.
    """
    snapshot = await discover_loaded(services, snapshot)
    if isinstance(command, Load):
        if snapshot.info.conversation.hints is None:  # as they are before what is named is brought in (F2)
            session_hints(services, snapshot.info, snapshot.permissions, snapshot.state)
        snapshot = await discover_named(services, snapshot, command)
    return await apply_command(services, snapshot, command, request, deciding=deciding)


async def apply_command(
    services: Services,
    snapshot: Snapshot,
    command: Command,
    request: Request | None = None,
    *,
    deciding: bool = False,
) -> tuple[Snapshot, Outcome]:
    """Return the session after a command, and its outcome, over what has been seen so far."""
    snapshot = await _with_sharing(services, snapshot, command)

    def decide(newest: Snapshot) -> Change[Outcome]:
        context = command_context(services, newest.info, newest.permissions)
        siblings = isinstance(command, Load) and command.siblings
        anticipation = anticipation_of(services, newest) if siblings else None
        state, outcome = apply(newest.permissions, newest.stored, command, context, anticipation)
        if request is not None and outcome.added and not deciding:
            request.bring(tool.id for tool in outcome.added)
        notes = _notes(services, newest.info.key, command, outcome, newest.info.by)
        if not newest.sharing:
            return Change(state=state, result=outcome, notes=notes)
        beside = [
            (other.info.key, *_shared_change(services, newest, other, command, outcome)) for other in newest.sharing
        ]
        theirs = [_allowed(_notes(services, key, command, done, newest.info.by)) for key, _, done in beside]
        notes = (*notes, *chain.from_iterable(theirs))
        return Change(state=state, result=outcome, notes=notes, beside=[after for _, after, _ in beside])

    snapshot, outcome = await (would_change if deciding else change)(services, snapshot, decide)
    if outcome.added and policy.hooked_with(snapshot.permissions, snapshot.state, outcome.added):
        text = await later_policy(services, snapshot.permissions, snapshot.state, outcome.added)
        outcome = replace(outcome, policy=text)
    if isinstance(command, Unload):
        snapshot = replace(snapshot, unloaded=snapshot.unloaded.union(outcome.removed))
    return snapshot, outcome


async def end_turn(services: Services, snapshot: Snapshot, command: EndTurn | MarkTurn) -> Outcome:
    """Return the outcome of a command that may end the turn; its end is an event."""
    after, outcome = await apply_command(services, snapshot, command)
    if after.state.turn > snapshot.state.turn:
        key = snapshot.info.key
        record = {"principal": key.principal, "agent": key.agent, "session": key.session}
        services.metrics.turn_ended(key)
        services.events.emit("turn_ended", {**record, "turn": snapshot.state.turn})
    return outcome


def _notes(services: Services, key: SessionKey, command: Command, outcome: Outcome, by: str) -> tuple[Note, ...]:
    match command:
        case Load() | Fallback():
            kind, event = "load", "loaded"
        case Unload():
            kind, event = "unload", "unloaded"
        case SetLoadout():
            kind, event = "loadout", "loadout_changed"
        case EndTurn() | MarkTurn():
            kind, event = "evict", "evicted"
        case Use():
            return ()
        case _:
            assert_never(command)
    items = tuple(_note(services, key, outcome.turn, kind, event, item, by) for item in outcome.items)
    if not outcome.anticipated and not outcome.gave_way:
        return items
    return (*items, *notes_of_anticipation(services, key, outcome))


def _allowed(notes: Iterable[Note]) -> Iterator[Note]:
    """Yield what is noted of changes; what an agent is refused that did not ask for it is nobody's matter (S1)."""
    return (note for note in notes if note[0].decision == "allowed")


def _note(services: Services, key: SessionKey, turn: int, kind: AuditKind, event: str, item: Item, by: str) -> Note:
    decision = _decision(item)
    subject = str(item.subject) if item.subject is not None else item.name
    entry = services.recorder.entry(key, turn, kind, subject, decision, reason=item.message, outcome=item.status, by=by)
    return entry, event if decision == "allowed" else "denied" if decision == "refused" else None


def _decision(item: Item) -> str:
    match item.status:
        case "loaded" | "unloaded":
            return "allowed"
        case "already_loaded" | "not_loaded":
            return "unchanged"
        case _:
            return "refused"


async def _with_sharing(services: Services, snapshot: Snapshot, command: Command) -> Snapshot:
    """Return the session with those of the agents that share a toolkit which a command names.

    They are of the same principal and session id; a child, whose id nobody else has, shares nothing.
    """
    info = snapshot.info
    if not isinstance(command, Load | Unload) or not info.stable or info.parent is not None:
        return snapshot
    toolkits = _shared_toolkits(snapshot.permissions)
    if not toolkits:
        return snapshot
    refs = (lookup(snapshot.permissions, name) for name in command.names)
    named = (toolkits.get(ref.name, ()) for ref in refs if ref is not None and ref.kind == "toolkit")
    agents = dict.fromkeys(agent for others in named for agent in others)
    return replace(
        snapshot, sharing=tuple([await read(services, _session_of(services, info, agent)) for agent in agents])
    )


@once_per_permissions
def _shared_toolkits(permissions: CompiledPermissions) -> Mapping[str, tuple[str, ...]]:
    """Return the toolkits that an agent shares, with the other agents that are configured."""
    agents, toolkits = permissions.world.agents, permissions.world.toolkits
    found = {name: toolkit.sharing(permissions.agent.name) for name, toolkit in toolkits.items()}
    return {name: tuple(one for one in others if one in agents) for name, others in found.items() if others}


def _session_of(services: Services, info: SessionInfo, agent: str) -> SessionInfo:
    """Return another agent's session of the same principal and id; its own host is not known, and counts as alike."""
    key = replace(info.key, agent=agent)
    conversation = services.conversations.of(key)
    return SessionInfo(
        key=key, stable=True, host=info.host, constraints=SessionConstraints(), conversation=conversation
    )


def _shared_change(
    services: Services, own: Snapshot, other: Snapshot, command: Command, outcome: Outcome
) -> tuple[State, Outcome]:
    """Return the state of another agent's session after a command, as far as the two share what it names.

    It is the same command under the other's own permissions, budget and settings; what did not succeed is not shared.
    """
    done = [item for item in outcome.items if item.status in SUCCEEDED and item.subject is not None]
    toolkits = _shared_toolkits(own.permissions)
    agent = other.info.key.agent
    subjects = [item.subject for item in done if item.subject is not None and item.subject.kind == "toolkit"]
    names = tuple(str(ref) for ref in subjects if agent in toolkits.get(ref.name, ()))
    if not names:
        return other.stored, Outcome(status="ok")
    mine: Command = (
        Load(names=names, until=command.until, by=own.info.key.agent)
        if isinstance(command, Load)
        else Unload(names=names)
    )
    return apply(other.permissions, other.stored, mine, command_context(services, other.info, other.permissions))


log = logging.getLogger("pegboard")


async def used(services: Services, snapshot: Snapshot, tool: str) -> Snapshot:
    """Return the session once the use of a tool is stored; where the store is lost that waits, not the call."""
    try:
        return (await apply_command(services, snapshot, Use(tool=tool)))[0]
    except StoreUnavailableError:
        services.unstored_uses.add(snapshot.info, tool)
        return snapshot


async def store_uses(services: Services) -> None:
    """Store the uses that wait: the store is back."""
    while services.unstored_uses:
        info, tool = services.unstored_uses.take()
        try:
            await apply_command(services, await read(services, info), Use(tool=tool))
        except StoreUnavailableError:  # it is lost again, and will be back again
            services.unstored_uses.add(info, tool)
            return
        except PegboardError as error:
            log.warning("The use of %s by session '%s' is not stored: %s", tool, info.key.session[:60], error)
