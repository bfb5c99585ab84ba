"""Until when a tool is loaded, and because of what (S5)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, get_args

from pegboard.core.model.catalog import Ref

TermKind = Literal["turn", "idle", "unload", "always"]
KINDS: Final[tuple[TermKind, ...]] = get_args(TermKind)
_RANK: Final = {kind: rank for rank, kind in enumerate(KINDS)}
IDLE_TURNS: Final = 5


@dataclass(frozen=True, slots=True, order=True)
class LeaseTerm:
    """How long a lease stands; a larger value is a stronger one.

    >>> LeaseTerm("turn") < LeaseTerm("idle", 5) < LeaseTerm("idle", 6) < LeaseTerm("unload") < LeaseTerm("always")
    True
    >>> str(LeaseTerm("idle", 5))
    'idle(5)'
    """

    rank: int = field(init=False, repr=False)
    kind: TermKind = field(compare=False)
    turns: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", _RANK[self.kind])

    def __str__(self) -> str:
        return f"idle({self.turns})" if self.kind == "idle" else self.kind

    @property
    def in_words(self) -> str:
        """Return for how long it stands, for people.

        >>> LeaseTerm("idle", 5).in_words
        'until it is unused for 5 turns'
        """
        match self.kind:
            case "turn":
                return "until the turn ends"
            case "idle":
                return f"until it is unused for {f'{self.turns} turns' if self.turns != 1 else 'a turn'}"
            case "unload":
                return "until it is unloaded"
            case _:
                return "always"


TURN: Final = LeaseTerm("turn")
UNLOAD: Final = LeaseTerm("unload")
ALWAYS: Final = LeaseTerm("always")


class LeaseReason(StrEnum):
    """Why a tool is loaded."""

    ESSENTIAL = "essential"
    STATIC = "static"
    META = "meta"
    INITIAL = "initial"
    SWITCH = "switch"
    LOADOUT = "loadout"
    LOADED = "loaded"
    ANTICIPATED = "anticipated"
    FALLBACK = "fallback"
    REQUIRED = "required"


LEASED: Final = frozenset({LeaseReason.LOADED, LeaseReason.ANTICIPATED, LeaseReason.FALLBACK})
"""Reasons that come with a lease of the session: nothing was loaded from the start for them."""

STICKY: Final = frozenset(
    {
        LeaseReason.ESSENTIAL,
        LeaseReason.STATIC,
        LeaseReason.META,
        LeaseReason.INITIAL,
        LeaseReason.SWITCH,
        LeaseReason.LOADOUT,
    }
)
"""Reasons that no unload can take away (S10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease on a subject: what was loaded, until when, why, in which turn.

    ``excluded`` are ids of tools that were unloaded one by one from a toolkit, plugin or category, or that did not come
    with a plugin that was loaded ahead, since they are destructive.
    ``from_turn`` is the first turn in which a model sees its tools and can call them (D2). ``by`` is the agent that
    loaded it where that is another one, which shares the toolkit (S1). ``names`` are pairs of
    the id and the wire name of each of its tools, that was loaded while something else was not known yet: what becomes
    known later takes none of these names (G10).
    """

    subject: Ref
    until: LeaseTerm
    because: LeaseReason = LeaseReason.LOADED
    loaded_turn: int = 1
    used_turn: int = 1
    excluded: frozenset[str] = frozenset()
    from_turn: int = 0
    by: str = ""
    names: frozenset[tuple[str, str]] = frozenset()

    def upgraded(self, other: Lease) -> Lease:
        """Return this lease strengthened by a later one of the same subject, never weakened.

        What was unloaded from it stays so: a later lease puts it behind everything else (F1). What was
        only anticipated is loaded for good once someone loads it.
        """
        stays = other.because is LeaseReason.ANTICIPATED or (
            self.until >= other.until and self.because is not LeaseReason.ANTICIPATED
        )
        return replace(
            self,
            until=max(self.until, other.until),
            because=self.because if stays else other.because,
            used_turn=max(self.used_turn, other.used_turn),
            from_turn=min(self.from_turn, other.from_turn),
        )

    def pending(self, turn: int) -> bool:
        """Return whether its tools are neither seen nor called in this turn (D2)."""
        return self.from_turn > max(turn, 0)

    def lapses(self, turn: int) -> bool:
        """Return whether the lease goes at the end of this turn (S7); a pending one never."""
        match self.until.kind:
            case "turn":
                return not self.pending(turn)
            case "idle":
                return not self.pending(turn) and turn - self.used_turn > self.until.turns
            case "unload" | "always":
                return False
