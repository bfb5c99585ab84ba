"""What sessions did, read from their audit trail in one pass and in bounded memory (X4)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from pegboard.core.surface.cache_cost import USAGE, ExpectedUse

Batch = frozenset[str]
"""What one model call loaded: references as they are recorded, ``toolkit:devops`` or ``tool:git/git_log``."""

TOGETHER: Final = 0.05
"""Seconds: loads of one session that follow one another this fast were asked for by one model call."""
MOST_OPEN: Final = 20_000
"""How many sessions are followed at once; the one that was quiet for longest ends when another begins."""
MOST_PATTERNS: Final = 20_000
"""How many different kinds of sessions are kept; further ones are only counted."""


@dataclass(slots=True, kw_only=True)
class Loads:
    """The model calls that loaded one batch, over the sessions of a pattern.

    ``left`` are the requests that followed, ``behind`` the tokens of the conversation before, both
    summed over ``calls``.
    """

    calls: int = 0
    left: int = 0
    behind: int = 0

    def add(self, other: Loads) -> None:
        """Add what another one counted."""
        self.calls += other.calls
        self.left += other.left
        self.behind += other.behind


@dataclass(slots=True, kw_only=True)
class Pattern:
    """Sessions that loaded the same batches as often and called the same tools (by their ids)."""

    called: frozenset[str]
    sessions: int = 0
    turns: int = 0
    calls: int = 0
    requests: int = 0
    loads: dict[Batch, Loads] = field(default_factory=dict[Batch, Loads])


@dataclass(slots=True)
class _SessionReader:
    """One session while it is read."""

    usage: ExpectedUse
    turn: int | None = None
    turns: int = 0
    calls: int = 0
    loading: int = 0
    called: set[str] = field(default_factory=set[str])
    loads: dict[Batch, Loads] = field(default_factory=dict[Batch, Loads])
    batch: set[str] = field(default_factory=set[str])
    last: float = 0.0
    before: int = 0
    behind: int = 0

    @property
    def requests(self) -> int:
        """Return how many requests the session took so far: each call, each load and each answer to the user is one."""
        return self.turns + self.calls + self.loading

    def at_turn(self, turn: int) -> None:
        """Count a turn when it begins."""
        if turn != self.turn:
            self.end_batch()
            self.turn = turn
            self.turns += 1

    def count_load(self, subject: str, at: float) -> None:
        """Count a load, and a model call for it where it does not follow the one before at once."""
        if self.batch and not 0 <= at - self.last <= TOGETHER:
            self.end_batch()
        if not self.batch:
            usage = self.usage
            self.before = self.requests
            self.behind = self.turns * usage.message + self.calls * usage.result + self.loading * usage.answer
        self.batch.add(subject)
        self.last = at

    def count_call(self, tool: str, began: float, *, unasked: bool) -> None:
        """Count a call; with ``unasked`` the tool that was loaded for it at once took no model call (X1)."""
        alone = len(self.batch) == 1 and next(iter(self.batch)).startswith("tool:")
        if unasked and alone and 0 <= began - self.last <= TOGETHER:
            self.batch.clear()
        self.end_batch()
        self.calls += 1
        self.called.add(tool)

    def end_batch(self) -> None:
        """Count the loads that came together as one model call."""
        if self.batch:
            self.loading += 1
            # "left" is completed when the number of all requests is known.
            self.loads.setdefault(frozenset(self.batch), Loads()).add(
                Loads(calls=1, left=-self.before, behind=self.behind)
            )
            self.batch.clear()


class Trail:
    """What the sessions of one agent did; feed it the records of the audit trail, oldest first.

    ``usage`` is what a turn, call or load is taken to add to a conversation; ``unasked`` whether the agent's calls of
    what is not loaded may run at once (``unloaded_call: run`` or ``safe``).
    """

    def __init__(self, usage: ExpectedUse = USAGE, *, unasked: bool = False) -> None:
        self._usage = usage
        self._unasked = unasked
        self._open: OrderedDict[Hashable, _SessionReader] = OrderedDict()
        self._patterns: dict[Hashable, Pattern] = {}
        self.ignored = 0

    def load(self, session: Hashable, turn: int, subject: str, at: float) -> None:
        """Take the record of a load that was granted; ``at`` is in seconds."""
        found = self._session(session)
        found.at_turn(turn)
        found.count_load(subject, at)

    def call(self, session: Hashable, turn: int, tool: str, began: float) -> None:
        """Take the record of a call that ran; ``began`` is in seconds."""
        found = self._session(session)
        found.at_turn(turn)
        found.count_call(tool, began, unasked=self._unasked)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return what all sessions did, in the order in which each kind was first complete; nothing follows it."""
        while self._open:
            self._close(self._open.popitem(last=False)[1])
        return tuple(self._patterns.values())

    def _session(self, key: Hashable) -> _SessionReader:
        found = self._open.get(key)
        if found is None:
            if len(self._open) >= MOST_OPEN:
                self._close(self._open.popitem(last=False)[1])
            found = self._open[key] = _SessionReader(self._usage)
        else:
            self._open.move_to_end(key)
        return found

    def _close(self, session: _SessionReader) -> None:
        session.end_batch()
        called = frozenset(session.called)
        key = called, frozenset((batch, loads.calls) for batch, loads in session.loads.items())
        pattern = self._patterns.get(key)
        if pattern is None:
            if len(self._patterns) >= MOST_PATTERNS:
                self.ignored += 1
                return
            pattern = self._patterns[key] = Pattern(called=called)
        pattern.sessions += 1
        pattern.turns += session.turns
        pattern.calls += session.calls
        pattern.requests += session.requests
        for batch, loads in session.loads.items():
            known = pattern.loads.setdefault(batch, Loads())
            known.add(loads)
            known.left += loads.calls * session.requests
