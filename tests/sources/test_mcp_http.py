"""MCP servers over HTTP, against real servers of both eras on a port of their own."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from socket import socket
from subprocess import PIPE, Popen
from typing import Any

import pytest
from mcp_helpers import call, state, text, until

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Tool
from pegboard.errors import ToolUnavailableError, UpstreamError, UpstreamTimeoutError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from sdk_servers import sdk_command

pytestmark = pytest.mark.cover(1)


class Upstream:
    """Run a server; it can be killed and started again on the same port."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self._process: Popen[str] | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        kind = [] if self._options[:1] == ("sse",) else ["http"]
        command = sdk_command("sdk_server.py", *kind, *self._options, "--port", str(self.port))
        self._process = Popen(command, stdout=PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None

    def spec(self, path: str = "/mcp", **fields: Any) -> ServerSpec:
        given: dict[str, Any] = {"transport": "http", **fields}
        return ServerSpec(name="web", url=f"http://127.0.0.1:{self.port}{path}", **given)


@pytest.fixture
def run() -> Iterator[Callable[..., Upstream]]:
    running: list[Upstream] = []

    def start(*options: str) -> Upstream:
        running.append(Upstream(*options))
        return running[-1]

    yield start
    for upstream in running:
        upstream.kill()


@pytest.fixture(params=["handshake", "2026"])
def upstream(request: pytest.FixtureRequest, run: Callable[..., Upstream]) -> Upstream:
    return run(*(["--handshake"] if request.param == "handshake" else []))


@pytest.fixture
def free_port() -> int:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_a_server_of_either_era_is_described_and_called(source: McpSource, run: Callable[..., Upstream]) -> None:
    for options, era in ((["--handshake"], "2025-11-25"), ([], "2026-07-28")):
        spec = run(*options).spec()
        manifest = await source.describe(spec, {})
        assert {"echo", "add", "regional"} <= {tool.name for tool in manifest.tools}
        assert (manifest.description, manifest.instructions) == ("A server for tests", "Use it well.")
        assert (await call(source, spec, "add", a=2, b=3)).structured == {"sum": 5}
        assert source.states()[-1]["era"] == era


@pytest.mark.both_paths
async def test_progress_and_large_results_pass_through(source: McpSource, upstream: Upstream) -> None:
    "G7: results may be larger than what the SDK takes by default."
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    spec = upstream.spec()
    await source.call(spec, {}, Tool(plugin="web", name="progress"), {}, CallContext(progress=progress))
    assert seen == [1, 2, 3]
    assert len(text(await call(source, spec, "large", size=3_000_000))) == 3_000_000


async def test_a_hanging_call_times_out_alone_and_the_server_is_told(source: McpSource, upstream: Upstream) -> None:
    "G7, G8: cancellation reaches the server in the way of its era."
    spec = upstream.spec()
    hanging = asyncio.create_task(call(source, replace(spec, timeout=0.5), "slow"))
    assert text(await call(source, spec, "echo", text="meanwhile")) == "meanwhile"
    with pytest.raises(UpstreamTimeoutError, match=r"Server 'web' did not answer 'slow' within 0\.5 s"):
        await hanging
    async with asyncio.timeout(30):
        while text(await call(source, spec, "cancelled")) != "1":
            pass


async def test_many_calls_run_at_once(source: McpSource, upstream: Upstream) -> None:
    spec = upstream.spec()
    answers = await asyncio.gather(*(call(source, spec, "echo", text=str(n)) for n in range(64)))
    assert [text(answer) for answer in answers] == [str(n) for n in range(64)]


async def test_a_server_that_was_started_again_is_called_again(source: McpSource, upstream: Upstream) -> None:
    "G8: a session that the new process does not know is no error."
    spec = upstream.spec()
    before = text(await call(source, spec, "pid"))
    upstream.kill()
    with pytest.raises(ToolUnavailableError, match=rf"Server 'web' at http://127.0.0.1:{upstream.port}/mcp .*no conn"):
        await call(source, spec, "pid")
    upstream.start()
    assert text(await call(source, spec, "pid")) != before


async def test_a_server_that_breaks_off_costs_only_the_calls_under_way(source: McpSource, upstream: Upstream) -> None:
    "G8: they may have run, so they are not repeated."
    spec = upstream.spec()
    await call(source, spec, "pid")
    with pytest.raises(UpstreamError, match="Server 'web' went away during the call of 'break'"):
        await call(source, spec, "break")
    upstream.kill()
    upstream.start()
    assert text(await call(source, spec, "echo", text="back")) == "back"


async def test_a_broken_connection_costs_one_call_of_several(source: McpSource, upstream: Upstream) -> None:
    "G8: others under way on the same upstream go on."

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if b"drop me" in data:
                break
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner = await asyncio.open_connection("127.0.0.1", upstream.port)
        await asyncio.gather(relay(reader, inner[1]), relay(inner[0], writer))

    proxy = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    spec = ServerSpec(name="web", url=f"http://127.0.0.1:{port}/mcp", transport="http")
    hanging = asyncio.create_task(call(source, spec, "slow"))
    await call(source, spec, "pid")
    with pytest.raises(UpstreamError, match="went away during the call of 'echo': the connection broke"):
        await call(source, spec, "echo", text="drop me")
    await call(source, spec, "pid")
    assert not hanging.done()
    hanging.cancel()
    assert state(source, "web")["state"] == "up"
    proxy.close()


async def test_changed_tools_are_announced(source: McpSource, upstream: Upstream) -> None:
    "G8: the standing stream of the handshake era, subscriptions/listen of the 2026 era."
    changed: list[str] = []
    source.on_changed(changed.append)
    spec = upstream.spec()
    await source.describe(spec, {})
    await call(source, spec, "grow")
    await until(lambda: changed)
    assert "grown" in [tool.name for tool in (await source.describe(spec, {})).tools]


async def test_arguments_that_belong_in_headers_are_sent_there(source: McpSource, run: Callable[..., Upstream]) -> None:
    "A call needs no list before it: the list is fetched when the server asks for headers."
    assert text(await call(source, run().spec(), "regional", region="eu")) == "eu"


async def test_credentials_are_sent_and_their_refusal_is_told(source: McpSource, run: Callable[..., Upstream]) -> None:
    "P6, X5: a 401 says so and shows no secret."
    upstream = run("--token", "swordfish")
    good = upstream.spec(headers={"Authorization": "Bearer swordfish"})
    assert text(await call(source, good, "echo", text="in")) == "in"
    with pytest.raises(
        ToolUnavailableError, match=r"HTTP 401 \(who are you\?\): the credentials are missing or"
    ) as caught:
        await call(source, upstream.spec(headers={"Authorization": "Bearer hunter22"}), "echo")
    assert caught.value.hint == "Correct `headers`."
    assert "hunter22" not in str(caught.value)


async def test_a_server_that_is_down_is_unavailable_and_its_password_is_not_shown(
    source: McpSource, free_port: int
) -> None:
    "P6, X5: the error names the URL without what is secret in it."
    spec = ServerSpec(name="web", url=f"http://ada:swordfish@127.0.0.1:{free_port}/mcp?key=abc", transport="http")
    with pytest.raises(ToolUnavailableError) as caught:
        await source.describe(spec, {})
    assert f"Server 'web' at http://127.0.0.1:{free_port}/mcp is not available: no connection" in str(caught.value)
    assert "swordfish" not in str(caught.value) + str(source.states())
    assert state(source, "web")["state"] == "down"


@pytest.mark.parametrize(("path", "status"), [("/nowhere", "404"), ("/teapot", "418")])
async def test_a_wrong_url_is_told(source: McpSource, run: Callable[..., Upstream], path: str, status: str) -> None:
    with pytest.raises(ToolUnavailableError, match=f"it answered HTTP {status}"):
        await source.describe(run().spec(path), {})


async def test_a_url_without_scheme_is_told(source: McpSource) -> None:
    with pytest.raises(ToolUnavailableError, match="its URL must begin with http"):
        await source.describe(ServerSpec(name="web", url="127.0.0.1/mcp", transport="http"), {})


async def test_a_server_of_the_older_transport_works_and_is_connected_again(
    source: McpSource, run: Callable[..., Upstream]
) -> None:
    upstream = run("sse")
    spec = upstream.spec("/sse", transport="sse")
    assert [tool.name for tool in (await source.describe(spec, {})).tools] == ["echo"]
    assert text(await call(source, spec, "echo", text="old")) == "old"
    upstream.kill()
    await until(lambda: state(source, "web")["state"] == "down")
    upstream.start()
    assert text(await call(source, spec, "echo", text="again")) == "again"


async def test_a_restart_of_a_server_over_http_is_another_session_and_calls_under_way_fail(
    source: McpSource, upstream: Upstream
) -> None:
    """G8: the same error as where it goes away; the address is asked again."""
    spec = upstream.spec()
    await call(source, spec, "echo", text="a")
    slow = asyncio.create_task(call(source, spec, "slow"))
    await until(lambda: state(source, "web")["in_flight"] == 1)
    await source.restart(spec)
    with pytest.raises(UpstreamError, match="an operator restarted it"):
        await slow
    assert (await call(source, spec, "add", a=2, b=3)).structured == {"sum": 5}
    (one,) = source.connections(spec)
    assert (one.state, one.starts, one.error) == ("up", 2, "")


async def test_a_server_over_http_that_is_gone_is_down_until_it_answers_again(
    source: McpSource, run: Callable[..., Upstream]
) -> None:
    """G8: since when and why, also in the era that has no connection to lose."""
    upstream = run()
    spec = upstream.spec()
    await call(source, spec, "echo", text="a")
    (well,) = source.connections(spec)
    upstream.kill()
    for _ in range(4):
        with pytest.raises(ToolUnavailableError):
            await call(source, spec, "echo", text="a")
    (gone,) = source.connections(spec)
    assert (well.state, gone.state) == ("up", "down")
    assert well.since is not None
    assert gone.since is not None
    assert gone.since > well.since
    assert "is not available" in gone.error
    assert [line.text for line in source.printed(spec)] == ["it is up", gone.error]
    upstream.start()
    assert (await call(source, spec, "add", a=2, b=3)).structured == {"sum": 5}
    (again,) = source.connections(spec)
    assert (again.state, again.error) == ("up", gone.error)
    assert again.since is not None
    assert again.since > gone.since
