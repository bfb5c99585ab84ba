"""ContextForge: a registry over HTTP; its own ``translate`` puts each stdio server behind an address."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.clients import CallError, Client, Http
from benchmarks.gateways.installing import environment
from benchmarks.gateways.upstreams import HANGING, Server

PACKAGE = "mcp-contextforge-gateway==1.0.7.post20260921"
ADMIN = "admin@example.com"
BRIDGE = "mcpgateway.translate"


class ContextForge(Adapter):
    name = "contextforge 1.0.7"
    note = "servers behind its translate bridges, which are not counted as its memory; rate limit off"
    transports = ("http",)
    modern = False
    keeps = False

    def __init__(self) -> None:
        self._secret = secrets.token_urlsafe(40)
        self._other = secrets.token_urlsafe(40)
        self._ports: dict[str, int] = {}

    def install(self) -> None:
        environment("contextforge", PACKAGE)

    def command(self, setup: Setup) -> list[str]:
        program = environment("contextforge", PACKAGE) / "mcpgateway"
        return [str(program), "--host", "127.0.0.1", "--port", str(setup.port)]

    def env(self, setup: Setup) -> dict[str, str]:
        return {
            "DATABASE_URL": f"sqlite:///{setup.folder}/forge.db",
            "JWT_SECRET_KEY": self._secret,
            "AUTH_ENCRYPTION_SECRET": self._other,
            "BASIC_AUTH_PASSWORD": self._other,
            "PLATFORM_ADMIN_EMAIL": ADMIN,
            "PLATFORM_ADMIN_PASSWORD": f"Bench-1-{self._other}",
            "SSRF_ALLOW_LOCALHOST": "true",
            "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
            "REQUIRE_STRONG_SECRETS": "false",
            "CACHE_TYPE": "memory",
            "RATE_LIMITING_ENABLED": "false",  # 100 calls a minute otherwise
        }

    def helpers(self, setup: Setup) -> list[list[str]]:
        python = environment("contextforge", PACKAGE) / "python"
        found: list[list[str]] = []
        for server in setup.servers:
            port = self._ports[server.name] = free_port()
            script = setup.write(
                f"{server.name}.sh",
                "\n".join(
                    [f"export {key}='{value}'" for key, value in server.env.items()]
                    + ["exec " + " ".join(f"'{part}'" for part in (server.command, *server.args))]
                ),
            )
            listen = ["--host", "127.0.0.1", "--port", str(port)]
            found.append([str(python), "-m", BRIDGE, "--stdio", f"sh {script}", "--expose-streamable-http", *listen])
        return found

    async def settle(self, setup: Setup, base: str) -> tuple[str, dict[str, str]]:
        python = environment("contextforge", PACKAGE) / "python"
        token = await asyncio.to_thread(self._token, str(python), setup)
        admin = Http(base, {"authorization": f"Bearer {token}", "content-type": "application/json"})
        for server in setup.servers:
            await listening(self._ports[server.name])
            address = f"http://127.0.0.1:{self._ports[server.name]}/mcp"
            shape = {"name": server.name, "url": address, "transport": TRANSPORT}
            try:
                await _asked(admin, "POST", "/gateways", shape)
            except (CallError, TimeoutError):
                # It refuses servers that do not answer when they are registered.
                if server.name != HANGING:
                    raise
        tools = await _asked(admin, "GET", "/tools?limit=0", None)
        listed = tools["tools"] if isinstance(tools, dict) else tools
        bundle = {"server": {"name": "bench", "associated_tools": [tool["id"] for tool in listed]}}
        made = await _asked(admin, "POST", "/servers", bundle)
        await admin.close()
        return f"{base}/servers/{made['id']}/mcp", {"authorization": f"Bearer {token}"}

    def _token(self, python: str, setup: Setup) -> str:
        command = [python, "-m", "mcpgateway.utils.create_jwt_token", "--username", ADMIN, "--exp", "600"]
        surroundings = {**self.env(setup), "PATH": "/usr/bin:/bin"}
        said = subprocess.run(
            [*command, "--secret", self._secret], env=surroundings, capture_output=True, text=True, check=True
        )
        return said.stdout.strip().splitlines()[-1]

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return f"{server}-{tool}", arguments

    async def reachable(self, client: Client, servers: Sequence[Server]) -> int:
        return len(await client.tools())


TRANSPORT = "STREAMABLEHTTP"


async def _asked(http: Http, method: str, path: str, document: object) -> Any:
    body = b"" if document is None else json.dumps(document).encode()
    status, _, answer = await asyncio.wait_for(http.send(method, path, body, {}), 60)
    if status >= 300:
        raise CallError(f"{method} {path}: HTTP {status}: {answer[:200].decode(errors='replace')}")
    return json.loads(answer)


def free_port() -> int:
    """Return a port of 127.0.0.1 that no one listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def listening(port: int, within: float = 60) -> None:
    """Wait until someone listens on a port of 127.0.0.1; raises ``CallError``."""
    deadline = time.monotonic() + within
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if time.monotonic() > deadline:
                raise CallError(f"nothing listened on port {port} within {within:.0f} s") from None
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return
