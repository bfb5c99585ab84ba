"""What resolving a loadout costs: 32 loadouts in chains of 8 over 5,000 plugins, cold and warm (L5, L7)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.loadout_registry import LoadoutRegistry
from pegboard.core.model.loadouts import BUILT_IN, CATEGORIES, Loadout
from pegboard.core.model.tools import Frozen, Plugin, Tool, Variant
from pegboard.core.state.subjects import active_plugins

PLUGINS, LOADOUTS, CHAIN, ROUNDS = 5_000, 32, 8, 100


def plugins() -> list[Plugin]:
    variants = Frozen({"": Variant(tools=("run",))})
    return [
        Plugin(
            name=f"Plugin{n}",
            category=CATEGORIES[n % len(CATEGORIES)] if n % 3 else None,
            tools=(Tool(plugin=f"Plugin{n}", name="run", wire=f"Plugin{n}__run"),),
            variants=variants,
        )
        for n in range(PLUGINS)
    ]


def loadouts() -> list[Loadout]:
    return [
        Loadout(
            name=f"loadout{n}",
            parent=f"loadout{n - 1}" if n % CHAIN else None,
            plugins=tuple(f"plugin{n * 40 + i}" for i in range(20)),
            categories=(CATEGORIES[n % len(CATEGORIES)],),
            discoverable=(f"plugin{n}*", "docker*"),
            disabled=(f"plugin{n * 40 + 3}",),
        )
        for n in range(LOADOUTS)
    ]


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def measure() -> list[dict[str, object]]:
    held, known = plugins(), loadouts()
    by_name = {**BUILT_IN, **{loadout.name: loadout for loadout in known}}
    world = World(catalog=Catalog(held), loadouts=Frozen(by_name))
    cold: dict[str, list[float]] = {"active": [], "discoverable": [], "narrowing": []}
    warm: dict[str, list[float]] = {what: [] for what in cold}
    for number in range(ROUNDS):
        name = f"loadout{number % LOADOUTS}"
        registry = LoadoutRegistry(known)
        permissions = CompiledPermissions(world, Agent(name="a", discoverable=("*",)))
        for what, work in (
            ("active", lambda r=registry, n=name: r.resolve_active(n, held)),
            ("discoverable", lambda r=registry, n=name: r.resolve_discoverable(n, held)),
            ("narrowing", lambda a=permissions, n=name: active_plugins(a, n)),
        ):
            cold[what].append(timed(work))
            warm[what].append(timed(work))
    assert all(len(LoadoutRegistry(known).chain(f"loadout{n}")) == n % CHAIN + 1 for n in range(LOADOUTS))
    return [
        {
            "resolving": what,
            "cold least ms": round(min(cold[what]), 3),
            "cold p50 ms": round(statistics.median(cold[what]), 3),
            "cold p95 ms": round(statistics.quantiles(cold[what], n=20)[18], 3),
            "warm p50 ms": round(statistics.median(warm[what]), 4),
            "warm p95 ms": round(statistics.quantiles(warm[what], n=20)[18], 4),
        }
        for what in cold
    ]
