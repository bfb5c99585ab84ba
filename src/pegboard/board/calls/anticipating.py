"""Load ahead of being asked for: by the user's message, and beside what is loaded and used (S5, S9, X4)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pegboard.board.meta_tools import command_context, dialect_of
from pegboard.board.services import Services
from pegboard.board.snapshot import Change, Note, Snapshot, change
from pegboard.board.views.search import rank_context
from pegboard.core.anticipation.anticipated_leases import Anticipation
from pegboard.core.anticipation.by_message import RANKED, Hit, with_anticipated
from pegboard.core.anticipation.sentences import sentences
from pegboard.core.model.catalog import Ref
from pegboard.core.model.delivery import choose
from pegboard.core.model.leases import IDLE_TURNS, Lease, LeaseTerm
from pegboard.core.model.tools import Tool
from pegboard.core.state.commands import Outcome
from pegboard.core.state.sessions import State
from pegboard.core.surface.cache_cost import USAGE, carried
from pegboard.core.surface.searchable import searchable
from pegboard.errors import StoreError
from pegboard.ports import SessionKey

log = logging.getLogger(__name__)

TurnMessage = tuple[int, str]
"""A message of the user, and the turn in which it was given."""
_IDLE: Final = LeaseTerm("idle", IDLE_TURNS)
REVEALED: Final = 2
"""How many tools a message brings at most where what joins stays in the history: each is read again with every request
to come, and a third is rarely the one that is needed."""
_AHEAD: Final = "It was loaded ahead of being asked for."
_GAVE_WAY: Final = "It had been loaded ahead of being asked for, and gave way to what needed its room."


def anticipation_of(services: Services, snapshot: Snapshot) -> Anticipation | None:
    """Return what a session may load ahead of being asked for, or None where nothing.

    An array that is cached is not touched. What nobody uses goes when it idles, except from an array that will be
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
    whole = carried(info.host)
    if stays:
        whole = int(carried(info.host, replace(USAGE, wait=0)) * (1 - USAGE.anticipated))
    return Anticipation(limits=limits, carried=carried(info.host), whole=whole, until=until, price=services.prices)


async def _ranked_for(services: Services, snapshot: Snapshot, message: str) -> Sequence[Sequence[Hit]]:
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
    needs = await _ranked_for(services, snapshot, message) if now != ranked else ((),)
    if not needs:
        return snapshot, now

    def decide(newest: Snapshot) -> Change[None]:
        state, brought = _brought(services, newest, needs)
        key, turn = newest.info.key, newest.state.turn
        notes = [_note(services, key, turn, lease.subject, "loaded") for lease in brought]
        return Change(state=state, result=None, notes=notes)

    if _brought(services, snapshot, needs)[1]:
        try:
            snapshot, _ = await change(services, snapshot, decide)
        except StoreError as error:
            log.warning("nothing is loaded ahead: %s", error)
    return snapshot, now


def _brought(services: Services, snapshot: Snapshot, needs: Sequence[Sequence[Hit]]) -> tuple[State, tuple[Lease, ...]]:
    permissions, anticipation = snapshot.permissions, anticipation_of(services, snapshot)
    if anticipation is None:
        return snapshot.stored, ()
    terms = command_context(services, snapshot.info, permissions)
    state, brought = snapshot.state, list[Lease]()
    for hits in needs:
        state, more = with_anticipated(permissions, state, hits, anticipation, terms)
        brought += more
    return (state if brought else snapshot.stored), tuple(brought)


def _note(services: Services, key: SessionKey, turn: int, subject: Ref, event: str | None) -> Note:
    entry = services.recorder.entry(key, turn, "load", str(subject), "allowed", reason=_AHEAD, outcome="anticipated")
    return entry, event


def notes_of_anticipation(services: Services, key: SessionKey, outcome: Outcome) -> tuple[Note, ...]:
    """Return what is noted of a command's leases ahead: those that it brought, and those that gave way to it."""
    brought = (_note(services, key, outcome.turn, ref, None) for ref in outcome.anticipated)
    return (*brought, *(_gone(services, key, outcome.turn, ref) for ref in outcome.gave_way))


def _gone(services: Services, key: SessionKey, turn: int, subject: Ref) -> Note:
    entry = services.recorder.entry(key, turn, "evict", str(subject), "allowed", reason=_GAVE_WAY, outcome="unloaded")
    return entry, "evicted"
