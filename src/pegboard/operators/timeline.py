"""What happened in one session, turn by turn, the newest first (X4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, get_args

from pegboard.board.services import Services
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.sessions import is_deletion
from pegboard.ports import NumberedRecord, SessionKey

LINES: Final = 60
"""How many records a page of it has."""
CallKind = Literal["call", "deny", "search", "read", "prompt"]
CALLS: Final = get_args(CallKind)
"""What has a page of its own."""
_APPROVAL: Final = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLine:
    """One record of a session: ``call`` is the number under which it has a page, ``approval`` the id of one."""

    id: int
    at: Verbatim
    kind: Verbatim
    turn: int
    subject: Name
    decision: Verbatim
    outcome: str
    reason: str
    duration: float | None
    by: Name
    call: int | None
    approval: Verbatim

    @property
    def failed(self) -> bool:
        """Return whether it did not come to what was wanted."""
        if self.decision in ("refused", "denied"):
            return True
        return self.kind in ("call", "read", "prompt") and self.outcome not in ("ok", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineTurn:
    """What happened in one turn, the newest first, with how many calls there are, and how much went wrong."""

    turn: int
    lines: tuple[TimelineLine, ...]
    calls: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A part of what happened in a session; ``before`` is the cursor to what is older, None where nothing is."""

    principal: Name
    agent: Name
    session: Name
    turns: tuple[TimelineTurn, ...]
    before: int | None


async def timeline(services: Services, key: SessionKey, *, before: int | None = None, limit: int = LINES) -> Timeline:
    """Return a part of what happened in a session, found by an index; what was before its deletion is not its own."""
    found = list(await services.store.session_trail(key, before=before, limit=limit + 1))
    more = len(found) > limit
    own = list(_since_deletion(found[:limit]))
    older = own[-1].number if more and len(own) == limit else None
    lines = tuple(map(line_of, own))
    shown = Timeline(
        principal=key.principal, agent=key.agent, session=key.session, turns=tuple(_group_turns(lines)), before=older
    )
    return mask_value(shown, await shown_names(services))


def line_of(numbered: NumberedRecord) -> TimelineLine:
    """Return a record as a line of a timeline."""
    record = numbered.record
    return TimelineLine(
        id=numbered.number,
        at=record.at.isoformat(),
        kind=record.kind,
        turn=record.turn,
        subject=record.subject,
        decision=record.decision,
        outcome="" if record.kind == _APPROVAL else record.outcome,
        reason=record.reason,
        duration=record.duration,
        by=record.by,
        call=numbered.number if record.kind in CALLS else None,
        approval=record.outcome if record.kind == _APPROVAL else "",
    )


def _group_turns(lines: Iterable[TimelineLine]) -> Iterator[TimelineTurn]:
    for turn, group in groupby(lines, key=lambda line: line.turn):
        of_turn = tuple(group)
        calls = sum(line.kind == "call" for line in of_turn)
        yield TimelineTurn(turn=turn, lines=of_turn, calls=calls, failed=sum(line.failed for line in of_turn))


def _since_deletion(records: Iterable[NumberedRecord]) -> Iterator[NumberedRecord]:
    for one in records:
        if is_deletion(one.record):
            return
        yield one
