"""Choose what pays: statics and initial toolkits first, then toolkits of what is loaded together (T1, T2, F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.tools import Tool
from pegboard.core.proposals.proposal import Accepted, Declined, Findings, Proposal, new_toolkit
from pegboard.core.proposals.replay import ProposedGroup, Replay

RefuseProposal = Callable[[Proposal], str]
"""Why a proposal cannot be written, or nothing; what is not refused counts as written for those after it."""

MOST: Final = 0.5
"""The share of sessions above which something counts as used in most of them."""
ALIKE: Final = 0.5
"""In which share of the sessions that load one of two subjects both must be, to count as used together."""
MOST_CANDIDATES: Final = 24
MOST_TOGETHER: Final = 60
LARGEST_GROUP: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """What could be loaded from the start: what is written, and the tools that it stands for."""

    static: tuple[str, ...] = ()
    initial: tuple[str, ...] = ()
    tools: Mapping[str, Tool]
    sessions: int


@dataclass(slots=True, kw_only=True)
class _ChosenSubjects:
    """What was chosen so far."""

    standing: dict[str, Tool] = field(default_factory=dict[str, Tool])
    groups: list[ProposedGroup] = field(default_factory=list[ProposedGroup])
    accepted: list[Accepted] = field(default_factory=list[Accepted])
    declined: dict[tuple[str, ...], Declined] = field(default_factory=dict[tuple[str, ...], Declined])


def choose(permissions: CompiledPermissions, replay: Replay, *, least: int, refuse: RefuseProposal) -> Findings:
    """Return what the recorded sessions of an agent speak for.

    ``least`` is in how many sessions something must have been done to count; ``refuse`` is asked before anything is
    accepted, the best first.
    """
    patterns = replay.patterns
    sessions = sum(pattern.sessions for pattern in patterns)
    chosen = _ChosenSubjects()
    if sessions >= least:
        _choose_start(permissions, replay, chosen, sessions, least, refuse)
        _choose_toolkits(permissions, replay, chosen, sessions, least, refuse)
    subjects = {name: replay.subject(name) for name in sorted(_sessions_of(replay, {}))}
    return Findings(
        agent=permissions.agent.name,
        enough=sessions >= least,
        sessions=sessions,
        turns=sum(pattern.turns for pattern in patterns),
        calls=sum(pattern.calls for pattern in patterns),
        before=replay.cost_before,
        after=replay.totals(chosen.standing, chosen.groups),
        accepted=tuple(chosen.accepted),
        declined=tuple(chosen.declined.values()),
        unknown=tuple(sorted({plugin for found in subjects.values() for plugin in found.unseen})),
        gone=tuple(
            name for name, found in subjects.items() if not found.tools and not found.unseen and _parse_ref(name)
        ),
    )


def _sessions_of(replay: Replay, standing: Mapping[str, Tool]) -> dict[str, int]:
    """Return in how many sessions each subject would be loaded."""
    found: dict[str, int] = {}
    for pattern in replay.patterns:
        for name in {name for batch, _ in replay.remaining_loads(pattern, standing) for name in batch}:
            found[name] = found.get(name, 0) + pattern.sessions
    return found


# -- from the start --------------------------------------------------------------------------------


def _choose_start(
    permissions: CompiledPermissions,
    replay: Replay,
    chosen: _ChosenSubjects,
    sessions: int,
    least: int,
    refuse: RefuseProposal,
) -> None:
    """Accept what saves most, then what saves most beside it, as long as something saves."""
    candidates = list(_candidates(permissions, replay, sessions, least))
    now = replay.cost_before
    while candidates:
        gains = [now - replay.totals({**chosen.standing, **one.tools}) for one in candidates]
        best = max(range(len(candidates)), key=lambda n: gains[n].tokens)
        if gains[best].tokens <= 0:
            break
        one = candidates.pop(best)
        proposal = _proposal(permissions, replay, one, chosen.standing, sessions)
        if reason := _with_other_settings(permissions, one) or refuse(proposal):
            chosen.declined[proposal.names] = Declined(proposal=proposal, reason=reason)
            continue
        chosen.standing.update(one.tools)
        chosen.accepted.append(Accepted(proposal=proposal, saved=gains[best]))
        now = replay.totals(chosen.standing)
        candidates = [c for c in candidates if not c.tools.keys() <= chosen.standing.keys()]
    loaded = _sessions_of(replay, chosen.standing)
    for one in candidates:
        proposal = _proposal(permissions, replay, one, chosen.standing, sessions)
        still = any(loaded.get(name, 0) > MOST * sessions for name in _subjects_of(one))
        if still and proposal.names not in chosen.declined:
            reason = "It costs more to send its schema with every request than to load it."
            chosen.declined[proposal.names] = Declined(proposal=proposal, reason=reason)


def _with_other_settings(permissions: CompiledPermissions, one: _Candidate) -> str:
    """Return why something cannot be written under its plain name: something else names it otherwise (T5)."""
    for name in one.static:
        tools = [tool for key, tool in one.tools.items() if name in (key, tool.plugin)]
        for plugin in dict.fromkeys(tool.plugin for tool in tools):
            if any(entry.key or entry.member.filtered for entry in permissions.entries.by_plugin.get(plugin, ())):
                return f"Plugin '{plugin}' is named with settings or a filter of its own elsewhere."
    return ""


def _subjects_of(one: _Candidate) -> Iterator[str]:
    yield from (f"toolkit:{name}" for name in one.initial)
    yield from (f"{'tool' if '/' in name else 'plugin'}:{name}" for name in one.static)


def _proposal(
    permissions: CompiledPermissions, replay: Replay, one: _Candidate, standing: Mapping[str, Tool], of: int
) -> Proposal:
    fresh = [tool for key, tool in one.tools.items() if key not in standing]
    return Proposal(
        agent=permissions.agent.name,
        static=one.static,
        initial=one.initial,
        sessions=one.sessions,
        of=of,
        schema=replay.tokens(fresh),
    )


def _candidates(permissions: CompiledPermissions, replay: Replay, sessions: int, least: int) -> Iterator[_Candidate]:
    """Yield what could be loaded from the start: each subject of most sessions, what is called of it, and batches."""
    loaded = _sessions_of(replay, {})
    often = sorted(
        (name for name, count in loaded.items() if count > MOST * sessions and count >= least),
        key=lambda name: (-loaded[name], name),
    )
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], _Candidate] = {}
    for names, count in [((name,), loaded[name]) for name in often] + _batches(replay, set(often), sessions, least):
        one = _candidate(permissions, replay, names, count)
        if one is not None:
            found.setdefault((one.static, one.initial), one)
    for name in often:
        one = _candidate_by_calls(replay, name, sessions, least)
        if one is not None:
            found.setdefault((one.static, one.initial), one)
    yield from list(found.values())[:MOST_CANDIDATES]


def _batches(replay: Replay, often: set[str], sessions: int, least: int) -> list[tuple[tuple[str, ...], int]]:
    """Return what most sessions load in one model call: none of it saves that call alone."""
    counts: dict[frozenset[str], int] = {}
    for pattern in replay.patterns:
        for batch in {batch for batch, _ in replay.remaining_loads(pattern) if len(batch) > 1 and batch <= often}:
            counts[batch] = counts.get(batch, 0) + pattern.sessions
    found = [(tuple(sorted(batch)), n) for batch, n in counts.items() if n > MOST * sessions and n >= least]
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _candidate(
    permissions: CompiledPermissions, replay: Replay, names: tuple[str, ...], sessions: int
) -> _Candidate | None:
    """Return these subjects as something that is loaded from the start; None where they cannot be."""
    static: list[str] = []
    initial: list[str] = []
    tools: dict[str, Tool] = {}
    for name in names:
        found, ref = replay.subject(name), _parse_ref(name)
        if ref is None or not found.tools or found.unseen or ref.kind == "category":
            return None
        if ref.kind == "toolkit" and ref.name not in permissions.agent.allowed_toolkits:
            return None  # only a switch grants it, and that loads it already
        (initial if ref.kind == "toolkit" else static).append(ref.name)
        tools.update(found.tools)
    return _Candidate(static=tuple(static), initial=tuple(initial), tools=tools, sessions=sessions)


def _parse_ref(name: str) -> Ref | None:
    try:
        return Ref.parse(name)
    except ValueError:
        return None


def _candidate_by_calls(replay: Replay, name: str, sessions: int, least: int) -> _Candidate | None:
    """Return the part of a subject that most sessions call, where that is not all of it."""
    tools = replay.subject(name).tools
    counts = {key: sum(pattern.sessions for pattern in replay.patterns if key in pattern.called) for key in tools}
    often = (key for key, count in counts.items() if count > MOST * sessions and count >= least)
    used = {key: tools[key] for key in often if not replay.starts_with(key)}
    if not used or len(used) == len(tools):
        return None
    return _Candidate(static=tuple(used), tools=used, sessions=min(counts[key] for key in used))


# -- toolkits --------------------------------------------------------------------------------------


def _choose_toolkits(
    permissions: CompiledPermissions,
    replay: Replay,
    chosen: _ChosenSubjects,
    sessions: int,
    least: int,
    refuse: RefuseProposal,
) -> None:
    """Accept toolkits of what is loaded together, one after the other, where one load in place of several saves."""
    taken: set[str] = set()
    together = _find_joint_loads(replay, chosen.standing, least)
    for pair in sorted(together.pairs, key=lambda pair: (-together.pairs[pair], pair)):
        if not taken.isdisjoint(pair):
            continue
        subjects = together.grow_pair(pair, taken)
        toolkit = new_toolkit(permissions, subjects)
        if toolkit is None or _is_already_loadable(permissions, replay, subjects):
            continue
        group = ProposedGroup(name=f"toolkit:{toolkit.name}", subjects=frozenset(subjects))
        now = replay.totals(chosen.standing, chosen.groups)
        saved = now - replay.totals(chosen.standing, (*chosen.groups, group))
        if saved.tokens <= 0 or saved.model_calls <= 0:
            continue
        taken.update(subjects)
        tools = {key: tool for name in subjects for key, tool in replay.subject(name).tools.items()}
        proposal = Proposal(
            agent=permissions.agent.name,
            toolkit=toolkit,
            sessions=together.pairs[pair],
            of=sessions,
            schema=replay.tokens(tool for key, tool in tools.items() if key not in chosen.standing),
        )
        if reason := refuse(proposal):
            chosen.declined[proposal.names] = Declined(proposal=proposal, reason=reason)
            continue
        chosen.groups.append(group)
        chosen.accepted.append(Accepted(proposal=proposal, saved=saved))


@dataclass(frozen=True, slots=True, kw_only=True)
class _JointLoads:
    """In how many sessions each subject was loaded, and each two of them by different model calls."""

    single: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]

    def grow_pair(self, pair: tuple[str, str], taken: set[str]) -> tuple[str, ...]:
        """Return the pair with every further subject that is used together with each of it."""
        group = list(pair)
        others = sorted(self.single.keys() - set(pair) - taken, key=lambda name: (-self.single[name], name))
        for name in others:
            if all((min(name, other), max(name, other)) in self.pairs for other in group):
                group.append(name)
            if len(group) == LARGEST_GROUP:
                break
        return tuple(sorted(group))


def _find_joint_loads(replay: Replay, standing: Mapping[str, Tool], least: int) -> _JointLoads:
    """Return what is loaded together: in enough sessions, and in enough of those that load either."""
    loaded = _sessions_of(replay, standing)
    usable = (name for name in loaded if replay.subject(name).tools and not replay.subject(name).unseen)
    names = set(sorted(usable, key=lambda name: (-loaded[name], name))[:MOST_TOGETHER])
    both: dict[tuple[str, str], int] = {}
    for pattern in replay.patterns:
        batches = [batch & names for batch, _ in replay.remaining_loads(pattern, standing)]
        for pair in _separate_pairs(batches):
            both[pair] = both.get(pair, 0) + pattern.sessions
    return _JointLoads(
        single={name: loaded[name] for name in names},
        pairs={
            (a, b): count
            for (a, b), count in both.items()
            if count >= least and count >= ALIKE * (loaded[a] + loaded[b] - count)
        },
    )


def _separate_pairs(batches: Iterable[frozenset[str]]) -> set[tuple[str, str]]:
    """Return the pairs of which each is in a batch of its own."""
    return {(min(a, b), max(a, b)) for one, other in combinations(batches, 2) for a in one for b in other if a != b}


def _is_already_loadable(permissions: CompiledPermissions, replay: Replay, subjects: tuple[str, ...]) -> bool:
    """Return whether a toolkit that the agent may load has all of it."""
    wanted = {key for name in subjects for key in replay.subject(name).tools}
    kits = (replay.subject(f"toolkit:{name}").tools for name in permissions.entries.loadable_toolkits)
    return any(wanted <= kit.keys() for kit in kits)
