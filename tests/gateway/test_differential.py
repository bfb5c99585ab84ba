"""Calls that go around the SDK are answered as the SDK answers them: whole responses, both eras, both ways in."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from .clients import ERAS, MODERN, gateway, process
from .test_stdio import start

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}
HANDSHAKE_VERSION = "2025-11-25"
SERVERS = Path(__file__).resolve().parent.parent / "servers"
AROUND_THE_WAY_AROUND = {"another": "key"}
"""What the SDK ignores, and what is not plain enough to go around it."""

Message = dict[str, Any]
Ask = Callable[..., Awaitable[Any]]

CALLS: dict[str, Message] = {
    "a tool": {"name": "echo", "arguments": {"text": "hej"}},
    "a number as text for its id": {"name": "echo", "arguments": {"text": "ü \U0001f600 \u0000 \\ud800"}},
    "bad arguments": {"name": "echo", "arguments": {"text": 3}},
    "no arguments": {"name": "echo"},
    "arguments that nobody asked for": {"name": "echo", "arguments": {"text": "x", "more": None}},
    "arguments that are null": {"name": "echo", "arguments": None},
    "arguments that are a list": {"name": "echo", "arguments": ["x"]},
    "an unknown tool": {"name": "nothing", "arguments": {}},
    "a name that is empty": {"name": ""},
    "a name that is long": {"name": "n" * 500},
    "a name that is no text": {"name": 3},
    "no name": {"arguments": {}},
    "a meta-tool": {"name": "search_tools", "arguments": {"queries": ["list the notes"]}},
    "a load": {"name": "load_tools", "arguments": {"names": ["notes"]}},
    "a load of nothing": {"name": "load_tools", "arguments": {"names": ["what"]}},
    "a tool that is not loaded": {"name": "note_add", "arguments": {"text": "x"}},
    "a call through": {"name": "call_tool", "arguments": {"name": "echo", "arguments": {"text": "x"}}},
    "a refused call through": {"name": "call_read_only_tool", "arguments": {"name": "echo", "arguments": {}}},
    "a tool of a server": {"name": "call_tool", "arguments": {"name": "up__add", "arguments": {"a": 1, "b": 2}}},
    "media of a server": {"name": "call_tool", "arguments": {"name": "up__media"}},
    "an error of a server": {"name": "call_tool", "arguments": {"name": "up__fail"}},
    "a session that is no text": {"name": "echo", "_meta": {"pegboard/session": 3}},
    "a turn that is empty": {"name": "echo", "_meta": {"pegboard/turn": ""}},
    "a turn": {"name": "echo", "arguments": {"text": "x"}, "_meta": {"pegboard/turn": "t"}},
    "other keys": {"name": "echo", "arguments": {"text": "x"}, "_meta": {"else": {"where": [1.5, None]}}},
    "keys beside": {"name": "echo", "arguments": {"text": "x"}, "else": 1},
    "progress": {"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": "p"}},
    "a token that is none": {"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": [1]}},
    "no version": {"name": "echo", "_meta": {"io.modelcontextprotocol/protocolVersion": None}},
    "an unknown version": {"name": "echo", "_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}},
    "capabilities that are none": {"name": "echo", "_meta": {"io.modelcontextprotocol/clientCapabilities": 3}},
    "a client without a name": {"name": "echo", "_meta": {"io.modelcontextprotocol/clientInfo": {"version": "1"}}},
}
HEADERS: dict[str, dict[str, str | None]] = {
    "another name": {"mcp-name": "else"},
    "no name": {"mcp-name": None},
    "a name in base64": {"mcp-name": "=?base64?ZWNobw==?="},
    "another method": {"mcp-method": "tools/list"},
    "no method": {"mcp-method": None},
    "an unknown version": {"mcp-protocol-version": "2031-01-01"},
    "an empty session": {"mcp-session-id": "nobody's"},
    "only events": {"accept": "text/event-stream"},
    "anything": {"accept": "*/*"},
    "only JSON": {"accept": "application/json"},
    "another content": {"content-type": "text/plain"},
    "an origin": {"origin": "https://example.com"},
    "a host": {"host": "example.com"},
}


def request(params: Message, *, era: str, session: str, number: int | str) -> Message:
    """Return one request; its own description goes before the envelope of its era."""
    given = params.get("_meta", {})
    meta = {**(ENVELOPE if era == MODERN else {}), "pegboard/session": session, **given}
    meta = {key: value for key, value in meta.items() if value is not None}
    if era != MODERN and any(key.startswith("io.") for key in given):
        meta = {"pegboard/session": session}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
    return {**body, "params": {**params, "_meta": meta}}


def headers_of(body: Message) -> dict[str, str]:
    name = body["params"].get("name")
    said = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    said |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"}
    return {**said, "mcp-name": name} if isinstance(name, str) else said


@asynccontextmanager
async def by_http(config: Path, era: str) -> AsyncIterator[Ask]:
    async with (
        gateway(config) as running,
        httpx2.AsyncClient(timeout=60) as http,
        open_session(http, running.url, era) as ask,
    ):
        yield ask


@asynccontextmanager
async def open_session(http: httpx2.AsyncClient, url: str, era: str) -> AsyncIterator[Ask]:
    """Yield what sends one raw request and returns all of its answer; headers may be changed or omitted (None).

    ``text`` is the body as it is written, else it is that of ``json.dumps``.
    """
    fixed = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if era != MODERN:
        opened = await http.post(url, json=hello(), headers=fixed)
        fixed |= {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": HANDSHAKE_VERSION}
        await http.post(url, json=ready(), headers=fixed)

    async def ask(body: Message, text: str | None = None, **changed: str | None) -> Any:
        headers = {**(headers_of(body) if era == MODERN else fixed), **changed}
        answer = await http.post(url, content=text or json.dumps(body), headers={k: v for k, v in headers.items() if v})
        kept = (answer.status_code, answer.headers.get("mcp-session-id"), answer.headers.get("content-type"))
        if (kept[2] or "").startswith("text/event-stream"):
            lines = [line[5:].strip() for line in answer.text.splitlines() if line.startswith("data:")]
            return kept[:2], "events", [said for line in lines if not is_of_a_list(said := json.loads(line))]
        whole = (kept[2] or "").startswith("application/json")
        return kept, json.loads(answer.text) if whole else answer.text

    yield ask


@asynccontextmanager
async def by_stdio(config: Path, era: str) -> AsyncIterator[Ask]:
    process = await start(config)
    assert process.stdin is not None
    assert process.stdout is not None

    async def ask(body: Message, text: str | None = None) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write((text or json.dumps(body)).encode() + b"\n")
        said: list[Message] = []
        while not said or said[-1].get("id", "") not in (body["id"], None):
            said.append(json.loads(await process.stdout.readline()))
        return [message for message in said if not is_of_a_list(message)]

    if era == MODERN:
        await ask({**request({}, era=era, session="s", number=1), "method": "tools/list"})
    else:
        await ask(hello())
        process.stdin.write(json.dumps(ready()).encode() + b"\n")
    try:
        yield ask
    finally:
        process.stdin.close()
        assert await process.wait() == 0


def is_of_a_list(message: Message) -> bool:
    """Return whether a message says that tools have changed: what is found out in the background does at any time."""
    return message.get("method") == "notifications/tools/list_changed"


def hello() -> Message:
    params = {"protocolVersion": HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def ready() -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize("way", [by_http, by_stdio], ids=["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
async def test_every_call_is_answered_alike(config: Path, era: str, way: Any) -> None:
    """G4, G5, G7: the way around the SDK and the way through it cannot be told apart."""
    async with way(config, era) as ask:
        # Its tools are known from now on: what is not found says so, too.
        await ask(request(CALLS["a tool of a server"], era=era, session="before", number=99))
        different = []
        for number, (what, params) in enumerate(CALLS.items(), 100):
            named = str(number) if what.startswith("a number") else number
            around = await ask(request(params, era=era, session=f"a{number}", number=named))
            through = await ask(
                {**request(params, era=era, session=f"b{number}", number=named), **AROUND_THE_WAY_AROUND}
            )
            if around != through:
                different.append(f"{what}:\n  around  {around}\n  through {through}")
        assert not different, "\n".join(different)


@pytest.mark.parametrize("way", [by_http, by_stdio], ids=["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
async def test_what_a_client_says_beside_a_call_arrives_as_it_said_it(tmp_path: Path, era: str, way: Any) -> None:
    """G7: what is equal in Python, or in another order, is not taken for what came before."""
    said: list[Any] = [1, True, 1.0, 1, 0, False, -0.0, {"a": [1], "b": 0}, {"b": False, "a": [True]}, None]
    server = {"command": sys.executable, "args": [str(SERVERS / "plain_server.py")]}
    config = tmp_path / "pegboard.yaml"
    config.write_text(json.dumps({"servers": {"up": server}, "agents": {"default": {"tools": ["up"]}}}))
    heard = []
    async with way(config, era) as ask:
        for number, value in enumerate(said, 100):
            params = {"name": "up__meta", "arguments": {}, "_meta": {"example.org/x": value, "example.org/y": ""}}
            body = request(params, era=era, session="s", number=number)
            body["params"]["_meta"]["example.org/x"] = value
            message = next(m for m in _messages(await ask(body)) if m.get("id") == number)
            heard.append(json.loads(message["result"]["content"][0]["text"])["example.org/x"])
    assert json.dumps(heard) == json.dumps(said, sort_keys=True)


def _messages(found: Any) -> Iterator[Message]:
    """Yield the messages in an answer of any shape."""
    if isinstance(found, dict):
        yield found
    elif isinstance(found, list | tuple):
        for one in found:
            yield from _messages(one)


async def test_headers_that_do_not_fit_are_refused_alike(config: Path) -> None:
    """G2, G4: header mismatches, hosts, origins and media types, in the 2026-07-28 era."""
    async with by_http(config, MODERN) as ask:
        different = []
        for number, (what, changed) in enumerate(HEADERS.items(), 200):
            body = request({"name": "echo", "arguments": {"text": "x"}}, era=MODERN, session="s", number=number)
            around = await ask(body, **changed)
            through = await ask({**body, **AROUND_THE_WAY_AROUND}, **changed)
            if around != through:
                different.append(f"{what}:\n  around  {around}\n  through {through}")
        assert not different, "\n".join(different)


@pytest.mark.parametrize("era", ERAS)
async def test_plain_calls_go_around_the_sdk(config: Path, era: str) -> None:
    """G1: and what is not plain does not; `/metrics` counts both."""
    async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
        async with open_session(http, running.url, era) as ask:
            for number in range(3):
                await ask(request({"name": "echo", "arguments": {"text": "x"}}, era=era, session="s", number=number))
            odd = request({"name": "echo", "arguments": {"text": "x"}}, era=era, session="s", number=9)
            await ask({**odd, **AROUND_THE_WAY_AROUND})
        counted = (await http.get(f"{running.base}/metrics")).text.splitlines()
    assert 'pegboard_requests_total{route="direct"} 3' in counted
    assert 'pegboard_requests_total{route="sdk"} 1' in counted
    assert 'pegboard_calls_total{agent="default",outcome="ok"} 4' in counted


@pytest.mark.parametrize("era", ERAS)
async def test_with_the_fast_path_off_every_call_goes_by_the_sdk(config: Path, era: str) -> None:
    """G1: `serve --no-fast-path`."""
    async with process(config, "--no-fast-path") as running, httpx2.AsyncClient(timeout=60) as http:
        async with open_session(http, running.url, era) as ask:
            for number in range(3):
                await ask(request({"name": "echo", "arguments": {"text": "x"}}, era=era, session="s", number=number))
        counted = (await http.get(f"{running.base}/metrics")).text.splitlines()
    assert 'pegboard_requests_total{route="direct"} 0' in counted
    assert 'pegboard_requests_total{route="sdk"} 3' in counted


@pytest.mark.parametrize("way", ["--stdio", "--port=0"])
async def test_with_the_fast_path_off_nothing_of_it_is_imported(config: Path, way: str) -> None:
    """G1: it is a guest, without which everything is served."""
    line = json.dumps(request({"name": "echo", "arguments": {"text": "hej"}}, era=MODERN, session="s", number=1))
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "pegboard",
        "serve",
        "--config",
        str(config),
        way,
        "--no-fast-path",
    ]
    child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=2**24)
    assert child.stderr is not None
    if way == "--stdio":
        out, err = await child.communicate(line.encode() + b"\n")
        assert b"hej" in out
    else:
        err = b""
        while b"Pegboard serves" not in err:
            err += await child.stderr.readline()
        child.terminate()
        err += (await child.communicate())[1]
    imported = err.decode()
    assert "pegboard.gateway.handlers.server" in imported
    assert "pegboard.gateway.fast" not in imported
