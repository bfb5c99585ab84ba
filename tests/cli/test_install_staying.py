"""What `pegboard init --install` leaves with the client, and what its entry asks of the client."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from command_support import Run, as_client_starts, put, servers_in

from acceptance import accept_found
from pegboard.config.inspection import load
from pegboard.core.model.agents import Agent

METADATA = 'Bearer realm="docs", resource_metadata="https://login.example/.well-known/oauth-protected-resource"'
SANDBOXED = """{
    "servers": {
        // confined
        "shell": {"command": "mcp-shell",   "sandboxEnabled": true, // on purpose
                  "sandbox": {"filesystem": {"allowWrite": ["${workspaceFolder}"]},
                              "network": {"allowedDomains": ["docs.example"]}}},
        "git": {"command": "mcp-server-git", "sandboxEnabled": false},
    },
}
"""
pytestmark = pytest.mark.usefixtures("home")


def own_server(name: str) -> dict[str, Any]:
    """Return a server of the configuration that was written into this folder."""
    return yaml.safe_load(Path("pegboard.yaml").read_text())["servers"][name]


class Door(BaseHTTPRequestHandler):
    """A server that answers everyone without the right token with 401."""

    asked: list[tuple[str, str]]
    challenge: str | None

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        self.asked.append((self.command, body))
        self.send_response(401)
        if self.challenge is not None:
            self.send_header("WWW-Authenticate", self.challenge)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = answer  # noqa: N815 - the name that it is looked up by

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the base class
        """Write nothing."""


@contextmanager
def door(challenge: str | None = METADATA) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve such a server; yields its address, and what it is asked."""
    asked: list[tuple[str, str]] = []
    handler = type("Door", (Door,), {"asked": asked, "challenge": challenge})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp", asked
        server.shutdown()
        thread.join()


SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
GIT = {"command": sys.executable, "args": [str(SERVER)]}


def cursor(**servers: Any) -> Path:
    return put(".cursor/mcp.json", json.dumps({"mcpServers": {"git": GIT, **servers}}))


@pytest.mark.parametrize(
    ("client", "file", "mark"),
    [
        ("claude-code", ".mcp.json", {"alwaysLoad": True}),
        ("copilot-cli", "home/.copilot/mcp-config.json", {"type": "local", "tools": ["*"], "deferTools": "never"}),
        ("copilot-cli", ".github/mcp.json", {"type": "local", "tools": ["*"], "deferTools": "never"}),
        ("cursor", ".cursor/mcp.json", {}),
    ],
)
def test_the_entry_asks_a_client_that_defers_tools_to_keep_ours_in_view(
    run: Run, client: str, file: str, mark: dict[str, Any]
) -> None:
    path = put(file, '{"mcpServers": {"git": {"command": "mcp-server-git", "env": {"K": "${KEY}"}}}}')
    assert run("init", "--no-check", "--install", client).code == 0
    entry = servers_in(path)["pegboard"]
    passed = {"env": {"KEY": "${KEY}"}} if client == "copilot-cli" else {}
    assert {key: value for key, value in entry.items() if key not in ("command", "args", "cwd")} == {**mark, **passed}


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude-code", "work/.mcp.json"),
        ("vscode", "work/.vscode/mcp.json"),
        ("zed", "work/.zed/settings.json"),
        ("windsurf", "home/.codeium/windsurf/mcp_config.json"),
    ],
)
def test_in_a_project_pegboard_starts_in_its_folder(run: Run, folder: Path, client: str, file: str) -> None:
    """There relative paths of its servers are meant; a file of the user belongs to no folder."""
    root = {"vscode": "servers", "zed": "context_servers"}.get(client, "mcpServers")
    path = put(file, json.dumps({root: {"git": {"command": "mcp-server-git"}}}))
    assert run("init", "--no-check", "--install", client, "--from", file).code == 0
    entry = servers_in(path)["pegboard"]
    assert entry.get("cwd") == ("${workspaceFolder}" if client == "vscode" else None)
    assert as_client_starts(entry, folder / "work")[1] == str(folder / "work")
    again = run("init", "--no-check", "--install", client, "--from", file, "--json").json
    place = "home/.config/pegboard" if client == "windsurf" else "work"
    assert again["status"] == "already_installed"
    assert again["config"].endswith(f"{place}/pegboard.yaml")


def test_a_server_in_a_sandbox_of_vs_code_that_nothing_else_keeps_stays_in_it(run: Run) -> None:
    """The entry stays as it is written, byte for byte, and is what it was once Pegboard is removed."""
    path = put(".vscode/mcp.json", SANDBOXED)
    ran = run("init", "--no-check", "--install", "vscode")
    assert ran.code == 0
    why = "that lets it reach only docs.example, but `confine` restricts ports, not host names"
    assert f"shell stays where it is: VS Code runs it in a sandbox {why}." in ran.out
    assert list(servers_in(path)) == ["pegboard", "shell"]
    start, end = SANDBOXED.index('{"command": "mcp-shell"'), SANDBOXED.index(',\n        "git"')
    assert SANDBOXED[start:end] in path.read_text()
    assert "mcp-shell" not in Path("pegboard.yaml").read_text()
    assert "sandboxed" not in run("init", "--no-check", "--install", "vscode").out
    assert "restored" in run("init", "--uninstall", "vscode", "--json").json["status"]
    assert path.read_text() == SANDBOXED


def test_a_server_in_a_sandbox_of_vs_code_is_confined_as_narrowly_behind_pegboard(run: Run, folder: Path) -> None:
    """A7: which is said; a configuration that has it unconfined is not kept; the client has it back as it was."""
    text = SANDBOXED.replace('["docs.example"]', "[]")
    path = put(".vscode/mcp.json", text)
    ran = run("init", "--no-check", "--install", "vscode")
    told = "Confined as in their sandbox; of your files they read only their own folder: shell."
    assert (ran.code, told in ran.out, "stays where it is" in ran.out) == (0, True, False)
    own = folder / "work" / "pegboard.yaml" if (folder / "work" / "pegboard.yaml").exists() else Path("pegboard.yaml")
    spec = load(own, registered={}).specs["shell"]
    assert spec.confine is not None
    assert (spec.confine.write, spec.confine.network) == ((str(path.parents[1].absolute()),), ())
    assert run("init", "--uninstall", "vscode").code == 0
    assert path.read_text() == text
    own.write_text("servers: {git: {command: mcp-server-git}, shell: {command: mcp-shell}}\n")
    accept_found()
    again = run("init", "--no-check", "--install", "vscode", "--json").json
    assert (again["servers"], again["confined"]) == (["shell-vscode", "git"], ["shell"])
    assert load(own, registered={}).specs["shell-vscode"].confine is not None


def test_where_this_system_cannot_confine_what_is_in_a_sandbox_stays_there(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: a server is not let out of its sandbox, and no server that ran is made unavailable."""
    put(".vscode/mcp.json", SANDBOXED.replace('["docs.example"]', "[]"))
    monkeypatch.setattr(sys, "platform", "darwin")
    ran = run("init", "--no-check", "--install", "vscode", "--json").json
    here = "on macOS it has not been tested yet"
    why = f"VS Code runs it in a sandbox, and Pegboard cannot confine it here: {here}"
    assert (ran["staying"], ran["servers"]) == ([{"name": "shell", "reason": why}], ["git"])


def test_a_start_of_ones_own_excludes_what_only_a_sandbox_of_vs_code_keeps(run: Run) -> None:
    """A7: with the reason, in text and JSON; the client's file has it still."""
    put(".vscode/mcp.json", SANDBOXED)
    ran = run("init", "--from", ".vscode/mcp.json")
    assert "shell is excluded: VS Code runs it in a sandbox that lets it reach only docs.example" in ran.out
    assert "mcp-shell" not in Path("pegboard.yaml").read_text()
    again = run("init", "--from", ".vscode/mcp.json", "--force", "--json").json
    assert [one["name"] for one in again["staying"]] == ["shell"]


@pytest.mark.parametrize("challenge", [None, "Bearer"])
def test_a_server_that_refuses_everybody_and_names_no_login_has_not_come_up(run: Run, challenge: str | None) -> None:
    with door(challenge) as (url, _):
        path = cursor(docs={"url": url, "type": "http"})
        entry = servers_in(path)["docs"]
        ran = run("init", "--install", "cursor", "--json").json
        ((name, reason),) = [one.values() for one in ran["staying"]]
        assert (name, ran["servers"], servers_in(path)["docs"]) == ("docs", ["git"], entry)
        assert reason.startswith("it does not start when Cursor starts it: it answered HTTP 401")


def test_a_server_that_wants_a_login_moves_and_is_named_with_the_command(run: Run) -> None:
    """G11: it has come up, and Pegboard logs in to it."""
    with door() as (url, asked):
        path = cursor(docs={"url": url, "type": "http"})
        before = path.read_bytes()
        ran = run("init", "--install", "cursor", "--json")
        assert {method for method, _ in asked} <= {"POST", "GET"}
        assert "servers: docs: login required" in ran.err
        assert (ran.json["servers"], ran.json["staying"], ran.json["logins"]) == (["git", "docs"], [], ["docs"])
        assert list(servers_in(path)) == ["pegboard"]
    assert run("init", "--uninstall", "cursor").code == 0
    assert path.read_bytes() == before


def test_codex_gives_up_a_server_that_wants_a_login_and_has_it_back(run: Run) -> None:
    with door() as (url, _):
        table = f"[mcp_servers.docs]\nurl = '{url}' # with a login\nstartup_timeout_sec = 20\n"
        git = f"[mcp_servers.git]\ncommand = '{sys.executable}'\nargs = ['{SERVER}']\n"
        text = f'model = "gpt-6"\n\n{git}\n{table}'
        path = put("home/.codex/config.toml", text)
        ran = run("init", "--install", "codex")
        config = next(Path("home").rglob("pegboard.yaml"))
        assert f"docs requires a login: pegboard login docs --config {config.absolute()}" in ran.out
    assert "[mcp_servers.docs]" not in path.read_text()
    assert run("init", "--uninstall", "codex").code == 0
    assert path.read_text() == text


CLIENT = {"client_id": "x1", "client_secret": "hunter2hunter2", "scopes": ["read", "write"]}


@pytest.mark.parametrize(
    ("name", "file", "written", "auth"),
    [
        ("claude-code", ".mcp.json", {"oauth": {"clientId": "x1", "scopes": "read write"}}, {"client_secret"}),
        ("vscode", ".vscode/mcp.json", {"oauth": {"clientId": "x1"}}, {"client_secret", "scopes"}),
        (
            "cursor",
            ".cursor/mcp.json",
            {"auth": {"CLIENT_ID": "x1", "CLIENT_SECRET": "hunter2hunter2", "scopes": ["read", "write"]}},
            set[str](),
        ),
        (
            "gemini",
            ".gemini/settings.json",
            {"oauth": {"enabled": True, "clientId": "x1", "clientSecret": "$SECRET", "scopes": ["read", "write"]}},
            set[str](),
        ),
        (
            "gemini",
            ".gemini/settings.json",
            {"authProviderType": "dynamic_discovery", "oauth": {"clientId": "x1"}},
            {"client_secret", "scopes"},
        ),
    ],
)
def test_what_a_client_says_of_a_login_is_said_of_it_here(
    run: Run, name: str, file: str, written: dict[str, Any], auth: set[str]
) -> None:
    """G11: by the names that each client documents; a reference stays a reference, and no secret is printed."""
    root = "servers" if name == "vscode" else "mcpServers"
    put(file, json.dumps({root: {"docs": {"url": "http://127.0.0.1:9/mcp", **written}}}))
    ran = run("init", "--no-check", "--install", name)
    assert (ran.code, ran.err) == (0, "")
    assert "hunter2" not in ran.out
    secret = "${SECRET}" if "$SECRET" in json.dumps(written) else CLIENT["client_secret"]
    expected = {key: value for key, value in {**CLIENT, "client_secret": secret}.items() if key not in auth}
    assert own_server("docs")["auth"] == expected


@pytest.mark.parametrize(
    ("oauth", "auth"),
    [
        ({"clientId": "x1", "clientSecret": "{env:SECRET}", "scope": "read write"}, {"client_secret": "${SECRET}"}),
        (False, None),
    ],
)
def test_opencode_says_of_a_login_what_it_says_of_it_here(run: Run, oauth: object, auth: dict[str, str] | None) -> None:
    put(
        "opencode.json",
        json.dumps({"mcp": {"docs": {"type": "remote", "url": "http://127.0.0.1:9/mcp", "oauth": oauth}}}),
    )
    assert run("init", "--no-check", "--install", "opencode").code == 0
    assert own_server("docs")["auth"] == ({"kind": "none"} if auth is None else {**CLIENT, **auth})


def test_codex_says_of_a_login_what_it_says_of_it_here(run: Run) -> None:
    head = '[mcp_servers.docs]\nurl = "http://127.0.0.1:9/mcp"\n'
    tail = '[mcp_servers.docs.oauth]\nclient_id = "x1"\ncallback_url = "http://127.0.0.1/callback"\n'
    put(".codex/config.toml", f'{head}scopes = ["read", "write"]\n{tail}')
    assert run("init", "--no-check", "--install", "codex").code == 0
    assert own_server("docs")["auth"] == {"client_id": "x1", "scopes": ["read", "write"]}


@pytest.mark.parametrize("off", [False, {"enabled": False, "clientId": "x1"}])
def test_where_a_client_has_switched_a_login_off_there_is_none_here(run: Run, off: object) -> None:
    put(
        ".gemini/settings.json",
        json.dumps({"mcpServers": {"docs": {"httpUrl": "http://127.0.0.1:9/mcp", "oauth": off}}}),
    )
    assert run("init", "--no-check", "--install", "gemini").code == 0
    assert own_server("docs")["auth"] == {"kind": "none"}


@pytest.mark.parametrize("auth", ["oauth", None])
def test_where_a_client_logs_in_by_itself_nothing_is_to_be_said(run: Run, auth: str | None) -> None:
    put(".mcp.json", json.dumps({"mcpServers": {"docs": {"url": "http://127.0.0.1:9/mcp", "auth": auth, "oauth": {}}}}))
    assert run("init", "--no-check", "--install", "claude-code").code == 0
    assert own_server("docs").get("auth") is None


def test_a_key_of_a_login_without_a_meaning_here_is_a_warning_at_its_place(run: Run) -> None:
    oauth = '{"clientId": "x1",\n "callbackPort": 8080, "other": 1}'
    put(".mcp.json", f'{{"mcpServers": {{"docs": {{"url": "https://docs.example/mcp", "oauth": {oauth}}}}}}}')
    ran = run("check", "--config", ".mcp.json")
    assert ".mcp.json:2:2" in ran.err + ran.out
    own = "Pegboard uses its own redirect address for logins"
    assert f"the key 'oauth.callbackPort' is ignored: {own}." in ran.err + ran.out
    assert "the key 'oauth.other' is ignored: it is not known here." in ran.err + ran.out


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            {"authProviderType": "google_credentials"},
            "Cursor logs in to it in its own way (authProviderType: google_credentials)",
        ),
        ({"auth": "magic"}, "how Cursor logs in to it is not known here (auth: magic)"),
        (
            {"oauth": {"authorizationUrl": "https://a.example", "tokenUrl": "https://b.example"}},
            "its login has settings that Pegboard takes from the server itself: oauth.authorizationUrl, oauth.tokenUrl",
        ),
    ],
)
def test_a_login_that_only_the_client_can_make_stays_with_it(run: Run, entry: dict[str, Any], why: str) -> None:
    path = cursor(docs={"url": "http://127.0.0.1:9/mcp", **entry})
    ran = run("init", "--no-check", "--install", "cursor", "--json")
    assert (ran.json["servers"], ran.err) == (["git"], "")
    assert ran.json["staying"] == [{"name": "docs", "reason": why}]
    assert list(servers_in(path)) == ["pegboard", "docs"]


def test_a_configuration_made_of_a_clients_file_is_without_what_only_the_client_can_log_in_to(run: Run) -> None:
    """It says so; the file of the client stays unchanged, and so does what else is in it."""
    docs = {"url": "http://127.0.0.1:9/mcp", "authProviderType": "google_credentials"}
    put(".gemini/settings.json", json.dumps({"mcpServers": {"docs": docs, "git": {"command": "mcp-server-git"}}}))
    why = "Gemini CLI logs in to it in its own way (authProviderType: google_credentials)"
    ran = run("init", "--from", ".gemini/settings.json")
    assert f"docs is excluded: {why}." in ran.out.splitlines()
    assert list(yaml.safe_load(Path("pegboard.yaml").read_text())["servers"]) == ["git"]
    assert run("check", "--strict").code == 0
    ran = run("init", "--from", ".gemini/settings.json", "--config", "other.yaml", "--json")
    assert (ran.json["servers"], ran.json["staying"]) == (["git"], [{"name": "docs", "reason": why}])


def test_codex_keeps_a_login_for_another_address_than_the_servers_own(run: Run) -> None:
    server = '[mcp_servers.docs]\nurl = "http://127.0.0.1:9/mcp"\noauth_resource = "https://other.example"\n'
    put(".codex/config.toml", f'[mcp_servers.git]\ncommand = "a"\n{server}')
    ran = run("init", "--no-check", "--install", "codex", "--json")
    assert [one["name"] for one in ran.json["staying"]] == ["docs"]


def test_a_server_that_refuses_the_key_that_is_configured_has_not_come_up(run: Run) -> None:
    """No one can log in there instead: it is the key that is wrong."""
    with door() as (url, _):
        path = cursor(docs={"url": url, "headers": {"authorization": "Bearer t0k3n-of-mine"}})
        ran = run("init", "--install", "cursor")
        assert (ran.code, list(servers_in(path))) == (0, ["pegboard", "docs"])
        assert "the credentials are missing or refused" in ran.out
        assert "t0k3n-of-mine" not in ran.err + ran.out


@pytest.mark.parametrize("arguments", [["--no-check"], ["--dry-run"], ["--no-check", "--dry-run"]])
def test_what_is_not_to_be_checked_is_not_asked_and_that_is_said(run: Run, arguments: list[str]) -> None:
    with door() as (url, asked):
        cursor(docs={"url": url})
        ran = run("init", "--install", "cursor", *arguments)
    assert (ran.code, ran.err, asked) == (0, "", [])
    assert "None was started, so it was not checked that git, docs work." in ran.out


def test_a_remote_server_that_nobody_answers_for_has_not_come_up(run: Run) -> None:
    path = cursor(gone={"url": "http://127.0.0.1:1/mcp"})
    ran = run("init", "--install", "cursor")
    assert (ran.code, list(servers_in(path))) == (0, ["pegboard", "gone"])
    assert "gone stays where it is: it does not start when Cursor starts it: " in ran.out
    assert "Start the server, or correct `url`." in ran.out
    assert "Run it again once that is corrected: pegboard init --install cursor" in ran.out


@pytest.mark.parametrize("written", ['true, "sandbox": 5', '"yes"', "1", '{"network": false}'])
def test_where_every_server_stays_nothing_is_installed(run: Run, written: str) -> None:
    """Also where a sandbox is asked for in a way that only the client could mean."""
    text = f'{{"servers": {{"shell": {{"command": "x", "sandboxEnabled": {written}}}}}}}'
    path = put(".vscode/mcp.json", text)
    ran = run("init", "--no-check", "--install", "vscode")
    assert (ran.code, ran.out, path.read_text()) == (1, "", text)
    assert "has no server that Pegboard could start, so it was not changed." in ran.err
    assert "shell stays: VS Code runs it in a sandbox" in ran.err
    assert not Path("pegboard.yaml").exists()


def loaded(path: Path) -> Agent:
    return load(path, registered={}).agents["default"]


def test_a_server_that_the_client_was_to_keep_in_view_is_always_loaded(run: Run) -> None:
    """An entry with the mark moves to the static tools; of a file that is served as it is, it is initial."""
    servers = {
        "git": {"command": "mcp-server-git", "alwaysLoad": True},
        "time": {"command": "mcp-server-time", "deferTools": "never", "tools": ["now"]},
        "later": {"command": "x", "alwaysLoad": False, "deferTools": "auto", "tools": ["*"]},
    }
    path = put(".mcp.json", json.dumps({"mcpServers": servers}))
    assert run("check", "--config", str(path)).err == ""
    agent = loaded(path)
    assert (agent.allowed_toolkits, agent.initial_toolkits) == (("git", "time", "later"), ("git", "time"))
    assert run("init", "--no-check", "--install", "claude-code").code == 0
    agent = loaded(Path("pegboard.yaml"))
    members = [(member.name, member.include) for member in agent.static]
    assert members == [("git", None), ("time", frozenset({"now"}))]
