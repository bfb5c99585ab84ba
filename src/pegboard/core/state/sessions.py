"""The state of a session: what is stored, and how it heals (S3, S4, S6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import KINDS, Lease, LeaseReason, LeaseTerm
from pegboard.core.model.selectors import Entry, find
from pegboard.core.model.tools import Plugin, Tool


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
    ``evicted`` are names of what went at the end of the last turn, to be told of once (S7).
    ``shrunk`` is the loadout that narrows what is out from the start where the budget needs it
    (S9); it follows from everything else and is never stored.
    """

    turn: int = 1
    label: str | None = None
    leases: tuple[Lease, ...] = ()
    loadout: str | None = None
    failure: Failure | None = None
    recent: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    shrunk: str | None = field(default=None, compare=False)

    def leases_on(self, subject: Ref) -> tuple[Lease, ...]:
        """Return the leases on this subject: one, and one more for what was hung back and taken again."""
        return tuple(lease for lease in self.leases if lease.subject == subject)

    def with_lease(self, lease: Lease) -> State:
        """Return the state with the lease added behind the others, or upgraded where it stands.

        Where tools were hung back out of the one that stands, another one follows the others, so
        that what comes back joins at the end and nothing moves (F1).
        """
        strongest = max((held.until for held in self.leases_on(lease.subject)), default=lease.until)
        lease = replace(lease, until=max(lease.until, strongest))
        upgraded = (held.upgraded(lease) if held.subject == lease.subject else held for held in self.leases)
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

    def used(self, leases: Iterable[Lease]) -> State:
        """Return the state with these of its leases used in this turn (S7)."""
        chosen = frozenset(leases)
        return replace(
            self,
            leases=tuple(replace(held, used_turn=self.turn) if held in chosen else held for held in self.leases),
        )


DEFAULT: Final = State()
"""The state of a session in which nothing has happened; it is not stored (S4)."""


def turn_of_messages(count: int) -> int:
    """Return the turn that a host with this many messages is in (S6, seed 002).

    >>> [turn_of_messages(n) for n in (1, 2, 3, 4, 5)]
    [1, 1, 2, 2, 3]
    """
    return (count + 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTools:
    """Hold what a subject stands for to an agent: its entries, and its permitted tools."""

    entries: tuple[Entry, ...]
    tools: tuple[tuple[Tool, Entry], ...]


def tools_of_subject(access: CompiledPermissions, subject: Ref) -> SubjectTools:
    """Return what a subject stands for; kept with the access, as it depends on nothing else."""
    kept: dict[Ref, SubjectTools] = access.__dict__.setdefault("_held", {})
    known = kept.get(subject)
    if known is None:
        entries = tuple(_entries(access, subject))
        tools = tuple((tool, entry) for entry in entries for tool in entry.tools if access.permits(tool))
        known = kept[subject] = SubjectTools(entries=entries, tools=tools)
    return known


def lease_entries(access: CompiledPermissions, lease: Lease) -> tuple[Entry, ...]:
    """Return the entries that a lease stands for, before any permission is asked."""
    return tools_of_subject(access, lease.subject).entries


def _entries(access: CompiledPermissions, subject: Ref) -> Iterator[Entry]:
    catalog = access.world.catalog
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
                tools = (tool,) if tool.id in entry.ids else ()
                yield replace(entry, whole=False, tools=tools, names=only & entry.names, ids=only & entry.ids)
        case "category":
            return


def leased_tools(access: CompiledPermissions, lease: Lease) -> Iterator[tuple[Tool, Entry]]:
    """Yield the permitted tools that a lease takes out, with the entries they stand in."""
    for tool, entry in tools_of_subject(access, lease.subject).tools:
        if not lease.excluded or tool.id not in lease.excluded:
            yield tool, entry


def still_stands(access: CompiledPermissions, lease: Lease) -> bool:
    """Return whether a stored lease still stands for something (S3).

    A plugin or server that is not known yet, or unavailable now, is not gone. A toolkit is out of
    scope as a whole, as it is loaded (S10).
    """
    if lease.subject.kind == "toolkit" and out_of_scope(access, lease_entries(access, lease)):
        return False
    if any(True for _ in leased_tools(access, lease)):
        return True
    catalog = access.world.catalog
    if lease.subject.kind == "tool":
        plugin = catalog.plugins.get(lease.subject.name.partition("/")[0])
        return plugin is not None and not plugin.tools and _may_bring(access, plugin)
    if lease.subject.kind == "toolkit" and access.may_load_toolkit(lease.subject.name):
        members = access.toolkit(lease.subject.name).members
        if any(find(item.name, catalog) is None for item in members):
            return True
    return any(
        not entry.tools and access.grants_unseen(catalog.plugins[entry.plugin])
        for entry in lease_entries(access, lease)
        if not catalog.plugins[entry.plugin].variant(entry.key).known
    )


def out_of_scope(access: CompiledPermissions, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the plugins among these that work only where they are shared, where they are not (P5)."""
    if not access.isolating:
        return ()
    plugins = access.world.catalog.plugins
    return tuple(dict.fromkeys(entry.plugin for entry in entries if plugins[entry.plugin].shared_only))


def _may_bring(access: CompiledPermissions, plugin: Plugin) -> bool:
    return access.grants_unseen(plugin) or access.unresolved


def heal(access: CompiledPermissions, state: State) -> State:
    """Return the state without the leases that no longer count (S3)."""
    kept = tuple(lease for lease in state.leases if still_stands(access, lease))
    return state if len(kept) == len(state.leases) else replace(state, leases=kept)


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
    if lease.excluded:
        document["minus"] = sorted(lease.excluded)
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
            leases=tuple(_lease_of(item) for item in document["leases"]),
            recent=tuple(document.get("recent", ())),
            evicted=tuple(document.get("evicted", ())),
            failure=Failure(call=str(failure[0]), count=int(failure[1])) if failure else None,
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        raise ValueError(f"not a session state: {error!r}") from error


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
    )
