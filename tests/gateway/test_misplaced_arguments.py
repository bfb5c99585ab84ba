"""Arguments over the wire that would not reach their tool, and arguments that no schema names."""

import json
from pathlib import Path

import pytest

from .clients import MODERN
from .raw_stdio import RawClient, RawServer, raw_client

pytestmark = [pytest.mark.both_paths, pytest.mark.cover(1)]
GIVEN = {"before": "2020", "dry_run": True}


async def ready_to_call(client: RawClient) -> None:
    """Begin a conversation in which the tool is loaded."""
    await client.begin()
    await client.tools()
    await client.text("load_tools", {"names": ["up"]})


def write(folder: Path, server: RawServer) -> Path:
    server.offer("purge")
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"up": server.entry}}))
    return path


async def test_a_call_whose_arguments_would_be_lost_reaches_no_server(tmp_path: Path) -> None:
    """X2: the answer has the call to make; that runs with all of them."""
    server = RawServer(tmp_path)
    async with raw_client(write(tmp_path, server), MODERN) as client:
        await ready_to_call(client)
        for written in ({"parameters": GIVEN}, GIVEN, {"arguments": {"before": "2020"}, "dry_run": True}):
            refused = await client.call("call_tool", {"name": "up__purge", **written})
            assert refused["isError"]
            text = refused["content"][0]["text"]
            right = json.loads(text.partition("Write: call_tool ")[2])
            assert right == {"name": "up__purge", "arguments": GIVEN}
        assert server.answered("tools/call") == 0
        assert await client.text("call_tool", right) == f"ran with {json.dumps(GIVEN)}"


async def test_an_argument_that_the_schema_of_a_server_does_not_name_is_sent_to_it(tmp_path: Path) -> None:
    """X2, G7: where the schema lets it through, by its name and through `call_tool`."""
    server, given = RawServer(tmp_path), {"before": "2020", "colour": "red"}
    async with raw_client(write(tmp_path, server), MODERN) as client:
        await ready_to_call(client)
        expected = f"ran with {json.dumps(given)}"
        assert await client.text("up__purge", given) == expected
        assert await client.text("call_tool", {"name": "up__purge", "arguments": given}) == expected
