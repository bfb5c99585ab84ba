"""What pays under a prompt cache: everything from the start, or tools on demand; and when one leaves (D1, D3, F4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.core.model.delivery import Cache, Delivery, Host, choose
from pegboard.core.model.tools import Tool

Price = Callable[[Tool], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedUse:
    """How a conversation is expected to go; a host that knows better gives its own.

    The defaults are means over seven recorded sets of conversations (docs/decisions/0003): turns,
    calls per turn, and tools or plugins per turn that were not loaded yet. ``found`` is the share of
    loads that bring what was meant, ``anticipated`` that of new plugins which are.
    In tokens: ``message`` is what a turn adds beside its calls, ``result`` a call with its answer, ``answer``
    what a load adds beside the schemas; ``wait`` is what a person's waiting for one model call more counts, beside
    the tokens that it reads.
    """

    turns: float = 13.4
    calls: float = 0.85
    tools: float = 0.7
    plugins: float = 0.32
    found: float = 0.75
    anticipated: float = 0.7
    message: int = 150
    result: int = 200
    answer: int = 120
    wait: int = 4000

    @property
    def requests(self) -> float:
        """Return how many requests a conversation takes in which nothing is loaded on demand."""
        return self.turns * (self.calls + 1)

    @property
    def tokens_of_growth(self) -> float:
        """Return the tokens that a whole conversation adds to what a request carries."""
        return self.turns * (self.message + self.calls * self.result)


USAGE: Final = ExpectedUse()
CONTEXT: Final = 10_000
"""The tokens of conversation that are assumed for what is loaded ahead where a host does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of tokens: of all permitted definitions, and of what on-demand loading puts beside them.

    ``everything`` are the definitions that are not loaded anyway. The hints name ``units`` tools,
    toolkits and plugins: what they name is what is loaded, ``by`` what most of it is part of. ``meta`` are the
    definitions of the meta-tools, ``hints`` what is behind the tool list. ``plugins`` is how many
    plugins there are where tools are loaded ahead of being asked for, a plugin at a time, else 0.
    """

    everything: int
    units: int
    by: Literal["tool", "plugin"] = "tool"
    meta: int
    hints: int
    plugins: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingPlan:
    """What is cheapest, and the two estimates for one conversation, in plain input tokens."""

    everything: bool
    cost_everything: float
    cost_on_demand: float


def plan(sizes: Sizes, host: Host, usage: ExpectedUse = USAGE) -> LoadingPlan:
    """Return whether everything should be loaded from the start (F4).

    It depends on the catalog and on the host, not on the session's state, so that it stands for the
    whole session. Without a cache nothing is estimated: there, tools come on demand.
    """
    if host.cache is None:
        return LoadingPlan(everything=False, cost_everything=0.0, cost_on_demand=0.0)
    at_once = standing_cost(sizes.everything, usage.requests, host.cache)
    on_demand = min(_cost_on_demand(sizes, way, host, usage) for way in host.delivery)
    small = sizes.plugins > 0 and host.delivery != ("array",) and sizes.everything <= tokens_worth_carrying(host, usage)
    return LoadingPlan(everything=small or at_once <= on_demand, cost_everything=at_once, cost_on_demand=on_demand)


def standing_cost(tokens: float, requests: float, cache: Cache) -> float:
    """Return what tokens cost that are written once and read by every later request."""
    return tokens * (cache.write + cache.read * max(requests - 1, 0))


def load_cost(schema: float, *, behind: float, requests_left: float, cache: Cache, usage: ExpectedUse = USAGE) -> float:
    """Return what one load costs where its answer has the schema: the request that it takes, and those that carry it.

    ``behind`` are the tokens behind the tool list by then. It is linear in these and in the requests left.
    """
    return cache.read * behind + standing_cost(usage.answer + schema, requests_left, cache)


def _conversation_tokens(host: Host, usage: ExpectedUse, *, unknown: int = 0) -> float:
    """Return the tokens of conversation that a request in the middle of it carries beside the tools."""
    cached = host.cache.tokens if host.cache is not None else 0
    return max(unknown if host.context is None else host.context, cached) + usage.tokens_of_growth / 2


def tokens_worth_carrying(host: Host, usage: ExpectedUse = USAGE) -> int:
    """Return how many tokens of a plugin's other tools it is cheaper to carry than to ask for them (S5).

    Whoever uses one tool of a plugin needs more of it: ``tools / plugins`` of them, and each that is
    not loaded is a model call more, which reads the whole conversation again, and lets a person wait. Without a
    declared cache, an array is paid in full with every request; what follows the history is cached in any case.
    """
    cache = host.cache or (Cache(read=1.0, write=1.0) if choose(host) == "array" else Cache())
    behind = _conversation_tokens(host, usage, unknown=CONTEXT)
    call = load_cost(0, behind=behind, requests_left=usage.requests / 2, cache=cache, usage=usage) + usage.wait
    saved = (usage.tools / usage.plugins - 1) / usage.found
    return int(saved * call / standing_cost(1, usage.requests / 2, cache))


def _cost_on_demand(sizes: Sizes, way: Delivery, host: Host, usage: ExpectedUse) -> float:
    """Return what meta-tools, hints and loads cost: each load takes one more request, which reads everything again.

    A load in the middle of the conversation stands for all: half of the messages are behind the
    tool list, half of the requests are to come. Array has the schema in the list and in the answer,
    and writes again what is behind the list, so that nothing is loaded ahead there.
    """
    cache = host.cache or Cache()
    loads = usage.turns * (usage.tools if sizes.by == "tool" else usage.plugins) / usage.found
    schema = sizes.everything / max(sizes.units, 1)
    beside = 0.0
    if sizes.plugins and way != "array":
        plugins = min(usage.turns * usage.plugins, sizes.plugins)
        whole = sizes.everything / sizes.plugins
        share = min(1.0, tokens_worth_carrying(host, usage) / max(whole, 1))
        beside = plugins * standing_cost(whole * share, usage.requests / 2, cache)
        asked = plugins + (1 - share) * max(usage.turns * usage.tools - plugins, 0.0)
        loads = min(loads, (1 - usage.anticipated) * asked / usage.found)
        schema *= 1 - share
    requests = usage.requests + loads
    behind = _conversation_tokens(host, usage) + loads * (usage.answer + schema) / 2
    broken = (cache.write - cache.read) * (sizes.hints + behind) if way == "array" else 0.0
    schemas = schema * (2 if way == "array" else 1)
    one = load_cost(schemas, behind=behind, requests_left=requests / 2, cache=cache, usage=usage) + broken
    return standing_cost(sizes.meta + sizes.hints, requests, cache) + beside + loads * one


def wire_list(
    previous: tuple[Tool, ...],
    surface: tuple[Tool, ...],
    price: Price,
    *,
    cache: Cache | None,
    turns_left: float,
    may_stay: Callable[[Tool], bool],
) -> tuple[Tool, ...]:
    """Return the tool list for the next request: the surface, and what lapsed as long as that is cheaper (D3).

    ``previous`` is the list of the request before. Nothing in it moves, additions join at the end
    (F1). A tool that is no longer loaded stays where ``may_stay`` allows it (it lapsed and is still
    permitted; what was unloaded or revoked leaves at once) until its removal pays or is free:
    without a cache, at a boundary (nothing cached), behind a place that changes anyway.
    """
    if cache is None or not cache.tokens or not previous:
        return surface
    now = {tool.wire: tool for tool in surface}
    cut = _place_to_cut(previous, now, price, cache, turns_left, may_stay)
    kept = (now.get(tool.wire, tool) for place, tool in enumerate(previous) if place < cut or tool.wire in now)
    known = {tool.wire for tool in previous}
    return (*kept, *(tool for tool in surface if tool.wire not in known))


def _place_to_cut(
    previous: tuple[Tool, ...],
    now: Mapping[str, Tool],
    price: Price,
    cache: Cache,
    turns_left: float,
    may_stay: Callable[[Tool], bool],
) -> int:
    """Return the place from which on everything leaves that is not loaded: where most is saved.

    Removing S tokens before N cached ones costs ``(write - read) * N`` now and saves ``read * S`` a
    turn. Behind the first place that changes in any case everything is written again as it is.
    """
    forced = next((i for i, tool in enumerate(previous) if _changes(tool, now, may_stay)), len(previous))
    cut, most, saved = forced, 0.0, 0
    behind = cache.tokens if forced == len(previous) else 0
    for place in range(forced - 1, -1, -1):
        tool = previous[place]
        if tool.wire in now:
            behind += price(tool)
            continue
        saved += price(tool)
        gain = cache.read * saved * turns_left - (cache.write - cache.read) * behind
        if gain > most:
            cut, most = place, gain
    return cut


def _changes(tool: Tool, now: Mapping[str, Tool], may_stay: Callable[[Tool], bool]) -> bool:
    fresh = now.get(tool.wire)
    return not may_stay(tool) if fresh is None else fresh != tool
