"""Servers over HTTP that redirect: within their origin they are followed, elsewhere they are not."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from subprocess import PIPE, Popen

import httpx2
import pytest
from mcp_helpers import SERVERS, call, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.wire.redirects import RedirectError, within_origin
from sdk_servers import program_command, sdk_command

pytestmark = pytest.mark.cover(1)

Start = Callable[..., ServerSpec]


@contextmanager
def server(kind: str, *options: str) -> Iterator[ServerSpec]:
    with Popen(sdk_command("sdk_server.py", kind, *options), stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        origin = f"http://127.0.0.1:{int(process.stdout.readline())}"
        yield ServerSpec(
            name="web",
            url=f"{origin}/{'sse' if kind == 'sse' else 'mcp'}",
            transport="sse" if kind == "sse" else "http",
            headers={"Authorization": "Bearer lab"},
        )
        process.kill()


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda kind, *options: stack.enter_context(server(kind, *options))


def asked(spec: ServerSpec) -> list[tuple[str, str]]:
    """Return what came to a server, in order: method and path; of a small one what it redirected."""
    with httpx2.Client(trust_env=False) as http:
        answer = http.get(str(httpx2.URL(spec.url or "").join("/asked")))
    pairs = [one.split() if isinstance(one, str) else one for one in answer.json()]
    return [(method, path) for method, path in pairs]


@pytest.mark.both_paths
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_on_the_same_origin_keeps_method_body_and_headers(
    source: McpSource, start: Start, status: int
) -> None:
    """G7: the server is told each time what it would have been told without a redirect."""
    spec = start("http", "--redirect", str(status), "--token", "lab")
    assert text(await call(source, spec, "echo", text="x" * 100_000)) == "x" * 100_000
    assert {method for method, path in asked(spec) if path == "/mcp/"} == {"POST"}


@pytest.mark.both_paths
@pytest.mark.parametrize("location", ["{path}/", "{name}/", "./{name}/?from={path}"])
async def test_the_address_that_a_server_redirects_to_is_asked_from_then_on(
    source: McpSource, start: Start, location: str
) -> None:
    """G7: a redirect costs one request of a connection, not one of each call."""
    spec = start("http", "--redirect", "307", "--location", location)
    for number in range(5):
        assert text(await call(source, spec, "echo", text=str(number))) == str(number)
    assert asked(spec).count(("POST", "/mcp")) == 1


@pytest.mark.both_paths
async def test_a_body_that_waits_to_be_asked_for_is_redirected_too(source: McpSource, start: Start) -> None:
    """G7: what is configured for requests stays with them."""
    spec = start("http", "--redirect", "307", "--token", "lab")
    spec = replace(spec, headers={**spec.headers, "Expect": "100-continue"})
    for word in ("first", "second"):
        assert text(await call(source, spec, "echo", text=word)) == word


@pytest.mark.both_paths
async def test_the_stream_and_the_end_of_a_session_are_redirected_too(source: McpSource, start: Start) -> None:
    """G7: GET and DELETE of the handshake era."""
    spec = start("http", "--redirect", "308", "--handshake")
    assert text(await call(source, spec, "echo", text="x")) == "x"
    while ("GET", "/mcp/") not in asked(spec):
        assert text(await call(source, spec, "echo", text="x")) == "x"
    await source.aclose()
    assert asked(spec)[-1] == ("DELETE", "/mcp/")


async def test_the_older_transport_is_redirected_too(source: McpSource, start: Start) -> None:
    """G7: its stream, and what is posted to the address that it names."""
    spec = start("sse", "--redirect", "307", "--token", "lab")
    assert text(await call(source, spec, "echo", text="x")) == "x"
    assert ("GET", "/sse/") in asked(spec)
    assert ("POST", "/messages/") in asked(spec)


@pytest.mark.both_paths
@pytest.mark.parametrize(("kind", "status"), [("http", 301), ("http", 303), ("http", 307), ("sse", 302), ("sse", 308)])
async def test_a_redirect_to_another_origin_is_refused_and_nothing_reaches_it(
    source: McpSource, start: Start, kind: str, status: int
) -> None:
    """G2: credentials of one server are not another's."""
    other = start(kind)
    spec = start(kind, "--redirect", str(status), "--location", f"{other.url}?token=hidden")
    with pytest.raises(ToolUnavailableError) as refused:
        await call(source, spec, "echo", text="x")
    assert f"it redirects to {other.url}, another origin, which is not followed" in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert "Set `url` to the address where the server answers." in str(refused.value)
    assert asked(other) == []


@pytest.mark.both_paths
async def test_redirects_in_a_circle_end_with_a_reason(source: McpSource, start: Start) -> None:
    """G7: six requests, and no more."""
    spec = start("http", "--redirect", "307", "--location", "{path}")
    with pytest.raises(ToolUnavailableError, match=r"it redirects more than 5 times, at last from .*/mcp"):
        await call(source, spec, "echo", text="x")
    asked_before = len(asked(spec))
    assert asked_before <= 12  # the attempts of both eras


@contextmanager
def small_server(*options: str) -> Iterator[ServerSpec]:
    command = program_command(str(SERVERS / "fast_server.py"), "http", "--handshake", *options)
    with Popen(command, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield ServerSpec(name="web", url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", transport="http")
        process.kill()


ENDLESS = ["{path}", "{path}/deeper", "/mcp?again"]


@pytest.mark.both_paths
@pytest.mark.parametrize("location", ENDLESS)
async def test_redirects_without_end_end_with_a_reason(source: McpSource, location: str) -> None:
    """G7: in a circle, or ever deeper."""
    with (
        small_server("--redirect", f"POST={location}") as spec,
        pytest.raises(ToolUnavailableError, match="it redirects more than 5 times"),
    ):
        await call(source, spec, "echo", text="x")
    assert source.states()[0]["state"] == "down"


@pytest.mark.both_paths
@pytest.mark.parametrize("location", [*ENDLESS, "http://127.0.0.1:9/mcp", "http://[::bad/"])
async def test_a_session_ends_quietly_where_its_end_is_redirected_without_end(
    source: McpSource, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    """G7: the server is asked six times at most, and closing neither fails nor hangs."""
    with small_server("--redirect", f"DELETE={location}") as spec:
        assert text(await call(source, spec, "echo", text="x")) == "x"
        async with asyncio.timeout(5):
            await source.aclose()
        assert 1 <= len(asked(spec)) <= 6
    assert not [record for record in caplog.records if record.name.startswith("pegboard")]


@pytest.mark.both_paths
@pytest.mark.parametrize("location", ENDLESS)
async def test_a_stream_that_is_redirected_without_end_costs_no_call(source: McpSource, location: str) -> None:
    """G7: what a server says unasked is lost, what it answers is not."""
    with small_server("--redirect", f"GET={location}") as spec:
        for word in ("one", "two"):
            assert text(await call(source, spec, "echo", text=word)) == word


@pytest.mark.parametrize(
    "location",
    ["https://h/mcp/", "http://h:81/mcp/", "//other/mcp", "http://u:p@h/mcp", "http://h.other/mcp", "http://[::bad/"],
)
def test_what_is_another_origin(location: str) -> None:
    """G2: scheme, host and port; and no credentials of someone else."""
    with pytest.raises(RedirectError):
        within_origin(httpx2.URL("http://h/mcp"), location)


def test_credentials_in_an_address_stay_in_it() -> None:
    """G7: a redirect does not repeat them."""
    assert str(within_origin(httpx2.URL("http://u:p@h/mcp?a=1"), "http://h:80/mcp/?b=2")) == "http://u:p@h/mcp/?b=2"
