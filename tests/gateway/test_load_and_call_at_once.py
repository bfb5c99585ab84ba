"""A load and a call of what it loads that a client sends together: the call does not run on that load."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from .clients import ERAS, HANDSHAKE, gateway, modern_request
from .raw_stdio import raw_client

pytestmark = pytest.mark.both_paths

CONFIG = """
store: sqlite:///state.db
plugins:
  notes: {python: batch_notes}
agents:
  default: {discoverable: [notes]}
  other: {discoverable: [notes]}
"""
MODULE = '''
from pathlib import Path


def note_add(text: str) -> str:
    """Add a note."""
    with open(Path(__file__).with_name("ran.txt"), "a") as file:
        file.write(text + "\\\\n")
    return f"added {text}"
'''
LOAD: dict[str, Any] = {"name": "load_tools", "arguments": {"names": ["notes"]}}
CALL: dict[str, Any] = {"name": "note_add", "arguments": {"text": "milk"}}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "batch_notes.py").write_text(MODULE.replace("\\\\n", "\\n"))
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    return tmp_path / "pegboard.yaml"


def has_run(config: Path) -> bool:
    return config.with_name("ran.txt").exists()


def told_to_call_again(result: dict[str, Any]) -> bool:
    """Return whether an answer says that the call has not run, and what to do."""
    text = result["content"][0]["text"]
    return result["isError"] and text.endswith("Call it again.")


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_in_one_write_with_its_load_does_not_run(notes: Path, era: str) -> None:
    """D2: the first pair of a process, and every other; the same call again runs."""
    async with raw_client(notes, era) as client:
        await client.begin()
        for _ in range(3):
            pair = client.message("tools/call", LOAD), client.message("tools/call", CALL)
            load, call = await asyncio.wait_for(asyncio.gather(*await client.send(*pair)), 60)
            assert not load["result"].get("isError")
            assert told_to_call_again(call["result"])
            assert not has_run(notes)
            await client.call("unload_tools", {"names": ["notes"]})
        await client.call("load_tools", {"names": ["notes"]})
        assert await client.text("note_add", {"text": "milk"}) == "added milk"


async def test_the_load_of_another_agent_holds_no_call_up(notes: Path) -> None:
    """D2, S1: nor does one of another session."""
    async with raw_client(notes, HANDSHAKE) as client, raw_client(notes, HANDSHAKE, "--agent", "other") as other:
        for one in (client, other):
            await one.begin()
        await client.call("load_tools", {"names": ["notes"]})
        (call,) = await client.send(client.message("tools/call", CALL))
        (load,) = await other.send(other.message("tools/call", LOAD))
        assert (await call)["result"]["content"][0]["text"] == "added milk"
        assert not (await load)["result"].get("isError")


async def test_a_call_over_http_that_came_before_the_answer_of_its_load_does_not_run(notes: Path) -> None:
    """D2: two requests of one session, each on a connection of its own, that are in flight together."""
    async with gateway(notes) as running:
        first, second = [await asyncio.open_connection("127.0.0.1", int(urlsplit(running.url).port or 0)) for _ in "ab"]
        await answered(first, {"name": "unload_tools", "arguments": {"names": ["notes"]}})
        await answered(second, {"name": "unload_tools", "arguments": {"names": ["notes"]}})

        load, call = await asyncio.gather(answered(first, LOAD), answered(second, CALL))

        assert not load.get("isError")
        assert told_to_call_again(call)
        assert not has_run(notes)
        assert (await answered(second, CALL))["content"][0]["text"] == "added milk"
        for _, writer in (first, second):
            writer.close()
            await writer.wait_closed()


async def answered(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], params: dict[str, Any]
) -> dict[str, Any]:
    """Return the result of a call that is written to a connection at once."""
    reader, writer = connection
    body, headers = modern_request("tools/call", 1, **params)
    text = json.dumps(body)
    lines = {**headers, "host": "127.0.0.1", "content-length": str(len(text))}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n{text}".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    (length,) = [int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length:")]
    return json.loads(await reader.readexactly(length))["result"]
