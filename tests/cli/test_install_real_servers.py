"""Three clients are started as they start what `--install` wrote, with five servers that people use (G12)."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from command_support import Run, put, servers_in
from test_install_starts import called

KEPT = Path(__file__).resolve().parents[2] / ".venv" / "server-packages"
"""What the runners of packages have fetched: once, not for each test."""
CACHES = {"npm_config_cache": str(KEPT / "npm"), "UV_CACHE_DIR": str(KEPT / "uv")}
RUNNERS = Path(sys.executable).parent
PLACES = {
    "cursor": Path("home/.cursor/mcp.json"),
    "codex": Path("home/.codex/config.toml"),
    "claude-code": Path(".mcp.json"),
}
pytestmark = pytest.mark.usefixtures("home")


class Page(SimpleHTTPRequestHandler):
    """A page of this machine."""

    def do_GET(self) -> None:
        body = b"<html><body><h1>Notes</h1><p>Buy milk, and a lamp.</p></body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the base class
        """Write nothing."""


@contextmanager
def page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/notes.html"
        finally:
            server.shutdown()
            thread.join()


def real_servers(folder: Path) -> dict[str, Any]:
    """Return five published servers as their pages say that they are written into a client's file."""
    uvx = str(RUNNERS / "uvx")
    found = {
        "filesystem": ("npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", str(folder)),
        "memory": ("npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"),
        "git": (uvx, "mcp-server-git==2026.10.19"),
        "time": (uvx, "mcp-server-time==2026.10.19"),
        "fetch": (uvx, "mcp-server-fetch==2026.10.24", "--ignore-robots-txt", "--allow-private-ips"),
    }
    entries = {name: {"command": words[0], "args": list(words[1:]), "env": CACHES} for name, words in found.items()}
    entries["memory"]["env"] = {**CACHES, "MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
    return entries


def written(path: Path, servers: dict[str, Any]) -> bytes:
    """Write them into the file of a client."""
    if path.suffix != ".toml":
        return put(str(path), json.dumps({"mcpServers": servers}, indent=2)).read_bytes()
    lines = [
        f"[mcp_servers.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
        for name, entry in ((name, {k: v for k, v in entry.items() if k != "env"}) for name, entry in servers.items())
    ]
    tables = [
        f"[mcp_servers.{name}.env]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry["env"].items())
        for name, entry in servers.items()
    ]
    return put(str(path), "\n".join([*lines, *tables])).read_bytes()


def one(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "call_tool", {"name": name, "arguments": arguments}


@pytest.mark.parametrize("client", PLACES)
def test_a_client_works_with_its_servers_as_before(run: Run, folder: Path, client: str) -> None:
    """G12: it makes a file, edits it, remembers a fact over a restart, commits, and fetches a page."""
    place = PLACES[client]
    before = written(place, real_servers(folder))
    for command in (["init", "-q"], ["config", "user.name", "Ada"], ["config", "user.email", "ada@example.org"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    assert run("init", "--no-check", "--install", client).code == 0
    entry, text, repository = servers_in(place)["pegboard"], str(folder / "new.txt"), str(folder)
    fact = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
    with page() as url:
        calls = [
            ("load_tools", {"names": list(real_servers(folder))}),
            one("filesystem__write_file", path=text, content="one\n"),
            one("filesystem__edit_file", path=text, edits=[{"oldText": "one", "newText": "two"}]),
            one("memory__create_entities", entities=[fact]),
            one("git__git_add", repo_path=repository, files=["new.txt"]),
            one("git__git_commit", repo_path=repository, message="Add a text"),
            one("time__get_current_time", timezone="UTC"),
            one("fetch__fetch", url=url),
        ]
        answers = asyncio.run(called(entry, calls))
    assert Path(text).read_text() == "two\n"
    assert "Buy milk, and a lamp." in answers[-1]
    remembered = asyncio.run(called(entry, [("load_tools", {"names": ["memory"]}), one("memory__read_graph")]))
    assert "likes tea" in remembered[-1]
    log = subprocess.run(["git", "-C", repository, "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "Add a text\n"
    assert run("init", "--uninstall", client).code == 0
    assert place.read_bytes() == before
