"""The state of a session: its turn, its leases, and what it remembers (S4, S6)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import Lease, LeaseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Equal failures of a meta-tool in a row within one turn (X3)."""

    call: str
    count: int


HintForm = Literal["toolkits", "plugins", "rest", "tools"]
"""What is hinted: toolkits alone; behind them plugins, the tools that no toolkit holds, or every tool (F2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownHints:
    """Hints as the model of a session is shown them (F2).

    ``lines`` are their text; ``about`` are references to the toolkits, plugins and tools that it stands for, those
    for which there was no room among them; ``form`` and ``loadout`` are what it was rendered for. ``by_plugin`` says
    that a plugin stands for its tools, known or not, ``whole`` that nothing was cut.
    """

    lines: tuple[str, ...] = ()
    about: frozenset[str] = frozenset()
    form: HintForm = "rest"
    loadout: str | None = None
    by_plugin: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a session has loaded, in the order of loading, and its turn.

    ``label`` is the last turn label that a client gave (G3). ``loadout`` is the session's active
    loadout (L7), ``own_loadout`` whether the agent itself has set it.
    ``recent`` are ids of tools that were loaded and used, the last used first (S8).
    ``evicted`` are names of what went at the end of the last turn, reported once (S7); ``unloaded`` is what was
    unloaded by name in this turn, so that no call loads it again (D2); ``seen`` are the leases as they were before,
    where a model sees what was unloaded until the turn ends (`activation: next_request`).
    ``hints`` are those that were shown when something first changed (F2); they alone make no difference (S4).
    ``shrunk`` is the loadout that narrows what is loaded from the start where the budget needs it
    (S9); it follows from everything else and is never stored.
    """

    turn: int = 1
    label: str | None = None
    leases: tuple[Lease, ...] = ()
    loadout: str | None = None
    own_loadout: bool = False
    failure: Failure | None = None
    recent: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    unloaded: tuple[Ref, ...] = ()
    seen: tuple[Lease, ...] = ()
    hints: ShownHints | None = field(default=None, compare=False)
    shrunk: str | None = field(default=None, compare=False)

    @property
    def as_seen(self) -> State:
        """Return the state whose leases stand for what a model sees: what it unloaded leaves with the turn (D2)."""
        return self.with_leases((*self.seen, *self.leases)) if self.seen else self

    @property
    def anticipated(self) -> tuple[Lease, ...]:
        """Return the leases on what nobody has asked for yet, in the order of loading (S5)."""
        return tuple(lease for lease in self.leases if lease.because is LeaseReason.ANTICIPATED)

    def leases_on(self, subject: Ref) -> tuple[Lease, ...]:
        """Return the leases on this subject: one, and one more for what was unloaded from it and loaded again."""
        return tuple(lease for lease in self.leases if lease.subject == subject)

    def with_lease(self, lease: Lease) -> State:
        """Return the state with the lease added behind the others, or upgraded where it stands.

        Where tools were unloaded from the one that stands, another one follows the others, so
        that what comes back joins at the end and nothing moves (F1).
        """
        strongest = max((standing.until for standing in self.leases_on(lease.subject)), default=lease.until)
        lease = replace(lease, until=max(lease.until, strongest))
        upgraded = (old.upgraded(lease) if old.subject == lease.subject else old for old in self.leases)
        return self.with_leases((*upgraded, lease))

    def with_leases(self, leases: Iterable[Lease]) -> State:
        """Return the state with these leases in place of its own, without those that add nothing."""
        kept: list[Lease] = []
        lacking: dict[Ref, frozenset[str]] = {}
        for lease in leases:
            before = lacking.get(lease.subject)
            if before is None or before - lease.excluded:
                kept.append(lease)
                lacking[lease.subject] = lease.excluded if before is None else before & lease.excluded
        return replace(self, leases=tuple(kept))

    def without(self, leases: Container[Lease]) -> State:
        """Return the state without these of its leases."""
        return replace(self, leases=tuple(lease for lease in self.leases if lease not in leases))

    def used(self, leases: Iterable[Lease]) -> State:
        """Return the state with these of its leases used in this turn (S7)."""
        chosen = frozenset(leases)
        return replace(
            self,
            leases=tuple(replace(one, used_turn=self.turn) if one in chosen else one for one in self.leases),
        )


DEFAULT: Final = State()
"""The state of a session in which nothing has happened; it is not stored (S4)."""


def turn_of_messages(count: int) -> int:
    """Return the turn that a host with this many messages is in (S6, seed 002).

    >>> [turn_of_messages(n) for n in (1, 2, 3, 4, 5)]
    [1, 1, 2, 2, 3]
    """
    return (count + 1) // 2
