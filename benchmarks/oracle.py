"""A model that knows which tool each step needs, and the engine that it talks to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from benchmarks.stitched import Recording, Turn
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent
from pegboard.core.model.delivery import Cache
from pegboard.core.model.leases import UNLOAD, LeaseTerm
from pegboard.core.model.selectors import member
from pegboard.core.model.tools import JsonObject, Tool, serialised
from pegboard.core.state.active_tools import loadable
from pegboard.core.state.commands import CommandContext, EndTurn, Fallback, Load, Outcome, Use
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.cache_cost import wire_list
from pegboard.core.surface.hints import hints
from pegboard.core.surface.outcomes import apply
from pegboard.core.surface.searchable import searchable
from pegboard.core.surface.surfaces import resolve
from pegboard.dialects.call_tool import CALL, call_through_tools
from pegboard.dialects.names import Done, Found, FoundTool, Payload, Search, View
from pegboard.dialects.pegboard import PegboardDialect
from pegboard.ports import RankContext
from pegboard.search.ranker import ToolRanker
from pegboard.tokens import OfflineTokenCounter

DIALECT = PegboardDialect()
UNBOUNDED = 1_000_000
SEPARATOR = re.compile(r"[:,\s]+")
RANKER = ToolRanker()
count: Callable[[str], int] = cache(OfflineTokenCounter().count)


_SIZES: dict[int, tuple[Tool, int]] = {}


def size(tool: Tool) -> int:
    """Return the tokens of a tool's definition; counted once for each object."""
    known = _SIZES.get(id(tool))
    if known is None:
        known = _SIZES[id(tool)] = (tool, count(serialised(tool)))
    return known[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Say what is loaded when something is missing, and for how long.

    ``everything`` has all tools loaded from the start, ``plugins`` loads the plugin of what is missing,
    ``hinted`` the plugin where the hints do not name the tool, ``fallback`` everything for one turn.
    ``kept`` leaves what lapsed on the wire while that pays (D3).
    """

    name: str
    until: LeaseTerm = UNLOAD
    everything: bool = False
    plugins: bool = False
    hinted: bool = False
    fallback: bool = False
    kept: bool = False


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
class Ended:
    """Hold the end of a turn, and what lapsed."""

    removed: tuple[str, ...]


Event = Said | Asked | Ended


@dataclass(slots=True, kw_only=True)
class Tally:
    """Count what the oracle did."""

    turns: int = 0
    calls: int = 0
    out: int = 0
    loads: int = 0
    searches: int = 0


class Oracle:
    """Answer conversations under a policy, with hints as they are by default.

    ``start`` is the list of a host that puts the hints behind it, ``through`` that of a host that
    calls through and has them in the description of ``load_tools``; what is said is the same.
    """

    def __init__(self, recording: Recording, policy: Policy) -> None:
        self.recording, self.policy = recording, policy
        plugins = recording.world.catalog.plugins
        static = tuple(member(name) for name in plugins) if policy.everything else ()
        agent = Agent(name="default", static=static, discoverable=("*",))
        self.access = CompiledPermissions(recording.world, agent)
        self.lines = hints(self.access, count, budget=agent.hint_tokens)
        self.shown = View(access=self.access, state=DEFAULT)
        self.meta: tuple[Tool, ...] = ()
        through: tuple[Tool, ...] = ()
        if loadable(self.access):
            self.meta = DIALECT.tools(self.shown)
            through = (*DIALECT.tools(replace(self.shown, hints=self.lines)), *call_through_tools())
        self.start, self.through = self._start(self.meta), self._start(through)
        self.system = sum(count(line) + 1 for line in self.lines)
        self.own = {(line.partition(":")[0], word) for line in self.lines for word in SEPARATOR.split(line)}
        self.words = {word for _, word in self.own}
        self.words |= {word.partition("__")[0] for word in self.words}
        self.terms = CommandContext(until=policy.until)
        self.tally = Tally()

    def _start(self, meta: tuple[Tool, ...]) -> tuple[Tool, ...]:
        return tuple(out.tool for out in resolve(self.access, DEFAULT, meta=meta).tools)

    def names(self, tool: Tool) -> bool:
        """Return whether the hints name a tool: as on the wire, or by its own name in its plugin's line."""
        return tool.wire in self.words or (tool.plugin, tool.name) in self.own

    def more_with_full_hints(self) -> int:
        """Return how many tokens full descriptions as hints take more than the default tier."""
        full = hints(self.access, count, budget=UNBOUNDED)
        return sum(count(line) + 1 for line in full) - sum(count(line) + 1 for line in self.lines)

    def converse(self, turns: tuple[Turn, ...]) -> Iterator[Event]:
        """Yield what goes to and fro in one conversation."""
        for event in self._converse(turns):
            if isinstance(event, Said):
                self.behind += event.tokens
            yield event

    def _converse(self, turns: tuple[Turn, ...]) -> Iterator[Event]:
        self.state: State = DEFAULT
        self.wire, self.behind = self.start, 0
        self._look()
        for number, turn in enumerate(turns, 1):
            self.turn = number
            yield Said(tokens=count(turn.user))
            for wire in turn.gold:
                tool = self.recording.world.catalog.by_wire(wire)
                assert tool is not None
                yield from self._call(turn, tool)
            yield self._asked()
            self.tally.turns += 1
            self.state, outcome = apply(self.access, self.state, EndTurn(), self.terms)
            if outcome.removed:
                self._look()
            yield Ended(removed=outcome.removed)

    def _look(self) -> None:
        self.surface = tuple(out.tool for out in resolve(self.access, self.state, meta=self.meta).tools)
        self.out = frozenset(tool.wire for tool in self.surface)

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
            may_stay=self.access.permits,
        )

    def _call(self, turn: Turn, tool: Tool) -> Iterator[Event]:
        self.tally.calls += 1
        if tool.wire in self.out:
            self.tally.out += 1
        elif self.policy.kept and tool in self.wire:
            self.tally.out += 1
            self._apply(Load(names=(tool.id,)))
        elif self.policy.fallback:
            yield from self._fall_back()
        else:
            yield from self._load(turn, tool)
        yield self._asked()
        made: JsonObject = {"name": tool.wire, "arguments": {}}
        through = {"name": CALL, "arguments": made} if self.meta else made
        yield Said(tokens=count(json.dumps(made)), through=count(json.dumps(through)))
        self.state, _ = apply(self.access, self.state, Use(tool=tool.id), self.terms)

    def _fall_back(self) -> Iterator[Event]:
        self.tally.loads += 1
        yield self._asked()
        outcome = self._apply(Fallback())
        schemas = sum(size(tool) for tool in outcome.added)
        bare = count(outcome.message)
        yield Said(tokens=bare + schemas, bare=bare, schemas=schemas)

    def _load(self, turn: Turn, tool: Tool) -> Iterator[Event]:
        unnamed = self.policy.hinted and not self.names(tool)
        name = tool.plugin if self.policy.plugins or unnamed else tool.wire
        if name not in self.words and not (name == tool.wire and self.names(tool)):
            self.tally.searches += 1
            yield from self._ask("search_tools", {"queries": [turn.user]}, tool)
        self.tally.loads += 1
        yield from self._ask("load_tools", {"names": [name]}, tool)
        assert tool.wire in self.out

    def _ask(self, name: str, arguments: JsonObject, wanted: Tool) -> Iterator[Event]:
        """Yield a call of a meta-tool, and its answer."""
        yield self._asked()
        yield Said(tokens=count(json.dumps({"name": name, "arguments": arguments})))
        payload = self._carried(name, arguments, wanted)
        bare = _bare(payload)
        schemas = sum(size(tool) for tool in payload.schemas)
        yield Said(tokens=count(payload.text()), bare=count(bare), schemas=schemas)

    def _carried(self, name: str, arguments: JsonObject, wanted: Tool) -> Payload:
        conversation = DIALECT.run(self._view(), name, arguments)
        try:
            step = next(conversation)
            while True:
                if isinstance(step, Search):
                    step = conversation.send(Done(view=self._view(), found=self._found(step, wanted)))
                else:
                    outcome = self._apply(step)
                    step = conversation.send(Done(view=self._view(), outcome=outcome))
        except StopIteration as stop:
            payload: Payload = stop.value
            return payload

    def _apply(self, command: object) -> Outcome:
        assert isinstance(command, Load | Fallback)
        self.state, outcome = apply(self.access, self.state, command, self.terms)
        assert outcome.status == "ok", outcome
        self._look()
        return outcome

    def _view(self) -> View:
        return replace(self.shown, state=self.state)

    def _found(self, step: Search, wanted: Tool) -> Found:
        """Return what the ranker finds; what is wanted is always there, last if need be."""
        ranked = _ranked(step, self.access)
        if wanted not in ranked:
            ranked = [*ranked[: step.limit - 1], wanted]
        results = (
            FoundTool(
                name=tool.wire,
                plugin=tool.plugin,
                description=tool.description,
                score=1.0,
                loaded=tool.wire in self.out,
            )
            for tool in ranked
        )
        return Found(query=step.queries, results=tuple(results))


def _ranked(step: Search, access: CompiledPermissions) -> list[Tool]:
    hits = RANKER.rank(step.queries, searchable(access, None), RankContext(), limit=step.limit).hits
    return [hit.found for hit in hits if isinstance(hit.found, Tool)]


def _bare(payload: Payload) -> str:
    """Return the text of an answer without schemas, as where the provider reveals them."""
    if not payload.schemas or isinstance(payload.value, str):
        return payload.text()
    items = [{k: v for k, v in item.items() if k != "tools"} for item in payload.value["items"]]
    return json.dumps({**payload.value, "items": items}, ensure_ascii=False)
