"""A client over stdio lists once, as most do, and calls nothing: it hears when its list has become another one."""

import json
from pathlib import Path
from typing import Any

import pytest

from .clients import ERAS, HANDSHAKE, MODERN, edit, until
from .raw_stdio import RawClient, RawServer, raw_client


def write(folder: Path, server: RawServer, **more: Any) -> Path:
    """Write a configuration with one agent, for which the server is loaded from the start."""
    config: dict[str, Any] = {
        "store": "sqlite:///store.db",
        "reload": "all",
        "servers": {"up": server.entry},
        "toolkits": {"all": {"tools": ["up"]}},
        "agents": {"default": {"dialect": "pegboard", "allowed_toolkits": ["all"], "initial_toolkits": ["all"]}},
    }
    path = folder / "pegboard.yaml"
    path.write_text(json.dumps({**config, **more}, indent=1))
    return path


@pytest.mark.parametrize("era", ERAS)
async def test_whatever_changes_after_the_first_list_is_announced(tmp_path: Path, era: str) -> None:
    """G5, G8: a server that comes late, tools that it announces, and a server that an edit adds."""
    server, other = RawServer(tmp_path), RawServer(tmp_path, "other")
    config = write(tmp_path, server)
    async with raw_client(config, era) as client:
        await client.begin()
        assert not await client.is_listed("up__one")
        await client.listen()
        if era == HANDSHAKE:
            await client.request("ping")
        assert client.heard_of_changes() == 0

        server.offer("one")
        await client.request("prompts/list")
        await until(lambda: client.heard_of_changes() == 1)
        server.offer("one", "two")
        await until(lambda: client.heard_of_changes() == 2)
        other.offer("three")
        edit(config, '"up"\n   ]', '"up", "other"\n   ]')
        edit(config, '"servers": {', f'"servers": {{"other": {json.dumps(other.entry)},')
        await until(lambda: client.heard_of_changes() > 2)

        await until(lambda: client.is_listed("other__three"))
        assert await client.is_listed("up__two")


def as_a_client_has_it(folder: Path, server: RawServer) -> Path:
    """Write the file of another client, in which the server is to be loaded by the model."""
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"up": server.entry}}))
    return path


async def hints(client: RawClient) -> str:
    return (await client.tools())["load_tools"]["description"]


@pytest.mark.parametrize("era", ERAS)
async def test_hints_that_name_more_than_those_of_the_first_list_are_announced(tmp_path: Path, era: str) -> None:
    """G5, F2: the tools of a server are not known at its first start."""
    server = RawServer(tmp_path)
    async with raw_client(as_a_client_has_it(tmp_path, server), era) as client:
        await client.begin()
        assert "one" not in await hints(client)
        await client.listen()

        server.offer("one")

        await until(lambda: client.heard_of_changes() > 0)
        assert "one" in await hints(client)


async def test_what_changed_between_a_list_and_the_stream_after_it_is_announced_on_it(tmp_path: Path) -> None:
    """G4, G8: a client of the newer era lists, then listens."""
    server = RawServer(tmp_path)
    async with raw_client(as_a_client_has_it(tmp_path, server), MODERN) as client:
        assert "one" not in await hints(client)
        server.offer("one")
        await until(lambda: server.answered("tools/list") > 0)
        await client.listen()
        await until(lambda: client.heard_of_changes() > 0)
        assert "one" in await hints(client)


async def test_a_turn_that_was_over_before_the_first_list_takes_from_it_what_came_for_that_turn(tmp_path: Path) -> None:
    """G5, S6: the client hears of it, where its list was given before the turn could end."""
    config = tmp_path / "pegboard.yaml"
    agent = {"discoverable": ["clock"], "turn_gap": "1ms"}
    plugins = {"clock": {"python": "pegboard.quickstart.clock"}}
    config.write_text(json.dumps({"store": "sqlite:///s.db", "plugins": plugins, "agents": {"default": agent}}))
    async with raw_client(config, HANDSHAKE) as client:
        await client.begin()
        await client.call("load_tools", {"names": ["clock"], "keep": "turn"})
    async with raw_client(config, HANDSHAKE) as client:
        await client.begin()
        if await client.is_listed("current_time"):
            await until(lambda: client.heard_of_changes() > 0)
            assert not await client.is_listed("current_time")
