"""What the recorded sessions cost under another start: the same loads, as far as they would still be made (F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.delivery import Cache
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.core.proposals.trail import Batch, Loads, Pattern
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.subjects import tools_of_subject
from pegboard.core.surface.cache_cost import USAGE, ExpectedUse, load_cost, standing_cost

Price = Callable[[Tool], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What sessions cost: loads, the model calls that made them, and their input tokens.

    ``tokens`` are plain ones, of which a cached one costs a part: of the loads, of the conversation
    that each model call reads again, and of what is in the tool list besides today's start.
    """

    loads: int = 0
    model_calls: int = 0
    tokens: float = 0.0

    def __sub__(self, other: Totals) -> Totals:
        """Return what another way saves."""
        return Totals(
            loads=self.loads - other.loads,
            model_calls=self.model_calls - other.model_calls,
            tokens=self.tokens - other.tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedGroup:
    """Subjects that one load would bring together, as a new toolkit of this name."""

    name: str
    subjects: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSubject:
    """What a recorded load stands for today; ``unseen`` are its plugins whose tools are not known."""

    tools: Mapping[str, Tool] = field(default=EMPTY)
    unseen: tuple[str, ...] = ()


class Replay:
    """The recorded sessions of one agent, with today's permissions, schemas and start.

    A load would not be made where all its tools are loaded already, or all those that its session
    called. ``cache.tokens`` is what is cached in front of each conversation. Loads are priced as those
    of the host to which they cost least: schemas in the answer, nothing written again.
    """

    def __init__(
        self,
        permissions: CompiledPermissions,
        patterns: Sequence[Pattern],
        price: Price,
        *,
        cache: Cache,
        usage: ExpectedUse = USAGE,
    ) -> None:
        self._access = permissions
        self._price = price
        self._cache = cache
        self._usage = usage
        self._start = starting_tools(permissions)
        self._subjects: dict[str, LoadSubject] = {}
        self._prices: dict[str, int] = {}
        self.patterns = patterns

    def subject(self, name: str) -> LoadSubject:
        """Return what a subject as it was recorded stands for today; nothing where it is gone or denied."""
        known = self._subjects.get(name)
        if known is None:
            known = self._subjects[name] = self._subject_of(name)
        return known

    def _subject_of(self, name: str) -> LoadSubject:
        try:
            found = tools_of_subject(self._access, Ref.parse(name))
        except ValueError:
            return LoadSubject()
        plugins = self._access.world.catalog.plugins
        unseen = (e.plugin for e in found.entries if not plugins[e.plugin].variant(e.key).known)
        return LoadSubject(tools={tool.id: tool for tool, _ in found.tools}, unseen=tuple(dict.fromkeys(unseen)))

    def tokens(self, tools: Iterable[Tool]) -> int:
        """Return the tokens of these schemas, those aside that are loaded from the start."""
        total = 0
        for tool in tools:
            if tool.id not in self._start:
                if tool.id not in self._prices:
                    self._prices[tool.id] = self._price(tool)
                total += self._prices[tool.id]
        return total

    def starts_with(self, tool: str) -> bool:
        """Return whether a tool, named by its id, is loaded from the start today."""
        return tool in self._start

    @cached_property
    def cost_before(self) -> Totals:
        """Return what the sessions cost with today's start."""
        return self.totals()

    def totals(self, standing: Mapping[str, Tool] = EMPTY, groups: Sequence[ProposedGroup] = ()) -> Totals:
        """Return what the sessions cost.

        ``standing`` are the tools that are loaded from the start besides today's, by id; whoever loads one of the
        subjects of ``groups`` loads the whole.
        """
        schemas = self.tokens(standing.values())
        sums = [self._pattern(pattern, standing, groups, schemas) for pattern in self.patterns]
        return Totals(
            loads=sum(one.loads for one in sums),
            model_calls=sum(one.model_calls for one in sums),
            tokens=sum(one.tokens for one in sums),
        )

    def _pattern(
        self, pattern: Pattern, standing: Mapping[str, Tool], groups: Sequence[ProposedGroup], schemas: int
    ) -> Totals:
        remaining = self.remaining_loads(pattern, standing)
        for group in groups:
            remaining = _group_loads(remaining, group)
        members = {group.name: group.subjects for group in groups}
        made = sum(loads.calls for _, loads in remaining)
        saved = sum(loads.calls for loads in pattern.loads.values()) - made
        tokens = sum(self._cost(batch, loads, standing, members) for batch, loads in remaining)
        mean = (pattern.requests - saved) / pattern.sessions
        return Totals(
            loads=sum(loads.calls * len(batch) for batch, loads in remaining),
            model_calls=made,
            tokens=tokens + pattern.sessions * standing_cost(schemas, mean, self._cache),
        )

    def remaining_loads(self, pattern: Pattern, standing: Mapping[str, Tool] = EMPTY) -> list[tuple[Batch, Loads]]:
        """Return what would still be loaded, in the order of its loading."""
        found: list[tuple[Batch, Loads]] = []
        for batch, loads in pattern.loads.items():
            rest = frozenset(name for name in batch if not self._is_needless(name, pattern, standing))
            if rest:
                found.append((rest, loads))
        return found

    def _is_needless(self, name: str, pattern: Pattern, standing: Mapping[str, Tool]) -> bool:
        tools = self.subject(name).tools
        if not tools:
            return False
        called = [key for key in tools if key in pattern.called] or tools
        return all(key in standing or key in self._start for key in called)

    def _cost(
        self, batch: Batch, loads: Loads, standing: Mapping[str, Tool], members: Mapping[str, frozenset[str]]
    ) -> float:
        subjects = {subject for name in batch for subject in members.get(name, (name,))}
        tools = {key: tool for name in subjects for key, tool in self.subject(name).tools.items()}
        schema = self.tokens(tool for key, tool in tools.items() if key not in standing)
        one = load_cost(
            schema,
            behind=self._cache.tokens + loads.behind / loads.calls,
            requests_left=loads.left / loads.calls,
            cache=self._cache,
            usage=self._usage,
        )
        return loads.calls * one


def _group_loads(remaining: list[tuple[Batch, Loads]], group: ProposedGroup) -> list[tuple[Batch, Loads]]:
    """Return the loads where the first that names a subject of the group brings the whole group."""
    others = [(batch, loads) for batch, loads in remaining if batch.isdisjoint(group.subjects)]
    touching = [(batch, loads) for batch, loads in remaining if not batch.isdisjoint(group.subjects)]
    if not touching:
        return remaining
    touching.sort(key=lambda item: -item[1].left / item[1].calls)
    (batch, first), *later = touching
    rest = [(other - group.subjects, loads) for other, loads in later]
    # What was loaded again in a session, after it had lapsed, would be so with the group, too.
    often = max([first.calls, *(loads.calls for other, loads in rest if not other)])
    brought = Loads(calls=often, left=first.left * often // first.calls, behind=first.behind * often // first.calls)
    return [*others, ((batch - group.subjects) | {group.name}, brought), *(item for item in rest if item[0])]
