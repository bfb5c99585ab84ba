"""A raw server and a raw client: what passes between them around a call, in whatever shape either has it (G7, G8)."""

import asyncio
import itertools
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .clients import HANDSHAKE, MODERN, gateway, modern_request, until
from .raw_stdio import RawClient, raw_client

pytestmark = pytest.mark.cover(1)

SERVER = '''
"""Does around a call what its argument `does` says, and writes down each message that it gets."""

import json, sys, threading, time

log = open(sys.argv[1], "a", buffering=1)
writing = threading.Lock()
HELD = []


def write(message):
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def progress(token, **more):
    write({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, **more}})


def done(message, text="done"):
    write({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})


def announce():
    while True:
        write({"method": "notifications/tools/list_changed"})
        time.sleep(0.1)


def call(message):
    params = message["params"]
    does, own = params["arguments"]["does"], params.get("_meta", {}).get("progressToken")
    match does:
        case "progress":
            progress(own, total=2, message="one")
            progress("made up")
            progress(2**53)
            done(message)
            progress(own, message="too late")
        case "hold":
            HELD.append(message)
        case "release":
            for held in HELD:
                done(held, "late")
            done(message)
        case "exit":
            done(message)
            sys.exit(0)
        case "announce":
            threading.Thread(target=announce, daemon=True).start()
            done(message)
        case "burst":
            for _ in range(300):
                write({"method": "notifications/tools/list_changed"})
            done(message)
        case "ask":
            HELD[:] = [message]
            write({"id": "asked", "method": params["arguments"]["method"], "params": params["arguments"]["params"]})
        case _:
            done(message)


for line in sys.stdin:
    message = json.loads(line)
    log.write(line)
    match message.get("method"):
        case "initialize":
            about = {"serverInfo": {"name": "raw", "version": "1"}, "capabilities": {"tools": {"listChanged": True}}}
            version = message["params"]["protocolVersion"]
            write({"id": message["id"], "result": {"protocolVersion": version, **about}})
        case "tools/list":
            write({"id": message["id"], "result": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}})
        case "tools/call":
            call(message)
        case None:
            done(HELD.pop(), json.dumps(message["result"]))
        case method if "id" in message:
            write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
'''


class Acting:
    """A server that does what its calls say, and what it was sent."""

    def __init__(self, folder: Path) -> None:
        (program := folder / "acting.py").write_text(SERVER)
        self._log = folder / "acting.log"
        self.config = folder / "pegboard.yaml"
        server = {"command": sys.executable, "args": [str(program), str(self._log)]}
        document = {"store": "memory:", "servers": {"up": server}, "agents": {"default": {"tools": ["up"]}}}
        self.config.write_text(json.dumps(document))

    def got(self, method: str) -> list[dict[str, Any]]:
        """Return the messages of a method that it was sent."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [message for message in map(json.loads, lines) if message.get("method") == method]


@pytest.fixture
def acting(tmp_path: Path) -> Acting:
    return Acting(tmp_path)


async def act(client: RawClient, does: str, **more: Any) -> str:
    return await client.text("up__act", {"does": does, **more})


@pytest.mark.parametrize("era", [HANDSHAKE, MODERN])
@pytest.mark.parametrize("token", [0, "", "step/1", 2**53])
async def test_progress_comes_under_the_token_of_the_client_and_no_other(
    acting: Acting, era: str, token: int | str
) -> None:
    """G7: one that is false in Python is one; a token that is made up, and what comes after the end, reach no one."""
    async with raw_client(acting.config, era) as client:
        await client.begin()
        await until(lambda: client.is_listed("up__act"))
        params = {"name": "up__act", "arguments": {"does": "progress"}, "_meta": {"progressToken": token}}
        request = client.message("tools/call", params)
        if era == MODERN:
            request["params"]["_meta"]["progressToken"] = token
        (coming,) = await client.send(request)
        assert (await asyncio.wait_for(coming, 60))["result"]["content"][0]["text"] == "done"
        assert await act(client, "nothing") == "done"
        said = [one["params"] for one in client.notifications if one["method"] == "notifications/progress"]
    assert said == [{"progressToken": token, "progress": 1, "total": 2, "message": "one"}]


async def test_what_a_client_did_not_ask_for_does_not_reach_it(acting: Acting) -> None:
    """G7: progress without a token of the client."""
    async with raw_client(acting.config, HANDSHAKE) as client:
        await client.begin()
        await until(lambda: client.is_listed("up__act"))
        assert await act(client, "progress") == "done"
        assert await act(client, "nothing") == "done"
    assert "notifications/progress" not in client.notes


@pytest.mark.parametrize("era", [HANDSHAKE, MODERN])
async def test_a_call_is_taken_back_at_the_server_under_its_id_there(acting: Acting, era: str) -> None:
    """G7: the server lives, its late answer goes nowhere, and the next call is made."""
    async with raw_client(acting.config, era) as client:
        await client.begin()
        await until(lambda: client.is_listed("up__act"))
        request = client.message("tools/call", {"name": "up__act", "arguments": {"does": "hold"}})
        await client.send(request)
        await until(lambda: acting.got("tools/call") != [])
        taken_back = {"method": "notifications/cancelled", "params": {"requestId": request["id"], "reason": "enough"}}
        await client.send({"jsonrpc": "2.0", **taken_back})
        await until(lambda: acting.got("notifications/cancelled") != [])
        (made,), (cancelled,) = acting.got("tools/call"), acting.got("notifications/cancelled")
        assert cancelled["params"]["requestId"] == made["id"]
        assert await act(client, "release") == "done"
        assert len(acting.got("initialize")) == 1


async def test_a_server_that_ends_after_each_answer_is_started_for_each_call(acting: Acting) -> None:
    """G8: no call is lost, and none is made twice."""
    async with raw_client(acting.config, HANDSHAKE) as client:
        await client.begin()
        await until(lambda: client.is_listed("up__act"))
        for _ in range(3):
            assert await act(client, "exit") == "done"
    assert len(acting.got("tools/call")) == 3


@pytest.mark.parametrize("does", ["announce", "burst"])
async def test_a_server_that_announces_without_end_keeps_no_call_waiting(acting: Acting, does: str) -> None:
    """G8: its list is read no more often than it says so, one time after the other, and a burst costs a few lists."""
    async with raw_client(acting.config, HANDSHAKE) as client:
        await client.begin()
        await until(lambda: client.is_listed("up__act"))
        before = len(acting.got("tools/list"))
        assert await act(client, does) == "done"
        for _ in range(20):
            assert await act(client, "nothing") == "done"
        await until(lambda: len(acting.got("tools/list")) > before)
        assert len(acting.got("tools/list")) - before <= 30
        assert client.heard_of_changes() <= 2, "the list of the client is as it was"


FORM = {
    "message": "Which?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "one": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "b"},
            "two": {"type": "string", "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["p", "q"]}, "minItems": 1, "default": ["q"]},
            "count": {"type": "integer", "minimum": 0, "default": 0},
            "sure": {"type": "boolean", "default": False},
        },
        "required": ["one"],
    },
}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say\u2028one."}}],
    "maxTokens": 7,
    "temperature": 0.0,
    "stopSequences": [],
    "metadata": {"own": {"deep": [None, 0, ""]}},
}
REPLY = {"role": "assistant", "content": {"type": "text", "text": ""}, "model": "m", "stopReason": "own reason"}


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        ("elicitation/create", FORM, {"action": "accept", "content": {"one": "b", "many": [], "count": 0}}),
        ("elicitation/create", FORM, {"action": "decline"}),
        ("sampling/createMessage", SAMPLE, REPLY),
    ],
)
async def test_a_question_during_a_call_and_its_answer_pass_as_they_are(
    acting: Acting, method: str, params: dict[str, Any], answer: dict[str, Any]
) -> None:
    """G7: defaults, names of choices, arrays, empty values and fields of their own."""
    async with raw_client(acting.config, HANDSHAKE) as client:
        client.says[method] = answer
        hello = {"capabilities": {"elicitation": {}, "sampling": {}}, "clientInfo": {"name": "raw", "version": "1"}}
        await client.request("initialize", {"protocolVersion": "2025-11-25", **hello})
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await until(lambda: client.is_listed("up__act"))
        said = json.loads(await act(client, "ask", method=method, params=params))
    (asked,) = client.asked
    assert asked["params"] == params
    assert said == answer


HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\n"
)


def bodies() -> Iterator[tuple[str, bytes, bytes]]:
    """Yield ways to send one request: their names, the heads that they add and the body."""
    body = json.dumps(modern_request("tools/list")[0]).encode()
    length = f"content-length: {len(body)}\r\n".encode()
    cut = [body[at : at + 7] for at in range(0, len(body), 7)]
    chunked = b"".join(f"{len(one):x}\r\n".encode() + one + b"\r\n" for one in cut) + b"0\r\n\r\n"
    yield "whole", length, body
    yield "chunked", b"transfer-encoding: chunked\r\n", chunked
    yield (
        "chunked with extensions and trailers",
        b"Transfer-Encoding: Chunked\r\n",
        chunked.replace(b"\r\n0\r\n\r\n", b"\r\n0;end=1\r\nx-sum: 1\r\n\r\n"),
    )
    yield "expects to be told to go on", length + b"expect: 100-continue\r\n", body


@pytest.mark.parametrize(("how", "head", "body"), [*bodies()], ids=[how for how, _, _ in bodies()])
async def test_a_body_arrives_however_it_is_sent(acting: Acting, how: str, head: bytes, body: bytes) -> None:
    """G1: with a length, in chunks, or once the client was told to go on."""
    _, headers = modern_request("tools/list")
    more = b"".join(
        f"{name}: {value}\r\n".encode() for name, value in headers.items() if name.lower().startswith("mcp")
    )
    async with gateway(acting.config) as running:
        address = running.base.removeprefix("http://")
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), family=socket.AF_INET)
        writer.write(HEAD.replace(b"HOST", address.encode()) + more + head + b"\r\n")
        if b"expect" in head:
            assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 100")
        writer.write(body)
        await writer.drain()
        lines = (await asyncio.wait_for(reader.readline(), 30) for _ in itertools.count())
        assert [line async for line in _until_status(lines)][-1].startswith(b"HTTP/1.1 200")
        writer.close()


async def _until_status(lines: Any) -> Any:
    """Yield lines up to the first status that is not that of going on."""
    async for line in lines:
        yield line
        if line.startswith(b"HTTP/1.1 ") and not line.startswith(b"HTTP/1.1 100"):
            return


async def test_a_preflight_grants_a_page_nothing(acting: Acting) -> None:
    """G2: a page of this machine is a page: it is told no origin, no method and no header that it may use."""
    async with gateway(acting.config) as running:
        host, _, port = running.base.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        asks = "access-control-request-method: POST\r\naccess-control-request-headers: content-type"
        origin = f"origin: {running.base}"
        writer.write(f"OPTIONS /mcp HTTP/1.1\r\nhost: {host}:{port}\r\n{origin}\r\n{asks}\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        writer.close()
    assert head.startswith(b"HTTP/1.1 405")
    assert b"access-control" not in head.lower()
