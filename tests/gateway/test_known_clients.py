"""What is known of clients counts wherever a client is judged: its list at the command line, and its bill."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.config.client_files.known import CLIENTS
from pegboard.core.model.known_clients import KNOWN_CLIENTS
from pegboard.core.model.tools import counted_json
from sdk_servers import pegboard_command, program_command

from .clients import HANDSHAKE, MODERN, connected, process, spawn

GIT = str(Path(sys.executable).parent / "mcp-server-git")


def write(folder: Path) -> Path:
    command, *args = program_command(GIT)
    agents = {"default": {"discoverable": ["git"]}, "other": {"tools": [{"git": {"include_tools": ["git_log"]}}]}}
    config = {"servers": {"git": {"command": command, "args": args}}, "store": "sqlite:///own.db", "agents": agents}
    path = folder / "own.yaml"
    path.write_text(json.dumps(config))
    return path


async def command(*words: str, folder: Path | None = None) -> Any:
    child = await asyncio.create_subprocess_exec(
        *pegboard_command(*words, "--json"), stdout=asyncio.subprocess.PIPE, cwd=folder
    )
    printed, _ = await child.communicate()
    assert child.returncode == 0, printed
    return json.loads(printed)


def test_every_client_that_is_known_has_its_file_its_date_and_where_it_was_read() -> None:
    """F4: none is judged by what no one wrote down; Junie is documented nowhere."""
    assert [client.name for client in KNOWN_CLIENTS] == [*CLIENTS]
    assert all(client.read_on >= "2026-11" for client in KNOWN_CLIENTS)
    assert [client.name for client in KNOWN_CLIENTS if not client.read_at] == ["junie"]
    declared = [name for client in KNOWN_CLIENTS for name in client.declared]
    assert len(declared) == len(set(declared))


@pytest.mark.parametrize(("name", "declared"), [("cursor", "cursor-vscode"), ("claude-desktop", "claude-ai")])
async def test_the_command_shows_the_list_that_a_client_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, declared: str
) -> None:
    """G1, G5: with what it has loaded, under the session of its folder and the agent that its own file names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    config = write(tmp_path)
    async with Pegboard.open(config) as board:
        await board.ready("git")
    async with connected(spawn(config), HANDSHAKE, name=declared) as client:
        await client.load("git_status")
        listed = await client.client.list_tools(cache_mode="refresh")
        instructions = client.client.instructions
    found = await command("surface", "--client", name, "--config", str(config), folder=tmp_path)
    assert found["tools"] == [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed.tools]
    assert "git__git_status" in [tool["name"] for tool in found["tools"]]
    assert found["instructions"] == instructions
    assert found["session"].startswith(f"{declared}:")
    tokens = found["tokens"]
    assert tokens["saved"] == tokens["direct"] - tokens["sent"]
    assert (tokens["sent"] < tokens["definitions"]) == (name == "cursor")

    file = tmp_path / (".cursor/mcp.json" if name == "cursor" else ".config/Claude/claude_desktop_config.json")
    file.parent.mkdir(parents=True)
    entry = {"command": "pegboard", "args": ["serve", "--stdio", "--config", str(config), "--agent", "other"]}
    file.write_text(json.dumps({"mcpServers": {"pegboard": entry}}))
    own = await command("surface", "--client", name, folder=tmp_path)
    assert (own["agent"], [tool["name"] for tool in own["tools"]]) == ("other", ["git__git_log"])


@pytest.mark.parametrize(
    ("declared", "era", "transport"),
    [
        ("cursor-vscode", MODERN, "http"),
        ("cursor-vscode", HANDSHAKE, "stdio"),
        ("claude-code", HANDSHAKE, "http"),
        ("my own", HANDSHAKE, "stdio"),
    ],
)
async def test_what_was_saved_is_against_what_the_client_would_have_sent(
    tmp_path: Path, declared: str, era: str, transport: str
) -> None:
    """F4: Cursor sends names, also of Pegboard's tools, Claude Code names, but Pegboard's tools whole."""
    config = write(tmp_path)
    async with Pegboard.open(config) as board:
        await board.ready("git")
        count, git = board.services.counter.count, board.world.catalog.plugins["git"].tools
    if transport == "stdio":
        async with connected(spawn(config), era, name=declared) as client:
            own = await used(client)
    else:
        async with process(config) as running, connected(running.url, era, name=declared) as client:
            own = await used(client)
    totals = (await command("bill", "--config", str(config)))["totals"]
    whole, names = sum(count(counted_json(tool)) for tool in git), count("\n".join(f"git__{tool.name}" for tool in git))
    own_names = count("\n".join(f"pegboard__{tool}" for tool in own))
    assert totals["requests"] == 1
    match declared:
        case "cursor-vscode":
            assert (totals["tokens"], totals["saved"]) == (own_names, names - own_names)
        case "claude-code":
            assert totals["tokens"] > own_names
            assert totals["saved"] == names - totals["tokens"] < 0
        case _:
            assert totals["saved"] == whole - totals["tokens"] > 0


async def used(client: Any) -> list[str]:
    """List and call once, and return what was listed."""
    names = await client.names()
    await client.call("call_tool", name="git__git_status", arguments={"repo_path": "."})
    return names
