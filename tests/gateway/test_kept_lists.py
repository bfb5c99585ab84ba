"""What servers list besides tools is kept over a restart, as tools are: no list starts a server that is known (G8)."""

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from pegboard.assembly import Pegboard

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, Connected, connected, gateway, serve, until
from .resource_helpers import configured, entry, stdio, wire

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
TOKENS = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}


async def listed(config: Path, era: str) -> dict[str, list[dict[str, Any]]]:
    """Return what a client lists that asks for everything as soon as it is connected, over stdio."""
    async with wire(serve(config, "--stdio"), era) as client:
        return {method: await client.all(method, key) for method, key in LISTS.items()}


async def first_listed(config: Path) -> None:
    """Let a client list everything, until it is there."""
    async with wire(serve(config, "--stdio"), MODERN) as client:
        await client.until_listed()
        for method, key in LISTS.items():
            await client.all(method, key)


async def uris(client: Connected) -> list[str]:
    found = await client.client.list_resources(cache_mode="refresh")
    return [str(one.uri) for one in found.resources]


async def are_kept(config: Path, **counts: int) -> bool:
    """Return whether the store has lists of these lengths of the server ``up``."""
    async with Pegboard.open(config) as board:
        loader = board.services.loader
        spec = loader.specs["up"]
        lists = await loader.manifests.lists("up", loader.source_of(spec).fingerprint(spec), "shared")
    return all(len(lists[kind]) == count for kind, count in counts.items())


def started(log: Path) -> int:
    """Return how many processes have been asked anything."""
    lines = log.read_text().splitlines() if log.exists() else []
    return len({line.split()[1] for line in lines})


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_lists_everything_starts_no_server_the_second_time(tmp_path: Path, era: str) -> None:
    """G8: the lists are those that the servers gave, key by key."""
    log = tmp_path / "log"
    servers = {name: entry(stdio("--name", name, "--log", str(log))) for name in ("one", "two")}
    config = configured(tmp_path, servers)
    await first_listed(config)
    assert started(log) == 2
    log.unlink()
    lists = await listed(config, era)
    assert started(log) == 0
    assert [found["uri"] for found in lists["resources/list"]][:4] == [
        "note://shared", "note://one/own", "blob://one", "pegboard://two/note://shared",
    ]  # fmt: skip
    assert lists["resources/list"][0]["x-vendor"] == {"kept": [1, None]}
    assert [found["name"] for found in lists["prompts/list"]] == ["one__greet", "one__fail", "two__greet", "two__fail"]
    assert len(lists["resources/templates/list"]) == 4


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("upstream", ["2026", "handshake"])
async def test_a_kept_list_is_read_again_once_its_server_runs(tmp_path: Path, era: str, upstream: str) -> None:
    """G8: what a server says that has changed is kept, and what it lists when it runs again counts, with a word."""
    old = ["--handshake"] if upstream == "handshake" else []
    log = tmp_path / "log"
    config = configured(tmp_path, {"up": entry(stdio("--log", str(log), *old))})
    await first_listed(config)
    async with gateway(config) as running, connected(running.url, era) as client:
        assert len(await uris(client)) == 3
        await client.load("up__do")
        await client.call("up__do", what="grow")
        await until(partial(are_kept, config, resources=4, prompts=3))
    log.unlink()
    async with (
        gateway(config) as running,
        connected(running.url, era) as client,
        AsyncExitStack() as stack,
    ):
        if era == MODERN:
            await stack.enter_async_context(
                client.client.listen(resources_list_changed=True, prompts_list_changed=True)
            )
        assert (await uris(client))[-1] == "note://one/grown"
        assert started(log) == 0
        await client.call("call_tool", name="up__do", arguments={"what": "nothing"})
        await until(lambda: any(isinstance(note, types.ResourceListChangedNotification) for note in client.seen))
        assert await uris(client) == ["note://shared", "note://one/own", "blob://one"]


async def test_what_one_principal_was_listed_is_kept_from_the_others(tmp_path: Path) -> None:
    """G8, G9: over a restart too; who has nothing yet is given what a process of their own lists."""
    log = tmp_path / "log"
    config = configured(tmp_path, {"up": entry(stdio("--log", str(log)))}, tokens=TOKENS)
    async with gateway(config) as running, connected(running.url, HANDSHAKE, token=ADA) as ada:
        await until_listed(ada, 3)
        await ada.load("up__do")
        await ada.call("up__do", what="grow")
        await until_listed(ada, 4)
    log.unlink()
    async with gateway(config) as running:
        async with connected(running.url, HANDSHAKE, token=ADA) as ada:
            assert len(await uris(ada)) == 4
        assert started(log) == 0
        async with connected(running.url, HANDSHAKE, token=BOB) as bob:
            await until_listed(bob, 3)
            assert len(await uris(bob)) == 3
        assert started(log) == 1


@pytest.mark.parametrize("instance", ["session", "client"])
async def test_what_ends_with_a_session_is_not_kept(tmp_path: Path, instance: str) -> None:
    """G8, G9: the next session, or client, is given what its process will list when it begins."""
    log = tmp_path / "log"
    config = configured(tmp_path, {"up": entry(stdio("--log", str(log)), instance=instance)})
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        await until_listed(client, 3)
        await client.load("up__do")
        await client.call("up__do", what="grow")
        await until_listed(client, 4)
    log.unlink()
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        assert len(await uris(client)) == 3
        assert started(log) == 0


async def until_listed(client: Connected, least: int) -> None:
    """Wait until so many resources are listed."""

    async def there() -> bool:
        return len(await uris(client)) >= least

    await until(there, 60)


async def test_fifteen_servers_are_listed_by_a_client_without_any_of_them(tmp_path: Path) -> None:
    """G8: tools, prompts, resources and templates at connect."""
    log = tmp_path / "log"
    names = [f"s{number}" for number in range(15)]
    config = configured(tmp_path, {name: entry(stdio("--name", name, "--log", str(log))) for name in names})
    async with wire(serve(config, "--stdio"), MODERN) as client:

        async def all_there() -> bool:
            found = [await client.all(method, key) for method, key in LISTS.items()]
            return [len(items) for items in found[1:]] == [45, 30, 30]

        await until(all_there, 120)
    log.unlink()
    lists = await listed(config, HANDSHAKE)
    assert [len(items) for items in lists.values()][1:] == [45, 30, 30]
    assert started(log) == 0
