"""What a turn costs, in tokens, model calls and money, with everything loaded and with tools on demand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from functools import cache
from multiprocessing import get_context

from benchmarks.oracle import Asked, Ended, Event, Joined, Oracle, Policy, Said, Tally, count, size
from benchmarks.prompt import Prompt
from benchmarks.stitched import Recording, narrowed, read
from pegboard.core.model.delivery import Cache, Delivery, Host
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.model.tools import Tool
from pegboard.core.surface.cache_cost import Sizes, plan
from pegboard.dialects.names import schema_of

FEW = 20
CONTEXTS = (1_000, 10_000, 50_000)
"""Tokens of system text and earlier conversation that every request carries beside the tools."""
RESULT, TEXT = 200, 150
"""Tokens of a call's result and of an answer, which were not recorded."""
WAYS: tuple[Delivery, ...] = ("native", "result", "array")
PARTS = ("all conversations", "1st half", "2nd half")
"""What the bounds of anticipation were fitted on is the first half."""

ALL = Policy(name="all", everything=True)
AHEAD = Policy(name="ahead", ahead=True)
FIRST = Policy(name="ahead", ahead=True, first=True)
POLICIES = (
    ALL,
    Policy(name="idle-5", until=LeaseTerm("idle", 5)),
    Policy(name="idle-5, kept (D3)", until=LeaseTerm("idle", 5), kept=True),
    Policy(name="session"),
    Policy(name="session, names known", named=True),
    Policy(name="whole plugin", plugins=True),
    Policy(name="whole plugin, names known", plugins=True, named=True),
    Policy(name="fallback", fallback=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Name one run of the engine: catalog size, policy, and the context that the host declares."""

    tools: int
    policy: Policy
    context: int = CONTEXTS[0]


Figures = dict[str, float]
Parts = dict[tuple[str, Delivery], Figures]
Taken = dict[Job, Parts]


def measure() -> list[dict[str, object]]:
    sizes = (FEW, read().tools)
    jobs = [Job(tools=n, policy=policy) for policy in reversed(POLICIES) for n in reversed(sizes)]
    jobs += [Job(tools=n, policy=policy, context=c) for policy in (AHEAD, FIRST) for n in sizes for c in CONTEXTS]
    taken: Taken = {}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run, job): job for job in jobs}
        for done in as_completed(waiting):
            taken[waiting[done]] = done.result()
            print(f"\r{len(taken)} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [row for tools in sizes for way in WAYS for row in rows(taken, tools, way)]


def rows(taken: Taken, tools: int, way: Delivery) -> Iterator[dict[str, object]]:
    for policy in POLICIES:
        same = [taken[Job(tools=tools, policy=policy)]] * len(CONTEXTS)
        yield row(taken, tools, way, policy.name, same, PARTS[0])
    default = defaults(taken, tools, way)
    chosen = ("all" if one is taken[Job(tools=tools, policy=ALL)] else "ahead" for one in default)
    title = f"default: {', '.join(dict.fromkeys(chosen))}"
    for part in PARTS:
        yield row(taken, tools, way, title if part == PARTS[0] else f"{title} ({part})", default, part)


def defaults(taken: Taken, tools: int, way: Delivery) -> list[Parts]:
    """Return what Pegboard does by itself in each context."""
    everything = taken[Job(tools=tools, policy=ALL)]
    policy = FIRST if way == "array" else AHEAD
    return [
        everything
        if everything[PARTS[0], way][f"plan {way} {context}"]
        else taken[Job(tools=tools, policy=policy, context=context)]
        for context in CONTEXTS
    ]


def costs_of(found: list[Parts], part: str, way: Delivery) -> list[float]:
    """Return the cost of a turn in each context."""
    return [one[part, way][f"cost {context}"] for one, context in zip(found, CONTEXTS, strict=True)]


def row(taken: Taken, tools: int, way: Delivery, name: str, found: list[Parts], part: str) -> dict[str, object]:
    """Return the figures of a policy; of one that depends on the context those where it does worst.

    The cheapest is that of the policies that search, the default among them: to know names without a search is
    nothing that a policy could choose.
    """
    figures = [one[part, way] for one in found]
    every = taken[Job(tools=tools, policy=ALL)][part, way]
    tokens = max(one["tokens"] for one in figures)
    costs = costs_of(found, part, way)
    others = [taken[Job(tools=tools, policy=policy)][part, way] for policy in POLICIES if not policy.named]
    least = [
        min(default, *(one[f"cost {context}"] for one in others))
        for context, default in zip(CONTEXTS, costs_of(defaults(taken, tools, way), part, way), strict=True)
    ]
    return {
        "tools": tools,
        "delivery": way,
        "policy": name,
        "tokens a turn": round(tokens),
        "less than all %": round(100 * (1 - tokens / every["tokens"]), 1),
        "already loaded %": round(min(one["loaded"] for one in figures), 1),
        "of a plugin not used before %": round(min(one["first"] for one in figures), 1),
        "searches a turn": round(max(one["searches"] for one in figures), 2),
        "loads a turn": round(max(one["loads"] for one in figures), 2),
        "model calls a turn for both": round(max(one["searches"] + one["loads"] for one in figures), 3),
        "list changes a turn": round(max(one["list changes"] for one in figures), 2),
        **{f"cost a turn at {c:,}": round(cost) for c, cost in zip(CONTEXTS, costs, strict=True)},
        **{
            f"to cheapest at {c:,} %": round(100 * (cost / low - 1), 1)
            for c, cost, low in zip(CONTEXTS, costs, least, strict=True)
        },
    }


@cache
def recorded(tools: int) -> Recording:
    whole = read()
    return whole if tools == whole.tools else narrowed(whole, tools)


def run(job: Job) -> Parts:
    """Return the figures of each part of the conversations, with each delivery that the host may have."""
    recording = recorded(job.tools)
    oracle = Oracle(recording, job.policy, job.context)
    traces = [list(oracle.converse(turns)) for turns in recording.conversations]
    half = len(traces) // 2
    parts = dict(zip(PARTS, (slice(None), slice(None, half), slice(half, None)), strict=True))
    return {
        (name, way): figures_of(oracle, traces[part], oracle.tallies[part], way)
        for name, part in parts.items()
        for way in WAYS
    }


def figures_of(oracle: Oracle, traces: list[list[Event]], tallies: list[Tally], way: Delivery) -> Figures:
    tally = added(tallies)
    asked = [sum(map(size, event.tools)) for trace in traces for event in trace if isinstance(event, Asked)]
    prompts = {context: [priced(oracle, trace, way, context) for trace in traces] for context in CONTEXTS}
    more = sum(map(size, oracle.through)) - sum(map(size, oracle.start)) if way == "result" else oracle.system
    plans = {f"plan {way} {context}": planned(oracle, way, context) for context in CONTEXTS}
    return {
        "tokens": sum(asked) / len(asked) + more,
        "loaded": 100 * tally.loaded / tally.calls,
        "first": 100 * tally.first_loaded / tally.first,
        "loads": tally.loads / tally.turns,
        "searches": tally.searches / tally.turns,
        "list changes": sum(prompt.list_changes for prompt in prompts[CONTEXTS[0]]) / tally.turns,
        **{f"cost {context}": sum(prompt.cost for prompt in prompts[context]) / tally.turns for context in CONTEXTS},
        **(plans if oracle.policy.everything else {}),
    }


def added(tallies: Iterable[Tally]) -> Tally:
    """Return the sums of several conversations."""
    listed = list(tallies)
    return Tally(**{part.name: sum(getattr(one, part.name) for one in listed) for part in fields(Tally)})


@cache
def on_demand(tools: int) -> Oracle:
    return Oracle(recorded(tools), AHEAD)


def planned(oracle: Oracle, way: Delivery, context: int) -> bool:
    """Return whether Pegboard has everything loaded from the start, by the sizes of this catalog."""
    other = on_demand(oracle.recording.tools)
    tools, plugins = oracle.permissions.permitted, len(oracle.recording.world.catalog.plugins)
    named = all(other.names(tool) for tool in tools)
    sizes = Sizes(
        everything=sum(map(size, tools)),
        units=len(tools) if named else plugins,
        by="tool" if named else "plugin",
        meta=sum(map(size, other.through if way == "result" else other.start)),
        hints=0 if way == "result" else other.system,
        plugins=plugins,
    )
    return plan(sizes, Host(delivery=(way,), cache=Cache(), context=context)).everything


def priced(oracle: Oracle, events: list[Event], way: Delivery, context: int) -> Prompt:
    """Return one conversation's requests added up, with this delivery and context."""
    fixed, hints = (oracle.through, 0) if way == "result" else (oracle.start, oracle.system)
    prompt = Prompt(Cache(), system=context + hints)
    for event in events:
        match event:
            case Said():
                prompt.say(spoken(event, way) + (RESULT if event.through else 0))
            case Joined():
                prompt.say(joined(event.tools, way))
            case Asked():
                tools = event.wire if way == "array" else fixed
                prompt.send(tuple(tool.wire for tool in tools), [size(tool) for tool in tools])
            case Ended():
                prompt.say(TEXT)
                if way == "native" and not oracle.policy.kept:
                    prompt.say(sum(removal(name) for name in event.removed))
    return prompt


def spoken(said: Said, way: Delivery) -> int:
    """Return the tokens of a message; natively an answer has no schemas, the provider reveals them."""
    if way == "native" and said.schemas:
        return said.bare + said.schemas
    return said.through if way == "result" and said.through else said.tokens


def joined(tools: tuple[Tool, ...], way: Delivery) -> int:
    """Return the tokens of definitions that follow a message: as revealed, as text, or in the list already."""
    match way:
        case "native":
            return sum(map(size, tools))
        case "result":
            return sum(count(json.dumps(schema_of(tool), separators=(",", ":"))) for tool in tools)
        case "array":
            return 0


def removal(name: str) -> int:
    """Return the tokens with which a provider is told in the conversation that a tool is gone."""
    return count(json.dumps({"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}))
