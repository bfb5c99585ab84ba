"""Resources, templates, prompts and completions of the servers behind the gateway."""

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.assembly import Pegboard

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, Connected, connected, gateway, serve, spawn, until
from .resource_helpers import PLAIN, Message, bare, configured, entry, over_http, requests, stdio, wire

UPSTREAMS = ["stdio 2026", "stdio handshake", "http 2026", "http handshake"]
READS = [
    "note://shared",
    "blob://one",
    "page://7",
    "path://one/a/b%20c?page=2",
    "path://one/secret",
    "path://nowhere/at/all",
    "hidden://one",
]
PROMPTS: list[Message] = [{"name": "greet", "arguments": {"whom": "Ada"}}, {"name": "greet"}, {"name": "fail"}]
REFERENCES = [
    {"type": "ref/prompt", "name": "greet"},
    {"type": "ref/resource", "uri": "page://{number}"},
    {"type": "ref/resource", "uri": "note://shared"},
]


async def uris(client: Connected, *, least: int = 0) -> list[str]:
    """Return what is listed, once it is so much: a list goes without a server that is slow to start."""
    listed: list[str] = []

    async def there() -> bool:
        listed[:] = [str(found.uri) for found in (await client.client.list_resources(cache_mode="refresh")).resources]
        return len(listed) >= least

    await until(there, 60)
    return listed


async def prompts(client: Connected) -> list[str]:
    return [found.name for found in (await client.client.list_prompts(cache_mode="refresh")).prompts]


async def read(client: Connected, uri: str) -> str:
    (found, *_) = (await client.client.read_resource(uri, cache_mode="refresh")).contents
    assert isinstance(found, types.TextResourceContents)
    return found.text


async def refusal(client: Connected, uri: str) -> tuple[int, str, Any]:
    with pytest.raises(MCPError) as caught:
        await client.client.read_resource(uri, cache_mode="refresh")
    error = caught.value.error
    return error.code, error.message, error.data


async def everything(ask: Any, prefix: str = "") -> dict[str, Any]:
    """Return all that a server offers, as it stands on the wire."""
    said: dict[str, Any] = {
        "resources": await ask.all("resources/list", "resources"),
        "templates": await ask.all("resources/templates/list", "resourceTemplates"),
        "prompts": await ask.all("prompts/list", "prompts"),
    }
    for prompt in said["prompts"]:
        prompt["name"] = prompt["name"].removeprefix(prefix)
    for uri in READS:
        said[f"read {uri}"] = bare(await ask.ask("resources/read", uri=uri, _meta={"mark": "m"}))
    for params in PROMPTS:
        said[f"get {params}"] = bare(await ask.ask("prompts/get", **{**params, "name": prefix + params["name"]}))
    for reference in REFERENCES:
        named = {**reference, "name": prefix + reference["name"]} if "name" in reference else reference
        context = {"arguments": {"earlier": "choice"}}
        answer = await ask.ask(
            "completion/complete", ref=named, argument={"name": "whom", "value": "A"}, context=context
        )
        said[f"complete {reference}"] = bare(answer)
    return said


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_everything_passes_through_unchanged(tmp_path: Path, upstream: str) -> None:
    """G7: raw JSON, whatever the eras and the transports: what the server says directly, and through the gateway."""
    transport, era = upstream.split()
    old = ["--handshake"] if era == "handshake" else []
    async with AsyncExitStack() as stack:
        server = entry(stdio(*old))
        if transport == "http":
            server = {"url": await stack.enter_async_context(over_http(*old))}
        direct = await stack.enter_async_context(wire(stdio(*old), HANDSHAKE if old else MODERN))
        expected = await everything(direct)
        config = configured(tmp_path, {"up": server})
        for client in ERAS:
            through = await stack.enter_async_context(wire(serve(config, "--stdio"), client))
            await through.until_listed()
            got = await everything(through, "up__")
            assert got.pop("read path://nowhere/at/all")["code"] == (-32602 if client == MODERN else -32002)
            assert got == {key: value for key, value in expected.items() if "nowhere" not in key}
    assert expected["resources"][0]["x-vendor"] == {"kept": [1, None]}
    assert expected["read path://one/secret"] == {"code": -32050, "message": "not on a Sunday", "data": {"day": 7}}


@pytest.mark.parametrize(("era", "way"), [(MODERN, "http"), (HANDSHAKE, "http"), (HANDSHAKE, "stdio")])
async def test_the_official_client_has_all_of_it_over_every_way_in(tmp_path: Path, era: str, way: str) -> None:
    """G1, G7: capabilities, one page, freshness as for tools."""
    config = configured(tmp_path, {"up": entry(stdio())})
    async with AsyncExitStack() as stack:
        target: Any = spawn(config)
        if way == "http":
            target = (await stack.enter_async_context(gateway(config))).url
        client = await stack.enter_async_context(connected(target, "auto" if era == MODERN else era))
        has = client.client.server_capabilities
        assert has is not None
        assert has.resources is not None
        assert (has.resources.subscribe, has.resources.list_changed) == (True, True)
        assert has.prompts is not None
        assert has.prompts.list_changed
        assert has.completions is not None
        assert client.client.protocol_version == (era if era == MODERN else "2025-11-25")
        await uris(client, least=3)
        listed = await client.client.list_resources()
        assert [found.name for found in listed.resources] == ["shared", "own", "picture"]
        assert listed.next_cursor is None
        if era == MODERN:
            assert (listed.ttl_ms, listed.cache_scope) == (2000, "public")
            assert (await client.client.read_resource("page://1")).ttl_ms == 1234
        assert await prompts(client) == ["up__greet", "up__fail"]
        got = await client.client.get_prompt("up__greet", {"whom": "Ada"})
        assert getattr(got.messages[0].content, "text", None) == "one greets Ada"
        with pytest.raises(MCPError):
            await client.client.list_prompts(cursor="2")


async def test_two_servers_with_the_same_uris_lose_nothing(tmp_path: Path) -> None:
    """G7, G10: the first in the configuration has the URI, the later one an alias; prompts are named like tools."""
    servers = {"b": entry(stdio("--name", "two")), "a": entry(stdio("--name", "one"), prefix="gh")}
    async with gateway(configured(tmp_path, servers)) as running, connected(running.url, MODERN) as client:
        assert await uris(client, least=6) == [
            "note://shared", "note://two/own", "blob://two", "pegboard://a/note://shared", "note://one/own", "blob://one",
        ]  # fmt: skip
        assert await read(client, "note://shared") == "two: note://shared"
        assert await read(client, "pegboard://a/note://shared") == "one: note://shared"
        assert await read(client, "pegboard://b/note://shared") == "two: note://shared"
        found = await client.client.list_resource_templates()
        templates = [template.uri_template for template in found.resource_templates]
        assert templates[0::2] == ["page://{number}", "pegboard://a/page://{number}"]
        assert await read(client, "page://3") == "two: page://3"
        assert await read(client, "pegboard://a/page://3") == "one: page://3"
        assert await prompts(client) == ["b__greet", "b__fail", "gh__greet", "gh__fail"]
        reference = types.ResourceTemplateReference(uri="pegboard://a/page://{number}")
        values = (await client.client.complete(reference, {"name": "number", "value": "1"})).completion.values
        assert values[:2] == ["one", "page://{number}"]


async def test_a_server_that_is_late_costs_the_list_nothing_and_is_announced(tmp_path: Path) -> None:
    """G7, G8: who does not answer in time is excluded; when it does, whoever was listed less is told."""
    there = tmp_path / "there"
    servers = {
        "late": entry(stdio("--name", "late", "--wait-for", str(there))),
        "dead": entry([sys.executable, PLAIN, "--exit", "3"]),
        "missing": {"command": "no-such-command-anywhere"},
        "up": entry(stdio()),
    }
    async with (
        gateway(configured(tmp_path, servers)) as running,
        connected(running.url, HANDSHAKE) as client,
    ):

        async def the_others() -> bool:
            return await uris(client) == ["note://shared", "note://one/own", "blob://one"]

        await until(the_others, 30)
        client.seen.clear()
        there.touch()
        await until(lambda: any(isinstance(note, types.ResourceListChangedNotification) for note in client.seen), 30)
        assert (await uris(client))[:2] == ["note://shared", "note://late/own"]


async def test_items_that_are_not_valid_are_reported_and_the_others_listed(tmp_path: Path) -> None:
    """G8: one bad item never costs the list; operators see which, and why."""
    config = configured(tmp_path, {"up": entry(stdio("--bad", "--hang", "prompts/list"), timeout="1s")})
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        assert await uris(client, least=3) == ["note://shared", "note://one/own", "blob://one"]
        assert await prompts(client) == []
        async with httpx2.AsyncClient() as http:
            (state,) = (await http.get(f"{running.base}/healthz")).json()["upstreams"]
    dropped = state["dropped"]
    assert dropped["resources/list: note://bad"].startswith("name: Field required")
    assert dropped["resources/list: #6"] == "its uri is empty"
    assert "did not answer 'prompts/list' within 1 s" in dropped["prompts/list"]


async def test_what_is_denied_answers_like_what_does_not_exist(tmp_path: Path) -> None:
    """P3, P9, X4: at the list and at the read; the true reason goes to the audit trail."""
    servers = {
        "shut": entry(stdio("--name", "shut")),
        "open": entry(stdio("--name", "open", "--no-tools")),
        "off": entry(stdio("--name", "off", "--no-tools")),
    }
    agents = {"default": {"discoverable": ["open", "off"], "permissions": {"off": False}}}
    config = configured(tmp_path, servers, agents=agents)
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        assert await uris(client, least=3) == ["note://shared", "note://open/own", "blob://open"]
        assert await prompts(client) == ["open__greet", "open__fail"]
        code = -32602
        for whose in ("shut", "off", "nobody"):
            for uri in (f"note://{whose}/own", f"pegboard://{whose}/note://shared", f"hidden://{whose}"):
                assert await refusal(client, uri) == (code, f"Unknown resource: {uri}", {"uri": uri})
            with pytest.raises(MCPError) as caught:
                await client.client.get_prompt(f"{whose}__greet", {"whom": "Ada"})
            assert (caught.value.error.code, caught.value.error.message) == (-32602, f"Unknown prompt: {whose}__greet")
            reference = types.PromptReference(name=f"{whose}__greet")
            with pytest.raises(MCPError) as caught:
                await client.client.complete(reference, {"name": "whom", "value": ""})
            assert caught.value.error.code == -32602
    async with Pegboard.open(config) as board:
        audited = await board.services.store.entries(kind="prompt")
        reads = await board.services.store.entries(kind="read")
    assert {entry.subject: (entry.decision, entry.outcome) for entry in audited} == {
        "shut__greet": ("refused", "not_granted"),
        "off__greet": ("refused", "denied_switch"),
        "nobody__greet": ("refused", "not_found"),
    }
    assert {"denied_switch", "not_granted", "not_found"} == {entry.outcome for entry in reads}


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_switched_off_leaves_the_lists_of_those_who_are_connected(tmp_path: Path, era: str) -> None:
    """P4: a switch binds the next read, subscriptions included, and whoever was listed more is told."""
    config = configured(tmp_path, {"up": entry(stdio()), "two": entry(stdio("--name", "two"))})
    async with (
        Pegboard.open(config) as operator,
        gateway(config) as running,
        connected(running.url, era) as client,
        AsyncExitStack() as stack,
    ):
        if era == MODERN:
            await stack.enter_async_context(
                client.client.listen(resources_list_changed=True, prompts_list_changed=True)
            )
        assert len(await uris(client, least=6)) == 6
        assert len(await prompts(client)) == 4
        assert await read(client, "note://one/own") == "one: note://one/own"
        await operator.permissions.set("default", "up", False)
        assert (await refusal(client, "note://one/own"))[1] == "Unknown resource: note://one/own"
        kinds = (types.ResourceListChangedNotification, types.PromptListChangedNotification)
        await until(lambda: all(any(isinstance(note, kind) for note in client.seen) for kind in kinds))
        assert await uris(client) == ["note://shared", "note://two/own", "blob://two"]


async def test_principals_never_share_a_connection(tmp_path: Path) -> None:
    """G9: what one lists and reads comes from a process of their own."""
    log = tmp_path / "log"
    tokens = {"ada": {"token": ADA, "agents": ["*"]}, "bob": {"token": BOB, "agents": ["*"]}}
    config = configured(tmp_path, {"up": entry(stdio("--log", str(log)))}, tokens=tokens)
    async with (
        gateway(config) as running,
        connected(running.url, MODERN, token=ADA) as ada,
        connected(running.url, MODERN, token=BOB) as bob,
    ):
        for client in (ada, bob):
            await uris(client, least=3)
            listed = await client.client.list_resources()
            assert listed.cache_scope == "private"
            await read(client, "note://shared")
            await client.client.get_prompt("up__greet", {"whom": "Ada"})
        adas, bobs = requests(log, "resources/read")
        assert adas != bobs
        assert requests(log, "prompts/get") == [adas, bobs]
        assert set(requests(log, "resources/list")) == {adas, bobs}


async def test_nothing_is_started_for_servers_that_are_known_to_have_none(tmp_path: Path) -> None:
    """G8: what a server has besides tools is in its manifest."""
    log, started = tmp_path / "log", tmp_path / "started"
    servers = {
        "tools": entry([sys.executable, PLAIN, "--log", str(started)]),
        "up": entry(stdio("--log", str(log))),
    }
    config = configured(tmp_path, servers)
    async with Pegboard.open(config) as board:
        await board.ready()
        assert board.world.catalog.plugins["tools"].offers == frozenset()
        assert board.world.catalog.plugins["up"].offers == {"resources", "prompts", "completions"}
    started.unlink()
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        assert len(await uris(client, least=3)) == 3
        assert len(await prompts(client)) == 2
        assert await read(client, "note://shared") == "one: note://shared"
    assert not started.exists()


async def test_lists_are_kept_until_the_server_says_that_they_have_changed(tmp_path: Path) -> None:
    """G8: each is read once per connection."""
    log = tmp_path / "log"
    config = configured(tmp_path, {"up": entry(stdio("--log", str(log)))})
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        for _ in range(3):
            await uris(client, least=3)
            await read(client, "note://shared")
        assert len(requests(log, "resources/list")) == 2  # two pages
        assert len(requests(log, "resources/templates/list")) == 1


@pytest.mark.parametrize("upstream", ["2026", "handshake"])
@pytest.mark.parametrize("era", ERAS)
async def test_changes_of_the_lists_reach_those_who_were_listed(tmp_path: Path, era: str, upstream: str) -> None:
    """G7, G8: an upstream's list_changed refreshes the lists, in both eras on both sides."""
    old = ["--handshake"] if upstream == "handshake" else []
    config = configured(tmp_path, {"up": entry(stdio(*old))})
    async with (
        gateway(config) as running,
        connected(running.url, era) as client,
        AsyncExitStack() as stack,
    ):
        if era == MODERN:
            await stack.enter_async_context(
                client.client.listen(resources_list_changed=True, prompts_list_changed=True)
            )
        assert len(await uris(client, least=3)) == 3
        assert len(await prompts(client)) == 2
        await client.load("up__do")
        await client.call("call_tool", name="up__do", arguments={"what": "grow"})
        kinds = (types.ResourceListChangedNotification, types.PromptListChangedNotification)
        await until(lambda: all(any(isinstance(note, kind) for note in client.seen) for kind in kinds))
        assert (await uris(client))[-1] == "note://one/grown"
        assert (await prompts(client))[-1] == "up__grown"


async def test_a_server_that_has_only_some_of_it_is_asked_for_that(tmp_path: Path) -> None:
    """G7: resources without templates, and nothing at all, are empty lists and no errors."""
    tools = entry([sys.executable, PLAIN])
    config = configured(tmp_path, {"up": entry(stdio("--no-templates")), "tools": tools})
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        assert (await client.client.list_resource_templates()).resource_templates == []
        assert len(await uris(client, least=3)) == 3
        assert await read(client, "note://shared") == "one: note://shared"
    none = configured(tmp_path, {"tools": tools})
    async with gateway(none) as running, connected(running.url, MODERN) as client:
        assert await uris(client) == await prompts(client) == []
        assert (await refusal(client, "note://shared"))[1] == "Unknown resource: note://shared"


async def test_a_server_that_says_nothing_of_changes_is_asked_again(tmp_path: Path) -> None:
    """G8: its lists count as fresh for no longer than a client may take ours."""
    config = configured(tmp_path, {"up": entry(stdio("--quiet", "--handshake"))})
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        assert len(await uris(client, least=3)) == 3
        await client.load("up__do")
        await client.call("call_tool", name="up__do", arguments={"what": "grow"})

        async def grown() -> bool:
            return "note://one/grown" in await uris(client)

        await until(grown)


async def test_reads_are_audited_without_their_contents(tmp_path: Path) -> None:
    """X4: who read what, with which outcome; the metrics count them."""
    config = configured(tmp_path, {"up": entry(stdio())})
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        await uris(client, least=3)
        await read(client, "note://shared")
        await refusal(client, "path://one/secret")
        await client.client.get_prompt("up__greet", {"whom": "a secret guest"})
        async with httpx2.AsyncClient() as http:
            counted = (await http.get(f"{running.base}/metrics")).text.splitlines()
    assert 'pegboard_reads_total{kind="read"} 2' in counted
    assert 'pegboard_reads_total{kind="prompt"} 1' in counted
    async with Pegboard.open(config) as board:
        reads = await board.services.store.entries(kind="read")
        (got,) = await board.services.store.entries(kind="prompt")
    assert [(found.subject, found.decision, found.outcome) for found in reads] == [
        ("path://one/secret", "allowed", "error"),
        ("note://shared", "allowed", "ok"),
    ]
    assert (got.subject, got.principal, got.agent, got.outcome) == ("up__greet", "local", "default", "ok")
    assert got.arguments
    assert got.duration is not None
    assert "guest" not in json.dumps([str(found) for found in (got, *reads)])


FILES = """
from pathlib import Path
from mcp.server.mcpserver import MCPServer

server = MCPServer("files")

@server.resource("file:///{+path}")
def read(path: str) -> str:
    return Path("/", path).read_bytes().decode(errors="replace")

@server.prompt()
def summary(path: str) -> str:
    return read(path)

server.run()
"""


async def test_nobody_reads_the_store_through_a_resource_or_a_prompt(tmp_path: Path) -> None:
    """P10: a server that reads any file is not asked for a store, a key or an env file; others it gives."""
    config = configured(tmp_path, {"up": entry([sys.executable, "-c", FILES])})
    (tmp_path / "notes.txt").write_text("milk")
    async with gateway(config) as running, connected(running.url, MODERN) as client:

        async def there() -> bool:
            return await prompts(client) == ["up__summary"]

        await until(there)
        assert await read(client, f"file://{tmp_path}/notes.txt") == "milk"
        assert "milk" in str(await client.client.get_prompt("up__summary", {"path": str(tmp_path / "notes.txt")}))
        paths = (f"{tmp_path}/state.db", f"{tmp_path}/x/../state.db", f"{tmp_path}/%73tate.db")
        for named in (*(f"file://{path}" for path in paths), f"pegboard://up/file://{tmp_path}/state.db"):
            code, message, _ = await refusal(client, named)
            assert (code, "SQLite" in message) == (-32602, False)
        with pytest.raises(MCPError):
            await client.client.get_prompt("up__summary", {"path": str(tmp_path / "state.db")})
    async with Pegboard.open(config) as board:
        refused = [found for found in await board.services.store.entries() if found.outcome == "own_file"]
    assert [found.kind for found in refused] == ["prompt", *["read"] * 4]
    assert all("names the store of Pegboard" in found.reason for found in refused)


async def test_reads_survive_restarts_report_progress_and_end_in_time(tmp_path: Path) -> None:
    """G7, G8: the rules of calls hold for reads; one that hangs ends alone."""
    log = tmp_path / "log"
    config = configured(tmp_path, {"up": entry(stdio("--log", str(log)), timeout="2s")})
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        await uris(client, least=3)
        assert "went away" in (await refusal(client, "path://one/crash"))[1]
        assert len(set(requests(log, "resources/read"))) == 2  # reading twice changes nothing, so it was repeated
        assert await read(client, "note://shared") == "one: note://shared"
        code, message, data = await refusal(client, "path://one/slow")
        assert (code, data) == (-32603, {"code": "upstream_timeout"})
        assert "did not answer 'resources/read' within 2 s" in message
    async with wire(serve(config, "--stdio"), HANDSHAKE) as raw:
        await raw.until_listed()
        await raw.ask("resources/read", uri="path://one/steps", _meta={"progressToken": "t"})
        steps = [note["params"] for note in raw.notes if note["method"] == "notifications/progress"]
    assert [(step["progressToken"], step["progress"], step["message"]) for step in steps] == [
        ("t", number, f"step {number}") for number in (1, 2, 3)
    ]
