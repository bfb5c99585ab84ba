"""Proxies that the environment names: one is asked for the addresses that need it, and costs no others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from subprocess import PIPE, Popen

import pytest
from mcp_helpers import call, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.certificates import tls
from pegboard.sources.mcp.transports.server_process import environment
from sdk_servers import sdk_command

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def web() -> Iterator[ServerSpec]:
    with Popen(sdk_command("sdk_server.py", "http"), stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield ServerSpec(name="web", url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", transport="http")
        process.kill()


@asynccontextmanager
async def proxy(answer: bytes | None, asked: list[bytes]) -> AsyncIterator[str]:
    """Serve a proxy: with one answer to everything, or, with none, as SOCKS 5 does."""

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer or b"")
        await writer.drain()
        writer.close()

    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\x05\x00")
        _, _, _, kind = await reader.readexactly(4)
        length = 4 if kind == 1 else (await reader.readexactly(1))[0]
        host = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2))
        asked.append(host)
        there, away = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await asyncio.gather(_copied(reader, away), _copied(there, writer))

    server = await asyncio.start_server(socks if answer is None else answered, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.mark.parametrize(
    "named",
    [
        {"HTTP_PROXY": NOWHERE, "NO_PROXY": "localhost, 127.0.0.0/8"},
        {"ALL_PROXY": "socks4://127.0.0.1:9", "NO_PROXY": "127.0.0.1"},
        {"HTTPS_PROXY": "teapot://127.0.0.1:9"},
        {"ALL_PROXY": "socks5://127.0.0.1:9", "NO_PROXY": "*"},
    ],
)
async def test_a_proxy_that_an_address_does_not_need_costs_nothing(
    source: McpSource, web: ServerSpec, monkeypatch: pytest.MonkeyPatch, named: dict[str, str]
) -> None:
    """P6: what it is for is decided by `NO_PROXY` and by the scheme of the server's address."""
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    assert text(await call(source, web, "echo", text="through")) == "through"


async def test_a_server_is_reached_through_a_socks_proxy(
    source: McpSource, web: ServerSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    async with proxy(None, asked) as place:
        monkeypatch.setenv("ALL_PROXY", f"socks5h://{place}")
        assert text(await call(source, web, "echo", text="through")) == "through"
        await source.aclose()
    assert set(asked) == {bytes([127, 0, 0, 1])}


@pytest.mark.parametrize("url", ["http://far.example/mcp", "https://far.example/mcp"])
async def test_a_proxy_that_wants_a_login_is_named_with_its_variable(
    source: McpSource, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """P6, X5: the login in its address is not repeated."""
    asked: list[bytes] = []
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
    name = "HTTPS_PROXY" if url.startswith("https") else "HTTP_PROXY"
    async with proxy(refusal, asked) as place:
        monkeypatch.setenv(name, f"http://ada:s3cret-word@{place}")
        with pytest.raises(ToolUnavailableError) as caught:
            await call(source, ServerSpec(name="web", url=url, transport="http"), "echo", text="a")
    said = f"{caught.value.message} {caught.value.hint}"
    assert asked
    assert "wants a login (HTTP 407)" in said
    assert f"{name} (http://{place})" in said
    assert "s3cret-word" not in said


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (NOWHERE, "cannot be reached"),
        ("teapot://127.0.0.1:9", "is of an unknown kind"),
        ("http://a b:x", "is no address"),
    ],
)
async def test_a_proxy_that_cannot_be_used_is_named_with_its_variable(
    source: McpSource, web: ServerSpec, monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", address)
    with pytest.raises(ToolUnavailableError) as caught:
        await call(source, replace(web, url="http://far.example/mcp"), "echo", text="a")
    assert why in caught.value.message
    assert "HTTP_PROXY" in caught.value.message


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_certificates_that_are_gone_cost_the_servers_that_need_them(
    source: McpSource, web: ServerSpec, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """P6: those over https; a server over http needs none."""
    monkeypatch.setenv(name, "/nowhere/gone.pem")
    tls.cache_clear()
    try:
        assert text(await call(source, web, "echo", text="plain")) == "plain"
        far = replace(web, name="far", url="https://127.0.0.1:9/mcp")
        with pytest.raises(ToolUnavailableError) as caught:
            await call(source, far, "echo", text="a")
        assert (f"{name} names" in caught.value.message) == (name == "SSL_CERT_FILE")
    finally:
        tls.cache_clear()


@pytest.mark.parametrize("name", ["http_proxy", "DISPLAY", "SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS"])
def test_a_server_gets_the_ways_of_its_user_unless_it_is_confined(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A7: a confined one gets no way around its confinement; what a configuration says goes before."""
    from pegboard.core.model.specs import Confinement

    monkeypatch.setenv(name, "of-the-user")
    spec = ServerSpec(name="a", command="x")
    assert environment(spec)[name] == "of-the-user"
    assert environment(replace(spec, env={name: "own"}))[name] == "own"
    assert name not in environment(replace(spec, confine=Confinement()))
