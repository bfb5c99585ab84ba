"""What a client sees and can do, in both eras of the protocol and over both transports."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from .clients import ADA, BOB, ERAS, HANDSHAKE, HERE, MODERN, connected, edit, gateway, spawn, until, way_in

META = ["search_tools", "load_tools", "unload_tools", "call_tool", "call_read_only_tool"]
START = ["echo", *META]


@pytest.mark.parametrize("kind", ["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_lists_loads_calls_and_unloads(config: Path, era: str, kind: str) -> None:
    """G1, G5: every way in does the same; call_tool works in both eras."""
    async with way_in(kind, config) as target, connected(target, era) as pegboard:
        assert await pegboard.names() == START
        assert "note_list" in await pegboard.text("search_tools", queries=["list the notes"])
        loaded = await pegboard.load("notes")
        assert loaded["items"][0]["status"] == "loaded"
        assert await pegboard.text("call_tool", name="note_add", arguments={"text": "tea"}) == "added tea"
        assert await pegboard.text("note_add", text="tea") == "added tea"
        assert "milk" in await pegboard.text("call_read_only_tool", name="note_list")
        await pegboard.call("unload_tools", names=["notes"])
        assert await pegboard.names() == START
        assert (await pegboard.call("note_add", text="tea")).is_error


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_with_a_session_for_each_call_has_its_results_at_once(config: Path, era: str) -> None:
    """X1: as LangChain's client, for which every call is the first of its session."""
    async with gateway(config) as running:
        for text in ("tea", "milk"):
            async with connected(running.url, era) as once:
                assert await once.text("call_tool", name="note_add", arguments={"text": text}) == f"added {text}"


async def test_the_list_of_the_new_era_is_the_same_before_and_after_a_load(config: Path) -> None:
    """G4: no side effect of a request changes the list; a loaded tool that is not listed runs."""
    async with gateway(config) as running, connected(running.url, MODERN) as pegboard:
        before = await pegboard.client.list_tools(cache_mode="refresh")
        async with pegboard.client.listen(tools_list_changed=True):
            await pegboard.load("notes")
            assert await pegboard.text("note_add", text="tea") == "added tea"
            after = await pegboard.client.list_tools(cache_mode="refresh")
        assert after.model_dump() == before.model_dump()
        assert (before.cache_scope, before.ttl_ms > 0) == ("public", True)
        assert pegboard.changes() == 0


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_in_the_handshake_era_loaded_tools_join_the_list(config: Path, kind: str) -> None:
    """G5, F1: they come behind the others, and the client is told before it has its answer."""
    async with way_in(kind, config) as target, connected(target, HANDSHAKE) as pegboard:
        assert await pegboard.names() == START
        await pegboard.load("notes")
        await until(lambda: pegboard.changes() == 1)
        assert await pegboard.names() == [*START, "note_list", "note_add"]
        await pegboard.text("note_list")
        await pegboard.call("unload_tools", names=["notes"])
        await until(lambda: pegboard.changes() == 2)
        assert await pegboard.names() == START


async def test_connections_of_one_session_hear_of_each_others_loads(config: Path) -> None:
    """G5: the same session elsewhere is told; another session and another agent are not."""
    async with gateway(config) as running:
        one, same = f"{running.url}?session=s", f"{running.url}?session=s"
        elsewhere, other = f"{running.url}?session=t", f"{running.url}/other?session=s"
        async with (
            connected(one, HANDSHAKE) as a, connected(same, HANDSHAKE) as b,
            connected(elsewhere, HANDSHAKE) as c, connected(other, HANDSHAKE) as d,
        ):  # fmt: skip
            lists = [await client.names() for client in (a, b, c, d)]
            assert lists == [START] * 4
            assert all([await client.hears.wait() for client in (a, b, c, d)])
            await a.load("notes")
            await until(lambda: a.changes() == b.changes() == 1)
            assert "note_add" in await b.names()
            assert [await c.names(), await d.names()] == [START, START]
            assert (c.changes(), d.changes()) == (0, 0)
            assert (await c.call("note_add", text="x")).is_error


async def test_both_eras_share_one_session(config: Path) -> None:
    """G1: the session is ours and not the transport's."""
    async with gateway(config) as running:
        url = f"{running.url}?session=shared"
        async with connected(url, MODERN) as modern, connected(url, HANDSHAKE) as handshake:
            assert await handshake.names() == START
            await handshake.hears.wait()
            await modern.load("notes")
            await until(lambda: handshake.changes() == 1)
            assert "note_add" in await handshake.names()


async def test_a_subscriber_hears_of_genuine_changes_only(config: Path) -> None:
    """G4: an edit of the configuration is told to those whose list it changes."""
    async with (
        gateway(config) as running,
        connected(running.url, MODERN) as pegboard,
        connected(f"{running.url}/other", MODERN) as other,
        pegboard.client.listen(tools_list_changed=True) as heard,
        other.client.listen(tools_list_changed=True),
    ):
        await pegboard.names()
        edit(config, 'tools: [talk], discoverable: ["*"]', "tools: [talk, notes]")
        async with asyncio.timeout(10):
            await anext(aiter(heard))
        assert "note_add" in await pegboard.names()
        assert "note_add" not in await other.names()
        assert other.changes() == 0


@pytest.mark.parametrize("era", ERAS)
async def test_a_switch_of_another_process_reaches_the_clients(config: Path, era: str) -> None:
    """P4, G4, G5: whoever is listed less is told so, and may not call it."""
    from pegboard.assembly import Pegboard

    async with gateway(config) as running, connected(running.url, era) as pegboard, AsyncExitStack() as stack:
        if era == MODERN:
            await stack.enter_async_context(pegboard.client.listen(tools_list_changed=True))
        else:
            await pegboard.hears.wait()
        assert "echo" in await pegboard.names()
        async with Pegboard.open(config) as board:
            await board.permissions.set("default", "talk", False)
        if era == HANDSHAKE:
            await until(lambda: pegboard.changes() == 1)

        async def gone() -> bool:
            return "echo" not in [tool.name for tool in (await pegboard.client.list_tools()).tools]

        await until(gone)
        assert "up__echo" in await pegboard.text("load_tools", names=["up"])
        with pytest.raises(MCPError, match="'echo' was not found"):
            await pegboard.call("echo", text="x")


async def test_a_list_that_depends_on_the_principal_is_private(config_with_tokens: Path) -> None:
    """G4: with tokens no one may share a cached list."""
    async with gateway(config_with_tokens) as running, connected(running.url, MODERN, token=ADA) as pegboard:
        assert (await pegboard.client.list_tools()).cache_scope == "private"


async def test_another_principal_sees_nothing_of_a_session(config_with_tokens: Path) -> None:
    """G2, S1: the same session id under another token is another session."""
    async with gateway(config_with_tokens) as running:
        url = f"{running.url}?session=same"
        async with connected(url, MODERN, token=ADA) as ada, connected(url, MODERN, token=BOB) as bob:
            await ada.load("notes")
            assert await ada.text("note_add", text="tea") == "added tea"
            assert "note_add" not in await bob.names()
            assert (await bob.call("note_add", text="tea")).is_error


@pytest.mark.parametrize("era", ERAS)
async def test_unknown_and_denied_tools_get_the_same_protocol_error(config: Path, era: str) -> None:
    """P9, G4: neither can be told from the other."""
    async with gateway(config) as running, connected(f"{running.url}/other", era) as pegboard:
        said = []
        for name in ("up__media", "up__maedi"):
            with pytest.raises(MCPError) as raised:
                await pegboard.call(name)
            said.append((raised.value.error.code, raised.value.error.message.replace(name, "")))
        assert said[0] == said[1]
        assert said[0][0] == -32602
        assert (await pegboard.call("call_tool", name="up__media")).is_error


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_server_returns_passes_through(config: Path, era: str) -> None:
    """G7: media, structured content, `_meta`, errors, titles and output schemas."""
    async with connected(spawn(config), era) as pegboard:
        await pegboard.load("up")
        kinds = [block.type for block in (await pegboard.call("up__media")).content]
        assert kinds == ["image", "audio", "resource", "resource_link"]
        added = await pegboard.call("call_tool", name="up__add", arguments={"a": 1, "b": 2})
        assert added.structured_content == {"sum": 3}
        assert (added.meta or {})["unit"] == "one"
        failed = await pegboard.call("up__fail")
        assert (failed.is_error, failed.content[0].text) == (True, "the tool failed")  # type: ignore[union-attr]
        if era == HANDSHAKE:
            tools = {tool.name: tool for tool in (await pegboard.client.list_tools(cache_mode="refresh")).tools}
            assert tools["up__add"].title == "Add"
            assert tools["up__add"].output_schema is not None


@pytest.mark.parametrize(
    ("era", "kind", "fast_path"),  # every two of them meet
    [(MODERN, "http", True), (MODERN, "stdio", False), (HANDSHAKE, "http", False), (HANDSHAKE, "stdio", True)],
)
async def test_progress_of_a_server_reaches_the_client(config: Path, era: str, kind: str) -> None:
    """G7: step by step, to the one who asked for it."""
    steps: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async with way_in(kind, config) as target, connected(target, era) as pegboard:
        await pegboard.load("up")
        await pegboard.client.call_tool("up__progress", {}, progress_callback=note)
        await until(lambda: len(steps) == 3)
    assert sorted(steps) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.both_paths
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(config: Path, era: str) -> None:
    """G7: a client that goes away in the middle, or says that it gave up."""
    async with gateway(config) as running, connected(running.url, era) as pegboard:
        await pegboard.load("up")
        call = asyncio.create_task(pegboard.call("up__slow"))
        await until(lambda: running_calls(pegboard))
        call.cancel()
        await asyncio.wait([call])

        async def cancelled() -> bool:
            return await pegboard.text("up__cancelled") == "1"

        await until(cancelled)


async def running_calls(pegboard) -> bool:
    """Return once the server has answered something behind the slow call."""
    return bool(await pegboard.text("up__pid"))


OPEN_THIS: dict[str, Any] = {
    "code": -32042,
    "message": "Sign in first.",
    "data": {
        "elicitations": [
            {"mode": "url", "elicitationId": "e-1", "url": "https://example.com/sign-in", "message": "Sign in."}
        ]
    },
}
SUNDAY = {"code": -32050, "message": "not on a Sunday"}


def refusing(folder: Path, error: dict[str, Any]) -> Path:
    """Return a configuration with a server one tool of which is answered with this error."""
    arguments = [str(HERE.parent / "servers" / "plain_server.py"), "--refusal", json.dumps(error)]
    server = {"command": sys.executable, "args": arguments}
    agent = {"tools": ["up"], "discoverable": ["spare"]}
    path = folder / "pegboard.yaml"
    path.write_text(json.dumps({"servers": {"up": server, "spare": server}, "agents": {"default": agent}}))
    return path


@pytest.mark.parametrize("kind", ["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
async def test_the_demand_of_a_server_to_open_a_url_reaches_the_client(tmp_path: Path, era: str, kind: str) -> None:
    """G7: -32042 is the client's to act on, so it is no result for the model; directly and through call_tool."""
    config = refusing(tmp_path, OPEN_THIS)
    async with way_in(kind, config) as target, connected(target, era) as pegboard:
        await pegboard.names()
        for call in (pegboard.call("up__refuse"), pegboard.call("call_tool", name="up__refuse")):
            with pytest.raises(MCPError) as refused:
                await call
            assert refused.value.error.model_dump() == OPEN_THIS


async def test_any_other_error_of_a_server_is_a_result_that_the_model_reads(tmp_path: Path) -> None:
    """G7: the model may do something else; nothing is asked of the client."""
    async with gateway(refusing(tmp_path, SUNDAY)) as running, connected(running.url, MODERN) as pegboard:
        result = await pegboard.call("up__refuse")
        assert result.is_error
        assert "Server 'up' refused 'refuse': not on a Sunday (-32050)." in str(result.content)
