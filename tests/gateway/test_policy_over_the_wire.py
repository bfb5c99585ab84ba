"""Policy text as a real client meets it: in the instructions, and in the answer to a load."""

import json
from pathlib import Path

import httpx2
import mcp_types as types
import pytest

from pegboard import Pegboard
from pegboard.gateway import serving

from .clients import ERAS, HANDSHAKE, Connected, connected, edit, gateway, modern_request


async def discovered(url: str) -> str:
    """Return the instructions that the 2026-07-28 era asks for on their own."""
    body, headers = modern_request("server/discover")
    async with httpx2.AsyncClient() as http:
        answer = (await http.post(url, json=body, headers=headers)).json()
    return answer["result"]["instructions"]


async def test_policy_reaches_a_client(config: Path) -> None:
    """T6, F2, G4: what is loaded from the start in the instructions, the rest with its load, and nothing twice."""
    edit(
        config,
        "agents:\n",
        "toolkits:\n"
        "  talking: {tools: [talk], policy: 'Say little with {tools}.'}\n"
        "  writing: {tools: [notes], policy: 'Write down with {tools}.'}\n"
        "agents:\n  polite: {dialect: pegboard, allowed_toolkits: [talking, writing], initial_toolkits: [talking]}\n",
    )
    async with gateway(config) as running, connected(f"{running.url}/polite", HANDSHAKE) as pegboard:
        told = pegboard.client.instructions or await discovered(f"{running.url}/polite")
        assert told.endswith("\n\nSay little with echo.")
        assert "Write down" not in told
        loaded = await pegboard.call("load_tools", names=["writing", "talking"])
        texts = [block.text for block in loaded.content if isinstance(block, types.TextContent)]
        assert json.loads(texts[1]) == {"policy": "Write down with note_list, note_add."}
        assert texts[2] == "Loaded now: writing."


TALKING = """
toolkits:
  talking: {tools: [talk], policy: 'Say little with {tools}.'}
  writing: {tools: [notes], policy: 'Write down with {tools}.'}
agents:
  polite: {dialect: pegboard, allowed_toolkits: [talking, writing], initial_toolkits: [talking]}
"""


async def last_block(pegboard: Connected) -> str:
    """Return the last text of the answer to a search."""
    answer = await pegboard.call("search_tools", queries=["something else"])
    return [block.text for block in answer.content if isinstance(block, types.TextContent)][-1]


@pytest.mark.parametrize("era", ERAS)
async def test_a_policy_that_changes_reaches_a_client_that_is_connected(config: Path, era: str) -> None:
    """T6, P4, F2: instructions are read once: the next meta-tool's answer has the new text, once, or that it ended."""
    edit(config, "agents:\n", TALKING.lstrip())
    async with (
        Pegboard.open(config) as board,
        serving(board, port=0) as url,
        connected(f"{url}/polite", era) as pegboard,
    ):
        assert "Say little with echo." in (pegboard.client.instructions or await discovered(f"{url}/polite"))
        await pegboard.names()
        assert "Say little" not in await last_block(pegboard)
        edit(config, "Say little with", "Say much with")
        await board.reload()
        assert "Say little" not in str(await pegboard.call("echo", text="no server's answer has it"))
        assert (await last_block(pegboard)).endswith("\nSay much with echo.")
        assert "Say much" not in await last_block(pegboard)
        await board.permissions.set("polite", "talking", False)
        gone = await last_block(pegboard)
        assert ("Say much" in gone, "no longer apply" in gone) == (False, True)
        await board.permissions.set("polite", "talking", True)
        assert (await last_block(pegboard)).endswith("\nSay much with echo.")


async def test_a_client_is_told_no_policy_that_it_read_when_it_connected(config: Path) -> None:
    """T6: what has changed before is in its instructions, and nothing comes twice."""
    edit(config, "agents:\n", TALKING.lstrip())
    async with Pegboard.open(config) as board, serving(board, port=0) as url:
        async with connected(f"{url}/polite", HANDSHAKE) as first:
            await first.names()
        edit(config, "Say little with", "Say much with")
        await board.reload()
        async with connected(f"{url}/polite", HANDSHAKE) as second:
            assert "Say much with echo." in (second.client.instructions or "")
            await second.names()
            assert "Say much" not in await last_block(second)
