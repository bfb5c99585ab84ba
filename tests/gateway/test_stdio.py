"""What a process that a client starts has to bear."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from .clients import modern_request, serve

GARBAGE = [b"", b"   ", b"{", b"not json", b"\xff\xfe\x00", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"[" * 100_000]


async def start(config: Path, *options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *serve(config, "--stdio"), *options,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=2**24,
    )  # fmt: skip


def line(method: str, number: int, **params: Any) -> bytes:
    return json.dumps(modern_request(method, number, **params)[0]).encode() + b"\n"


async def answers(process: asyncio.subprocess.Process, sent: bytes) -> tuple[list[dict[str, Any]], str]:
    """Return every line that comes back for an input that ends."""
    out, err = await asyncio.wait_for(process.communicate(sent), 30)
    assert process.returncode == 0, err
    return [json.loads(text) for text in out.splitlines()], err.decode()


async def test_requests_that_are_piped_in_are_answered_before_it_ends(config: Path) -> None:
    """G1: it ends when its input does, and not before it has said what it knows."""
    sent = line("tools/list", 1) + line("tools/call", 2, name="echo", arguments={"text": "hej"})
    said, err = await answers(await start(config), sent)
    assert {answer["id"] for answer in said} == {1, 2}
    assert "hej" in json.dumps(said)
    assert err == ""


@pytest.mark.both_paths
async def test_garbage_is_answered_and_the_gateway_goes_on(config: Path) -> None:
    """G1: as JSON-RPC wants it; empty lines are nothing."""
    good = line("tools/call", 7, name="echo", arguments={"text": "still here"})
    half = line("tools/list", 8)[:40]
    said, err = await answers(await start(config), b"\n".join(GARBAGE) + b"\n" + good + half)
    errors = [answer["error"]["code"] for answer in said if "error" in answer]
    assert sorted(set(errors)) == [-32700, -32600]
    assert len(errors) == len(GARBAGE) - 2 + 1
    assert [answer["id"] for answer in said if "result" in answer] == [7]
    assert "Traceback" not in err


async def test_a_line_that_is_too_long_is_refused_alone(config: Path) -> None:
    """G1: the next one is read as usual."""
    long = line("tools/call", 1, name="echo", arguments={"text": "x" * 17_000_000})
    said, _ = await answers(await start(config), long + line("tools/call", 2, name="echo", arguments={"text": "y"}))
    assert said[0]["error"]["code"] == -32700
    assert said[1]["id"] == 2


async def test_unknown_methods_get_an_error(config: Path) -> None:
    """G1: with the code of JSON-RPC, in both eras."""
    said, _ = await answers(await start(config), line("tools/nothing", 1))
    assert said[0]["error"]["code"] == -32601
    said, _ = await answers(await start(config), b'{"jsonrpc":"2.0","id":"a","method":"tools/list"}\n')
    assert said[0]["error"]["code"] == -32602


async def test_what_a_tool_prints_stays_out_of_the_protocol(config: Path) -> None:
    """G1: it goes to standard error."""
    sent = line("tools/call", 1, name="load_tools", arguments={"names": ["notes"]})
    await answers(await start(config), sent)
    said, err = await answers(await start(config), line("tools/call", 2, name="note_add", arguments={"text": "x"}))
    assert said[0]["result"]["content"][0]["text"] == "added x"
    assert err == "to standard output\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_on_a_signal_though_its_input_is_open(config: Path, number: signal.Signals) -> None:
    """G1: with exit code 0."""
    process = await start(config)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line("tools/list", 1))
    await process.stdout.readline()
    process.send_signal(number)
    assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_an_unknown_agent_is_one_clear_error(config: Path) -> None:
    """G1: on standard error, and nothing on standard output."""
    process = await start(config, "--agent", "nobody")
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out) == (3, b"")
    assert err.decode().startswith("pegboard: There is no agent 'nobody'.")
