"""Carry out what changes a session: bring in what it needs, decide, store, and record it (S2, S5, X4)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, assert_never

from pegboard.board.discover import discover_loaded, discover_named
from pegboard.board.meta_tools import command_context, dialect_of, session_hints
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import DecidedChange, Note, Snapshot, change, change_without_storing, read_snapshot
from pegboard.board.views.check_input import check_texts
from pegboard.board.views.search import rank_context
from pegboard.board.views.surface import later_policy
from pegboard.core.access.names import lookup
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints, once_per_permissions
from pegboard.core.anticipation.anticipated_leases import Anticipation
from pegboard.core.anticipation.by_message import RANKED, Hit, sentences, with_anticipated
from pegboard.core.model.catalog import Ref
from pegboard.core.model.delivery import choose
from pegboard.core.model.leases import IDLE_TURNS, Lease, LeaseTerm
from pegboard.core.model.tools import Tool
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
from pegboard.core.surface.cache_cost import USAGE, tokens_worth_carrying
from pegboard.core.surface.policy import apply_with_policy
from pegboard.core.surface.searchable import searchable
from pegboard.errors import PegboardError, StoreError, StoreUnavailableError
from pegboard.ports import AuditKind, SessionKey

log = logging.getLogger("pegboard")


def check_names(command: Command) -> None:
    """Raise ``UsageError`` for a command with a name that is no text."""
    names: tuple[object, ...] = command.names if isinstance(command, Load | Unload) else ()
    for name in names:
        if not isinstance(name, str):
            check_texts(name=name)


async def run_command(
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

    def decide(newest: Snapshot) -> DecidedChange[Outcome]:
        context = command_context(services, newest.info, newest.permissions)
        siblings = isinstance(command, Load) and command.siblings
        anticipation = anticipation_of(services, newest) if siblings else None
        state, outcome = apply_with_policy(newest.permissions, newest.stored, command, context, anticipation)
        if request is not None and outcome.added and not deciding:
            request.note_loads(tool.id for tool in outcome.added)
        notes = _notes(services, newest.info.key, command, outcome, newest.info.by)
        if not newest.sharing:
            return DecidedChange(state=state, result=outcome, notes=notes)
        beside = [
            (other.info.key, *_shared_change(services, newest, other, command, outcome)) for other in newest.sharing
        ]
        theirs = [_notes_to_report(_notes(services, key, command, done, newest.info.by)) for key, _, done in beside]
        notes = (*notes, *chain.from_iterable(theirs))
        return DecidedChange(state=state, result=outcome, notes=notes, beside=[after for _, after, _ in beside])

    snapshot, outcome = await (change_without_storing if deciding else change)(services, snapshot, decide)
    if outcome.added and policy.policies_needing_hooks(snapshot.permissions, snapshot.state, outcome.added):
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
    items = tuple(_note_item(services, key, outcome.turn, kind, event, item, by) for item in outcome.items)
    if not outcome.anticipated and not outcome.gave_way:
        return items
    return (*items, *notes_of_anticipation(services, key, outcome))


def _notes_to_report(notes: Iterable[Note]) -> Iterator[Note]:
    """Yield what is noted of changes; what an agent is refused that did not ask for it is no one's matter (S1)."""
    return (note for note in notes if note[0].decision == "allowed")


def _note_item(
    services: Services, key: SessionKey, turn: int, kind: AuditKind, event: str, item: Item, by: str
) -> Note:
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

    They are of the same principal and session id; a child, whose id no one else has, shares nothing.
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
        snapshot,
        sharing=tuple([await read_snapshot(services, _info_of_agent(services, info, agent)) for agent in agents]),
    )


@once_per_permissions
def _shared_toolkits(permissions: CompiledPermissions) -> Mapping[str, tuple[str, ...]]:
    """Return the toolkits that an agent shares, with the other agents that are configured."""
    agents, toolkits = permissions.world.agents, permissions.world.toolkits
    found = {name: toolkit.sharing(permissions.agent.name) for name, toolkit in toolkits.items()}
    return {name: tuple(one for one in others if one in agents) for name, others in found.items() if others}


def _info_of_agent(services: Services, info: SessionInfo, agent: str) -> SessionInfo:
    """Return another agent's session of the same principal and id; its own host is not known, and counts as alike."""
    key = replace(info.key, agent=agent)
    conversation = services.conversations.conversation_of(key)
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
    return apply_with_policy(
        other.permissions, other.stored, mine, command_context(services, other.info, other.permissions)
    )


async def record_use(services: Services, snapshot: Snapshot, tool: str) -> Snapshot:
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
            await apply_command(services, await read_snapshot(services, info), Use(tool=tool))
        except StoreUnavailableError:  # it is lost again, and will be back again
            services.unstored_uses.add(info, tool)
            return
        except PegboardError as error:
            log.warning("The use of %s by session '%s' is not stored: %s", tool, info.key.session[:60], error)


# -- what is loaded ahead of being asked for: by the user's message, and with what is loaded and used (S5, S9)


TurnMessage = tuple[int, str]
"""A message of the user, and the turn in which it was given."""
_IDLE: Final = LeaseTerm("idle", IDLE_TURNS)
REVEALED: Final = 2
"""How many tools a message brings at most where what joins stays in the history: each is read again with every request
to come, and a third is rarely the one that is needed."""
_AHEAD: Final = "It was loaded in advance."
_GAVE_WAY: Final = "It was loaded in advance, and unloaded to make room."


def anticipation_of(services: Services, snapshot: Snapshot) -> Anticipation | None:
    """Return what a session may load ahead of being asked for, or None where nothing.

    An array that is cached is not touched. What no one uses goes when it idles, except from an array that will be
    cached: there it costs more to take away than to keep (D3). A host that reveals is there for its bill alone (D4):
    what a person's waiting is worth does not speak for carrying a plugin whole.
    """
    info, permissions = snapshot.info, snapshot.permissions
    limits = permissions.agent.anticipate
    if limits is None or not info.stable or permissions.constraints.everything:
        return None
    in_full = choose(info.host) == "array"
    if in_full and info.host.cache is not None and info.host.cache.tokens:
        return None
    term = permissions.agent.lease or dialect_of(services, permissions).lease
    until = term if in_full and info.host.cache is not None else min(term, _IDLE)
    stays = info.host.reveals or info.host.list_is_fixed
    if stays:
        limits = replace(limits, tools=min(limits.tools, REVEALED))
    whole = tokens_worth_carrying(info.host)
    if stays:
        whole = int(tokens_worth_carrying(info.host, replace(USAGE, wait=0)) * (1 - USAGE.anticipated))
    return Anticipation(
        limits=limits, carried=tokens_worth_carrying(info.host), whole=whole, until=until, price=services.prices
    )


async def _hits_for_message(services: Services, snapshot: Snapshot, message: str) -> Sequence[Sequence[Hit]]:
    """Return for each need of a message the known tools that it means most probably, best first.

    There is none where what the message finds does not stand out from what any text finds; else it is one, and each of
    its sentences that stands out is another. Nothing is asked or started for it. Earlier messages do not count: what
    they needed is loaded already, and they hide that the subject changes.
    """
    if anticipation_of(services, snapshot) is None:
        return ()
    among = searchable(snapshot.permissions, snapshot.state.loadout)
    await services.ranker.prepare(among)
    context = await rank_context(services, snapshot, [message], messages=())
    found: list[Sequence[Hit]] = []
    for text in (message, *sentences(message)):
        ranking = services.ranker.rank([text], among, context, limit=RANKED)
        if all(need.stands_out for need in ranking.needs):
            found.append([(hit.found, hit.score) for hit in ranking.hits if isinstance(hit.found, Tool)])
        elif not found:
            break
    return found


async def anticipate(
    services: Services, snapshot: Snapshot, message: str, ranked: TurnMessage | None
) -> tuple[Snapshot, TurnMessage]:
    """Return the session with what the message needs most probably, and with the siblings of what was used.

    A message is ranked once a turn: ``ranked`` is the one that was ranked last, and the answer the one that is now.
    Where that cannot be stored nothing is loaded ahead: the surface is as it was, and the model searches.
    """
    now = (snapshot.state.turn, message)
    needs = await _hits_for_message(services, snapshot, message) if now != ranked else ((),)
    if not needs:
        return snapshot, now

    def decide(newest: Snapshot) -> DecidedChange[None]:
        state, brought = _load_found_toolkits(services, newest, needs)
        key, turn = newest.info.key, newest.state.turn
        notes = [_note_ahead(services, key, turn, lease.subject, "loaded") for lease in brought]
        return DecidedChange(state=state, result=None, notes=notes)

    if _load_found_toolkits(services, snapshot, needs)[1]:
        try:
            snapshot, _ = await change(services, snapshot, decide)
        except StoreError as error:
            log.warning("nothing is loaded in advance: %s", error)
    return snapshot, now


def _load_found_toolkits(
    services: Services, snapshot: Snapshot, needs: Sequence[Sequence[Hit]]
) -> tuple[State, tuple[Lease, ...]]:
    permissions, anticipation = snapshot.permissions, anticipation_of(services, snapshot)
    if anticipation is None:
        return snapshot.stored, ()
    terms = command_context(services, snapshot.info, permissions)
    state, brought = snapshot.state, list[Lease]()
    for hits in needs:
        state, more = with_anticipated(permissions, state, hits, anticipation, terms)
        brought += more
    return (state if brought else snapshot.stored), tuple(brought)


def _note_ahead(services: Services, key: SessionKey, turn: int, subject: Ref, event: str | None) -> Note:
    entry = services.recorder.entry(key, turn, "load", str(subject), "allowed", reason=_AHEAD, outcome="anticipated")
    return entry, event


def notes_of_anticipation(services: Services, key: SessionKey, outcome: Outcome) -> tuple[Note, ...]:
    """Return what is noted of a command's leases ahead: those that it brought, and those that gave way to it."""
    brought = (_note_ahead(services, key, outcome.turn, ref, None) for ref in outcome.anticipated)
    return (*brought, *(_eviction_note(services, key, outcome.turn, ref) for ref in outcome.gave_way))


def _eviction_note(services: Services, key: SessionKey, turn: int, subject: Ref) -> Note:
    entry = services.recorder.entry(key, turn, "evict", str(subject), "allowed", reason=_GAVE_WAY, outcome="unloaded")
    return entry, "evicted"
