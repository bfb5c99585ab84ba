"""Ask twenty published servers for their tools once: ``python -m benchmarks.everyday.collecting [SERVER …]``.

Each is installed under ``.bench/``, started over stdio with tokens that open nothing, asked for ``initialize`` and
``tools/list``, and written to ``catalogs/SERVER.json`` beside this file: its own description, and of its tools
the fields in ``KEPT``, unchanged but for what they say of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.gateways.installing import environment, node, packages

CATALOGS = Path(__file__).resolve().parent / "catalogs"
KEPT = ("name", "title", "description", "inputSchema", "annotations")
OF_THE_MACHINE = re.compile(
    r" \(Docker\)(?=\. Default shell)"
    r"|\n*🐳 DOCKER CONTAINER ENVIRONMENT DETECTED:.*?\nContainer: [^\n]*"
    r"|\n*🐳 DOCKER: [^\n]*\nWhen users ask [^\n]*? paths first\. *",
    re.DOTALL,
)
"""What Desktop Commander says of the container in which it was asked."""
PATIENCE = 120.0
"""Seconds until a server has to have answered one request."""
KEYS = {
    "client_id": "none",
    "client_secret": "none",
    "auth_uri": "http://localhost",
    "token_uri": "http://localhost",
    "redirect_uris": ["http://localhost"],
}


class CollectingError(Exception):
    """Say which server did not list its tools, and what it said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedServer:
    """How one server is installed and started; ``{home}`` in a text is its home folder, ``{docker}`` the port of
    what answers there as a Docker daemon."""

    package: str
    version: str
    licence: str
    copyright: str
    """Who holds it, as the package or its project says."""
    program: str
    """A console script of a Python package, or a file of a Node package (it ends in ``js``)."""
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    """JSON documents that it wants to find, by their paths in its home folder."""
    beside: tuple[str, ...] = ()
    """Requirements that its environment needs beside its package."""

    def command(self, name: str) -> list[str]:
        """Install it where it is missing; return the command that starts it, without its arguments."""
        if self.program.endswith("js"):
            folder = packages(f"everyday-{name}", {self.package: self.version})
            return [node(), str(folder / self.package / self.program)]
        folder = environment(f"everyday-{name}", *self.beside, f"{self.package}=={self.version}")
        return [str(folder / self.program)]


SERVERS = {
    "files": PublishedServer(
        package="@modelcontextprotocol/server-filesystem",
        version="2026.8.31",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="dist/index.js",
        arguments=("{home}",),
    ),
    "git": PublishedServer(
        package="mcp-server-git",
        version="2026.10.19",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="mcp-server-git",
    ),
    "github": PublishedServer(
        package="@modelcontextprotocol/server-github",
        version="2025.4.8",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="dist/index.js",
        variables={"GITHUB_PERSONAL_ACCESS_TOKEN": "none"},
    ),
    "sqlite": PublishedServer(
        package="mcp-server-sqlite",
        version="2025.4.25",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="mcp-server-sqlite",
        arguments=("--db-path", "{home}/shop.db"),
        beside=("mcp<2",),
    ),
    "browser": PublishedServer(
        package="@playwright/mcp",
        version="0.0.83",
        licence="Apache-2.0",
        copyright="Microsoft Corporation",
        program="cli.js",
        arguments=("--headless",),
    ),
    "fetch": PublishedServer(
        package="mcp-server-fetch",
        version="2026.10.24",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="mcp-server-fetch",
    ),
    "memory": PublishedServer(
        package="@modelcontextprotocol/server-memory",
        version="2026.8.31",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="dist/index.js",
    ),
    "kubernetes": PublishedServer(
        package="mcp-server-kubernetes",
        version="4.1.7",
        licence="MIT",
        copyright="2024 Suyog Sonwalkar",
        program="dist/index.js",
    ),
    "notion": PublishedServer(
        package="@notionhq/notion-mcp-server",
        version="2.5.2",
        licence="MIT",
        copyright="2025 Notion Labs, Inc.",
        program="bin/cli.mjs",
        variables={"NOTION_TOKEN": "ntn_none"},
    ),
    "desktop": PublishedServer(
        package="@wonderwhy-er/desktop-commander",
        version="0.2.52",
        licence="MIT",
        copyright="2024-2025 Eduard Ruzga and Desktop Commander Contributors",
        program="dist/index.js",
        arguments=("--no-onboarding",),
    ),
    "excel": PublishedServer(
        package="excel-mcp-server",
        version="2.2.2",
        licence="MIT",
        copyright="2025-2026 Haris Musa",
        program="excel-mcp-server",
        arguments=("stdio",),
        variables={"EXCEL_FILES_PATH": "{home}"},
    ),
    "time": PublishedServer(
        package="mcp-server-time",
        version="2026.10.19",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="mcp-server-time",
        arguments=("--local-timezone=Europe/Berlin",),
    ),
    "search": PublishedServer(
        package="@brave/brave-search-mcp-server",
        version="2.1.4",
        licence="MIT",
        copyright="2024 Anthropic, PBC; 2025 Brave Software, Inc",
        program="dist/index.js",
        variables={"BRAVE_API_KEY": "none"},
    ),
    "mail": PublishedServer(
        package="@gongrzhe/server-gmail-autoauth-mcp",
        version="1.1.11",
        licence="ISC",
        copyright="2025 GongRzhe",
        program="dist/index.js",
        variables={"GMAIL_OAUTH_PATH": "{home}/keys.json", "GMAIL_CREDENTIALS_PATH": "{home}/credentials.json"},
        files={"keys.json": {"installed": KEYS}, "credentials.json": {"access_token": "none", "expiry_date": 1}},
    ),
    "calendar": PublishedServer(
        package="@cocal/google-calendar-mcp",
        version="2.6.3",
        licence="MIT",
        copyright="2025 nspady",
        program="build/index.js",
        variables={"GOOGLE_OAUTH_CREDENTIALS": "{home}/keys.json"},
        files={"keys.json": {"installed": KEYS}},
    ),
    "docker": PublishedServer(
        package="docker-mcp",
        version="1.0.0",
        licence="MIT",
        copyright="2025 Son Dang",
        program="dist/index.js",
        variables={"DOCKER_MCP_HOST": "tcp://127.0.0.1:{docker}"},
    ),
    "slack": PublishedServer(
        package="@modelcontextprotocol/server-slack",
        version="2025.4.25",
        licence="MIT",
        copyright="2024 Anthropic, PBC",
        program="dist/index.js",
        variables={"SLACK_BOT_TOKEN": "xoxb-none", "SLACK_TEAM_ID": "T0"},
    ),
    "jira": PublishedServer(
        package="mcp-atlassian",
        version="0.23.1",
        licence="MIT",
        copyright="2024 Hyeonsoo Lee",
        program="mcp-atlassian",
        variables={
            "JIRA_URL": "https://example.atlassian.net",
            "JIRA_USERNAME": "ada@example.org",
            "JIRA_API_TOKEN": "none",
            "TOOLSETS": "all",
        },
    ),
    "sentry": PublishedServer(
        package="clr-sentry-mcp",
        version="1.0.0",
        licence="MIT",
        copyright="Clearminds",
        program="clr-sentry-mcp",
        variables={"SENTRY_URL": "https://sentry.example.org", "SENTRY_AUTH_TOKEN": "none", "SENTRY_ORG": "example"},
    ),
    "postgres": PublishedServer(
        package="mcp-postgres-server",
        version="0.3.1",
        licence="MIT",
        copyright="2025 Anton O",
        program="build/index.js",
        variables={"DATABASE_URL": "postgresql://ada:none@localhost:1/shop", "PG_ALLOW_WRITE": "true"},
    ),
}


class DockerVersion(BaseHTTPRequestHandler):
    """Answer every question as a Docker daemon answers that for its version, which its server asks at its start."""

    def do_GET(self) -> None:
        """Send the version."""
        body = b'{"Version": "27.0.0", "ApiVersion": "1.46"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Write no log."""


@contextmanager
def docker_daemon() -> Iterator[int]:
    """Answer for a Docker daemon on a port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), DockerVersion) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class Conversation:
    """JSON-RPC over a server's standard input and output, one request at a time; what it asks itself is refused."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._read = b""
        self._number = 0

    def send(self, method: str, **more: Any) -> None:
        """Send a message."""
        self._write({"method": method, **more})

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        self._number += 1
        self.send(method, id=self._number, params=params)
        end = time.monotonic() + PATIENCE
        while True:
            message = self._message(end)
            if "method" in message and "id" in message:
                self._write({"id": message["id"], "error": {"code": -32601, "message": "Only tools are asked for."}})
            elif message.get("id") == self._number:
                if "result" not in message:
                    raise CollectingError(f"{method} was refused: {message.get('error')}")
                return message["result"]

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def _message(self, end: float) -> dict[str, Any]:
        """Return the next line that is a JSON object; some servers print other lines between."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                line, newline, rest = self._read.partition(b"\n")
                if newline:
                    self._read = rest
                    if line.startswith(b"{"):
                        return json.loads(line)
                elif not selector.select(max(0.0, end - time.monotonic())):
                    raise CollectingError(f"no answer within {PATIENCE:g} s")
                elif not (more := os.read(self._process.stdout.fileno(), 1 << 16)):
                    raise CollectingError("it ended without an answer")
                else:
                    self._read += more


def listed(command: list[str], variables: Mapping[str, str], home: Path) -> dict[str, Any]:
    """Start a server; return its own description and its tools."""
    errors = home / "errors.txt"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            cwd=home,
            env={**os.environ, "HOME": str(home), "PYTHONHASHSEED": "0", **variables},
        )
    try:
        conversation = Conversation(process)
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "collecting", "version": "1"},
        }
        itself = conversation.ask("initialize", hello)
        conversation.send("notifications/initialized")
        tools: list[dict[str, Any]] = []
        params: dict[str, str] | None = {}
        while params is not None:
            page = conversation.ask("tools/list", params)
            tools += [{key: tool[key] for key in KEPT if key in tool} for tool in page["tools"]]
            params = {"cursor": page["nextCursor"]} if page.get("nextCursor") else None
    except (CollectingError, OSError) as error:
        raise CollectingError(f"{error}\n{errors.read_text('utf-8', 'replace')[-600:]}") from error
    finally:
        process.kill()
        process.communicate()
    return {**{key: itself[key] for key in ("serverInfo", "instructions") if key in itself}, "tools": tools}


def collected(name: str) -> dict[str, Any]:
    """Return the document of one server."""
    server = SERVERS[name]
    command = server.command(name)
    with tempfile.TemporaryDirectory(prefix="everyday-") as folder, docker_daemon() as port:
        home = Path(folder)
        for path, document in server.files.items():
            (home / path).write_text(json.dumps(document))
        variables = {key: value.format(home=home, docker=port) for key, value in server.variables.items()}
        arguments = [argument.format(home=home) for argument in server.arguments]
        said = listed([*command, *arguments], variables, home)
    for tool in said["tools"]:
        tool["description"] = OF_THE_MACHINE.sub("", tool.get("description", ""))
    text = json.dumps(said, ensure_ascii=False).replace(folder, "/home/ada")
    return {"server": name, **about(server), **json.loads(text)}


def about(server: PublishedServer) -> dict[str, str]:
    """Return what a catalog says of where its texts are from."""
    return {key: getattr(server, key) for key in ("package", "version", "licence", "copyright")}


def written(document: Mapping[str, Any]) -> str:
    """Return a document as JSON with a line for each tool."""
    head = json.dumps({key: value for key, value in document.items() if key != "tools"}, ensure_ascii=False)
    tools = ",\n".join(json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in document["tools"])
    return f'{head[:-1]}, "tools": [\n{tools}\n]}}\n'


def main(arguments: list[str] | None = None) -> int:
    """Write the catalogs; return 1 where a server did not list its tools."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everyday.collecting", description=__doc__)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="all of them by default")
    options = parser.parse_args(arguments)
    if unknown := set(options.servers) - SERVERS.keys():
        parser.error(f"no such server: {', '.join(sorted(unknown))}; known are {', '.join(SERVERS)}")
    CATALOGS.mkdir(exist_ok=True)
    failed = False
    for name in options.servers or SERVERS:
        try:
            document = collected(name)
        except CollectingError as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
            continue
        (CATALOGS / f"{name}.json").write_text(written(document), "utf-8")
        print(f"{name:10} {len(document['tools']):3} tools  {document['package']} {document['version']}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
