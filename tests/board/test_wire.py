"""A host with a prompt cache: what is loaded from the start, and what stays on the wire (D3, F4)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Cache, Host, Pegboard
from pegboard.core.model.delivery import Delivery

COLD, WARM = (Host(delivery=("array",), cache=Cache(tokens=tokens)) for tokens in (0, 60_000))
CONFIG = """
store: "memory:"
agents:
  many: {tools: [few], discoverable: ["big*"], lease: {kind: idle, turns: 1}}
  small: {discoverable: [few]}
  tight: {discoverable: [few, "big0"], budget: {tools: 6, tokens: 1500}}
"""
LONG = "It has a long description that makes its schema dear, and says so at some length, once more. " * 15


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "few_tools.py").write_text('def small(x: int) -> int:\n    """Small."""\n    return x\n')
    plugins = ["few: {python: few_tools}"]
    for plugin in range(10):
        tools = (f'def op{plugin}_{i}(x: int) -> int:\n    """Do {i}. {LONG}"""\n    return x\n' for i in range(20))
        (tmp_path / f"big{plugin}_tools.py").write_text("\n".join(tools))
        plugins.append(f"big{plugin}: {{python: big{plugin}_tools}}")
    (tmp_path / "pegboard.yaml").write_text(f"plugins: {{{', '.join(plugins)}}}\n{CONFIG}")
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


async def test_where_everything_is_cheapest_everything_is_out_from_the_start(board: Pegboard) -> None:
    """F4, T4: a small catalog behind a cache needs no meta-tools and no hints."""
    host = Host(delivery=("result",), cache=Cache())
    cached = await (await board.session(agent="small", session_id="a", host=host)).surface()
    assert (cached.names, cached.hints) == (("small",), ())
    plain = await (await board.session(agent="small", session_id="a")).surface()
    assert "load_tools" in plain.names


@pytest.mark.parametrize("delivery", [("result",), ("array", "result"), ("array",)])
async def test_what_is_cheapest_keeps_the_budget(board: Pegboard, delivery: tuple[Delivery, ...]) -> None:
    """S9, F4: a host with a cache gets no more than any other, in the list of a request too."""
    host = Host(delivery=delivery, cache=Cache(tokens=50_000))
    session = await board.session(agent="tight", session_id="a", host=host)
    surface = await session.surface()
    assert len(surface.names) <= 6
    assert surface.tokens.tools <= 1500
    assert len(await session.wire()) <= 6
    assert (await session.load("big0")).items[0].status == "over_budget"


async def test_a_catalog_that_outgrows_the_budget_comes_on_demand(board: Pegboard) -> None:
    """S9: also where everything was loaded from the start."""
    await board.permissions.set("tight", "big0", False)
    session = await board.session(agent="tight", session_id="a", host=Host(delivery=("result",), cache=Cache()))
    assert (await session.surface()).names == ("small",)
    await board.permissions.set("tight", "big0", None)
    assert "load_tools" in (await session.surface()).names
    assert len((await session.surface()).names) <= 6


async def test_a_large_catalog_comes_on_demand(board: Pegboard) -> None:
    """F4: nothing but the static tool is loaded."""
    host = Host(delivery=("native",), cache=Cache())
    surface = await (await board.session(agent="many", session_id="a", host=host)).surface()
    assert surface.names == ("small", "search_tools", "load_tools", "unload_tools")


async def test_an_idle_tool_leaves_the_surface_at_once_and_the_wire_only_when_it_pays(board: Pegboard) -> None:
    """D3: behind a warm cache its schema stays, and a call of it renews the lease and runs."""
    session = await board.session(agent="many", session_id="a", host=COLD)
    await session.load("op0_1")
    session.host = WARM
    assert [tool.wire for tool in await session.wire()][-1] == "op0_1"
    for _ in range(3):
        await session.end_turn()
    assert "op0_1" not in (await session.surface()).names
    assert [tool.wire for tool in await session.wire()][-1] == "op0_1"
    answer = await session.call("op0_1", {"x": 3})
    assert (answer.status, answer.result.content[0]["text"]) == ("ok", "3")
    assert "op0_1" in (await session.surface()).names


async def test_without_a_cache_it_leaves_the_wire_at_once(board: Pegboard) -> None:
    """D1, D3: then removal is free, and a call answers with the schema."""
    session = await board.session(agent="many", session_id="a")
    await session.load("op0_1")
    await session.wire()
    for _ in range(3):
        await session.end_turn()
    assert "op0_1" not in [tool.wire for tool in await session.wire()]
    assert (await session.call("op0_1", {"x": 3})).status == "not_loaded"


async def test_what_is_unloaded_or_switched_off_leaves_the_wire_at_once(board: Pegboard) -> None:
    """D3, P4: only what lapsed by itself may stay."""
    session = await board.session(agent="many", session_id="a", host=COLD)
    await session.load("op0_1", "op0_2")
    session.host = WARM
    await session.wire()
    await session.unload("op0_1")
    assert "op0_1" not in [tool.wire for tool in await session.wire()]
    assert (await session.call("op0_1", {"x": 3})).status == "not_loaded"
    await board.permissions.set("many", "op0_2", False)
    assert "op0_2" not in [tool.wire for tool in await session.wire()]
    assert (await session.call("op0_2", {"x": 3})).status == "not_found"
