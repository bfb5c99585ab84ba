"""What one surface costs: an agent with 20 tools loaded, in a small and in a huge catalog."""

from __future__ import annotations

import statistics
import time

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog, Ref
from pegboard.core.model.leases import UNLOAD, Lease
from pegboard.core.model.selectors import member
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Frozen, Plugin, Tool, Variant
from pegboard.core.state.commands import CommandContext, Load
from pegboard.core.state.sessions import State
from pegboard.core.surface.policy import apply_with_policy
from pegboard.core.surface.surfaces import resolve

ROUNDS = 2000


def world(size: int) -> World:
    plugins: list[Plugin] = []
    for number in range(size // 10):
        names = tuple(f"op{i}" for i in range(10))
        tools = tuple(
            Tool(plugin=f"plugin{number}", name=name, description=f"Do {name} with {number}.") for name in names
        )
        variants = Frozen({"": Variant(tools=names)})
        plugins.append(Plugin(name=f"plugin{number}", kind="server", tools=tools, variants=variants))
    kit = Toolkit(name="kit", members=(member("plugin1"),))
    agent = Agent(
        name="a",
        static=tuple(member(f"plugin0/op{i}") for i in range(5)),
        allowed_toolkits=("kit",),
        discoverable=("*",),
    )
    return World(catalog=Catalog(plugins), toolkits={"kit": kit}, agents={"a": agent})


def measure() -> list[dict[str, object]]:
    worlds: dict[int, World] = {}
    built: dict[int, float] = {}
    for size in (1_000, 100_000):
        held = world(size)
        start = time.perf_counter()
        Catalog(held.catalog.plugins.values())
        built[size] = (time.perf_counter() - start) * 1000
        worlds[size] = held
    taken: dict[int, list[float]] = {size: [] for size in worlds}
    loads: dict[int, list[float]] = {size: [] for size in worlds}
    accesses = {size: CompiledPermissions(held, held.agents["a"]) for size, held in worlds.items()}
    state = State(
        leases=(
            Lease(subject=Ref("toolkit", "kit"), until=UNLOAD),
            *(Lease(subject=Ref("tool", f"plugin2/op{i}"), until=UNLOAD) for i in range(5)),
        )
    )
    for permissions in accesses.values():
        assert len(resolve(permissions, state).tools) == 20
    for _ in range(ROUNDS):
        for size, permissions in accesses.items():
            start = time.perf_counter()
            resolve(permissions, state)
            taken[size].append((time.perf_counter() - start) * 1000)
            start = time.perf_counter()
            apply_with_policy(permissions, state, Load(names=("plugin3/op1",)), CommandContext())
            loads[size].append((time.perf_counter() - start) * 1000)
    least = statistics.median(taken[1_000])
    return [
        {
            "tools in the catalog": size,
            "resolve p50 ms": round(statistics.median(taken[size]), 4),
            "resolve p95 ms": round(statistics.quantiles(taken[size], n=20)[18], 4),
            "ratio to 1,000": round(statistics.median(taken[size]) / least, 2),
            "load p50 ms": round(statistics.median(loads[size]), 4),
            "index the catalog once, ms": round(built[size], 1),
        }
        for size in worlds
    ]
