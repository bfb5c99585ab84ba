"""What a client's model was sent, as far as a gateway sees it, is on the bill."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.assembly import Pegboard
from pegboard.core.model.delivery import GATEWAY
from sdk_servers import pegboard_command

from .clients import ADA, HANDSHAKE, MODERN, connected, process, spawn


async def bill_of(config: Path, *options: str) -> Any:
    """Return what the command prints as JSON, once the gateway has ended."""
    command = pegboard_command("bill", "--config", str(config), "--json", *options)
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await child.communicate()
    return json.loads(printed)


async def converse(client: Any) -> None:
    """List, search, load, and call."""
    await client.list_tools()
    await client.call_tool("search_tools", {"queries": ["add a note"]})
    await client.call_tool("load_tools", {"names": ["notes"]})
    for text in ("a", "b"):
        await client.call_tool("call_tool", {"name": "note_add", "arguments": {"text": text}})
    await client.call_tool("echo", {"text": "x"})


@pytest.mark.parametrize(("era", "transport"), [(MODERN, "http"), (HANDSHAKE, "stdio")])
async def test_every_call_of_a_client_was_a_request_of_its_model(config: Path, era: str, transport: str) -> None:
    """F4: with the tokens of the list that it got; meta-tools, searches and loads are counted beside."""
    if transport == "stdio":
        async with connected(spawn(config, "--agent", "other", "--session", "default"), era) as with_stdio:
            await converse(with_stdio.client)
    else:
        async with process(config) as running, connected(f"{running.url}/other", era) as with_http:
            await converse(with_http.client)
    (row,) = (await bill_of(config, "--by", "session"))["rows"]
    assert (row["principal"], row["agent"]) == ("local", "other")
    assert (row["requests"], row["calls"], row["loads"], row["searches"], row["meta_calls"]) == (
        5,
        3,
        row["loads"],
        1,
        2,
    )
    assert row["loads"] >= 1
    assert row["tokens"] > 0
    assert (row["unknown"], row["denials"]) == (0, 0)


async def test_in_the_modern_era_the_list_is_the_same_for_every_request(config: Path) -> None:
    """F4, G4: the tokens of the tools that were listed, as often as the model called."""
    async with Pegboard.open(config) as board:
        await board.ready("talk", "notes")
        session = await board.session(agent="other", session_id="default", host=GATEWAY)
        costs = (await session.surface(loaded=False)).tokens
        assert costs.saved is not None
    async with process(config) as running, connected(f"{running.url}/other", MODERN) as modern:
        elsewhere: Any = {"pegboard/session": "where the plugin of notes is asked for its tools"}
        await modern.client.call_tool("search_tools", {"queries": ["add a note"]}, meta=elsewhere)
        for _ in range(4):
            await modern.client.call_tool("echo", {"text": "x"})
    total = (await bill_of(config, "--agent", "other", "--session", "default"))["totals"]
    assert (total["requests"], total["tokens"], total["saved"]) == (4, 4 * costs.total, 4 * costs.saved)


TOGETHER = '''
import asyncio

called = []


async def echo(text: str) -> str:
    """Return the text once six calls have come."""
    called.append(text)
    while len(called) < 6:
        await asyncio.sleep(0.01)
    return text
'''


async def test_calls_that_come_together_came_of_one_request(config: Path) -> None:
    """F4: a model that asks for several calls at once was sent one list."""
    (config.parent / "talk_tools.py").write_text(TOGETHER)
    async with process(config) as running, connected(running.url, MODERN) as modern:
        await asyncio.gather(*(modern.client.call_tool("echo", {"text": str(number)}) for number in range(6)))
    total = (await bill_of(config))["totals"]
    assert (total["calls"], total["requests"]) == (6, 1)


async def test_every_principal_has_a_bill(config_with_tokens: Path) -> None:
    """F4, G2: by the token, never by what the client sends."""
    async with process(config_with_tokens) as running, connected(running.url, MODERN, token=ADA) as ada:
        await ada.client.call_tool("echo", {"text": "x"})
    found = await bill_of(config_with_tokens, "--by", "session", "--principal", "ada")
    assert [(row["principal"], row["calls"]) for row in found["rows"]] == [("ada", 1)]
    assert (await bill_of(config_with_tokens, "--principal", "bob"))["rows"] == []
