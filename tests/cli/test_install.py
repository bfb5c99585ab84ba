"""`pegboard init --install` and `--uninstall`: into a client's file, and out of it again."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_support import Run, as_client_starts, command_of, misfits, put, servers_in

from acceptance import accept_found
from pegboard.config.client_files.known import CLIENTS
from pegboard.config.clients.installing import file_of, installation
from pegboard.config.documents import yaml_text
from pegboard.config.location import Machine
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ConfigError
from pegboard.sources.mcp import McpSource
from pegboard.support import user_folders
from pegboard.support.own_folder import folder_of
from pegboard.support.version import __version__

MCP = '{\n  "mcpServers": {\n    "git": {"command": "mcp-server-git", "args": ["--repository", "."]}\n  }\n}\n'
VSCODE = """\
// my servers
{
    "inputs": [
        {"type": "promptString", "id": "gh-token", "password": true}, // keep me
    ],
    "servers": {
        // the one for git
        "git": {"command": "mcp-server-git", "env": {"TOKEN": "${input:gh-token}", "PIN": "12"}},
        "time": {
            "command": "mcp-server-time",
            "args": ["--api-key", "supersecret1", "${workspaceFolder}"],
        },
    },
    "other": [1, 2, /* three */ 3]
}
"""
CODEX = '''\
# Codex settings
model = "gpt-6"
notify = ["a",
  "b", # [mcp_servers.not]
]
text = """
[mcp_servers.fake]
"""

[mcp_servers.git]
command = "mcp-server-git" # as always
args = ["--repository", "."]

[mcp_servers.git.env]
ACCESS_TOKEN = "abcdef123"

[mcp_servers."docs server"]
url = "https://docs.example/mcp"
bearer_token_env_var = "DOCS_TOKEN"

# profiles
[profiles.fast]
model = "mini"

[mcp_servers.time]
command = "mcp-server-time"
enabled_tools = ["convert_time"]
'''
ZED = """\
{
  "theme": "One Dark",
  "context_servers": {
    "git": {"source": "custom", "command": "mcp-server-git", "args": [], "env": {}},
    "extension": {"settings": {"api_key": "zzzzzzzz"}}, // stays
  },
}
"""
CLAUDE = '{"numStartups":7,"mcpServers":{"git":{"command":"mcp-server-git"}},"oauth":{"accessToken":"t0k3n-of-mine"}}'
GEMINI = (
    '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"git": {"command": "mcp-server-git", "env": {"K": "$KEY"}}\r\n\t}\r\n}\r\n'
)
COPILOT = (
    '{"mcpServers": {"git": '
    '{"type": "local", "command": "mcp-server-git", "tools": ["git_log"], "deferTools": "auto"}}}\n'
)
OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  // mine
  "mcp": {
    "git": {"type": "local", "command": ["mcp-server-git", "--repository", "."], "enabled": true,
            "environment": {"TOKEN": "{env:GH_TOKEN}"}, "timeout": 5000},
    "jira": {"enabled": true}, // stays
  },
  "theme": "dark",
}
"""
OPENCODE_2 = '{"mcp": {"timeout": 9000, "servers": {"git": {"type": "local", "command": ["mcp-server-git"]}}}}\n'
GOOSE = """\
# my settings
GOOSE_MODEL: gpt-6
extensions:
  # built in
  developer:
    type: builtin   # keep me
    name: developer
    enabled: true
  git:
    type: stdio
    name: git
    enabled: true
    cmd: mcp-server-git
    args: [--repository, "."]
    envs: {LEVEL: supersecret1}
    env_keys: [GH_TOKEN]
    available_tools: []
    timeout: 300
  # the other one
  memory: {type: platform, name: memory}
# behind it
GOOSE_MODE: auto
"""
FILES = {
    "claude-code": (".mcp.json", MCP),
    "cursor": (".cursor/mcp.json", MCP),
    "vscode": (".vscode/mcp.json", VSCODE),
    "copilot-cli": ("home/.copilot/mcp-config.json", COPILOT),
    "codex": ("home/.codex/config.toml", CODEX),
    "zed": ("home/.config/zed/settings.json", ZED),
    "claude-desktop": ("home/.config/Claude/claude_desktop_config.json", MCP),
    "gemini": ("home/.gemini/settings.json", GEMINI),
    "windsurf": ("home/.codeium/windsurf/mcp_config.json", MCP),
    "junie": (".junie/mcp/mcp.json", MCP),
    "opencode": ("opencode.json", OPENCODE),
    "goose": ("home/.config/goose/config.yaml", GOOSE),
}
OF_EACH_FORM = ("claude-code", "vscode", "codex", "goose")
"""Clients with a file in JSON, in JSON with comments, in TOML and in YAML."""
SHAPE = {
    "client": str, "file": str, "scope": str, "status": str, "config": str, "agent": str, "servers": [str],
    "confined": [str], "keyring": [str], "checked": [str], "logins": [str], "staying": [{"name": str, "reason": str}],
    "rules": [{"rule": str, "file": str, "text": str}], "backup": (str, type(None)), "diff": str,
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("home")
SECRETS = ("supersecret1", "abcdef123", "zzzzzzzz", "t0k3n-of-mine", '"12"')


def copies() -> list[Path]:
    """Return the copies of clients' files that are kept for any configuration."""
    return list(user_folders.state().rglob("*.backup"))


def placed(client: str) -> Path:
    name, text = FILES[client]
    return put(name, text)


@pytest.mark.parametrize("client", FILES)
def test_a_client_has_pegboard_instead_of_its_servers_and_gets_them_back_byte_for_byte(run: Run, client: str) -> None:
    path = placed(client)
    before, mode = path.read_bytes(), path.stat().st_mode
    path.chmod(0o640)
    ran = run("init", "--no-check", "--install", client, "--json")
    assert (ran.code, ran.json["status"], misfits(ran.json, SHAPE)) == (0, "installed", [])
    config = Path(ran.json["config"])
    stays = {"zed": ["extension"], "opencode": ["jira"], "goose": ["developer", "memory"]}.get(client, [])
    assert list(servers_in(path)) == ["pegboard", *stays]
    entry = servers_in(path)["pegboard"]
    command, started_in = as_client_starts(entry, Path.cwd())
    assert command[-4:-1] == ["serve", "--stdio", "--config"]
    assert Path(started_in, command[-1]) == config.absolute()
    assert Path(command[0]).is_file()
    assert path.stat().st_mode & 0o777 == 0o640
    assert Path(ran.json["backup"]).read_bytes() == before
    moved = yaml_text.compose(config.read_text(), "p").value["servers"]
    assert list(moved) == ran.json["servers"]
    assert run("check", "--config", str(config)).code == 0
    back = run("init", "--uninstall", client, "--json")
    assert (back.code, back.json["status"], back.json["backup"]) == (0, "restored", None)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert copies() == []
    assert mode != path.stat().st_mode


async def test_what_was_installed_can_be_started_by_the_client(run: Run) -> None:
    path = put(".cursor/mcp.json", json.dumps({"mcpServers": {"gone": {"command": "no-such-command"}}}))
    await asyncio.to_thread(run, "init", "--no-check", "--install", "cursor")
    entry = servers_in(path)["pegboard"]
    source = McpSource()
    try:
        (command, *arguments), started_in = as_client_starts(entry, Path.cwd())
        spec = ServerSpec(name="pegboard", command=command, args=tuple(arguments), cwd=started_in)
        names = [tool.name for tool in (await source.describe(spec, {})).tools]
    finally:
        await source.aclose()
    assert {"search_tools", "load_tools", "call_tool"} <= set(names)


@pytest.mark.parametrize("client", OF_EACH_FORM)
def test_a_second_installation_says_that_it_is_there_and_changes_nothing(run: Run, client: str) -> None:
    path = placed(client)
    run("init", "--no-check", "--install", client)
    after = path.read_bytes()
    ran = run("init", "--no-check", "--install", client, "--json")
    assert (ran.code, ran.json["status"]) == (0, "already_installed")
    assert path.read_bytes() == after
    assert len(copies()) == 1


@pytest.mark.parametrize("client", ["vscode", "codex", "zed", "opencode", "goose"])
def test_everything_else_in_the_file_stays_comments_included(run: Run, client: str) -> None:
    path = placed(client)
    before = path.read_text()
    run("init", "--no-check", "--install", client)
    after = path.read_text()
    keep = {"vscode": ["// my servers", "// keep me", "/* three */"], "zed": ['"theme": "One Dark"', "zzzzzzzz"]}
    keep |= {"opencode": ["// mine", '"jira": {"enabled": true}', '"theme": "dark"']}
    keep |= {"goose": ["# my settings", "  # built in\n  developer:\n    type: builtin   # keep me", "# behind it"]}
    for text in keep.get(client, ["# Codex settings", "# [mcp_servers.not]", "[mcp_servers.fake]", "[profiles.fast]"]):
        assert text in before
        assert text in after


def test_what_opencode_and_goose_say_of_a_server_is_said_of_it_here(run: Run) -> None:
    """References in our form, and what a client keeps of its secrets passed on to Pegboard by name."""
    path = placed("opencode")
    assert run("init", "--no-check", "--install", "opencode", "--no-keyring").code == 0
    moved = yaml_text.compose(Path("pegboard.yaml").read_text(), "p").value["servers"]
    arguments = ["--repository", "."]
    env = {"TOKEN": "${GH_TOKEN}"}
    assert moved == {"git": {"command": "mcp-server-git", "args": arguments, "env": env, "start": "5s"}}
    assert servers_in(path)["pegboard"]["environment"] == {"GH_TOKEN": "{env:GH_TOKEN}"}
    path = placed("goose")
    ran = run("init", "--no-check", "--install", "goose", "--no-keyring", "--json")
    moved = yaml_text.compose(Path(ran.json["config"]).read_text(), "p").value["servers"]["git"]
    assert (moved["env"], moved["timeout"]) == ({"GH_TOKEN": "${GH_TOKEN:-}", "LEVEL": "supersecret1"}, "300s")
    assert (servers_in(path)["pegboard"]["env_keys"], servers_in(path)["pegboard"]["type"]) == (["GH_TOKEN"], "stdio")
    assert [one["reason"] for one in ran.json["staying"]] == ["it is built into Goose"] * 2


def test_the_file_of_opencode_keeps_the_form_of_its_version(run: Run) -> None:
    path = put("opencode.json", OPENCODE_2)
    assert run("init", "--no-check", "--install", "opencode").code == 0
    value = json.loads(path.read_text())
    assert (value["mcp"]["timeout"], list(value["mcp"]["servers"])) == (9000, ["pegboard"])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"type": "local", "command": ["x", "{file:./key}"]}, "it reads a file next to the configuration of opencode"),
        (
            {"type": "remote", "url": "http://127.0.0.1:9/mcp", "oauth": {"clientSecret": "{file:~/key}"}},
            "its login is read from a file, which only opencode supports",
        ),
    ],
)
def test_what_opencode_alone_can_read_stays_with_it(run: Run, entry: dict[str, Any], why: str) -> None:
    put("opencode.json", json.dumps({"mcp": {"git": {"type": "local", "command": ["x"]}, "own": entry}}))
    ran = run("init", "--no-check", "--install", "opencode", "--json")
    assert (ran.json["servers"], ran.json["staying"]) == (["git"], [{"name": "own", "reason": why}])


def test_extensions_of_goose_in_braces_are_left_as_they_are(run: Run) -> None:
    text = "extensions: {git: {type: stdio, name: git, cmd: x}} # mine\n"
    path = put("home/.config/goose/config.yaml", text)
    ran = run("init", "--no-check", "--install", "goose", "--json")
    assert (ran.json["error"]["code"], path.read_text()) == ("not_rewritable", text)


def test_a_file_of_goose_with_lines_of_windows_keeps_them(run: Run) -> None:
    path = put("home/.config/goose/config.yaml", "")
    path.write_bytes(GOOSE.replace("\n", "\r\n").encode())
    before = path.read_bytes()
    assert run("init", "--no-check", "--install", "goose").code == 0
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    assert run("init", "--uninstall", "goose").code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", OF_EACH_FORM)
def test_a_dry_run_shows_the_change_and_makes_none(run: Run, folder: Path, client: str) -> None:
    path = placed(client)
    accept_found()
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    ran = run("init", "--no-check", "--install", client, "--dry-run")
    assert ran.code == 0
    assert "Nothing was changed." in ran.out
    assert f"+++ {path}" in ran.out
    assert "pegboard" in ran.out
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("client", ["vscode", "codex", "zed"])
def test_x5_secrets_move_as_they_are_and_are_never_shown(run: Run, client: str) -> None:
    path = placed(client)
    text = path.read_text()
    secrets = [secret for secret in SECRETS if secret in text]
    ran = run("init", "--no-check", "--install", client)
    out = run("init", "--uninstall", client)
    assert secrets
    assert [secret for secret in secrets if secret in ran.out + ran.err + out.out + out.err] == []
    assert "***" in ran.out


def test_x5_what_else_stands_in_a_file_of_one_line_is_not_shown_either(run: Run) -> None:
    path = put("home/.claude.json", CLAUDE, 0o600)
    ran = run("init", "--no-check", "--install", "claude-code")
    assert ran.code == 0
    assert "t0k3n-of-mine" not in ran.out
    assert json.loads(path.read_text())["numStartups"] == 7
    assert "\n" not in path.read_text()


def test_the_users_clients_share_one_configuration_that_is_private(run: Run, home: Path) -> None:
    """G12: the first one's servers are those of the agent `default`, another set has an agent of its own."""
    placed("codex")
    path = placed("zed")
    config = home / ".config" / "pegboard" / "pegboard.yaml"
    first = run("init", "--no-check", "--install", "codex", "--no-keyring", "--json").json
    second = run("init", "--no-check", "--install", "zed", "--no-keyring", "--json").json
    assert {first["config"], second["config"]} == {str(config)}
    assert (first["agent"], second["agent"]) == ("default", "zed")
    assert config.stat().st_mode & 0o777 == 0o600
    assert command_of(servers_in(path)["pegboard"])[-2:] == ["--agent", "zed"]
    value = yaml.safe_load(config.read_text())
    assert (list(value["servers"]), value["servers"]["git-zed"]["prefix"]) == (
        ["git", "docs server", "time", "git-zed"],
        "git",
    )
    assert value["agents"]["default"]["discoverable"] == ["git", "docs server"]
    assert value["agents"]["zed"] == {"dialect": "pegboard", "discoverable": ["git-zed"]}
    assert run("check", "--config", str(config)).code == 0


def test_what_only_the_client_can_ask_for_is_passed_on_as_a_variable(run: Run) -> None:
    path = placed("vscode")
    run("init", "--no-check", "--install", "vscode")
    assert servers_in(path)["pegboard"]["env"] == {"GH_TOKEN": "${input:gh-token}"}
    assert "TOKEN: ${GH_TOKEN}" in Path("pegboard.yaml").read_text()


@pytest.mark.parametrize(
    ("client", "key", "value"), [("codex", "env_vars", ["DOCS_TOKEN"]), ("gemini", "env", {"KEY": "$KEY"})]
)
def test_variables_that_a_client_would_keep_back_are_passed_on(run: Run, client: str, key: str, value: object) -> None:
    path = placed(client)
    run("init", "--no-check", "--install", client)
    assert servers_in(path)["pegboard"][key] == value


@pytest.mark.parametrize(
    ("client", "old", "new"),
    [
        ("vscode", '"other": [1, 2', '"more": true, "other": [1, 2'),
        ("codex", 'model = "gpt-6"', 'model = "gpt-7"'),
        ("cursor", "{\n", '{\n  "since": 1,\n'),
    ],
)
def test_a_file_that_was_changed_since_gets_its_servers_back_and_keeps_the_change(
    run: Run, client: str, old: str, new: str
) -> None:
    path = placed(client)
    servers = servers_in(path)
    run("init", "--no-check", "--install", client)
    path.write_text(path.read_text().replace(old, new, 1))
    ran = run("init", "--uninstall", client)
    assert ran.code == 0
    assert "was changed since" in ran.out
    assert servers_in(path) == servers
    assert new in path.read_text()
    assert len(copies()) == 1


@pytest.mark.parametrize(
    ("client", "old", "new"),
    [
        ("cursor", '"mcpServers": {', '"mcpServers": {\n    "late": {"command": "x"},'),
        ("codex", "# profiles", '[mcp_servers.late]\ncommand = "x"\n\n# profiles'),
    ],
)
def test_a_server_that_came_since_stays(run: Run, client: str, old: str, new: str) -> None:
    path = placed(client)
    servers = servers_in(path)
    run("init", "--no-check", "--install", client)
    path.write_text(path.read_text().replace(old, new, 1))
    again = run("init", "--no-check", "--install", client)
    assert "late" in again.out
    assert list(servers_in(path)) == ["pegboard"]
    assert run("init", "--uninstall", client).code == 0
    assert servers_in(path) == {**servers, "late": {"command": "x"}}


def test_two_clients_of_one_project_share_what_is_equal(run: Run) -> None:
    placed("claude-code")
    placed("cursor")
    run("init", "--no-check", "--install", "claude-code")
    ran = run("init", "--no-check", "--install", "cursor")
    assert ran.code == 0
    assert "Kept" in ran.out
    assert "pegboard.yaml with 1 server: git" in ran.out


def test_a_server_of_the_same_name_that_differs_stands_beside_the_other_one(run: Run) -> None:
    """G12: its client sees it under the name that it had, and not the other one; `--force` replaces the file."""
    path = placed("cursor")
    Path("pegboard.yaml").write_text("servers: {git: {command: another}} # mine\n")
    accept_found()
    ran = run("init", "--no-check", "--install", "cursor", "--json").json
    assert (ran["servers"], ran["agent"]) == (["git-cursor"], "cursor")
    value = yaml.safe_load(Path("pegboard.yaml").read_text())
    assert value["servers"]["git"] == {"command": "another"}
    assert value["servers"]["git-cursor"]["prefix"] == "git"
    assert {name: agent["discoverable"] for name, agent in value["agents"].items()} == {
        "default": ["git"],
        "cursor": ["git-cursor"],
    }
    assert "# mine" in Path("pegboard.yaml").read_text()
    run("init", "--uninstall", "cursor")
    assert path.read_text() == MCP
    assert run("init", "--no-check", "--install", "cursor", "--config", "other.yaml").code == 0
    run("init", "--uninstall", "cursor")
    assert run("init", "--no-check", "--install", "cursor", "--force").code == 0
    assert "another" in next(copy.read_text() for copy in copies() if "pegboard.yaml" in copy.name)


def test_a_file_that_is_a_link_stays_one(run: Run) -> None:
    real = put("dotfiles/cursor.json", MCP)
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").symlink_to(real.absolute())
    run("init", "--no-check", "--install", "cursor")
    assert Path(".cursor/mcp.json").is_symlink()
    assert list(servers_in(real)) == ["pegboard"]
    run("init", "--uninstall", "cursor")
    assert Path(".cursor/mcp.json").is_symlink()
    assert real.read_text() == MCP


def test_a_file_may_be_named(run: Run) -> None:
    placed("cursor")
    other = put("elsewhere/.cursor/mcp.json", MCP)
    ran = run("init", "--no-check", "--install", "cursor", "--from", str(other), "--json")
    assert ran.json["config"] == str(Path("elsewhere/pegboard.yaml").absolute())
    assert list(servers_in(other)) == ["pegboard"]
    assert Path(".cursor/mcp.json").read_text() == MCP


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServers": {"git": {"command": "a"}, "git": {"command": "b"}}}', "cannot be edited"),
        ('{"mcpServers": {"git": {"command": 5}, "time": 4}}', "git: its entry is not valid: expected a"),
        ('{"mcpServers": {"git": 3}}', "git: its entry is not valid: expected a mapping"),
        ('{"mcpServers": {"git": ', ".cursor/mcp.json:1:"),
        ('{"mcpServers": {}}', "no configuration with MCP servers"),
        (None, "no configuration with MCP servers"),
    ],
)
def test_a_file_that_cannot_be_rewritten_is_left_as_it_is(run: Run, text: str | None, message: str) -> None:
    if text is not None:
        put(".cursor/mcp.json", text)
    ran = run("init", "--no-check", "--install", "cursor")
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert text is None or Path(".cursor/mcp.json").read_text() == text
    assert not Path("pegboard.yaml").exists()


def test_a_server_that_is_written_wrongly_stays_with_its_client_and_the_others_move(run: Run) -> None:
    """P6: it costs itself alone, and nothing of it is lost."""
    wrong = {"git": {"command": "x", "args": "--a b"}, "both": {"command": "x", "url": "http://127.0.0.1:9/"}}
    path = put(".cursor/mcp.json", json.dumps({"mcpServers": {**wrong, "time": {"command": "x"}}}))
    ran = run("init", "--no-check", "--install", "cursor", "--json")
    assert {one["name"]: one["reason"].partition(":")[0] for one in ran.json["staying"]} == dict.fromkeys(
        wrong, "its entry is not valid"
    )
    kept = servers_in(path)
    assert {name: kept[name] for name in wrong} == wrong
    assert list(kept) == ["pegboard", *wrong]
    assert run("init", "--uninstall", "cursor").code == 0
    assert list(servers_in(path)) == [*wrong, "time"]


def test_servers_of_toml_that_are_no_tables_are_replaced_and_come_back_too(run: Run) -> None:
    text = 'mcp_servers.git.command = "a"\nmodel = "gpt-6" # mine\n'
    path = put("home/.codex/config.toml", text)
    assert run("init", "--no-check", "--install", "codex").code == 0
    assert list(servers_in(path)) == ["pegboard"]
    assert 'model = "gpt-6" # mine' in path.read_text()
    assert run("init", "--uninstall", "codex").code == 0
    assert path.read_text() == text


def test_a_file_that_changes_meanwhile_is_left_as_it_is(folder: Path) -> None:
    path = placed("cursor")
    file = file_of(CLIENTS["cursor"], Machine(), None)
    edit = installation(file, {"command": "pegboard"}, ())
    path.write_text('{"mcpServers": {}}')
    with (
        pytest.raises(ConfigError, match="was changed in the meantime") as caught,
        edit.stage_files(keep_in=folder / "kept"),
    ):
        pass
    assert caught.value.code == "file_changed"
    assert path.read_text() == '{"mcpServers": {}}'
    assert list(path.parent.iterdir()) == [path]


def test_what_is_not_installed_cannot_be_taken_out(run: Run) -> None:
    placed("cursor")
    ran = run("init", "--uninstall", "cursor", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (3, "not_installed")


def test_without_the_copy_the_place_of_the_servers_is_told(run: Run) -> None:
    placed("cursor")
    run("init", "--no-check", "--install", "cursor")
    for copy in copies():
        copy.unlink()
    ran = run("init", "--uninstall", "cursor")
    assert ran.code == 1
    assert "pegboard.yaml. Put them back by hand" in ran.err


@pytest.mark.parametrize("damage", [b"{bad", b"\xff\xfe\x00"])
def test_a_copy_that_was_changed_is_told_and_changes_nothing(run: Run, damage: bytes) -> None:
    path = placed("cursor")
    run("init", "--no-check", "--install", "cursor")
    installed = path.read_text()
    (copy,) = copies()
    copy.write_bytes(damage)
    ran = run("init", "--uninstall", "cursor", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "backup_changed")
    assert "was changed after that, so it is not put back" in ran.json["error"]["message"]
    assert "pegboard.yaml. Put them back by hand" in ran.json["error"]["hint"]
    assert path.read_text() == installed


@pytest.mark.parametrize("client", OF_EACH_FORM)
def test_what_was_taken_out_once_is_not_taken_out_twice(run: Run, client: str) -> None:
    path = placed(client)
    before = path.read_bytes()
    for _ in range(2):
        assert run("init", "--no-check", "--install", client).code == 0
        assert run("init", "--uninstall", client).code == 0
        again = run("init", "--uninstall", client, "--json")
        assert (again.code, again.json["error"]["code"]) == (3, "not_installed")
        assert path.read_bytes() == before
        Path("pegboard.yaml").unlink(missing_ok=True)


@pytest.mark.parametrize("client", OF_EACH_FORM)
def test_a_file_that_is_read_only_is_left_as_it_is(run: Run, client: str) -> None:
    """Another one could be put in its place; whoever wrote-protected it does not want that."""
    path = placed(client)
    before = path.read_bytes()
    path.chmod(0o444)
    for arguments in (
        ("init", "--no-check", "--install", client),
        ("init", "--no-check", "--install", client, "--dry-run"),
    ):
        ran = run(*arguments)
        assert (ran.code, ran.out) == (1, "")
        assert "is read-only, so it was not changed" in ran.err
    assert path.read_bytes() == before
    assert not Path("pegboard.yaml").exists()
    path.chmod(0o644)
    assert run("init", "--no-check", "--install", client).code == 0
    path.chmod(0o444)
    assert "is read-only" in run("init", "--uninstall", client).err


def test_an_installation_whose_configuration_is_gone_says_so_and_can_be_taken_out(run: Run) -> None:
    path = placed("cursor")
    run("init", "--no-check", "--install", "cursor")
    Path("pegboard.yaml").unlink()
    assert (
        "That file does not exist: remove Pegboard with --uninstall and start again."
        in run("init", "--no-check", "--install", "cursor").out
    )
    assert "stays as it is" not in run("init", "--uninstall", "cursor").out
    assert path.read_text() == MCP


@pytest.mark.parametrize("before", [None, "servers: {}\n"])
def test_servers_that_our_configuration_cannot_have_leave_no_file_behind(run: Run, before: str | None) -> None:
    text = '{"mcpServers": {"*": {"command": "x"}}}'
    path = put(".cursor/mcp.json", text)
    if before is not None:
        Path("pegboard.yaml").write_text(before)
    ran = run("init", "--no-check", "--install", "cursor", "--force")
    assert (ran.code, ran.out) == (1, "")
    assert "which is a wildcard" in ran.err
    assert path.read_text() == text
    found = Path("pegboard.yaml")
    assert (found.read_text() if found.exists() else None) == before
    assert not folder_of(Path("pegboard.yaml")).exists()


def test_a_file_that_somebody_broke_since_is_told_with_its_place(run: Run) -> None:
    path = placed("cursor")
    run("init", "--no-check", "--install", "cursor")
    path.write_text('{"mcpServers": ')
    for option in ("--install", "--uninstall"):
        ran = run("init", option, "cursor")
        assert (ran.code, ran.out) == (1, "")
        assert ".cursor/mcp.json:1:" in ran.err
    assert len(copies()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--install", "cusor"], "Did you mean 'cursor'?"),
        (["--install", "cursor", "--uninstall", "cursor"], "exclude each other"),
        (["--dry-run"], "goes with --install"),
    ],
)
def test_what_cannot_be_meant_is_a_matter_of_usage(run: Run, arguments: list[str], message: str) -> None:
    ran = run("init", *arguments)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize("damage", ["binary", "empty", "folder", "unreadable_copy"])
def test_what_cannot_be_read_is_one_clear_error_and_nothing_changes(run: Run, damage: str) -> None:
    path = placed("cursor")
    assert run("init", "--no-check", "--install", "cursor").code == 0
    (copy,) = copies()
    match damage:
        case "binary":
            path.write_bytes(b"\x00\xff\xfe")
        case "empty":
            path.write_bytes(b"")
        case "folder":
            path.unlink()
            path.mkdir()
        case _:
            copy.unlink()
            copy.mkdir()
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    ran = run("init", "--uninstall", "cursor")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3 if damage in ("folder", "empty") else 1, "", 1)
    assert {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()} == before


def test_a_pipe_is_no_file_of_a_client(run: Run) -> None:
    os.mkfifo("pipe")
    for option in ("--install", "--uninstall"):
        ran = run("init", option, "cursor", "--from", "pipe")
        assert (ran.code, ran.out) == (1, "")
        assert "pipe is not a file, so it was not changed." in ran.err


OWN = "plugins: {calc: {python: pegboard.quickstart.calc}}\nagents: {default: {tools: [calc]}}\n"


@pytest.mark.cover(1)
@pytest.mark.parametrize("client", FILES)
@pytest.mark.parametrize("there", ["no file", "no servers"])
def test_a_client_without_servers_gets_a_configuration_that_is_there(run: Run, client: str, there: str) -> None:
    """And gives it back; a file that was not there is then an empty one."""
    name, _ = FILES[client]
    empty = {".toml": "# MCP servers\n", ".yaml": "extensions: {}\n"}.get(Path(name).suffix, "{\n}\n")
    if there == "no servers":
        put(name, empty)
    config = put("pegboard.yaml", OWN)
    dry = run("init", "--no-check", "--install", client, "--dry-run", "--json")
    path = Path(dry.json["file"]).expanduser()
    is_there = there == "no servers" and path == Path(name)
    assert (dry.code, dry.json["status"], path.exists()) == (0, "would_install", is_there)
    assert dry.json["scope"] == ("user" if path.is_absolute() or path.parts[0] == "home" else "project")
    ran = run("init", "--no-check", "--install", client, "--json")
    assert (ran.code, ran.json["status"], ran.json["servers"], misfits(ran.json, SHAPE)) == (0, "installed", [], [])
    command, started_in = as_client_starts(servers_in(path)["pegboard"], Path.cwd())
    assert Path(started_in, command[-1]) == config.absolute()
    assert config.read_text() == OWN
    assert run("init", "--uninstall", client).code == 0
    assert path.read_text() == empty


def test_a_client_without_servers_and_without_a_configuration_is_left_alone(run: Run) -> None:
    ran = run("init", "--no-check", "--install", "cursor")
    assert (ran.code, Path(".cursor").exists()) == (1, False)
    assert "pegboard init --install cursor --config FILE" in ran.err


def test_a_configuration_that_cannot_be_used_is_not_given_to_a_client(run: Run) -> None:
    put("pegboard.yaml", "agents: 5\n")
    ran = run("init", "--no-check", "--install", "cursor")
    assert (ran.code, Path(".cursor").exists()) == (1, False)
    assert "pegboard.yaml:1:9" in ran.err


def test_nothing_is_confined_that_nobody_asks_to_confine(run: Run, folder: Path) -> None:
    """P10: `init` offers `--confine`; what the client has back afterwards is what it had."""
    path = put(".cursor/mcp.json", '{"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes"]}}}')
    before, install = path.read_bytes(), ("init", "--no-check", "--install", "cursor")
    offered = run(*install)
    assert "notes. --confine restricts them." in offered.out
    assert (folder / "pegboard.yaml").read_text().count("confine") == 0
    assert run("init", "--uninstall", "cursor").code == 0
    confined = run(*install, "--confine", "--force")
    assert "Confined to their folder and what their settings name" in confined.out
    written = yaml.safe_load((folder / "pegboard.yaml").read_text())["servers"]["notes"]
    assert written == {"command": "npx", "args": ["-y", "notes"], "confine": True}
    assert list(servers_in(path)) == ["pegboard"]
    assert run("init", "--uninstall", "cursor").code == 0
    assert path.read_bytes() == before
    again = run(*install, "--json").json
    assert (again["status"], again["servers"], again["confined"]) == ("installed", ["notes"], [])
    assert "confine: true" in (folder / "pegboard.yaml").read_text()


def test_nothing_in_a_cache_is_written_into_a_client_s_file(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G12: what `uvx` made is gone with the next cleaning; an installed one is named, else nothing is changed."""
    path = placed("cursor")
    before = path.read_bytes()
    cached = put("cache/uv/archive-v0/abc/bin/pegboard", "", 0o755)
    monkeypatch.setattr(sys, "executable", str(cached.with_name("python").absolute()))
    monkeypatch.setattr(sys, "prefix", str(cached.parents[1].absolute()))
    monkeypatch.setenv("PATH", str(cached.parent.absolute()))
    ran = run("init", "--no-check", "--install", "cursor", "--json")
    assert (ran.code, ran.json["error"]["code"], path.read_bytes()) == (3, "not_lasting", before)
    assert "uv tool install" in ran.json["error"]["hint"]
    assert not (folder / "pegboard.yaml").exists()
    lasting = put("tools/pegboard", "", 0o755).absolute()
    monkeypatch.setenv("PATH", f"{cached.parent.absolute()}{os.pathsep}{lasting.parent}")
    monkeypatch.setattr("shutil.which", lambda name: str(lasting) if name == "pegboard" else None)
    assert run("init", "--no-check", "--install", "cursor").code == 0
    assert command_of(servers_in(path)["pegboard"])[0] == "${workspaceFolder}/tools/pegboard"
    path = placed("windsurf")
    assert run("init", "--no-check", "--install", "windsurf").code == 0
    assert command_of(servers_in(path)["pegboard"])[0] == str(lasting)


@pytest.mark.parametrize("client", [name for name, (place, _) in FILES.items() if not place.startswith("home")])
def test_what_a_team_commits_works_in_every_copy_of_the_project(
    run: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory, client: str
) -> None:
    """G12: nothing in the client's file is of one person, and the report says what everyone has to install."""
    path = placed(client)
    ran = run("init", "--no-check", "--no-keyring", "--install", client)
    assert (ran.code, "needs the command `pegboard`: " in ran.out) == (0, True), ran.err
    committed = path.read_text()
    assert [one for one in (str(folder), str(Path.home()), sys.prefix) if one in committed] == []
    copy = tmp_path_factory.mktemp("copy")
    (command, *arguments), started_in = as_client_starts(servers_in(path)["pegboard"], copy)
    assert Path(started_in, arguments[-1]) == copy / "pegboard.yaml"
    assert (command_of(servers_in(path)["pegboard"])[0], Path(command).is_file()) == ("pegboard", True)
    if client == "vscode":  # whose entry names the folder of the project
        moved = yaml.safe_load(Path("pegboard.yaml").read_text())["servers"]["time"]
        assert (moved["args"][-1], moved["cwd"]) == (".", ".")
    assert run("init", "--uninstall", client).code == 0


@pytest.mark.parametrize(
    ("client", "named"), [("cursor", "${workspaceFolder}/.venv/bin/pegboard"), ("claude-code", "pegboard")]
)
def test_an_environment_in_the_project_is_named_where_the_client_can_name_the_project(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, client: str, named: str
) -> None:
    """G12: else the bare command is there, and the report says what everyone has to install."""
    path = placed(client)
    own = put(".venv/bin/pegboard", "", 0o755)
    monkeypatch.setattr(sys, "executable", str(own.with_name("python").absolute()))
    monkeypatch.setattr(sys, "prefix", str((folder / ".venv").absolute()))
    ran = run("init", "--no-check", "--install", client)
    assert (ran.code, command_of(servers_in(path)["pegboard"])[0]) == (0, named)
    assert f"Everyone who uses {path} needs " in ran.out
    assert run("init", "--no-check", "--install", client, "--json").json["status"] == "already_installed"


def test_a_team_gets_the_line_of_uvx_where_pegboard_came_by_it(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G12: by its bare name; what was written so is known as Pegboard again."""
    path = placed("cursor")
    before = path.read_bytes()
    cached = put("cache/uv/archive-v0/abc/bin/pegboard", "", 0o755)
    monkeypatch.setattr(sys, "executable", str(cached.with_name("python").absolute()))
    monkeypatch.setattr(sys, "prefix", str(cached.parents[1].absolute()))
    monkeypatch.setattr("shutil.which", lambda name: "/tools/uvx" if name == "uvx" else None)
    monkeypatch.setattr("pegboard.support.installed.from_index", lambda: True)
    assert run("init", "--no-check", "--install", "cursor").code == 0
    assert command_of(servers_in(path)["pegboard"])[:2] == ["uvx", f"pegboard@{__version__}"]
    assert run("init", "--uninstall", "cursor").code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", ["cursor", "codex", "goose"])
def test_an_empty_file_of_a_client_has_no_servers_and_is_kept(run: Run, client: str) -> None:
    """G12: in JSON, TOML and YAML; `measure` and `init` say that there are none, and no byte is lost."""
    path = put(FILES[client][0], " \n")
    assert (run("measure", str(path)).code, "is empty" in run("measure", str(path)).err) == (1, False)
    put("pegboard.yaml", OWN)
    ran = run("init", "--no-check", "--install", client, "--from", str(path), "--json")
    assert (ran.code, ran.json["status"]) == (0, "installed")
    assert [*servers_in(path)] == ["pegboard"]
    assert run("init", "--uninstall", client, "--from", str(path)).code == 0
    assert path.read_text() == " \n"
