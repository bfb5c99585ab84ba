"""The state of a session: what is stored, and how it heals (S3, S4, S6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from pegboard.core.catalog import Ref
from pegboard.core.leases import Because, Lease, Until
from pegboard.core.permissions import Access
from pegboard.core.selectors import Entry, entry_of
from pegboard.core.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Count equal failures of a meta-tool in a row within one turn (X3)."""

    call: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Hold what a session has taken out, in the order of taking, and its turn.

    ``label`` is the last turn label that a client gave (G3). ``loadout`` is the session's active
    loadout (L7). ``recent`` are ids of tools that were loaded and used, the last used first (S8).
    """

    turn: int = 1
    label: str | None = None
    leases: tuple[Lease, ...] = ()
    loadout: str | None = None
    failure: Failure | None = None
    recent: tuple[str, ...] = ()

    def lease(self, subject: Ref) -> Lease | None:
        """Return the lease on this subject."""
        return next((lease for lease in self.leases if lease.subject == subject), None)

    def with_lease(self, lease: Lease) -> State:
        """Return the state with the lease added behind the others, or upgraded where it stands."""
        if self.lease(lease.subject) is None:
            return replace(self, leases=(*self.leases, lease))
        return replace(
            self,
            leases=tuple(held.upgraded(lease) if held.subject == lease.subject else held for held in self.leases),
        )


DEFAULT: Final = State()
"""The state of a session in which nothing has happened; it is not stored (S4)."""


def turn_of_messages(count: int) -> int:
    """Return the turn that a host with this many messages is in (S6, seed 002).

    >>> [turn_of_messages(n) for n in (1, 2, 3, 4, 5)]
    [1, 1, 2, 2, 3]
    """
    return (count + 1) // 2


def lease_entries(access: Access, lease: Lease) -> Iterator[Entry]:
    """Yield the entries that a lease stands for, before any permission is asked."""
    subject, catalog = lease.subject, access.world.catalog
    match subject.kind:
        case "toolkit":
            if access.may_load_toolkit(subject.name):
                yield from access.toolkits.get(subject.name, ())
        case "plugin":
            if subject.name in catalog.plugins:
                yield access.plugin_entry(subject.name)
        case "tool":
            tool = catalog.by_id(subject.name)
            if tool is not None:
                entry = access.entry_for(tool)
                only = frozenset({tool.id})
                yield entry_of(catalog.plugins[tool.plugin], entry.member, only=only)
        case "category":
            return


def leased_tools(access: Access, lease: Lease) -> Iterator[tuple[Tool, Entry]]:
    """Yield the permitted tools that a lease takes out, with the entries they stand in."""
    for entry in lease_entries(access, lease):
        for tool in entry.tools:
            if tool.id not in lease.minus and access.permits(tool):
                yield tool, entry


def counts(access: Access, lease: Lease) -> bool:
    """Return whether a stored lease still stands for something (S3).

    A plugin or server that is not known yet, or unavailable now, is not gone.
    """
    if any(True for _ in leased_tools(access, lease)):
        return True
    catalog = access.world.catalog
    if lease.subject.kind == "tool":
        plugin = catalog.plugins.get(lease.subject.name.partition("/")[0])
        return plugin is not None and not plugin.tools and access.grants_unseen(plugin)
    return any(
        not entry.tools and access.grants_unseen(catalog.plugins[entry.plugin])
        for entry in lease_entries(access, lease)
        if not catalog.plugins[entry.plugin].variant(entry.key).known
    )


def heal(access: Access, state: State) -> State:
    """Return the state without the leases that no longer count (S3)."""
    kept = tuple(lease for lease in state.leases if counts(access, lease))
    return state if len(kept) == len(state.leases) else replace(state, leases=kept)


def to_text(state: State) -> str | None:
    """Return the state as it is stored, or None where it equals the default (S4)."""
    if state == DEFAULT:
        return None
    document: dict[str, Any] = {"turn": state.turn, "leases": [_lease(le) for le in state.leases]}
    for name in ("label", "loadout"):
        if (value := getattr(state, name)) is not None:
            document[name] = value
    if state.recent:
        document["recent"] = state.recent
    if state.failure is not None:
        document["failure"] = [state.failure.call, state.failure.count]
    return json.dumps(document, separators=(",", ":"))


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
    if lease.minus:
        document["minus"] = sorted(lease.minus)
    return document


def from_text(text: str) -> State:
    """Return the state that :func:`to_text` wrote; raises ``ValueError`` on anything else.

    >>> state = State(turn=3, leases=(Lease(subject=Ref("toolkit", "x"), until=Until("unload")),))
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
            leases=tuple(
                Lease(
                    subject=Ref.parse(item["subject"]),
                    until=Until(item["until"], item.get("turns", 0)),
                    because=Because(item["because"]),
                    loaded_turn=item["loaded"],
                    used_turn=item["used"],
                    minus=frozenset(item.get("minus", ())),
                )
                for item in document["leases"]
            ),
            recent=tuple(document.get("recent", ())),
            failure=Failure(call=failure[0], count=failure[1]) if failure else None,
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"not a session state: {error!r}") from error
