"""From the start of a gateway to its first answers, over stdio and HTTP, all that a start keeps being there."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

SERVER = Path(__file__).parent.parent / "tests" / "servers" / "fast_server.py"
SERVERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
CONFIGURATION = """
store: sqlite:///state.db
servers:
{servers}
toolkits:
  every: {{description: "Every server.", tools: [{names}]}}
agents:
  default: {{dialect: pegboard, tools: [one], allowed_toolkits: [every]}}
"""
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
}


def line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


HELLO = line(
    id=0,
    method="initialize",
    params={
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
)
READY = line(method="notifications/initialized")
LIST = line(id=1, method="tools/list")


def prepared(folder: str) -> dict[str, str]:
    """Write a configuration, start once so that all is kept that a start keeps, and return the environment."""
    servers = "\n".join(f'  {name}: {{command: "{sys.executable}", args: ["{SERVER}", stdio]}}' for name in SERVERS)
    text = CONFIGURATION.format(servers=servers, names=", ".join(SERVERS))
    Path(folder, "pegboard.yaml").write_text(text, encoding="utf-8")
    env = os.environ | {"XDG_CACHE_HOME": str(Path(folder, "cache")), "PEGBOARD_FAST_PATH": "1"}
    command = [sys.executable, "-m", "pegboard", "surface", "--config", "pegboard.yaml"]
    subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(2):
        serve(folder, env, "--stdio", "--alone").communicate(HELLO + READY + LIST)
    return env


def serve(folder: str, env: dict[str, str], *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pegboard", "serve", *options],
        cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def over_stdio_uncached(folder: str, env: dict[str, str]) -> dict[str, float]:
    """Start where no configuration is kept."""
    shutil.rmtree(Path(env["XDG_CACHE_HOME"], "pegboard", "configurations"), ignore_errors=True)
    found = over_stdio(folder, env)
    serve(folder, env, "--stdio", "--alone").communicate(HELLO + READY + LIST)  # it is kept again
    return {"tools/list, stdio, no kept configuration": found["tools/list, stdio"]}


def over_stdio(folder: str, env: dict[str, str]) -> dict[str, float]:
    start = time.perf_counter()
    with serve(folder, env, "--stdio", "--alone") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HELLO)
        process.stdin.flush()
        hello, greeted = process.stdout.readline(), time.perf_counter()
        process.stdin.write(READY + LIST)
        process.stdin.flush()
        listed, done = process.stdout.readline(), time.perf_counter()
        process.kill()
    assert b'"serverInfo"' in hello, hello
    assert b'"one__echo"' in listed, listed
    return {"initialize, stdio": (greeted - start) * 1000, "tools/list, stdio": (done - start) * 1000}


def over_http(folder: str, env: dict[str, str]) -> dict[str, float]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    start = time.perf_counter()
    with serve(folder, env, "--port", str(port)) as process:
        client = connected(port)
        listening = time.perf_counter()
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/list",
        }
        client.request("POST", "/mcp", line(id=1, method="tools/list", params={"_meta": MODERN}), headers)
        body, done = client.getresponse().read(), time.perf_counter()
        client.close()
        process.kill()
    assert b'"one__echo"' in body, body
    return {"listening, HTTP": (listening - start) * 1000, "tools/list, HTTP": (done - start) * 1000}


def connected(port: int) -> http.client.HTTPConnection:
    while True:
        client = http.client.HTTPConnection("127.0.0.1", port)
        try:
            client.connect()
        except ConnectionRefusedError:
            time.sleep(0.001)
        else:
            return client
