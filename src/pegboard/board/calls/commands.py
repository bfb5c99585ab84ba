"""Carry out what changes a session: bring in what it needs, decide, store, and record it (S2, X4)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from pegboard.board.bring_in import bring_in_loaded, bring_in_named
from pegboard.board.calls.anticipating import anticipation_of, notes_of_anticipation
from pegboard.board.meta_tools import command_context
from pegboard.board.services import Services
from pegboard.board.snapshot import Change, Note, Snapshot, change
from pegboard.board.views.policy_hooks import later_policy
from pegboard.core.state.commands import (
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
from pegboard.core.surface import policy
from pegboard.core.surface.outcomes import apply
from pegboard.ports import AuditKind, SessionKey


async def carry_out(services: Services, snapshot: Snapshot, command: Command) -> tuple[Snapshot, Outcome]:
    """Return the session after a command, and its outcome; what is loaded or named has been seen before."""
    snapshot = await bring_in_loaded(services, snapshot)
    if isinstance(command, Load):
        snapshot = await bring_in_named(services, snapshot, command)
    return await apply_command(services, snapshot, command)


async def apply_command(services: Services, snapshot: Snapshot, command: Command) -> tuple[Snapshot, Outcome]:
    """Return the session after a command, and its outcome, over what has been seen so far."""

    def decide(newest: Snapshot) -> Change[Outcome]:
        context = command_context(services, newest.info, newest.access)
        siblings = isinstance(command, Load) and command.siblings
        anticipation = anticipation_of(services, newest) if siblings else None
        state, outcome = apply(newest.access, newest.stored, command, context, anticipation)
        return Change(state=state, result=outcome, notes=_notes(services, newest.info.key, command, outcome))

    snapshot, outcome = await change(services, snapshot, decide)
    if outcome.added and policy.hooked_with(snapshot.access, snapshot.state, outcome.added):
        text = await later_policy(services, snapshot.access, snapshot.state, outcome.added)
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
        services.events.emit("turn_ended", {**record, "turn": snapshot.state.turn})
    return outcome


def _notes(services: Services, key: SessionKey, command: Command, outcome: Outcome) -> tuple[Note, ...]:
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
    items = tuple(_note(services, key, outcome.turn, kind, event, item) for item in outcome.items)
    return (*items, *notes_of_anticipation(services, key, outcome))


def _note(services: Services, key: SessionKey, turn: int, kind: AuditKind, event: str, item: Item) -> Note:
    decision = _decision(item)
    subject = str(item.subject) if item.subject is not None else item.name
    entry = services.recorder.entry(key, turn, kind, subject, decision, reason=item.message, outcome=item.status)
    return entry, event if decision == "allowed" else "denied" if decision == "refused" else None


def _decision(item: Item) -> str:
    match item.status:
        case "loaded" | "unloaded":
            return "allowed"
        case "already_loaded" | "not_loaded":
            return "unchanged"
        case _:
            return "refused"
