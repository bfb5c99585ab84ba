"""A model that needs certain tools, what it does where one is not loaded, and the engine that it talks to.

It sees the schemas of what is loaded, and calls at once what is there. Where a tool is missing it searches with
the user's message as its text, takes the tool from the answer if it is among it and loads it by name. Where it is
not, it searches once more for more answers, and then loads the plugin by the name that the hints give. What an answer
named in this turn is not searched for again. A policy with ``named`` gives it the tool's name without a search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from benchmarks.stitched import Recording, Turn
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.read_only import is_destructive
from pegboard.core.anticipation.anticipated_leases import Anticipation
from pegboard.core.anticipation.by_message import RANKED, sentences, with_anticipated
from pegboard.core.model.agents import Agent, Anticipate
from pegboard.core.model.delivery import Cache, Host
from pegboard.core.model.leases import IDLE_TURNS, UNLOAD, LeaseTerm
from pegboard.core.model.selectors import member
from pegboard.core.model.tools import JsonObject, Tool, counted_json
from pegboard.core.state.active_tools import loadable
from pegboard.core.state.commands import CommandContext, EndTurn, Fallback, Load, Outcome, Use
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.cache_cost import tokens_worth_carrying, wire_list
from pegboard.core.surface.hints import hints
from pegboard.core.surface.policy import apply_with_policy
from pegboard.core.surface.searchable import searchable
from pegboard.core.surface.surfaces import resolve
from pegboard.dialects.names import CALL, Found, FoundTool, MetaToolAnswer, Search, StepAnswer, View, call_through_tools
from pegboard.dialects.pegboard import PegboardDialect
from pegboard.ports import RankContext, Ranking
from pegboard.search.ranker import ToolRanker
from pegboard.tokens import OfflineTokenCounter

DIALECT = PegboardDialect()
SEPARATOR = re.compile(r"[:,\s]+")
RANKER = ToolRanker()
LIMITS = (5, 20)
"""How many answers the model asks for when it searches, and when it searches once more."""
count: Callable[[str], int] = cache(OfflineTokenCounter().count)


_SIZES: dict[int, tuple[Tool, int]] = {}


def size(tool: Tool) -> int:
    """Return the tokens of a tool's definition; counted once for each object."""
    known = _SIZES.get(id(tool))
    if known is None:
        known = _SIZES[id(tool)] = (tool, count(counted_json(tool)))
    return known[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Say what is loaded when something is missing, and for how long.

    ``everything`` has all tools loaded from the start, ``plugins`` loads the plugin of what is missing,
    ``fallback`` everything for one turn. ``named``: the model knows the name of what is missing without a search,
    as if the hints had told it. ``kept`` leaves what lapsed on the wire while that pays (D3). ``ahead`` loads ahead of
    being asked for, by the bounds of an agent's default; ``first`` does so with the first message alone.
    """

    name: str
    until: LeaseTerm = UNLOAD
    everything: bool = False
    plugins: bool = False
    named: bool = False
    fallback: bool = False
    kept: bool = False
    ahead: bool = False
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Hold a message: its tokens; for a load's answer also those of the schemas in it.

    ``bare`` is the same message without them, ``through`` a call by way of ``call_tool``.
    """

    tokens: int
    bare: int = 0
    schemas: int = 0
    through: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold a request to the model: the tools on the surface, and those in its tool list (D3)."""

    tools: tuple[Tool, ...]
    wire: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Hold tools that were loaded ahead and follow the newest message."""

    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Hold the end of a turn, and what lapsed."""

    removed: tuple[str, ...]


Event = Said | Asked | Joined | Ended


@dataclass(slots=True, kw_only=True)
class Tally:
    """Count what the model did: ``first`` are calls to a plugin that was not used before in the conversation."""

    turns: int = 0
    calls: int = 0
    loaded: int = 0
    first: int = 0
    first_loaded: int = 0
    destructive: int = 0
    destructive_loaded: int = 0
    loads: int = 0
    searches: int = 0


class Oracle:
    """Answer conversations under a policy, with hints as they are by default.

    ``start`` is the list of a host that puts the hints behind it, ``through`` that of a host that
    calls through and has them in the description of ``load_tools``; what is said is the same.
    """

    def __init__(self, recording: Recording, policy: Policy, context: int = 0, *, ranker: ToolRanker = RANKER) -> None:
        self.ranker = ranker
        self.recording, self.policy = recording, policy
        host = Host(delivery=("native", "result"), cache=Cache(), context=context)
        self.anticipation = Anticipation(
            limits=Anticipate(),
            carried=tokens_worth_carrying(host),
            whole=tokens_worth_carrying(host),
            until=min(policy.until, LeaseTerm("idle", IDLE_TURNS)),
            price=lambda tools: sum(map(size, tools)),
        )
        plugins = recording.world.catalog.plugins
        static = tuple(member(name) for name in plugins) if policy.everything else ()
        agent = Agent(name="default", static=static, discoverable=("*",))
        self.permissions = CompiledPermissions(recording.world, agent)
        self.lines = hints(self.permissions, count, budget=agent.hint_tokens).lines
        self.shown = View(permissions=self.permissions, state=DEFAULT, search_loads="clear")
        self.meta: tuple[Tool, ...] = ()
        through: tuple[Tool, ...] = ()
        if loadable(self.permissions):
            self.meta = DIALECT.tools(self.shown)
            through = (*DIALECT.tools(replace(self.shown, hints=self.lines)), *call_through_tools())
        self.start, self.through = self._start(self.meta), self._start(through)
        self.system = sum(count(line) + 1 for line in self.lines)
        self.own = {(line.partition(":")[0], word) for line in self.lines for word in SEPARATOR.split(line)}
        self.words = {word for _, word in self.own}
        self.words |= {word.partition("__")[0] for word in self.words}
        self.terms = CommandContext(until=policy.until)
        self.tallies: list[Tally] = []

    def _start(self, meta: tuple[Tool, ...]) -> tuple[Tool, ...]:
        return tuple(out.tool for out in resolve(self.permissions, DEFAULT, meta=meta).tools)

    def names(self, tool: Tool) -> bool:
        """Return whether the hints name a tool: as on the wire, or by its own name in its plugin's line."""
        return tool.wire in self.words or (tool.plugin, tool.name) in self.own

    def converse(self, turns: tuple[Turn, ...]) -> Iterator[Event]:
        """Yield what goes to and fro in one conversation."""
        for event in self._converse(turns):
            if isinstance(event, Said):
                self.behind += event.tokens
            yield event

    def _converse(self, turns: tuple[Turn, ...]) -> Iterator[Event]:
        self.state: State = DEFAULT
        self.wire, self.behind = self.start, 0
        self.tally = Tally()
        self.tallies.append(self.tally)
        self.used: set[str] = set()
        self._look()
        for number, turn in enumerate(turns, 1):
            self.turn, self.answers, self.limit = number, set[str](), 0
            yield Said(tokens=count(turn.user))
            for text in (turn.user, *sentences(turn.user)) if self._anticipates() else ():
                needed = self._ranked(text, RANKED)
                if all(need.stands_out for need in needed.needs):
                    yield from self._load_ahead(tools_of(needed))
                elif text is turn.user:
                    break
            for wire in turn.gold:
                [tool] = self.recording.world.catalog.by_wire(wire)
                yield from self._call(turn, tool)
            yield self._asked()
            self.tally.turns += 1
            self.state, outcome = apply_with_policy(self.permissions, self.state, EndTurn(), self.terms)
            if outcome.removed:
                self._look()
            yield Ended(removed=outcome.removed)

    def _anticipates(self) -> bool:
        return self.policy.ahead and (not self.policy.first or self.turn == 1)

    def _load_ahead(self, hits: Sequence[tuple[Tool, float]]) -> Iterator[Event]:
        """Yield what joins ahead of being asked for: a host asks for the surface before each request."""
        if self._anticipates():
            known = set(self.loaded)
            self.state, brought = with_anticipated(self.permissions, self.state, hits, self.anticipation, self.terms)
            if brought:
                self._look()
                yield Joined(tools=tuple(tool for tool in self.surface if tool.wire not in known))

    def _look(self) -> None:
        self.surface = tuple(out.tool for out in resolve(self.permissions, self.state, meta=self.meta).tools)
        self.loaded = frozenset(tool.wire for tool in self.surface)

    def _asked(self) -> Asked:
        self.wire = self._wire() if self.policy.kept else self.surface
        return Asked(tools=self.surface, wire=self.wire)

    def _wire(self) -> tuple[Tool, ...]:
        """Return the tool list; as many turns are expected to come as have been."""
        return wire_list(
            self.wire,
            self.surface,
            size,
            cache=Cache(tokens=self.system + self.behind),
            turns_left=self.turn,
            may_stay=self.permissions.permits,
        )

    def _call(self, turn: Turn, tool: Tool) -> Iterator[Event]:
        stands = tool.wire in self.loaded or (self.policy.kept and tool in self.wire)
        first = tool.plugin not in self.used
        self.used.add(tool.plugin)
        self.tally.calls += 1
        self.tally.loaded += stands
        self.tally.first += first
        self.tally.first_loaded += first and stands
        self.tally.destructive += is_destructive(tool)
        self.tally.destructive_loaded += is_destructive(tool) and stands
        if not stands:
            yield from self._fall_back() if self.policy.fallback else self._load(turn, tool)
        elif tool.wire not in self.loaded:
            self._apply(Load(names=(tool.id,)))
        yield self._asked()
        made: JsonObject = {"name": tool.wire, "arguments": {}}
        through = {"name": CALL, "arguments": made} if self.meta else made
        yield Said(tokens=count(json.dumps(made)), through=count(json.dumps(through)))
        self.state, _ = apply_with_policy(self.permissions, self.state, Use(tool=tool.id), self.terms)
        yield from self._load_ahead(())

    def _fall_back(self) -> Iterator[Event]:
        self.tally.loads += 1
        yield self._asked()
        outcome = self._apply(Fallback())
        schemas = sum(size(tool) for tool in outcome.added)
        bare = count(outcome.message)
        yield Said(tokens=bare + schemas, bare=bare, schemas=schemas)

    def _load(self, turn: Turn, tool: Tool) -> Iterator[Event]:
        if not self.policy.named:
            for limit in LIMITS:
                if tool.wire not in self.answers and self.limit < limit:
                    self.tally.searches += 1
                    self.limit = limit
                    yield from self._ask("search_tools", {"queries": [turn.user], "limit": limit})
        found = self.policy.named or tool.wire in self.answers
        if tool.wire not in self.loaded:
            self.tally.loads += 1
            name = tool.wire if found and not self.policy.plugins else tool.plugin
            yield from self._ask("load_tools", {"names": [name]})
        assert tool.wire in self.loaded

    def _ask(self, name: str, arguments: JsonObject) -> Iterator[Event]:
        """Yield a call of a meta-tool, and its answer."""
        yield self._asked()
        yield Said(tokens=count(json.dumps({"name": name, "arguments": arguments})))
        payload = self._carried_out(name, arguments)
        bare = _bare(payload)
        schemas = sum(size(tool) for tool in payload.schemas) if bare != payload.text() else 0
        yield Said(tokens=count(payload.text()), bare=count(bare), schemas=schemas)

    def _carried_out(self, name: str, arguments: JsonObject) -> MetaToolAnswer:
        conversation = DIALECT.run(self._view(), name, arguments)
        try:
            step = next(conversation)
            while True:
                if isinstance(step, Search):
                    step = conversation.send(StepAnswer(view=self._view(), found=self._found(step), count=count))
                else:
                    outcome = self._apply(step, self.anticipation if self._anticipates() else None)
                    step = conversation.send(StepAnswer(view=self._view(), outcome=outcome))
        except StopIteration as stop:
            payload: MetaToolAnswer = stop.value
            return payload

    def _apply(self, command: object, anticipation: Anticipation | None = None) -> Outcome:
        assert isinstance(command, Load | Fallback)
        self.state, outcome = apply_with_policy(self.permissions, self.state, command, self.terms, anticipation)
        assert outcome.status == "ok", outcome
        self._look()
        return outcome

    def _view(self) -> View:
        return replace(self.shown, state=self.state)

    def _ranked(self, text: str, limit: int) -> Ranking:
        """Return what our own ranker finds for a text."""
        return self.ranker.rank([text], searchable(self.permissions, None), RankContext(), limit=limit)

    def _found(self, step: Search) -> Found:
        ranking = self._ranked(step.queries[0], step.limit)
        ranked = tools_of(ranking)
        self.answers.update(tool.wire for tool, _ in ranked)
        results = tuple(
            FoundTool(
                name=tool.wire,
                plugin=tool.plugin,
                description=tool.description,
                score=score,
                loaded=tool.wire in self.loaded,
                status="callable" if tool.wire in self.loaded else "loadable",
            )
            for tool, score in ranked
        )
        clear = tuple(result.name for result in results[:1] if ranking.needs[0].clear)
        return Found(query=step.queries, results=results, clear=clear, likely=clear)


def tools_of(ranking: Ranking) -> list[tuple[Tool, float]]:
    return [(hit.found, hit.score) for hit in ranking.hits if isinstance(hit.found, Tool)]


def _bare(payload: MetaToolAnswer) -> str:
    """Return the text of an answer without schemas, as where the provider reveals them; a search has them in place."""
    if not payload.schemas or isinstance(payload.value, str) or "items" not in payload.value:
        return payload.text()
    items = [{k: v for k, v in item.items() if k != "tools"} for item in payload.value["items"]]
    rest = {k: v for k, v in payload.value.items() if k not in ("required_tools", "also_loaded")}
    return replace(payload, value={**rest, "items": items}).text()
