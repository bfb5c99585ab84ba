"""Updates of resources reach whoever subscribed, and no one else."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.assembly import Pegboard

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, Connected, connected, gateway, spawn, until
from .resource_helpers import configured, entry, over_http, requests, stdio

UPSTREAMS = ["stdio 2026", "stdio handshake", "http 2026", "http handshake"]
pytestmark = pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
SHARED, OWN = "note://shared", "note://one/own"


def updates(client: Connected) -> list[str]:
    return [note.params.uri for note in client.seen if isinstance(note, types.ResourceUpdatedNotification)]


async def change(client: Connected, what: str, server: str = "up") -> str:
    """Let a server do something; returns what it says."""
    return await client.text("call_tool", name=f"{server}__do", arguments={"what": what})


@asynccontextmanager
async def subscribed(client: Connected, era: str, *uris: str) -> AsyncIterator[list[str]]:
    """Subscribe in the way of an era; yields what is held."""
    if era == MODERN:
        async with client.client.listen(resource_subscriptions=list(uris)) as changes:
            yield list(changes.honored.resource_subscriptions or ())
        return
    for uri in uris:
        await client.client.subscribe_resource(uri)
    yield list(uris)
    for uri in uris:
        await client.client.unsubscribe_resource(uri)


@pytest.mark.parametrize(("upstream", "era"), zip(UPSTREAMS, [MODERN, HANDSHAKE, HANDSHAKE, MODERN], strict=True))
async def test_an_update_reaches_the_subscribed_clients_only(tmp_path: Path, era: str, upstream: str) -> None:
    """G7: one subscription upstream however many clients, gone when the last leaves."""
    log = tmp_path / "log"
    transport, kind = upstream.split()
    options = [*(["--handshake"] if kind == "handshake" else []), "--log", str(log)]
    asked = "resources/subscribe" if kind == "handshake" else "subscriptions/listen"
    async with AsyncExitStack() as stack:
        server: Any = entry(stdio(*options))
        if transport == "http":
            server = {"url": await stack.enter_async_context(over_http(*options))}
        running = await stack.enter_async_context(gateway(configured(tmp_path, {"up": server})))
        one = await stack.enter_async_context(connected(running.url, era))
        two = await stack.enter_async_context(connected(running.url, era))
        other = await stack.enter_async_context(connected(running.url, era))
        await one.load("up__do")
        before = len(requests(log, asked))
        async with subscribed(one, era, SHARED), subscribed(other, era, OWN):
            async with subscribed(two, era, SHARED):
                await change(one, f"touch {SHARED}")
                await until(lambda: SHARED in updates(one) and SHARED in updates(two))
            assert len(requests(log, asked)) - before == 2
            two.seen.clear()
            await change(one, f"touch {SHARED}")
            await until(lambda: updates(one).count(SHARED) >= 2)
            await change(one, f"touch {OWN}")
            await until(lambda: OWN in updates(other))
            assert SHARED not in updates(other)
            assert updates(two) == []
        if kind == "handshake":

            async def nothing_held() -> bool:
                return await change(one, "subscribed") == ""

            await until(nothing_held)
        one.seen.clear()
        await change(one, f"touch {SHARED}")
        assert updates(one) == []


@pytest.mark.parametrize("upstream", ["2026", "handshake"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_subscription_is_renewed_after_a_restart(tmp_path: Path, era: str, upstream: str) -> None:
    """G8: the server is started again for it, and what may have been missed counts as an update."""
    options = ["--handshake"] if upstream == "handshake" else []
    config = configured(tmp_path, {"up": entry(stdio(*options))})
    async with gateway(config) as running, connected(running.url, era) as client:
        await client.load("up__do")
        async with subscribed(client, era, SHARED):
            await change(client, "stop")
            await until(lambda: updates(client) == [SHARED])
            await change(client, f"touch {SHARED}")
            await until(lambda: updates(client) == [SHARED, SHARED])


async def test_updates_come_under_the_name_that_was_subscribed_to(tmp_path: Path) -> None:
    """G7, G10: an alias stays one, and over stdio it is the same."""
    servers = {"two": entry(stdio("--name", "two")), "up": entry(stdio())}
    config = configured(tmp_path, servers)
    name = f"pegboard://up/{SHARED}"
    async with connected(spawn(config), MODERN) as client:
        await client.load("up__do", "two__do")
        async with subscribed(client, MODERN, name):
            await change(client, f"touch {SHARED}", "two")
            await change(client, f"touch {SHARED}")
            await until(lambda: updates(client) == [name])


async def test_the_uri_beneath_a_subscribed_one_passes_through_in_the_handshake_era(tmp_path: Path) -> None:
    """G7: a server may speak of a part of what was subscribed to."""
    config = configured(tmp_path, {"up": entry(stdio())})
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        await client.load("up__do")
        async with subscribed(client, HANDSHAKE, "page://1"):
            await change(client, "touch page://1/top")
            await change(client, "touch page://12")
            await change(client, "touch page://1")
            await until(lambda: updates(client)[-1:] == ["page://1"])
            assert set(updates(client)) <= {"page://1/top", "page://1"}


async def test_what_cannot_be_subscribed_to_is_refused_or_not_acknowledged(tmp_path: Path) -> None:
    """P9, G7: unknown and denied alike; a server without subscriptions; one that refuses."""
    servers = {
        "up": entry(stdio("--handshake")),
        "quiet": entry(stdio("--name", "quiet", "--quiet")),
        "shut": entry(stdio("--name", "shut")),
    }
    config = configured(tmp_path, servers, agents={"default": {"discoverable": ["up", "quiet"]}})
    never = ["nothing://there", "note://shut/own", "pegboard://shut/note://shared", "note://quiet/own", "page://9"]
    async with gateway(config) as running:
        async with connected(running.url, MODERN) as client:
            await client.load("up__do", "quiet__do")  # a subscription waits a short while only for a server that starts
            async with subscribed(client, MODERN, *never, SHARED) as held:
                assert held == [SHARED]
        async with connected(running.url, HANDSHAKE) as client:
            refused: list[Any] = []
            for uri in never:
                with pytest.raises(MCPError) as caught:
                    await client.client.subscribe_resource(uri)
                refused.append(caught.value.error)
            assert [one.code for one in refused] == [-32002, -32002, -32002, -32601, -32602]
            assert refused[-1].message == "there are eight pages"
            await client.client.unsubscribe_resource(SHARED)


@pytest.mark.parametrize("era", ERAS)
async def test_a_revoked_permission_ends_updates(tmp_path: Path, era: str) -> None:
    """P4: who may not read a resource any longer hears nothing of it."""
    agents = {"default": {"discoverable": ["*"]}, "watcher": {"discoverable": ["*"]}}
    config = configured(tmp_path, {"up": entry(stdio())}, agents=agents)
    async with (
        Pegboard.open(config) as operator,
        gateway(config) as running,
        connected(running.url, era) as client,
        connected(f"{running.url}/watcher", era) as watcher,
    ):
        await watcher.load("up__do")
        async with subscribed(client, era, SHARED), subscribed(watcher, era, SHARED):
            await operator.permissions.set("default", "up", False)
            await change(watcher, f"touch {SHARED}")
            await until(lambda: SHARED in updates(watcher))
            await operator.permissions.set("default", "up", True)
            await change(watcher, f"touch {SHARED}")
            await until(lambda: updates(watcher) == [SHARED, SHARED] and SHARED in updates(client))
            assert updates(client) == [SHARED]


async def test_principals_hear_of_their_own_processes(tmp_path: Path) -> None:
    """G9: a subscription is one of its principal's connection."""
    tokens = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}
    config = configured(tmp_path, {"up": entry(stdio())}, tokens=tokens)
    async with (
        gateway(config) as running,
        connected(running.url, MODERN, token=ADA) as ada,
        connected(running.url, MODERN, token=BOB) as bob,
    ):
        await ada.load("up__do")
        await bob.load("up__do")
        async with subscribed(ada, MODERN, SHARED), subscribed(bob, MODERN, SHARED):
            await change(ada, f"touch {SHARED}")
            await until(lambda: updates(ada) == [SHARED])
            await change(bob, f"touch {SHARED}")
            await until(lambda: updates(bob) == [SHARED])
            assert updates(ada) == [SHARED]


async def test_a_subscription_outlives_an_edit_of_its_server(tmp_path: Path) -> None:
    """G8, G9: an edited server is another process; what is new in the configuration is announced."""
    config = configured(tmp_path, {"up": entry(stdio())}, reload="all")
    async with (
        gateway(config) as running,
        connected(running.url, HANDSHAKE) as client,
    ):
        await client.load("up__do")
        assert len((await client.client.list_resources()).resources) == 3
        async with subscribed(client, HANDSHAKE, SHARED):
            configured(
                tmp_path,
                {"up": entry(stdio("--log", str(tmp_path / "log")), timeout="9s"), "b": entry(stdio())},
                reload="all",
            )
            await until(
                lambda: any(isinstance(note, types.ResourceListChangedNotification) for note in client.seen), 30
            )

            async def touched() -> bool:
                await change(client, f"touch {SHARED}")
                return updates(client) != []

            await until(touched, 30)


async def test_the_end_of_a_client_ends_what_it_subscribed_to(tmp_path: Path) -> None:
    """G7: whoever goes away without a word holds nothing any longer."""
    log = tmp_path / "log"
    config = configured(tmp_path, {"up": entry(stdio("--handshake", "--log", str(log)))})
    async with gateway(config) as running:
        async with connected(running.url, HANDSHAKE) as client:
            await client.client.subscribe_resource(SHARED)
        await until(lambda: len(requests(log, "resources/unsubscribe")) == 1)
        assert len(requests(log, "resources/subscribe")) == 1
