"""What the objects of 500 principals cost: each calls once, and is idle until what it has is closed (G9).

Memory is what Python allocates, traced; of the whole board, with what it knows of 500 sessions, and of the objects of
one plugin alone. What an object keeps itself is next to nothing here.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from pegboard import Pegboard
from pegboard.core.model.specs import PluginSpec, PythonSpec
from pegboard.core.model.tools import Tool
from pegboard.ports import CallContext
from pegboard.sources.lazy import local_sources
from pegboard.sources.registry import registered_plugins

PRINCIPALS = 500
TIMED = 100
"""The first calls of so many are timed."""
IDLE = 0.1
"""After how many seconds without a call an object is closed here."""
CLOSED_BY = 2.0
"""By when all of them are closed, in seconds."""
CART = '''
class Cart:
    def __init__(self):
        self.items = []

    def add(self, item: str) -> str:
        """Put something into the cart."""
        self.items.append(item)
        return "added"

    def show(self) -> list[str]:
        """Show what is in the cart."""
        return self.items
'''
AGNO = {
    "pandas": ("run_dataframe_operation", {"dataframe_name": "x", "operation": "head", "operation_parameters": {}}),
    "python": ("list_files", {}),
}
Row = dict[str, object]
CallAs = Callable[[str], Awaitable[object]]
Opened = Callable[[float | None], AbstractAsyncContextManager[CallAs]]
"""Opens what is called, with objects that are closed after so many seconds without a call; None keeps them."""


def measure() -> list[Row]:
    """Return one row for each plugin, and one for a board with the first of them."""
    return asyncio.run(_measured())


async def _measured() -> list[Row]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "carts.py").write_text(CART)
        cart = PythonSpec(name="cart", target="carts:Cart", folder=made)
        rows = [await _of_plugin("a class of two methods", cart, "add", {"item": "ring"})]
        for name, (tool, arguments) in AGNO.items():
            rows.append(await _of_plugin(f"Agno's {name}", registered_plugins()[name], tool, arguments))
        rows.append(await _of_board(folder))
        return rows


async def _of_plugin(title: str, spec: PluginSpec, tool: str, arguments: dict[str, Any]) -> Row:
    found = Tool(plugin=spec.name, name=tool, description="", input_schema={})

    @asynccontextmanager
    async def opened(idle: float | None) -> AsyncGenerator[CallAs]:
        sources = local_sources(None, idle=idle)
        source = next(source for source in sources if source.handles(spec))

        async def call(who: str) -> object:
            return await source.call(spec, {}, found, arguments, CallContext(principal=who, scope=f"user:{who}"))

        try:
            yield call
        finally:
            for one in sources:
                await one.aclose()

    return {"what": title, **await _numbers(opened)}


async def _of_board(folder: Path) -> Row:
    (folder / "pegboard.yaml").write_text(
        "store: sqlite:///state.db\nplugins: {cart: {python: 'carts:Cart'}}\nagents: {a: {tools: [cart]}}\n"
    )

    @asynccontextmanager
    async def opened(idle: float | None) -> AsyncGenerator[CallAs]:
        async with Pegboard.open(folder / "pegboard.yaml", idle=idle) as board:

            async def call(who: str) -> object:
                session = await board.session(principal=who, session_id="s")
                return await session.call("add", {"item": "ring"})

            yield call

    return {"what": "a board with that class, sessions included", **await _numbers(opened)}


async def _numbers(opened: Opened) -> Row:
    """Return what 500 principals cost, live and closed, each."""
    async with opened(None) as call:
        await _called(call, 5)
        lasted = await _called(call, TIMED)
    async with opened(None) as call:
        await _called(call, 5)
        live = await _traced(call, 0.0)
    async with opened(IDLE) as call:
        await _called(call, 5)
        closed = await _traced(call, CLOSED_BY)
    return {"live_kb_each": live, "closed_kb_each": closed, "first_call_ms_each": lasted}


async def _called(call: CallAs, times: int) -> float:
    """Return how long a first call takes, in milliseconds."""
    started = time.perf_counter()
    for number in range(times):
        await call(f"of {times}: {number}")
    return round((time.perf_counter() - started) / times * 1000, 2)


async def _traced(call: CallAs, wait: float) -> float:
    """Return how many kB each of 500 principals costs who has called once, after a while."""
    await asyncio.sleep(wait)
    tracemalloc.start()
    try:
        before = _allocated()
        await _called(call, PRINCIPALS)
        await asyncio.sleep(wait)
        return round((_allocated() - before) / PRINCIPALS / 1024, 2)
    finally:
        tracemalloc.stop()


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
