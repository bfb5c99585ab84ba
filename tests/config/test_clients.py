"""The files of MCP clients: where they lie, whose they are, and what they say."""

import json
from pathlib import Path
from typing import Any

import pytest
from config_support import Writer

from pegboard.config.client_files.known import CLIENTS, every_spot, spots_of_client
from pegboard.config.client_files.server_files import PLACEHOLDER, read_client_file
from pegboard.config.clients.compiled_servers import OFF, CompiledServers, servers_of
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.location import Machine
from pegboard.errors import ConfigError

GIT = {"command": "mcp-server-git", "args": ["--repository", "."]}
SERVERS = {"git": GIT}


def machine(writer: Writer, system: str = "linux", **env: str) -> Machine:
    return Machine(folder=writer.folder, home=writer.folder / "home", system=system, env=env)


def servers(writer: Writer, text: str | dict[str, Any], name: str, **env: str) -> CompiledServers:
    path = writer.file(text if isinstance(text, str) else json.dumps(text), name)
    here = machine(writer, **env)
    return servers_of(read_client_file(path, here), here)


@pytest.mark.parametrize(
    ("system", "client", "place"),
    [
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", "claude-code", ".claude.json"),
        ("linux", "cursor", ".cursor/mcp.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("linux", "codex", ".codex/config.toml"),
        ("win32", "copilot-cli", ".copilot/mcp-config.json"),
        ("linux", "gemini", ".gemini/settings.json"),
        ("darwin", "zed", ".config/zed/settings.json"),
        ("win32", "zed", "AppData/Roaming/Zed/settings.json"),
        ("linux", "windsurf", ".codeium/windsurf/mcp_config.json"),
        ("linux", "junie", ".junie/mcp/mcp.json"),
        ("darwin", "opencode", ".config/opencode/opencode.jsonc"),
        ("darwin", "goose", ".config/goose/config.yaml"),
        ("win32", "goose", "AppData/Roaming/Block/goose/config/config.yaml"),
    ],
)
def test_every_client_has_its_places_on_every_system(writer: Writer, system: str, client: str, place: str) -> None:
    found = [spot.path for spot in spots_of_client(CLIENTS[client], machine(writer, system)) if spot.scope == "user"]
    assert writer.folder / "home" / place in found


def test_the_current_folder_is_looked_at_before_the_home_folder(writer: Writer) -> None:
    scopes = [spot.scope for spot in every_spot(machine(writer))]
    assert scopes == sorted(scopes)
    assert scopes.count("project") == 11


def test_variables_move_the_places(writer: Writer) -> None:
    here = machine(writer, XDG_CONFIG_HOME="/elsewhere", CODEX_HOME="/codex", COPILOT_HOME="/copilot")
    found = {str(spot.path) for spot in every_spot(here)}
    assert {
        "/elsewhere/Claude/claude_desktop_config.json",
        "/codex/config.toml",
        "/copilot/mcp-config.json",
        "/elsewhere/zed/settings.json",
    } <= found


@pytest.mark.parametrize(
    ("name", "text", "client"),
    [
        (".mcp.json", {"mcpServers": SERVERS}, "claude-code"),
        ("claude_desktop_config.json", {"mcpServers": SERVERS}, "claude-desktop"),
        (".claude.json", {"mcpServers": SERVERS}, "claude-code"),
        ("project/.cursor/mcp.json", {"mcpServers": SERVERS}, "cursor"),
        ("project/.vscode/mcp.json", {"servers": SERVERS}, "vscode"),
        ("some.json", {"servers": SERVERS}, "vscode"),
        ("settings.json", {"mcp": {"servers": SERVERS}}, "mcp"),
        (".gemini/settings.json", {"mcpServers": SERVERS}, "gemini"),
        ("settings.json", {"context_servers": SERVERS}, "zed"),
        ("config.toml", '[mcp_servers.git]\ncommand = "mcp-server-git"\nargs = ["--repository", "."]\n', "codex"),
        ("any.json", {"mcpServers": SERVERS}, "mcp"),
        ("pegboard.yaml", "servers: {git: {command: mcp-server-git, args: [--repository, .]}}", "pegboard"),
    ],
)
def test_the_file_of_every_client_is_known_and_its_servers_are_the_same(
    writer: Writer, name: str, text: str | dict[str, Any], client: str
) -> None:
    path = writer.file(text if isinstance(text, str) else json.dumps(text), name)
    here = machine(writer)
    file = read_client_file(path, here)
    assert file.spot.client.name == client
    git = servers_of(file, here).specs["git"]
    assert (git.command, git.args) == ("mcp-server-git", ("--repository", "."))


def test_the_servers_of_a_project_start_in_its_folder(writer: Writer) -> None:
    found = servers(writer, {"mcpServers": SERVERS}, "project/.cursor/mcp.json")
    assert found.specs["git"].cwd == str(writer.folder / "project")
    assert servers(writer, {"mcpServers": SERVERS}, "any.json").specs["git"].cwd is None


def test_claude_code_has_those_of_the_user_and_those_of_the_folders_own_project(writer: Writer) -> None:
    own = {"git": {"command": "of-the-project"}, "own": {"command": "x"}}
    text = {
        "mcpServers": {**SERVERS, "time": {"command": "mcp-server-time"}},
        "projects": {
            str(writer.folder): {"mcpServers": own},
            "/another": {"mcpServers": {"far": {"command": "y"}}},
            "/empty": {"mcpServers": {}},
        },
    }
    path = writer.file(json.dumps(text), ".claude.json")
    below = Machine(folder=writer.folder / "deep" / "down", home=writer.folder, system="linux", env={})
    file = read_client_file(path, below)
    assert file.elsewhere == ("/another",)
    found = servers_of(file, below).specs
    assert {name: spec.command for name, spec in found.items()} == {
        "git": "of-the-project", "time": "mcp-server-time", "own": "x",
    }  # fmt: skip


def test_comments_and_commas_at_the_end_are_read(writer: Writer) -> None:
    text = (
        '{ // mine\n "servers": { /* one */ "git": {"command": "mcp-server-git", "args": ["--repository", "."],}, }, }'
    )
    assert list(servers(writer, text, ".vscode/mcp.json").specs) == ["git"]


def test_codex_names_variables_and_refers_to_none_in_text(writer: Writer) -> None:
    text = """
        [mcp_servers.docs]
        url = "https://docs.example/mcp"
        bearer_token_env_var = "DOCS_TOKEN"
        http_headers = { "X-Team" = "a" }
        env_http_headers = { "X-User" = "DOCS_USER" }
        startup_timeout_sec = 20
        tool_timeout_sec = 7

        [mcp_servers.git]
        command = "mcp-server-git"
        env_vars = ["GIT_DIR", "NOT_SET"]
        disabled_tools = ["git_commit"]
        env = { KEEP = "${LITERALLY}" }

        [mcp_servers.off]
        command = "x"
        enabled = false
        """
    found = servers(writer, text, ".codex/config.toml", DOCS_TOKEN="s3cret", DOCS_USER="ada", GIT_DIR="/g")
    assert dict(found.specs["docs"].headers) == {"X-Team": "a", "X-User": "ada", "Authorization": "Bearer s3cret"}
    assert (found.specs["docs"].timeout, found.specs["docs"].start) == (7, 20)
    assert dict(found.specs["git"].env) == {"GIT_DIR": "/g", "NOT_SET": "", "KEEP": "${LITERALLY}"}
    assert not found.lets_through("git", "git_commit")
    assert found.lets_through("git", "git_log")
    assert found.off == {"off": OFF}
    assert "s3cret" in found.secrets


LIMITED = {"command": "x"}


@pytest.mark.parametrize(
    ("name", "text", "limits"),
    [
        (".codex/config.toml", '[mcp_servers.git]\ncommand = "x"\nstartup_timeout_ms = 1500\n', (1.5, 60)),
        ("opencode.json", {"mcp": {"git": {"type": "local", "command": ["x"], "timeout": 5000}}}, (5, 60)),
        (
            "opencode.json",
            {"mcp": {"servers": {"git": {"command": ["x"], "timeout": {"startup": 9000, "request": 4000}}}}},
            (9, 4),
        ),
        ("opencode.json", {"mcp": {"timeout": {"startup": 8000}, "servers": {"git": {"command": ["x"]}}}}, (8, 60)),
        (".mcp.json", {"mcpServers": {"git": {**LIMITED, "timeout": 90_000}}}, (60, 90)),
        (".mcp.json", {"mcpServers": {"git": {**LIMITED, "timeout": 500}}}, (60, 60)),
    ],
)
def test_the_limits_of_a_client_are_taken_over_in_its_own_unit(
    writer: Writer, name: str, text: str | dict[str, Any], limits: tuple[float, float]
) -> None:
    """G8: that of a start and that of a request; Claude Code ignores less than a second."""
    git = servers(writer, text, name).specs["git"]
    assert (git.start, git.timeout) == limits


def test_claude_code_says_in_its_environment_or_settings_how_long_a_start_may_take(writer: Writer) -> None:
    """G8: the nearest settings count; a server that says so itself goes before them."""
    text = {"mcpServers": {"git": LIMITED, "own": {**LIMITED, "start": 7}, "docs": {"url": "http://127.0.0.1:9/mcp"}}}
    found = servers(writer, text, ".mcp.json", MCP_TIMEOUT="20000").specs
    assert [found[name].start for name in ("git", "own", "docs")] == [20, 7, 60]
    writer.file(json.dumps({"env": {"MCP_TIMEOUT": "30000"}}), "home/.claude/settings.json")
    assert servers(writer, text, ".mcp.json", MCP_TIMEOUT="20000").specs["git"].start == 30
    writer.file(json.dumps({"env": {"MCP_TIMEOUT": "45000"}}), ".claude/settings.local.json")
    assert servers(writer, text, ".mcp.json").specs["git"].start == 45


def test_gemini_filters_trusts_and_refers_in_its_own_way(writer: Writer) -> None:
    text = {
        "mcpServers": {
            "git": {
                **GIT,
                "trust": True,
                "timeout": 5000,
                "env": {"A": "$HERE", "B": "x${HERE}"},
                "includeTools": ["log"],
            },
            "old": {"url": "http://localhost:1/sse"},
            "new": {"httpUrl": "http://localhost:1/mcp"},
        }
    }
    found = servers(writer, text, ".gemini/settings.json", HERE="here")
    git = found.specs["git"]
    assert (dict(git.env), git.timeout, git.trust_annotations) == ({"A": "here", "B": "xhere"}, 5.0, False)
    assert (found.lets_through("git", "log"), found.lets_through("git", "push")) == (True, False)
    assert (found.specs["old"].transport, found.specs["new"].transport) == ("sse", "http")


def test_zed_writes_the_command_in_three_ways_and_keeps_extensions_to_itself(writer: Writer) -> None:
    text = {
        "theme": "dark",
        "context_servers": {
            "custom": {"source": "custom", "command": "a", "args": ["b"], "env": {}},
            "nested": {"command": {"path": "a", "args": ["b"], "env": {"K": "v"}}, "settings": {}},
            "remote": {"url": "https://docs.example/mcp", "headers": {"X": "y"}},
            "extension": {"settings": {"api_key": "zzz"}},
        },
    }
    found = servers(writer, text, ".zed/settings.json")
    assert {(s.command, s.args) for s in found.specs.values() if s.command} == {("a", ("b",))}
    assert dict(found.specs["nested"].env) == {"K": "v"}
    assert list(found.specs) == ["custom", "nested", "remote"]
    assert found.off == {"extension": "an extension of Zed starts it, and only Zed knows how"}


def test_inputs_of_vs_code_take_their_default_or_a_placeholder(writer: Writer) -> None:
    text = {
        "inputs": [
            {"id": "key", "type": "promptString", "password": True},
            {"id": "level", "type": "promptString", "default": "low"},
            {"id": "pick", "type": "pickString", "options": ["first", "second"]},
        ],
        "servers": {
            "git": {**GIT, "env": {"KEY": "${input:key}", "LEVEL": "${input:level}", "PICK": "${input:pick}"}},
            "docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${input:key}"}},
        },
    }
    found = servers(writer, text, ".vscode/mcp.json")
    assert dict(found.specs["git"].env) == {"KEY": PLACEHOLDER, "LEVEL": "low", "PICK": "first"}
    assert found.guessed == {"git": ("key",)}
    assert found.off == {"docs": "it asks for the input 'key', which only its client can ask for"}


def test_what_cannot_be_started_is_told_and_the_rest_stays(writer: Writer) -> None:
    text = {
        "mcpServers": {
            "git": GIT,
            "unset": {"command": "x", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}},
            "off": {"command": "x", "disabled": True},
            "text": "not an object",
            "wrong": {"command": ["x"], "args": 5},
            "odd": {"type": "carrier-pigeon", "command": "x"},
        }
    }
    found = servers(writer, text, ".mcp.json")
    assert list(found.specs) == ["git"]
    assert list(found.toolkits) == ["git"]
    assert found.off["unset"] == "the environment variable NOT_SET_ANYWHERE is not set"
    assert found.off["off"] == OFF
    assert found.off["text"].startswith("its entry is not valid")
    assert found.off["wrong"].startswith("its entry is not valid")
    assert "carrier-pigeon" in found.off["odd"]


@pytest.mark.parametrize("key", ["http_headers", "env", "env_http_headers", "env_vars", "bearer_token_env_var"])
def test_a_table_of_codex_with_a_wrong_value_never_fails_the_others(writer: Writer, key: str) -> None:
    text = f'[mcp_servers.git]\ncommand = "x"\n[mcp_servers.wrong]\ncommand = "y"\n{key} = 3\n'
    found = servers(writer, text, ".codex/config.toml")
    assert "git" in found.specs


def test_behind_pegboard_its_own_servers_are_taken(writer: Writer) -> None:
    writer.file("servers: {git: {command: mcp-server-git}, time: {command: mcp-server-time}}", "own/p.yaml")
    entry = {"command": "/bin/pegboard", "args": ["serve", "--stdio", "--config", "own/p.yaml"]}
    found = servers(writer, {"mcpServers": {"pegboard": entry, "more": {"command": "x"}}}, ".mcp.json")
    assert sorted(found.specs) == ["git", "more", "time"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.toml", "[mcp_servers.git\n", "config.toml:1:17: is not valid TOML"),
        (".mcp.json", '{"mcpServers": {"a": }}', ".mcp.json:1:22: is not valid JSON"),
        (".mcp.json", '{"mcpServers": 3}', "mcpServers is not an object"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_place(writer: Writer, name: str, text: str, message: str) -> None:
    path = writer.file(text, name)
    with pytest.raises(ConfigError) as caught:
        read_client_file(path, machine(writer))
    assert message in str(caught.value)


def test_x5_secrets_are_found_wherever_they_are_written() -> None:
    server = {
        "command": "npx",
        "args": [
            "-y",
            "mcp-remote@1.2.3",
            "--api-key",
            "k1",
            "--header",
            "Authorization: Bearer t0ken",
            "TOKEN=abc",
            ".",
        ],
        "env": {"API_KEY": "k2", "LOG_LEVEL": "debug", "ENDPOINT": "https://a.example", "REF": "${REF}"},
        "headers": {"X-Key": "hunter22"},
        "url": "https://docs.example/mcp?key=qwertz123",
    }
    found = secrets_in({"one": server, "two": {"args": ["/s/Zx81yB7cD2eF3gH4iJ5kL6"]}})
    assert {"k1", "k2", "t0ken", "abc", "hunter22", "qwertz123", "Zx81yB7cD2eF3gH4iJ5kL6"} <= found
    assert not {"npx", "-y", "debug", "${REF}", "mcp-remote@1.2.3", "."} & found


def test_x5_paths_are_to_be_read_unless_their_name_or_look_says_otherwise() -> None:
    paths = {"UV_CACHE_DIR": "/srv/caches/uv", "CONFIG": "~/my files/a.json"}
    others = {"API_KEY": "/srv/caches/k", "PLAIN": "/AbC+9defGH0ijkLMNOpq1rst", "ODD": "hunter/22"}
    found = secrets_in({"one": {"command": "npx", "env": {**paths, **others}}})
    assert set(others.values()) <= found
    assert not found & set(paths.values())


def test_a_path_of_the_home_folder_is_found(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(writer.folder))
    writer.file(json.dumps({"mcpServers": SERVERS}), ".cursor/mcp.json")
    assert list(read_client_file(Path("~/.cursor/mcp.json"), Machine()).entries) == ["git"]
