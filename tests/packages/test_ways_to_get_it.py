"""The files by which clients, registries and CI get Pegboard: each names this version, fits its form, and starts."""

import base64
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs
import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from pegboard import __version__

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "plugins: {clock: {python: pegboard.quickstart.clock}}\nagents: {default: {tools: [clock]}}\n"
PLAIN_SERVER = ROOT / "tests" / "servers" / "plain_server.py"
SERVER = f"""
servers: {{plain: {{command: {sys.executable}, args: [{PLAIN_SERVER}]}}}}
agents: {{default: {{tools: [plain]}}}}
"""
ARGUMENT = {
    "type": "object",
    "required": ["type"],
    "oneOf": [
        {
            "properties": {"type": {"const": "positional"}},
            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
        },
        {"properties": {"type": {"const": "named"}, "name": {"pattern": "^--"}}, "required": ["name"]},
    ],
}
REGISTRY = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "properties": {
        "name": {"pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "maxLength": 200},
        "title": {"maxLength": 100},
        "description": {"minLength": 1, "maxLength": 100},
        "version": {"pattern": r"^\d+\.\d+\.\d+$"},
        "repository": {"required": ["url", "source"]},
        "packages": {
            "minItems": 1,
            "items": {
                "required": ["registryType", "identifier", "version", "transport"],
                "properties": {
                    "registryType": {"enum": ["npm", "pypi", "oci", "nuget", "mcpb"]},
                    "transport": {"required": ["type"], "properties": {"type": {"const": "stdio"}}},
                    "packageArguments": {"items": ARGUMENT},
                },
            },
        },
    },
}
"""What the registry of MCP asks of a `server.json` (its schema of December 2025)."""


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text("utf-8"))


def linked(page: str, beginning: str) -> Any:
    """Return the entry that a link of a page carries."""
    found = re.search(rf"\]\(({re.escape(beginning)}[^)]*)\)", (ROOT / page).read_text("utf-8"))
    assert found is not None
    (config,) = parse_qs(urlsplit(found[1]).query)["config"]
    return json.loads(config if config.startswith("{") else base64.b64decode(config))


def entries() -> dict[str, list[str]]:
    """Return the words that each file tells a client to start."""
    (package,) = read("server.json")["packages"]
    given = [one.get("value") or one["name"] for one in package["packageArguments"] if one.get("isRequired", True)]
    bundle = read("packaging/mcpb/manifest.json")["server"]["mcp_config"]
    plugin = read("packaging/claude-code/.mcp.json")["mcpServers"]["pegboard"]
    cursor = linked("docs/clients/cursor.md", "https://cursor.com/")
    vscode = linked("docs/clients/vscode.md", "https://vscode.dev/")
    return {
        "server.json": ["uvx", package["identifier"], *given],
        "bundle": [bundle["command"], *bundle["args"]],
        "plugin": [plugin["command"], *plugin["args"]],
        "cursor": [cursor["command"], *cursor["args"]],
        "vscode": [vscode["command"], *vscode["args"]],
    }


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return an environment whose `uvx` runs this checkout, since no version is published; in a folder of its own."""
    uvx = tmp_path / "bin" / "uvx"
    uvx.parent.mkdir()
    uvx.write_text(f'#!/bin/sh\ncase "$1" in pegboard|pegboard=={__version__}) ;; *) exit 64;; esac\nshift\n'
                   f'exec {sys.executable} -m pegboard "$@"\n')  # fmt: skip
    uvx.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return {**os.environ, "PATH": f"{uvx.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("way", ["server.json", "bundle", "plugin", "cursor", "vscode"])
async def test_what_a_client_is_told_to_start_lists_tools(
    way: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """G1: the bundle with the configuration that its user names, the others in a folder that has none."""
    config = tmp_path / "named.yaml"
    config.write_text(CONFIG)
    command, *args = (word.replace("${user_config.configuration}", str(config)) for word in entries()[way])
    started = StdioServerParameters(command=command, args=args, env=environment, cwd=tmp_path)
    async with Client(stdio_client(started)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools}


def test_each_file_has_this_version_and_the_name_of_the_registry() -> None:
    server = read("server.json")
    assert {server["version"], *(one["version"] for one in server["packages"])} == {__version__}
    for path in ("packaging/mcpb/manifest.json", "packaging/claude-code/.claude-plugin/plugin.json"):
        assert read(path)["version"] == __version__
    assert yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]["version"]["default"] == __version__
    assert f"mcp-name: {server['name']} " in (ROOT / "README.md").read_text("utf-8")
    jsonschema_rs.validator_for(REGISTRY).validate(server)


def test_the_plugin_is_where_the_marketplace_says() -> None:
    (listed,) = read(".claude-plugin/marketplace.json")["plugins"]
    folder = ROOT / listed["source"]
    assert json.loads((folder / ".claude-plugin" / "plugin.json").read_text("utf-8"))["name"] == listed["name"]
    _, head, text = (folder / "skills" / "pegboard" / "SKILL.md").read_text("utf-8").split("---\n", 2)
    assert set(yaml.safe_load(head)) == {"name", "description"}
    assert text.strip()


def test_the_bundle_is_what_its_own_tool_takes(tmp_path: Path) -> None:
    node = Path(os.environ["PEGBOARD_NODE"])
    tool = node.parent / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
    packed = tmp_path / "pegboard.mcpb"
    for command in (["validate", ROOT / "packaging" / "mcpb"], ["pack", ROOT / "packaging" / "mcpb", packed]):
        done = subprocess.run([node, tool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert zipfile.ZipFile(packed).namelist() == ["manifest.json"]
    assert packed.stat().st_size < 4096


@pytest.mark.parametrize(("budget", "code"), [("", 0), ("100000", 0), ("1", 1)])
def test_the_action_checks_and_measures(tmp_path: Path, environment: dict[str, str], budget: str, code: int) -> None:
    """Its script runs as CI runs it: a budget that is exceeded fails it."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    script = action["runs"]["steps"][-1]["run"]
    (tmp_path / "pegboard.yaml").write_text(SERVER)
    given = {"CONFIG": "pegboard.yaml", "BUDGET": budget, "CASES": "", "FOUND": "0.9", "VERSION": __version__}
    shell = ["bash", "-e", "-c", script]
    done = subprocess.run(shell, env={**environment, **given}, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
