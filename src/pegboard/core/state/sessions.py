"""The state of a session: its turn, its leases, what it remembers, and the text that is stored of it (S2, S4, S6)."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal

from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import KINDS, Lease, LeaseReason, LeaseTerm


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
        """Return the leases on what no one has asked for yet, in the order of loading (S5)."""
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


# -- the text under which it is stored -------------------------------------------------------------


def to_text(state: State, *, start: State = DEFAULT) -> str | None:
    """Return the state as it is stored, or None where it equals that of a new session (S4)."""
    if state == start:
        return None
    document: dict[str, Any] = {"turn": state.turn, "leases": [_lease_document(le) for le in state.leases]}
    for name in ("label", "loadout"):
        if (value := getattr(state, name)) is not None:
            document[name] = value
    for name in ("recent", "evicted"):
        if names := getattr(state, name):
            document[name] = names
    if state.unloaded:
        document["unloaded"] = [str(subject) for subject in state.unloaded]
    if state.seen:
        document["seen"] = [_lease_document(lease) for lease in state.seen]
    if state.own_loadout:
        document["own_loadout"] = True
    if state.failure is not None:
        document["failure"] = [state.failure.call, state.failure.count]
    if state.hints is not None:
        document["hints"] = _hints(state.hints)
    return json.dumps(document, separators=(",", ":"))


def _hints(hints: ShownHints) -> dict[str, Any]:
    return {
        "lines": hints.lines,
        "about": sorted(hints.about),
        "form": hints.form,
        "loadout": hints.loadout,
        "by_plugin": hints.by_plugin,
        "whole": hints.whole,
    }


def _lease_document(lease: Lease) -> dict[str, Any]:
    document: dict[str, Any] = {
        "subject": str(lease.subject),
        "until": lease.until.kind,
        "because": lease.because.value,
        "loaded": lease.loaded_turn,
        "used": lease.used_turn,
    }
    if lease.until.kind == "idle":
        document["turns"] = lease.until.turns
    if lease.from_turn:
        document["from"] = lease.from_turn
    if lease.by:
        document["by"] = lease.by
    if lease.excluded:
        document["minus"] = sorted(lease.excluded)
    if lease.names:
        document["names"] = [list(pair) for pair in sorted(lease.names)]
    return document


def from_text(text: str) -> State:
    """Return the state that :func:`to_text` wrote; raises ``ValueError`` on anything else.

    >>> state = State(turn=3, leases=(Lease(subject=Ref("toolkit", "x"), until=LeaseTerm("unload")),))
    >>> from_text(to_text(state) or "") == state
    True
    """
    try:
        document = json.loads(text)
        failure = document.get("failure")
        return State(
            turn=int(document["turn"]),
            label=document.get("label"),
            loadout=document.get("loadout"),
            own_loadout=document.get("own_loadout") is True,
            leases=tuple(_lease_of(item) for item in document["leases"]),
            recent=tuple(document.get("recent", ())),
            evicted=tuple(document.get("evicted", ())),
            unloaded=tuple(Ref.parse(subject) for subject in document.get("unloaded", ())),
            seen=tuple(_lease_of(item) for item in document.get("seen", ())),
            failure=Failure(call=str(failure[0]), count=int(failure[1])) if failure else None,
            hints=_hints_of(document["hints"]) if "hints" in document else None,
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        raise ValueError(f"not a session state: {error!r}") from error


def _hints_of(document: dict[str, Any]) -> ShownHints:
    return ShownHints(
        lines=tuple(map(str, document["lines"])),
        about=frozenset(map(str, document["about"])),
        form=document["form"],
        loadout=document["loadout"],
        by_plugin=bool(document["by_plugin"]),
        whole=bool(document["whole"]),
    )


_term: Final = lru_cache(maxsize=1_000)(LeaseTerm)


def _lease_of(item: dict[str, Any]) -> Lease:
    if item["until"] not in KINDS:
        raise ValueError(f"not a session state: until {item['until']!r}")
    return Lease(
        subject=Ref.parse(item["subject"]),
        until=_term(item["until"], int(item.get("turns", 0))),
        because=LeaseReason(item["because"]),
        loaded_turn=int(item["loaded"]),
        used_turn=int(item["used"]),
        excluded=frozenset(item.get("minus", ())),
        from_turn=int(item.get("from", 0)),
        by=str(item.get("by", "")),
        names=frozenset((str(key), str(wire)) for key, wire in item.get("names", ())),
    )
