"""What a client lists when it connects is answered before the SDK is imported, as the SDK answers it (G8)."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.core.access.listed_items import METHODS
from pegboard.gateway import serving

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, modern_request, until
from .raw_stdio import RawServer, raw_client
from .resource_helpers import configured, entry, stdio
from .test_differential import AROUND_THE_WAY_AROUND, hello, ready
from .test_first_responses import WITHOUT_HEAVY_MODULES, typed
from .test_kept_lists import first_listed, started
from .test_listed_once import write
from .test_stdio import start

Message = dict[str, Any]
LISTS = ("tools/list", *METHODS.values())
AGENTS = {"default": {"discoverable": ["*"]}, "narrow": {"tools": ["two"]}}


def at_connect(era: str) -> list[Message]:
    """Return what a client of an era asks that wants everything at once."""
    if era == MODERN:
        return [modern_request(method, number)[0] for number, method in enumerate(("server/discover", *LISTS))]
    asked = [*((method, {}) for method in LISTS), ("ping", None), ("logging/setLevel", {"level": "error"})]
    requests = [
        {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}
        for number, (method, params) in enumerate(asked, 1)
    ]
    return [hello(), ready(), *requests]


def with_log(folder: Path, *names: str, **more: Any) -> tuple[Path, Path]:
    """Return a configuration of servers, and where each notes what it is asked."""
    log = folder / "log"
    servers = {name: entry(stdio("--name", name, "--log", str(log))) for name in names}
    return configured(folder, servers, **more), log


async def lines_of(process: asyncio.subprocess.Process, sent: list[Message]) -> dict[int, bytes]:
    """Return each answer by its id, as it is written; all is asked at once."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(typed(sent))
    found: dict[int, bytes] = {}
    try:
        while len(found) < sum("id" in message for message in sent):
            line = await asyncio.wait_for(process.stdout.readline(), 60)
            message = json.loads(line)
            if "id" in message:
                found[message["id"]] = line
    finally:
        process.kill()
        await process.wait()
    return found


async def early_lines(config: Path, agent: str, sent: list[Message]) -> dict[int, bytes]:
    """Return the answers of a gateway that cannot import the SDK."""
    options = ["--stdio", "--config", str(config), "--agent", agent]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_HEAVY_MODULES, *options, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=2**24
    )
    return await lines_of(process, sent)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("era", ERAS)
async def test_all_that_is_listed_at_connect_is_as_the_sdk_answers_it(tmp_path: Path, era: str, agent: str) -> None:
    """G4, G5, G8, P3: byte for byte, for each agent its own, without the SDK and without a server."""
    config, log = with_log(tmp_path, "one", "two", agents=AGENTS)
    await first_listed(config)
    log.unlink()
    sent = at_connect(era)
    early = await early_lines(config, agent, sent)
    assert started(log) == 0
    assert early == await lines_of(
        await start(config, "--agent", agent), [{**message, **AROUND_THE_WAY_AROUND} for message in sent]
    )
    pages = {list_of(line): len(json.loads(line)["result"][list_of(line)]) for line in early.values() if list_of(line)}
    servers = 2 if agent == "default" else 1
    assert {key: pages[key] for key in ("resources", "resourceTemplates", "prompts")} == {
        "resources": 3 * servers, "resourceTemplates": 2 * servers, "prompts": 2 * servers,
    }  # fmt: skip


def list_of(line: bytes) -> str:
    """Return the key of an answer under which a list stands, or nothing."""
    result = json.loads(line)["result"]
    return next((key for key, value in result.items() if isinstance(value, list) and key != "supportedVersions"), "")


async def test_what_is_not_kept_is_asked_for_once_the_sdk_is_there(tmp_path: Path) -> None:
    """G8: a first start answers as every other, and a cursor is refused, whoever gave the list."""
    config, _ = with_log(tmp_path, "one")
    async with raw_client(config, HANDSHAKE) as client:
        await client.begin()
        assert len((await client.request("prompts/list"))["prompts"]) in (0, 2)  # a slow server is not waited for
        assert (await client.request("prompts/list", {"cursor": "2"}))["code"] == -32602


async def test_a_client_that_asks_on_and_on_is_notified_too(tmp_path: Path) -> None:
    """G5: however short its pauses are."""
    server = RawServer(tmp_path)
    async with raw_client(write(tmp_path, server), HANDSHAKE) as client:

        async def heard() -> bool:
            await client.request("ping")
            return client.heard_of_changes() > 0

        await client.begin()
        assert not await client.is_listed("up__one")
        server.offer("one")
        await until(heard)
        assert await client.is_listed("up__one")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_notified_of_changes_since_its_early_list(tmp_path: Path, era: str) -> None:
    """G5, G8: of resources and prompts too, as soon as their server runs and lists others."""
    config, log = with_log(tmp_path, "one")
    await first_listed(config)
    async with raw_client(config, era) as client:
        await client.begin()
        await client.call("load_tools", {"names": ["one__do"]})
        await client.call("call_tool", {"name": "one__do", "arguments": {"what": "grow"}})

        async def kept() -> bool:
            async with Pegboard.open(config) as board:
                loader = board.services.loader
                spec = loader.specs["one"]
                lists = await loader.manifests.lists("one", loader.source_of(spec).fingerprint(spec), "shared")
            return (len(lists["resources"]), len(lists["prompts"])) == (4, 3)

        await until(kept)
    log.unlink()
    async with raw_client(config, era) as client:
        await client.begin()
        assert len((await client.request("resources/list"))["resources"]) == 4
        assert len((await client.request("prompts/list"))["prompts"]) == 3
        assert started(log) == 0
        if era == MODERN:
            wanted = {"resourcesListChanged": True, "promptsListChanged": True}
            await client.send(client.message("subscriptions/listen", {"notifications": wanted}))
            await until(lambda: "notifications/subscriptions/acknowledged" in client.notes)
        await client.call("call_tool", {"name": "one__do", "arguments": {"what": "nothing"}})
        for kind in ("resources", "prompts"):
            await until(lambda kind=kind: f"notifications/{kind}/list_changed" in client.notes)
        assert len((await client.request("resources/list"))["resources"]) == 3


@pytest.mark.parametrize("token", [ADA, BOB])
async def test_early_lists_over_http_are_those_of_the_sdk(tmp_path: Path, token: str) -> None:
    """G4, G8, P3: the same bytes for each principal and agent, the person who answers."""
    tokens = {"ada": {"token": ADA, "agents": ["default"]}, "bob": {"token": BOB, "agents": ["narrow"]}}
    config, _ = with_log(tmp_path, "one", "two", agents=AGENTS, tokens=tokens)
    agent = "default" if token == ADA else "narrow"
    asked = [modern_request(method) for method in LISTS]
    for _, headers in asked:
        headers["authorization"] = f"Bearer {token}"
    async with Pegboard.open(config) as board, httpx2.AsyncClient(timeout=60) as http:
        await board.ready()
        async with serving(board, port=0) as url:
            for body, headers in asked:  # what is asked for now is known from now on
                await http.post(f"{url}/{agent}", json=body, headers=headers)
        for body, headers in asked:
            async with serving(board, port=0) as url:
                early = await http.post(f"{url}/{agent}", json=body, headers=headers)
                assert (await http.get(url.removesuffix("/mcp") + "/healthz")).status_code == 200  # brings the SDK
                late = await http.post(f"{url}/{agent}", json=body, headers=headers)
            assert (early.status_code, late.status_code) == (200, 200)
            assert early.headers["content-type"] == late.headers["content-type"]
            assert early.content == late.content


LIST_WITHOUT_THE_SDK = """
import asyncio, json, sys
from functools import partial
from pegboard import Pegboard
from pegboard.gateway.http.auth import Authenticator, OriginCheck, identify
from pegboard.gateway.fast.lazy_app import LazyApp

async def main(path, body, headers):
    sent = []
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}
    async def send(message):
        sent.append(message)
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    pairs += [(b"host", b"localhost"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": pairs}
    async with Pegboard.open(path) as board:
        rules = Authenticator(board=board, host="127.0.0.1")
        identified = partial(identify, authenticator=rules, origins=OriginCheck(None, host=rules.host))
        await LazyApp(board, identified, lambda: None, lambda: None, asyncio.Event())(scope, receive, send)
    print(sent[0]["status"], [name for name in sys.modules if name in ("mcp", "mcp_types")])

asyncio.run(main(sys.argv[1], sys.argv[2].encode(), json.loads(sys.argv[3])))
"""


@pytest.mark.parametrize("method", LISTS)
async def test_a_first_list_of_each_kind_over_http_needs_no_sdk(tmp_path: Path, method: str) -> None:
    """G8: nor a server, where it is kept."""
    config, log = with_log(tmp_path, "one")
    await first_listed(config)
    log.unlink()
    body, headers = modern_request(method)
    command = [sys.executable, "-c", LIST_WITHOUT_THE_SDK, str(config), json.dumps(body), json.dumps(headers)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    said, _ = await process.communicate()
    assert said.decode().split(maxsplit=1) == ["200", "[]\n"]
    assert started(log) == 0
