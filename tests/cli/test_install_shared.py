"""The clients of one user share one configuration (G12): what each gets, and what it has back afterwards."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_support import Run, command_of, put, servers_in
from test_install_starts import PROMPTING, all_ended, began, program, programs, running

from pegboard.config.client_files.known import CLIENTS
from sdk_servers import pegboard_command

__all__ = ["programs"]

CONFIG = Path("home/.config/pegboard/pegboard.yaml")
CURSOR, WINDSURF = Path("home/.cursor/mcp.json"), Path("home/.codeium/windsurf/mcp_config.json")
GIT: dict[str, Any] = {"command": "mcp-server-git"}
TIME: dict[str, Any] = {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"]}
pytestmark = pytest.mark.usefixtures("home")


def placed(path: Path, **servers: Any) -> bytes:
    return put(str(path), json.dumps({"mcpServers": servers}, indent=2) + "\n").read_bytes()


def installed(run: Run, client: str, *more: str) -> Any:
    ran = run("init", "--no-check", "--no-keyring", "--install", client, "--json", *more)
    assert ran.code == 0, ran.out + ran.err
    return ran.json


def written() -> Any:
    return yaml.safe_load(CONFIG.read_text())


def test_two_clients_with_the_same_servers_share_them_and_their_agent(run: Run) -> None:
    """G12: equal is what resolves to the same command, arguments, environment, address and headers."""
    docs = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer t0k3n-of-mine"}}
    placed(CURSOR, git=GIT, docs=docs)
    placed(WINDSURF, docs={**docs, "timeout": 5000, "headers": {"authorization": "Bearer t0k3n-of-mine"}}, git=GIT)
    assert installed(run, "cursor")["agent"] == "default"
    before = CONFIG.read_text()
    second = installed(run, "windsurf")
    assert (second["agent"], second["servers"], CONFIG.read_text()) == ("default", ["docs", "git"], before)
    assert "t0k3n-of-mine" not in before
    assert command_of(servers_in(WINDSURF)["pegboard"]) == command_of(servers_in(CURSOR)["pegboard"])


def test_one_name_with_two_tokens_is_two_servers_and_each_client_has_its_own(run: Run) -> None:
    """G12, X5: under the name that its model knows, and with the secret that it had."""
    for path, token in ((CURSOR, "first-token-1"), (WINDSURF, "second-token-2")):
        placed(path, notes={**GIT, "env": {"NOTES_TOKEN": token}}, time=TIME)
    installed(run, "cursor")
    second = installed(run, "windsurf")
    value = written()
    assert (second["agent"], second["servers"]) == ("windsurf", ["notes-windsurf", "time"])
    assert value["servers"]["notes-windsurf"]["prefix"] == "notes"
    assert value["agents"]["windsurf"]["discoverable"] == ["notes-windsurf", "time"]
    kept = [value["servers"][name]["env"]["NOTES_TOKEN"] for name in ("notes", "notes-windsurf")]
    files = [one.removeprefix("${file:").removesuffix("}") for one in kept]
    assert [(CONFIG.parent / file).read_text() for file in files] == ["first-token-1\n", "second-token-2\n"]
    assert run("check", "--strict", "--config", str(CONFIG)).code == 0


def test_what_one_client_shows_only_in_part_is_limited_for_it_alone(run: Run) -> None:
    placed(CURSOR, git=GIT)
    put("home/.codex/config.toml", '[mcp_servers.git]\ncommand = "mcp-server-git"\nenabled_tools = ["git_log"]\n')
    installed(run, "cursor")
    assert installed(run, "codex")["servers"] == ["git"]
    value = written()
    assert value["agents"]["codex"] == {"dialect": "pegboard", "allowed_toolkits": ["git"]}
    assert value["toolkits"]["git"]["tools"] == [{"git": {"include_tools": ["git_log"]}}]
    assert value["agents"]["default"]["discoverable"] == ["git"]


def test_a_server_that_came_since_is_merged_by_the_next_run_and_given_back(run: Run) -> None:
    placed(CURSOR, git=GIT)
    installed(run, "cursor")
    value = json.loads(CURSOR.read_text())
    value["mcpServers"]["time"] = TIME
    CURSOR.write_text(json.dumps(value, indent=2) + "\n")
    again = installed(run, "cursor")
    assert (again["status"], again["servers"], list(servers_in(CURSOR))) == ("installed", ["time"], ["pegboard"])
    assert written()["servers"]["time"] == TIME
    agent = written()["agents"][again["agent"]]
    assert {"git", "time"} <= set(agent["discoverable"])
    back = run("init", "--uninstall", "cursor", "--json")
    assert (back.json["status"], servers_in(CURSOR)) == ("restored", {"git": GIT, "time": TIME})


def test_the_first_of_two_is_given_back_and_the_other_goes_on(run: Run) -> None:
    before = placed(CURSOR, git=GIT)
    placed(WINDSURF, git=GIT, time=TIME)
    installed(run, "cursor")
    installed(run, "windsurf")
    config, other = CONFIG.read_text(), WINDSURF.read_bytes()
    assert run("init", "--uninstall", "cursor").code == 0
    assert (CURSOR.read_bytes(), WINDSURF.read_bytes(), CONFIG.read_text()) == (before, other, config)
    assert run("check", "--strict", "--config", str(CONFIG)).code == 0
    assert run("init", "--uninstall", "windsurf").code == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_was_removed_and_is_installed_again_finds_what_it_had(run: Run, client: str) -> None:
    from test_install import placed as placed_file

    path = placed_file(client)
    before = path.read_bytes()
    first = installed(run, client)
    text = Path(first["config"]).read_text()
    assert run("init", "--uninstall", client).code == 0
    again = installed(run, client)
    assert {**again, "backup": None, "keyring": []} == {**first, "backup": None, "keyring": []}
    assert Path(again["config"]).read_text() == text
    assert run("init", "--uninstall", client).code == 0
    assert path.read_bytes() == before


def test_a_home_without_a_folder_of_settings_gets_one(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    placed(CURSOR, git=GIT)
    found = Path(installed(run, "cursor")["config"])
    assert found == home / ".config" / "pegboard" / "pegboard.yaml"
    assert (found.stat().st_mode & 0o777, found.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_file_of_a_version_that_is_not_known_keeps_what_is_not_known(run: Run) -> None:
    """A server of a kind that is not known stays with the client."""
    text = json.dumps({"version": 99, "mcpServers": {"git": GIT, "far": {"type": "pigeon", "coop": 7}}, "new": [1]})
    put(str(CURSOR), text)
    ran = run("init", "--no-check", "--install", "cursor", "--json")
    assert (ran.code, ran.json["servers"]) == (0, ["git"])
    assert [(one["name"], "its type 'pigeon' is not one of" in one["reason"]) for one in ran.json["staying"]] == [
        ("far", True)
    ]
    value = json.loads(CURSOR.read_text())
    assert (value["version"], value["new"], value["mcpServers"]["far"]) == (99, [1], {"type": "pigeon", "coop": 7})
    assert run("init", "--uninstall", "cursor").code == 0
    assert CURSOR.read_text() == text


def test_two_installations_at_once_lose_nothing(folder: Path) -> None:
    """Of two clients: both are in the configuration; of one client: one of them says that the file was changed."""
    paths = {"cursor": CURSOR, "windsurf": WINDSURF, "junie": Path("home/.junie/mcp/mcp.json")}
    for client, path in paths.items():
        placed(path, **{client: GIT, "same": TIME})
    command = pegboard_command("init", "--no-check", "--no-keyring", "--install")
    started = [subprocess.Popen([*command, client], stderr=subprocess.PIPE) for client in (*paths, "cursor")]
    errors = [process.communicate(timeout=120)[1].decode() for process in started]
    codes = [process.returncode for process in started]
    value = written()
    assert set(value["servers"]) == {*paths, "same"}
    assert {name for agent in value["agents"].values() for name in agent["discoverable"]} == {*paths, "same"}
    assert [list(servers_in(path)) for path in paths.values()] == [["pegboard"]] * 3
    assert codes[1:3] == [0, 0]
    for code, error in ((codes[0], errors[0]), (codes[3], errors[3])):
        assert code == 0 or "was changed in the meantime, so it was not overwritten" in error
    assert not list(folder.rglob(".pegboard.yaml.*"))


# -- Claude Code -----------------------------------------------------------------------------------


def claude(folder: Path) -> tuple[Path, bytes]:
    """Write servers of Claude Code in each of its scopes; return the user's file, and what is in it."""
    put(".mcp.json", json.dumps({"mcpServers": {"ours": GIT}}))
    value = {"numStartups": 3, "mcpServers": {"mine": TIME}, "projects": {str(folder): {"mcpServers": {"here": GIT}}}}
    path = put("home/.claude.json", json.dumps(value, indent=2))
    return path, path.read_bytes()


@pytest.mark.parametrize("order", [("local", "user", "project"), ("user", "project", "local")])
def test_each_scope_of_claude_code_is_moved_and_given_back_byte_for_byte(
    run: Run, folder: Path, order: tuple[str, ...]
) -> None:
    """G12: `claude mcp add` writes into the scope `local`, so that is the one where none is named."""
    path, before = claude(folder)
    project = Path(".mcp.json").read_bytes()
    servers = {"local": "here", "user": "mine", "project": "ours"}
    for scope in order:
        found = installed(run, "claude-code", "--scope", scope)
        assert (found["scope"], found["servers"]) == (scope, [servers[scope]])
    value = json.loads(path.read_text())
    local = value["projects"][str(folder)]["mcpServers"]
    assert (list(local), list(value["mcpServers"]), list(servers_in(Path(".mcp.json")))) == (
        ["pegboard"],
        ["pegboard"],
        ["pegboard"],
    )
    assert local["pegboard"]["cwd"] == str(folder)
    agents = {scope["args"][-1] for scope in (local["pegboard"], value["mcpServers"]["pegboard"])}
    assert len(agents) == 2
    for scope in reversed(order):
        assert run("init", "--uninstall", "claude-code", "--scope", scope).code == 0
    assert (path.read_bytes(), Path(".mcp.json").read_bytes()) == (before, project)


def test_without_a_scope_the_nearest_is_taken_and_the_others_are_named(run: Run, folder: Path) -> None:
    claude(folder)
    ran = run("init", "--no-check", "--install", "claude-code")
    assert (
        "Left alone in .mcp.json (project): ours. To move them: pegboard init --install claude-code --scope" in ran.out
    )
    assert "(user): mine." in ran.out
    assert Path(".mcp.json").read_text().count("pegboard") == 0


@pytest.mark.parametrize(("client", "scope"), [("cursor", "local"), ("claude-desktop", "project")])
def test_a_scope_that_a_client_does_not_have_is_a_matter_of_usage(run: Run, client: str, scope: str) -> None:
    ran = run("init", "--install", client, "--scope", scope)
    assert (ran.code, "has no scope" in ran.err) == (2, True)


def test_permission_rules_of_claude_code_are_named_with_what_they_become(run: Run, folder: Path) -> None:
    """What it denies is not granted by Pegboard either; a server of which it denies everything stays with it."""
    rules = {
        "allow": ["mcp__git__git_status", "Bash(ls)", "mcp__other__x"],
        "ask": ["mcp__git"],
        "deny": ["mcp__git__git_reset", "mcp__time"],
    }
    put(".claude/settings.local.json", json.dumps({"permissions": rules}))
    put(".mcp.json", json.dumps({"mcpServers": {"git": GIT, "time": TIME}}))
    found = installed(run, "claude-code")
    assert [rule["rule"] for rule in found["rules"]] == ["mcp__git__git_status", "mcp__git", "mcp__git__git_reset"]
    assert "mcp__pegboard__git__git_status" in found["rules"][0]["text"]
    assert [one["name"] for one in found["staying"]] == ["time"]
    value = yaml.safe_load(Path("pegboard.yaml").read_text())
    assert value["toolkits"]["git"]["tools"] == [{"git": {"exclude_tools": ["git_reset"]}}]
    assert list(servers_in(folder / ".mcp.json")) == ["pegboard", "time"]


# -- started ---------------------------------------------------------------------------------------

NOTED = "(began.parent / 'asked').touch()\n"
"""What a server does once it was asked something: whoever started it knows its process then."""


def test_nothing_that_was_started_outlives_an_installation_that_is_killed(folder: Path, programs: Path) -> None:
    """Also what does not end with its input."""
    asked = programs / "asked"
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.stdin.readline()\n{NOTED}{PROMPTING}"
    put(str(CURSOR), json.dumps({"mcpServers": {"deaf": {"command": program(programs, "deaf", deaf)}}}))
    before = CURSOR.read_bytes()
    command = [sys.executable, "-m", "pegboard", "init", "--install", "cursor"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    deadline = time.monotonic() + 60
    while not asked.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.stderr.read()  # it ends with the last process that has it: the watch, and the server
    process.wait()
    assert all_ended(programs)
    assert (len(began(programs)), CURSOR.read_bytes()) == (1, before)
    assert not CONFIG.exists()


def test_a_server_with_other_tools_through_pegboard_stays_with_its_client(
    run: Run, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs a variable that only its client gives it, which is said."""
    monkeypatch.setenv("SERVED_TO", "the client")
    more = "if 'SERVED_TO' not in os.environ: sys.exit('SERVED_TO is not set')\n"
    put(str(CURSOR), json.dumps({"mcpServers": {"odd": {"command": program(programs, "odd", more)}, "git": GIT}}))
    found = run("init", "--install", "cursor", "--json").json
    (staying,) = found["staying"]
    assert (staying["name"], found["servers"]) == ("odd", ["git"])
    assert "it starts when Cursor starts it, but not through Pegboard" in staying["reason"]
    assert "SERVED_TO is not set" in staying["reason"]
    assert "name it under its `env`" in staying["reason"]
    value = json.loads(CURSOR.read_text())
    value["mcpServers"]["odd"]["env"] = {"SERVED_TO": "${SERVED_TO}"}
    CURSOR.write_text(json.dumps(value))
    assert run("init", "--install", "cursor", "--json").json["servers"] == ["odd"]
    assert running(programs) == []


# -- read as the client reads it -------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_written_for_a_client_has_each_field_as_that_client_reads_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    """G12: by the names and types that each client documents; nothing else is in the entry."""
    from test_install import placed as placed_file

    path = placed_file(client)
    for name in ("KEY", "GH_TOKEN"):
        monkeypatch.setenv(name, "a value of the environment")
    found = installed(run, client)
    entry = servers_in(path)["pegboard"]
    command, *arguments = command_of(entry)
    chosen = [] if found["agent"] == "default" else ["--agent", found["agent"]]
    project = found["scope"] == "project"
    named = {"cursor": "${workspaceFolder}/", "vscode": "${workspaceFolder}/"}.get(client, "")
    config = f"{named}pegboard.yaml" if project else str(Path(found["config"]).absolute())
    assert arguments == ["serve", "--stdio", "--config", config, *chosen]
    started = {"command": command, "args": arguments}
    passed = {"env": {"GH_TOKEN": "${input:gh-token}"}}
    expected: dict[str, dict[str, Any]] = {
        "claude-code": {**started, "alwaysLoad": True},
        "claude-desktop": started,
        "cursor": started,
        "vscode": {"type": "stdio", **started, "cwd": "${workspaceFolder}", **passed},
        "copilot-cli": {"type": "local", **started, "tools": ["*"], "deferTools": "never"},
        "codex": {**started, "env_vars": ["DOCS_TOKEN"]},
        "gemini": {**started, "env": {"KEY": "$KEY"}},
        "zed": {"source": "custom", **started, "env": {}},
        "windsurf": started,
        "junie": started,
        "opencode": {
            "type": "local", "command": [command, *arguments], "environment": {"GH_TOKEN": "{env:GH_TOKEN}"}
        },
        "goose": {
            "enabled": True, "type": "stdio", "name": "pegboard", "cmd": command, "args": arguments, "envs": {},
            "env_keys": ["GH_TOKEN"], "timeout": 300, "description": "The tools of all other extensions",
        },
    }  # fmt: skip
    assert entry == expected[client]
    assert command == "pegboard" if project else Path(command).is_file()
