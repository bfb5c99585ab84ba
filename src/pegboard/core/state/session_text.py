"""The text under which the state of a session is stored: JSON, with keys that stores of 0.1.0 have (S2, S4)."""

from __future__ import annotations

import json
from typing import Any

from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import KINDS, Lease, LeaseReason, LeaseTerm
from pegboard.core.state.sessions import DEFAULT, Failure, ShownHints, State


def to_text(state: State, *, start: State = DEFAULT) -> str | None:
    """Return the state as it is stored, or None where it equals that of a new session (S4)."""
    if state == start:
        return None
    document: dict[str, Any] = {"turn": state.turn, "leases": [_lease(le) for le in state.leases]}
    for name in ("label", "loadout"):
        if (value := getattr(state, name)) is not None:
            document[name] = value
    for name in ("recent", "evicted"):
        if names := getattr(state, name):
            document[name] = names
    if state.unloaded:
        document["unloaded"] = [str(subject) for subject in state.unloaded]
    if state.seen:
        document["seen"] = [_lease(lease) for lease in state.seen]
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


def _lease(lease: Lease) -> dict[str, Any]:
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


def _lease_of(item: dict[str, Any]) -> Lease:
    if item["until"] not in KINDS:
        raise ValueError(f"not a session state: until {item['until']!r}")
    return Lease(
        subject=Ref.parse(item["subject"]),
        until=LeaseTerm(item["until"], int(item.get("turns", 0))),
        because=LeaseReason(item["because"]),
        loaded_turn=int(item["loaded"]),
        used_turn=int(item["used"]),
        excluded=frozenset(item.get("minus", ())),
        from_turn=int(item.get("from", 0)),
        by=str(item.get("by", "")),
    )
