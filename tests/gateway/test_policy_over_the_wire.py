"""Policy text as a real client meets it: in the instructions, and in the answer to a load."""

import json
from pathlib import Path

import httpx2
import mcp_types as types

from .clients import HANDSHAKE, connected, edit, gateway, modern_request


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
