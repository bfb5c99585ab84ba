"""The first answers on stdio come before the SDK is imported, and are those of the SDK."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard.assembly import Pegboard
from sdk_servers import sdk_command

from .clients import ERAS, MODERN, UPSTREAM, modern_request
from .test_differential import AROUND_THE_WAY_AROUND, HANDSHAKE_VERSION, hello, ready
from .test_stdio import answers, start

Message = dict[str, Any]


def first_requests(era: str) -> list[Message]:
    """Return what a client of this era sends first."""
    if era == MODERN:
        return [modern_request("server/discover", 1)[0], modern_request("tools/list", 2)[0]]
    return [hello(), ready(), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]


def typed(messages: list[Message]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@pytest.mark.parametrize("era", ERAS)
async def test_early_answers_are_those_of_the_sdk(config: Path, era: str) -> None:
    """G4, G5, G8: byte for byte the same list, the person who answers."""
    plain = first_requests(era)
    odd = [{**message, **AROUND_THE_WAY_AROUND} for message in plain]
    await answers(await start(config), typed(plain))  # what is known from now on is known to both
    early, _ = await answers(await start(config), typed(plain))
    late, _ = await answers(await start(config), typed(odd))
    late = [message for message in late if "id" in message]
    assert sorted(early, key=lambda m: m["id"]) == sorted(late, key=lambda m: m["id"])
    assert len(early) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_began_early_goes_on_with_the_sdk(config: Path, era: str) -> None:
    """G5: the handshake that was answered early counts, and is answered once."""
    call: Message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "echo"}}
    if era == MODERN:
        call = modern_request("tools/call", 3, name="echo", arguments={"text": "x"})[0]
    else:
        call["params"]["arguments"] = {"text": "x"}
    unknown = {**call, "id": 4, "method": "tools/nothing"}
    said, err = await answers(await start(config), typed([*first_requests(era), call, unknown]))
    by_id = {message["id"]: message for message in said if "id" in message}
    assert len(by_id) == sum("id" in message for message in said) == 4
    assert by_id[3]["result"]["content"] == [{"type": "text", "text": "x"}]
    assert by_id[4]["error"]["code"] == -32601
    assert err == ""


async def test_a_version_that_nobody_knows_is_negotiated_by_the_sdk(config: Path) -> None:
    """G5: it answers with the newest of the handshake era."""
    strange = hello()
    strange["params"]["protocolVersion"] = "1999-01-01"
    (said,), _ = await answers(await start(config), typed([strange]))
    assert said["result"]["protocolVersion"] == HANDSHAKE_VERSION


@pytest.mark.parametrize("sent", [b"", b"\n", b"\n\n"])
async def test_a_client_that_says_nothing_costs_no_start(config: Path, sent: bytes) -> None:
    """G1: the end of the input is the end."""
    said, err = await answers(await start(config), sent)
    assert (said, err) == ([], "")


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_early_answers_over_http_are_those_of_the_sdk(config: Path, method: str) -> None:
    """G4, G8: the same status, kind and body, the person who answers."""
    from pegboard.assembly import Pegboard
    from pegboard.gateway import serving

    body, headers = modern_request(method)
    async with Pegboard.open(config) as board, serving(board, port=0) as url, httpx2.AsyncClient() as http:
        early = await http.post(url, json=body, headers=headers)
        assert (await http.get(url.removesuffix("/mcp") + "/healthz")).status_code == 200  # brings the SDK
        late = await http.post(url, json=body, headers=headers)
    assert (early.status_code, early.headers["content-type"]) == (200, "application/json")
    assert late.headers["content-type"] == early.headers["content-type"]
    assert early.content == late.content


WITHOUT_HEAVY_MODULES = """
import sys
from importlib.machinery import PathFinder

class Refusing:
    def create_module(self, spec):
        raise ImportError(f"{spec.name} is not to be imported yet")

    def exec_module(self, module):
        pass

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {
            "agno", "mcp", "mcp_types", "numpy", "onnxruntime", "pydantic", "pydantic_core", "rich", "typer", "yaml",
        }:
            spec = PathFinder.find_spec(name, path, target)  # to look whether it is installed is no import
            spec.loader = Refusing()
            return spec

sys.meta_path.insert(0, Refused())
from pegboard.cli import main
main(["serve", *sys.argv[1:]])
"""


async def heard(process: asyncio.subprocess.Process, sent: Message) -> Message:
    """Return the answer to a message."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(typed([sent]))
    return json.loads(await asyncio.wait_for(process.stdout.readline(), 30) or b"null")


@pytest.fixture
def servers_only(config: Path) -> Path:
    """Return a configuration whose tools all have stored manifests after the first start; Python's are read again."""
    command, *args = sdk_command(UPSTREAM, "stdio")
    up = {"command": command, "args": args}
    servers = {"store": "sqlite:///state.db", "servers": {"up": up}, "agents": {"default": {"tools": ["up"]}}}
    config.write_text(json.dumps(servers))
    return config


async def test_a_second_start_over_stdio_imports_nothing_heavy_before_its_first_list(servers_only: Path) -> None:
    """G8: neither the command line's parser, nor the schema, nor the SDK."""
    config = servers_only
    async with Pegboard.open(config) as board:
        await board.ready()  # however slowly the server starts
    cold, _ = await answers(await start(config), typed(first_requests("handshake")))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_HEAVY_MODULES, "--stdio", "--config", str(config),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=2**24,
    )  # fmt: skip
    try:
        hello_again, _, list_again = first_requests("handshake")
        assert await heard(process, hello_again) == next(m for m in cold if m.get("id") == hello_again["id"])
        listed = await heard(process, list_again)
        assert "up__echo" in [tool["name"] for tool in listed["result"]["tools"]]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_start_after_an_edit_compiles_anew(servers_only: Path) -> None:
    """G8: what was kept counts only where nothing has changed."""
    config = servers_only
    await answers(await start(config), typed(first_requests("handshake")))
    with config.open("a") as file:
        file.write("\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_HEAVY_MODULES, "--stdio", "--config", str(config),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate(typed(first_requests("handshake")))
    assert out == b""
    assert b"is not to be imported yet" in err
