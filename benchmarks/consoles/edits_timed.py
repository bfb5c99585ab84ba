"""How long the proposal of an edit keeps the event loop, in which every call waits: by processor time of the loop."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from asyncio.events import Handle
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.consoles.answers_timed import Row
from pegboard import Pegboard
from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import Editing, Editor

LONGEST = 50
"""The target: so many milliseconds another request waits at most."""
PLUGINS, AGENTS = 100, 49


@contextmanager
def stretches() -> Generator[list[float]]:
    """Yield the milliseconds of processor time of each stretch that the loop's thread worked without a pause."""
    found: list[float] = []
    run: Callable[[Any], None] = getattr(Handle, "_run")  # noqa: B009

    def timed(handle: Any) -> None:
        began = time.thread_time()
        run(handle)
        found.append(1000 * (time.thread_time() - began))

    setattr(Handle, "_run", timed)  # noqa: B010
    try:
        yield found
    finally:
        setattr(Handle, "_run", run)  # noqa: B010


def configured(folder: Path, tools: int) -> Path:
    """Write plugins with so many tools, agents that have some of them, and toolkits; return the configuration."""
    names = [f"bench_{number}" for number in range(PLUGINS)]
    for name in names:
        functions = [
            f'def {name}_{at}(a: int) -> str:\n    """Do {at}."""\n    return ""\n' for at in range(tools // PLUGINS)
        ]
        (folder / f"{name}.py").write_text("\n".join(functions))
    agents = {f"agent-{n}": {"tools": [names[(7 * n + at) % PLUGINS] for at in range(30)]} for n in range(AGENTS)}
    content = {
        "store": "memory:",
        "plugins": {name: {"python": name} for name in names},
        "toolkits": {f"kit-{name}": {"tools": [name]} for name in names},
        "agents": {**agents, "all": {"discoverable": ["*"]}},
    }
    path = folder / "pegboard.json"
    path.write_text(json.dumps(content))
    return path


async def measured(folder: Path, tools: int, rounds: int) -> list[Row]:
    """Return what edits of one agent and of a toolkit keep the loop for."""
    config = configured(folder, tools)
    sys.path.insert(0, str(folder))
    async with Pegboard.open(config) as board:
        while len(board.world.catalog) < PLUGINS * (tools // PLUGINS):
            await discover_every(board.services, IN_PROCESS)
            await asyncio.sleep(0.1)
        gc.set_threshold(20_000, 20, 20)  # as in a gateway
        editing, editor = Editing(board.services, board.editable), Editor(name="bench", agents=None)
        rows: list[Row] = []
        for name, path, values in (
            ("an agent's role", ("agents", "agent-0", "role"), ["a", "b", "c"]),
            ("an agent's tools", ("agents", "agent-0", "tools"), [["bench_50"], ["bench_51"], ["bench_52"]]),
            ("a toolkit", ("toolkits", "kit-bench_3", "tools"), [["bench_4"], ["bench_5"], ["bench_6"]]),
        ):
            longest: list[float] = []
            began = time.process_time()
            for value in values[:rounds]:
                with stretches() as found:
                    await editing.propose(editor, [ConfigurationChange(path=path, value=value)])
                    await asyncio.sleep(0)
                longest.append(max(found))
            worked = 1000 * (time.process_time() - began) / len(longest)
            rows.append(
                {
                    "edit of": name,
                    "tools": len(board.world.catalog),
                    "longest on the loop ms": round(max(longest), 1),
                    "target ms": LONGEST,
                    "CPU ms": round(worked),
                }
            )
    return rows
