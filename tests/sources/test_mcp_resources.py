"""Lists, reads and updates over the connections of a source, against real servers."""

from collections.abc import AsyncIterator
from subprocess import PIPE, Popen
from typing import Any

import pytest
from mcp_helpers import call, plain, state, until

from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError, UpstreamError
from pegboard.ports import CallContext, HasResources
from pegboard.sources.mcp import McpSource
from sdk_servers import sdk_command

HERE = CallContext()


def offering(*options: str, **fields: Any) -> ServerSpec:
    command, *args = sdk_command("resource_server.py", "stdio", *options)
    return ServerSpec(name="one", command=command, args=tuple(args), **fields)


@pytest.fixture
async def source() -> AsyncIterator[McpSource]:
    source = McpSource(mask=Masker(["hunter22"]).text, check_every=0.1)
    yield source
    await source.aclose()


async def uris(source: McpSource, spec: ServerSpec, scope: str = "shared") -> list[str]:
    return [item["uri"] for item in await source.offering.offers(spec, scope, "resources")]


async def test_a_manifest_says_what_a_server_has_besides_tools(source: McpSource) -> None:
    """G8: so that none is started that has nothing."""
    assert isinstance(source, HasResources)
    assert (await source.describe(offering(), {})).offers == {"resources", "prompts", "completions"}
    assert (await source.describe(plain(), {})).offers == frozenset()


@pytest.mark.parametrize("options", [(), ("--handshake",)], ids=["2026", "handshake"])
async def test_a_list_counts_until_the_server_says_otherwise(source: McpSource, options: tuple[str, ...]) -> None:
    """G8, G9: per connection, so that one principal's is not another's."""
    spec = offering(*options)
    changed: list[tuple[str, str]] = []
    source.offering.on_changed(lambda name, kind: changed.append((name, kind)))
    assert source.offering.cached(spec, "shared", "resources") is None
    before = await uris(source, spec)
    assert [item["uri"] for item in source.offering.cached(spec, "shared", "resources") or ()] == before
    assert source.offering.cached(spec, "user:bob", "resources") is None
    assert await uris(source, spec, "user:bob") == before
    await call(source, spec, "do", what="grow")
    await until(lambda: {("one", "resources"), ("one", "templates"), ("one", "prompts")} <= set(changed))
    assert source.offering.cached(spec, "shared", "resources") is None
    assert source.offering.cached(spec, "user:bob", "resources") is not None
    assert await uris(source, spec) == [*before, "note://one/grown"]


async def test_a_list_does_not_outlive_its_server(source: McpSource) -> None:
    """G8: a server that was started again is asked again."""
    spec = offering()
    await uris(source, spec)
    with pytest.raises(UpstreamError):
        await call(source, spec, "do", what="stop")
    assert source.offering.cached(spec, "shared", "resources") is None
    assert len(await uris(source, spec)) == 3


async def test_a_server_that_cannot_be_asked_says_why(source: McpSource) -> None:
    """P6, X5: as for calls; what a server refuses comes with its own words."""
    with pytest.raises(ToolUnavailableError, match="was not found"):
        await uris(source, ServerSpec(name="gone", command="no-such-command-anywhere"))
    with pytest.raises(UpstreamError, match="refused 'resources/read'") as caught:
        await source.offering.ask(offering(), "resources/read", {"uri": "path://one/secret"}, HERE)
    assert caught.value.answer == {"code": -32050, "message": "not on a Sunday", "data": {"day": 7}}
    with pytest.raises(UpstreamError) as caught:
        await source.offering.ask(plain(), "prompts/get", {"name": "hunter22"}, HERE)
    assert caught.value.answer is not None
    assert caught.value.answer["code"] == -32601


async def test_nobody_completes_where_a_server_cannot(source: McpSource) -> None:
    """G7: the gateway completes for every server, so this one has no values."""
    reference = {"type": "ref/prompt", "name": "x"}
    asked = {"ref": reference, "argument": {"name": "a", "value": ""}}
    assert await source.offering.ask(plain(), "completion/complete", asked, HERE) == {"completion": {"values": []}}


@pytest.mark.parametrize("options", [(), ("--handshake",)], ids=["2026", "handshake"])
async def test_a_subscription_is_renewed_where_a_server_over_http_was_restarted(
    source: McpSource, options: tuple[str, ...]
) -> None:
    """G8: nothing tells of the end of a session, so it is looked whether it stands."""

    def run(port: int) -> tuple[Popen[str], int]:
        command = sdk_command("resource_server.py", "http", "--port", str(port), *options)
        process = Popen(command, stdout=PIPE, text=True)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    process, port = run(0)
    try:
        spec = ServerSpec(name="one", url=f"http://127.0.0.1:{port}/mcp", transport="http")
        heard: list[str] = []
        release = await source.offering.subscribe(spec, "note://shared", "shared", heard.append)
        assert release is not None
        await call(source, spec, "do", what="touch note://shared")
        await until(lambda: heard == ["note://shared"])
        process.kill()
        process.communicate()
        process, _ = run(port)
        await until(lambda: len(heard) == 2)
        await call(source, spec, "do", what="touch note://shared")
        await until(lambda: len(heard) == 3)
        release()
        assert state(source, "one")["state"] == "up"
    finally:
        process.kill()
        process.communicate()
