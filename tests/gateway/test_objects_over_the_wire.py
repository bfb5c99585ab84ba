"""What plugins keep in objects belongs to someone, for clients of either era (G9)."""

import asyncio
import json
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from board.ten_plugins import KEEPERS, PRINCIPALS, SCOPES, Call, configure, secret

from .clients import HANDSHAKE, MODERN, Connected, connected, gateway

TOKENS = {name: {"token": f"token-of-{name}", "agents": ["*"]} for name in PRINCIPALS}
ROUNDS = 20


def caller(client: Connected) -> Call:
    async def call(name: str, arguments: dict[str, Any]) -> str:
        result = await client.client.call_tool(name, arguments)
        return " ".join(getattr(block, "text", "") for block in result.content)

    return call


async def test_no_client_reads_what_one_of_another_principal_keeps(tmp_path: Path) -> None:
    """G9: ten plugins, four scopes, two principals."""
    choose = random.Random(9)
    async with gateway(configure(tmp_path, tokens=TOKENS)) as running, AsyncExitStack() as stack:
        calls = {
            (who, scope): caller(
                await stack.enter_async_context(connected(f"{running.url}/{scope}", MODERN, token=f"token-of-{who}"))
            )
            for who in PRINCIPALS
            for scope in SCOPES
        }
        for number in range(ROUNDS):
            keeper = KEEPERS[list(KEEPERS)[number % len(KEEPERS)]]
            ada, bob = (calls[who, choose.choice(list(SCOPES))] for who in PRINCIPALS)
            await asyncio.gather(keeper.keep(ada, "ada", number), keeper.look(bob))
            assert secret("ada") not in await keeper.look(bob)
            assert (secret("ada") in await keeper.look(ada)) is keeper.holds


@pytest.mark.parametrize(
    ("instance", "found"), [("session", [True, False]), ("client", [False, True]), ("principal", [True, True])]
)
async def test_a_client_of_the_handshake_era_has_an_object_of_its_own_where_the_plugin_says_so(
    tmp_path: Path, instance: str, found: list[bool]
) -> None:
    """G9: read by another client with the same session, and by the same client in another session."""
    path = configure(tmp_path)
    text = json.loads(path.read_text())
    text["plugins"]["cart"]["instance"] = instance
    path.write_text(json.dumps(text))
    async with gateway(path) as running, connected(f"{running.url}/shared?session=s", HANDSHAKE) as first:
        await first.call("add", item="ring")
        async with connected(f"{running.url}/shared?session=s", HANDSHAKE) as second:
            there = "ring" in await second.text("show")
        elsewhere = "ring" in await first.text("show", {"pegboard/session": "t"})
    assert [there, elsewhere] == found


async def test_clients_without_a_connection_of_their_own_are_told_apart_by_their_sessions(tmp_path: Path) -> None:
    """G9: in the 2026-07-28 era."""
    path = configure(tmp_path)
    text = json.loads(path.read_text())
    text["plugins"]["cart"]["instance"] = "client"
    path.write_text(json.dumps(text))
    async with gateway(path) as running, connected(f"{running.url}/shared?session=s", MODERN) as client:
        await client.call("add", item="ring")
        assert "ring" in await client.text("show")
        assert "ring" not in await client.text("show", {"pegboard/session": "t"})
