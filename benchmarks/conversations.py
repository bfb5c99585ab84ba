"""What a turn costs, in tokens and under prompt caching, with everything out and with tools on demand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from benchmarks.oracle import Asked, Ended, Event, Oracle, Policy, Said, count, size
from benchmarks.prompt import Prompt
from benchmarks.stitched import Recording, narrowed, read
from pegboard.core.model.delivery import Cache, Delivery, Host
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.surface.cache_cost import Sizes, plan

FEW = 20
WORK = {"system": 1000, "result": 200, "text": 150}
"""Tokens of a system text, a call's result and an answer, for conversations with what was not recorded."""
WAYS: tuple[Delivery, ...] = ("native", "result", "array")

ALL = Policy(name="all", everything=True)
ON_DEMAND = Policy(name="on demand", hinted=True)
POLICIES = (
    ALL,
    Policy(name="idle-1", until=LeaseTerm("idle", 1)),
    Policy(name="idle-5", until=LeaseTerm("idle", 5)),
    Policy(name="idle-5, kept (D3)", until=LeaseTerm("idle", 5), kept=True),
    Policy(name="idle-10", until=LeaseTerm("idle", 10)),
    Policy(name="session"),
    Policy(name="whole-plugin", plugins=True),
    Policy(name="fallback", fallback=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Name one run of the engine: catalog size and policy."""

    tools: int
    policy: Policy


Figures = dict[str, float]


def measure() -> list[dict[str, object]]:
    recording = read()
    sizes = (FEW, recording.tools)
    jobs = [Job(tools=n, policy=policy) for policy in (*reversed(POLICIES), ON_DEMAND) for n in reversed(sizes)]
    taken: dict[Job, dict[str, Figures]] = {}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run, job): job for job in jobs}
        for done in as_completed(waiting):
            taken[waiting[done]] = done.result()
            print(f"\r{len(taken)} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [row for tools in sizes for way in WAYS for row in rows(taken, tools, way)]


def rows(taken: dict[Job, dict[str, Figures]], tools: int, way: Delivery) -> Iterator[dict[str, object]]:
    def figures(policy: Policy) -> Figures:
        return taken[Job(tools=tools, policy=policy)][way]

    every = figures(ALL)
    chosen = ALL if every[f"plan {way}"] else ON_DEMAND
    costs = {what: min(figures(policy)[what] for policy in POLICIES) for what in ("cost", "cost with results")}
    for name, policy in (*((policy.name, policy) for policy in POLICIES), (f"default: {chosen.name}", chosen)):
        held = figures(policy)
        yield {
            "tools": tools,
            "delivery": way,
            "policy": name,
            "tokens a turn": round(held["tokens"]),
            "less than all %": round(100 * (1 - held["tokens"] / every["tokens"]), 1),
            "with full hints": round(held["tokens with full hints"]),
            "less %": round(100 * (1 - held["tokens with full hints"] / every["tokens"]), 1),
            "already loaded %": round(held["out"], 1),
            "loads a turn": round(held["loads"], 2),
            "searches a turn": round(held["searches"], 2),
            "list changes a turn": round(held["list changes"], 2),
            "cost a turn": round(held["cost"]),
            "to cheapest %": round(100 * (held["cost"] / costs["cost"] - 1), 1),
            "with results": round(held["cost with results"]),
            "to cheapest, with results %": round(100 * (held["cost with results"] / costs["cost with results"] - 1), 1),
        }


_recordings: dict[int, Recording] = {}


def recorded(tools: int) -> Recording:
    if tools not in _recordings:
        whole = read()
        _recordings[tools] = whole if tools == whole.tools else narrowed(whole, tools)
    return _recordings[tools]


def run(job: Job) -> dict[str, Figures]:
    """Return the figures of each delivery that the host of this job may have."""
    recording = recorded(job.tools)
    oracle = Oracle(recording, job.policy)
    traces = [list(oracle.converse(turns)) for turns in recording.conversations]
    return {way: figures_of(oracle, traces, way) for way in WAYS}


def figures_of(oracle: Oracle, traces: list[list[Event]], way: Delivery) -> Figures:
    tally = oracle.tally
    asked = [sum(map(size, event.tools)) for trace in traces for event in trace if isinstance(event, Asked)]
    plain = [priced(oracle, trace, way, {}) for trace in traces]
    work = [priced(oracle, trace, way, WORK) for trace in traces]
    more = sum(map(size, oracle.through)) - sum(map(size, oracle.start)) if way == "result" else oracle.system
    carried = sum(asked) / len(asked) + more
    return {
        "tokens": carried,
        "tokens with full hints": carried + oracle.more_with_full_hints(),
        "out": 100 * tally.out / tally.calls,
        "loads": tally.loads / tally.turns,
        "searches": tally.searches / tally.turns,
        "list changes": sum(prompt.list_changes for prompt in plain) / tally.turns,
        "cost": sum(prompt.cost for prompt in plain) / tally.turns,
        "cost with results": sum(prompt.cost for prompt in work) / tally.turns,
        **({f"plan {way}": planned(oracle, way)} if oracle.policy.everything else {}),
    }


def planned(oracle: Oracle, way: Delivery) -> bool:
    """Return whether Pegboard has everything loaded from the start, by the sizes of this catalog."""
    on_demand = Oracle(oracle.recording, ON_DEMAND)
    tools = oracle.access.permitted
    named = all(on_demand.names(tool) for tool in tools)
    sizes = Sizes(
        everything=sum(map(size, tools)),
        units=len(tools) if named else len(oracle.recording.world.catalog.plugins),
        by="tool" if named else "plugin",
        meta=sum(map(size, on_demand.through if way == "result" else on_demand.start)),
        hints=0 if way == "result" else on_demand.system,
    )
    return plan(sizes, Host(delivery=(way,), cache=Cache())).everything


def priced(oracle: Oracle, events: list[Event], way: Delivery, beside: dict[str, int]) -> Prompt:
    """Return one conversation's requests added up, with this delivery."""
    fixed, hints = (oracle.through, 0) if way == "result" else (oracle.start, oracle.system)
    prompt = Prompt(Cache(), system=beside.get("system", 0) + hints)
    for event in events:
        match event:
            case Said():
                prompt.say(spoken(event, way) + (beside.get("result", 0) if event.through else 0))
            case Asked():
                tools = event.wire if way == "array" else fixed
                prompt.send(tuple(tool.wire for tool in tools), [size(tool) for tool in tools])
            case Ended():
                prompt.say(beside.get("text", 0))
                if way == "native" and not oracle.policy.kept:
                    prompt.say(sum(removal(name) for name in event.removed))
    return prompt


def spoken(said: Said, way: Delivery) -> int:
    """Return the tokens of a message; natively an answer has no schemas, the provider reveals them."""
    if way == "native" and said.schemas:
        return said.bare + said.schemas
    return said.through if way == "result" and said.through else said.tokens


def removal(name: str) -> int:
    """Return the tokens with which a provider is told in the conversation that a tool is gone."""
    return count(json.dumps({"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}))
