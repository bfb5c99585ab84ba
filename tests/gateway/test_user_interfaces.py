"""Tools with a user interface of their own (MCP Apps), for clients that draw it and for those that do not."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.extension import ClientExtension, advertise

from pegboard import Host
from pegboard.assembly import Pegboard

from .clients import ERAS, HANDSHAKE, HERE, MODERN, Connected, connected, edit, gateway, until, way_in

SERVER = str(HERE.parent / "servers" / "listed_server.py")
EXTENSION = "io.modelcontextprotocol/ui"
DRAWS = advertise(EXTENSION, {"mimeTypes": ["text/html;profile=mcp-app"]})
CHART: dict[str, Any] = {"title": "Chart", "_meta": {"ui": {"resourceUri": "ui://charts/line.html"}, "team": "a"}}
TOOLS: dict[str, Any] = {
    "chart": CHART,
    "poll": {"_meta": {"ui": {"visibility": ["app"]}}},
    "table": {"_meta": {"ui/resourceUri": "ui://charts/table.html"}},
    "rows": {"_meta": {"ui": {"csp": {}}}},
    "count": {},
}
DRAWN = ["charts__chart", "charts__poll", "charts__table"]


@pytest.fixture
def charts(tmp_path: Path) -> Path:
    """Return a configuration with one server, three tools of which have to do with a user interface."""
    tools, config = tmp_path / "tools.json", tmp_path / "pegboard.yaml"
    tools.write_text(json.dumps(TOOLS))
    # Described, so that its line in the hints does not name its tools and stays when one of them is denied.
    server = {"command": sys.executable, "args": [SERVER, str(tools)], "description": "Draw figures."}
    document = {"store": "sqlite:///state.db", "servers": {"charts": server}}
    config.write_text(json.dumps({**document, "agents": {"default": {"discoverable": ["*"], "permissions": {}}}}))
    return config


@asynccontextmanager
async def client(target: Any, era: str, *extensions: ClientExtension) -> AsyncIterator[Connected]:
    """Connect a client that declares these extensions; the tools of the server are known then."""
    async with connected(target, era, extensions=extensions) as found:

        async def known() -> bool:
            return "charts__count" in await found.text("search_tools", queries="count")

        await until(known)
        yield found


def drawn(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("charts__")]


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_draws_them_is_listed_tools_with_a_user_interface(
    charts: Path, era: str, transport: str
) -> None:
    """G4, G5, G7: they stand on the list as their server lists them, and a call of one runs."""
    async with way_in(transport, charts) as target, client(target, era, DRAWS) as drawing:
        listed = (await drawing.client.list_tools(cache_mode="refresh")).tools
        assert drawn([tool.name for tool in listed]) == DRAWN
        (chart,) = [tool for tool in listed if tool.name == "charts__chart"]
        assert (chart.title, chart.meta) == (CHART["title"], CHART["_meta"])
        assert await drawing.text("charts__chart") == "ran chart"
        assert await drawing.text("poll") == "ran poll"  # as the interface itself calls it


async def test_other_clients_are_listed_what_they_were_before(charts: Path) -> None:
    """G4: what is fixed depends on what the client declares, and on nothing that another one does."""
    bare = advertise(EXTENSION)
    text_only = advertise(EXTENSION, {"mimeTypes": ["text/plain"]})
    async with gateway(charts) as running, client(running.url, MODERN) as plain:
        before = await plain.client.list_tools(cache_mode="refresh")
        assert drawn(await plain.names()) == []
        async with client(running.url, MODERN, DRAWS) as drawing:
            await drawing.text("charts__chart")
            assert drawn(await drawing.names()) == DRAWN
            assert (await plain.client.list_tools(cache_mode="refresh")).tools == before.tools
            assert (await plain.call("charts__table")).is_error
        for other in (bare, text_only):
            async with client(running.url, MODERN, other) as declaring_less:
                assert drawn(await declaring_less.names()) == []


async def test_a_denied_tool_is_not_listed_whatever_it_draws(charts: Path) -> None:
    """P3, G4: only permitted tools are listed; a client is notified when that changes for it."""
    async with (
        gateway(charts) as running,
        client(running.url, HANDSHAKE, DRAWS) as drawing,
        client(running.url, HANDSHAKE) as plain,
    ):
        assert drawn(await drawing.names()) == DRAWN
        await plain.names()
        assert all([await one.hears.wait() for one in (drawing, plain)])

        async def shorter() -> bool:
            return drawn(await drawing.names()) == DRAWN[1:]

        edit(charts, '"permissions": {}', '"permissions": {"charts__chart": false}')
        await until(shorter)
        assert "not found" in str(await refused(drawing, "charts__chart"))
        await until(lambda: drawing.changes() > 0)
        assert plain.changes() == 0


async def test_a_stream_of_the_2026_era_carries_changes_of_its_own_list(charts: Path) -> None:
    """G4: a client that draws interfaces is notified of a change that the others do not see."""
    async with (
        gateway(charts) as running,
        client(running.url, MODERN, DRAWS) as drawing,
        client(running.url, MODERN) as plain,
        drawing.client.listen(tools_list_changed=True) as drawn_changes,
        plain.client.listen(tools_list_changed=True) as plain_changes,
    ):
        edit(charts, '"permissions": {}', '"permissions": {"charts__chart": false}')
        assert await anext(aiter(drawn_changes)) is not None
        edit(charts, '"charts__chart": false', '"charts__chart": false, "charts": false')
        assert await anext(aiter(plain_changes)) is not None


async def refused(client: Connected, name: str) -> Exception:
    with pytest.raises(Exception, match="not found") as caught:
        await client.call(name)
    return caught.value


async def test_a_library_host_is_as_it_was_unless_it_draws_them(charts: Path) -> None:
    """G4, S4: an interface makes nothing loaded by itself, and nothing is stored because of one."""
    async with Pegboard.open(charts) as board:
        plain = await board.session(session_id="s")
        await plain.load("charts")
        await plain.unload("charts")
        await plain.load("count")
        assert drawn(list((await plain.surface()).names)) == ["charts__count"]
        drawing = await board.session(session_id="s", host=Host(draws_ui=True))
        surface = await drawing.surface()
        assert drawn(list(surface.names)) == [*DRAWN, "charts__count"]
        assert [one.because for one in surface.tools if one.tool.wire in DRAWN] == [("initial",)] * len(DRAWN)
        assert drawn(list((await plain.surface()).names)) == ["charts__count"]
