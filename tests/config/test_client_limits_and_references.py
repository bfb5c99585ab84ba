"""What is in clients' files in the client's own terms: units of time, references, and entries that are wrong."""

import json
from typing import Any

import pytest
from config_support import Writer

from pegboard.config.client_files.server_files import read_client_file
from pegboard.config.clients.compiled_servers import CompiledServers, servers_of
from pegboard.config.location import Machine
from pegboard.core.model.specs import ServerSpec

GLOBAL = "home/.config/Code/User/globalStorage"


def servers(writer: Writer, text: str | dict[str, Any], name: str, **env: str) -> CompiledServers:
    path = writer.file(text if isinstance(text, str) else json.dumps(text), name)
    here = Machine(folder=writer.folder, home=writer.folder / "home", system="linux", env=env)
    return servers_of(read_client_file(path, here), here)


def in_json(limit: Any, key: str = "timeout") -> dict[str, Any]:
    return {"mcpServers": {"a": {"command": "x", key: limit}}}


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        (f"{GLOBAL}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", in_json(3600), 3600),
        (".kilocode/mcp.json", in_json(1200), 1200),
        (f"{GLOBAL}/rooveterinaryinc.roo-cline/settings/mcp_settings.json", in_json(2000), 2000),
        (".zed/settings.json", {"context_servers": {"a": {"command": "x", "timeout": 1500}}}, 1500),
        (".codex/config.toml", '[mcp_servers.a]\ncommand = "x"\ntool_timeout_sec = 2400\n', 2400),
        ("home/.config/goose/config.yaml", "extensions: {a: {type: stdio, cmd: x, timeout: 1800}}", 1800),
        (".gemini/settings.json", in_json("600000"), 600),
        (".gemini/settings.json", in_json(250), 0.25),
        (".github/mcp.json", in_json(900), 0.9),
        (".amazonq/mcp.json", in_json(45_000), 45),
        ("librechat.yaml", "mcpServers: {a: {command: x, timeout: 7200000}}", 7200),
        ("home/.codeium/windsurf/mcp_config.json", in_json(3600), 3600),
        ("home/.codeium/windsurf/mcp_config.json", in_json(90_000), 90),
        (".cursor/mcp.json", in_json("2m"), 120),
    ],
)
def test_a_limit_counts_in_the_unit_of_its_client(writer: Writer, name: str, text: Any, seconds: float) -> None:
    """G8: one hour stays one hour, and a quarter of a second a quarter of a second."""
    assert servers(writer, text, name).specs["a"].timeout == seconds


def test_a_start_limit_of_librechat_is_taken_over(writer: Writer) -> None:
    """G8: `initTimeout` counts milliseconds as its other limit does."""
    found = servers(writer, "mcpServers: {a: {command: x, initTimeout: 90000}}", "librechat.yaml")
    assert found.specs["a"].start == 90


@pytest.mark.parametrize("limit", [0, -1, "soon", True, "", [5], "0", 1e300])
@pytest.mark.parametrize("name", [".roo/mcp.json", ".gemini/settings.json", ".cursor/mcp.json"])
def test_a_limit_that_is_no_time_is_ignored_and_costs_nothing(writer: Writer, name: str, limit: Any) -> None:
    found = servers(writer, in_json(limit), name)
    assert (found.specs["a"].timeout, dict(found.off)) == (60, {})


def test_a_unit_that_is_not_known_is_said(writer: Writer) -> None:
    said = writer.messages(json.dumps(in_json(90_000)), ".cursor/mcp.json")
    assert [text.partition("timeout: ")[2] for text in said] == [
        "the unit of 90000 is not known here; it is taken for 90 s. Write it with its unit: 60s, 2m, 500ms."
    ]
    assert writer.messages(json.dumps(in_json(90_000)), ".roo/mcp.json") == []


REFERS = {
    "cursor": (".cursor/mcp.json", "${env:WHERE}"),
    "vscode": (".vscode/mcp.json", "${env:WHERE}"),
    "roo": (".roo/mcp.json", "${env:WHERE}"),
    "gemini": (".gemini/settings.json", "$WHERE"),
    "gemini braces": (".gemini/settings.json", "${WHERE}"),
    "gemini default": (".gemini/settings.json", "${NOWHERE:-here}"),
    "copilot-cli": (".github/mcp.json", "$WHERE"),
    "claude-code": (".mcp.json", "${NOWHERE:-here}"),
    "opencode": ("opencode.json", "{env:WHERE}"),
}


@pytest.mark.parametrize("client", REFERS)
def test_a_clients_references_are_read_in_every_text_of_its_file(writer: Writer, client: str) -> None:
    """G12: command, arguments, environment, folder, address and headers."""
    name, said = REFERS[client]
    local = {"command": f"/{said}/x", "args": [f"--at={said}"], "env": {"A": said}, "cwd": f"/{said}"}
    remote = {"url": f"http://{said}.example/mcp", "headers": {"X-At": f"<{said}>"}}
    key = "servers" if client == "vscode" else "mcp" if client == "opencode" else "mcpServers"
    if client == "opencode":
        local = {"command": [local["command"], *local["args"]], "environment": local["env"], "cwd": local["cwd"]}
    found = servers(writer, {key: {"a": local, "b": remote}}, name, WHERE="here")
    assert dict(found.off) == {}
    a, b = found.specs["a"], found.specs["b"]
    assert (a.command, a.args, dict(a.env), a.cwd) == ("/here/x", ("--at=here",), {"A": "here"}, "/here")
    assert (b.url, dict(b.headers)) == ("http://here.example/mcp", {"X-At": "<here>"})


@pytest.mark.parametrize(
    ("name", "text", "args"),
    [
        (".codex/config.toml", '[mcp_servers.a]\ncommand = "x"\nargs = ["${HOME}", "$HOME"]\n', ("${HOME}", "$HOME")),
        ("goose.yaml", "extensions: {a: {type: stdio, cmd: x, args: ['${HOME}', '$HOME']}}", ("${HOME}", "$HOME")),
        (".gemini/settings.json", in_json(["items?$top=1", "^a$", "${1}"], "args"), ("items?$top=1", "^a$", "${1}")),
        (".mcp.json", in_json(["echo ${x%y}", "$HOME"], "args"), ("echo ${x%y}", "$HOME")),
    ],
)
def test_what_is_no_reference_for_the_client_stays_text(writer: Writer, name: str, text: Any, args: Any) -> None:
    assert servers(writer, text, name, HOME="/h").specs["a"].args == args


def test_the_sign_between_folders_and_the_folder_of_an_editor_are_known(writer: Writer) -> None:
    args = ["${workspaceFolder}${/}a", "${workspaceFolderBasename}", "${userHome}"]
    text = {"servers": {"a": {"command": "x", "args": args}}}
    expected = (f"{writer.folder}/a", writer.folder.name, f"{writer.folder}/home")
    assert servers(writer, text, ".vscode/mcp.json").specs["a"].args == expected


def test_what_only_librechat_can_fill_in_stays_with_it(writer: Writer) -> None:
    text = "mcpServers: {a: {url: 'http://x/', headers: {X-User: '{{LIBRECHAT_USER_ID}}'}}, b: {command: y}}"
    found = servers(writer, text, "librechat.yaml")
    assert list(found.specs) == ["b"]
    assert "only LibreChat knows" in found.off["a"]


GOOD = {"command": "y"}
WRONG: dict[str, Any] = {
    "a number": 3,
    "an env that is a list": {"command": "x", "env": ["A=b"]},
    "headers that are text": {"url": "http://127.0.0.1:9/mcp", "headers": "A: b"},
    "nothing to start": {"args": ["a"]},
    "an address of another kind": {"url": "ftp://x/"},
    "a reference of an editor": {"command": "x", "cwd": "${config:a.b}"},
    "a variable with a sign": {"command": "x", "env": {"A=B": "c"}},
    "a command and a url": {"command": "x", "url": "http://127.0.0.1:9/mcp"},
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_server_of_a_clients_file_is_unavailable_and_the_others_are_served(writer: Writer, kind: str) -> None:
    """P6: it is told with its place, and why it is missing stands with it."""
    file = json.dumps({"mcpServers": {"bad": WRONG[kind], "good": GOOD}})
    found = writer.loaded(file, ".cursor/mcp.json")
    bad, good = found.specs["bad"], found.specs["good"]
    assert isinstance(bad, ServerSpec)
    assert isinstance(good, ServerSpec)
    assert (bool(bad.unavailable), good.unavailable) == (True, "")
    (problem,) = found.problems
    assert problem.place is not None
    assert (problem.severity, problem.place.path.partition(".bad")[0]) == ("warning", "mcpServers")
    assert "the server is unavailable" in problem.message


@pytest.mark.parametrize("name", ["*", "tool:x", "a/", " b"])
def test_a_server_whose_name_cannot_be_said_is_left_out_of_a_clients_file(writer: Writer, name: str) -> None:
    found = writer.loaded(json.dumps({"mcpServers": {name: GOOD, "good": GOOD}}), ".cursor/mcp.json")
    assert list(found.specs) == ["good"]
    assert [problem.severity for problem in found.problems] == ["warning"]
    assert "the server is left out" in found.problems[0].message


@pytest.mark.parametrize(
    ("server", "name", "value"),
    [
        ("{url: 'http://x/', headers: {Authorization: 'Bearer ${V}'}}", "headers", "a\nb"),
        ("{url: 'http://x/', headers: {Authorization: 'Bearer ${V}'}}", "headers", "schlüssel"),
        ("{url: '${V}'}", "url", "ftp://x/"),
        ("{command: '${V}'}", "command", ""),
        ("{command: x, timeout: '${V}'}", "timeout", "soon"),
        ("{command: x, cwd: '${V}'}", "cwd", "~nobody-of-this-name"),
    ],
)
def test_a_value_of_the_environment_costs_its_server_and_nothing_else(
    writer: Writer, server: str, name: str, value: str
) -> None:
    """P6, X5: in a configuration of our own too; the value is not repeated."""
    found = writer.loaded(f"servers: {{bad: {server}, good: {{command: y}}}}", V=value)
    bad = found.specs["bad"]
    assert isinstance(bad, ServerSpec)
    assert bad.unavailable
    (problem,) = found.problems
    assert problem.place is not None
    assert (problem.severity, problem.place.path.split(".")[:3]) == ("warning", ["servers", "bad", name])
    assert name != "headers" or value not in str(problem) + bad.unavailable


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\t ", " "])
def test_what_http_takes_off_a_header_and_an_address_is_taken_off(writer: Writer, ends: str) -> None:
    text = "servers: {a: {url: '${URL}', headers: {Authorization: 'Bearer ${V}'}}}\n"
    text += "tokens: {ada: {token: '${V}', agents: ['*']}}"
    found = writer.loaded(text, V=f"abc{ends}", URL=f"{ends}HTTP://x/mcp{ends}")
    spec = found.specs["a"]
    assert isinstance(spec, ServerSpec)
    assert (spec.url, dict(spec.headers)) == ("HTTP://x/mcp", {"Authorization": "Bearer abc"})
    assert (spec.unavailable, found.problems) == ("", ())
    assert [token.value for token in found.tokens] == ["abc"]


def test_a_server_is_switched_off_with_a_sentence(writer: Writer) -> None:
    """P6: it stands where whatever is missing is explained, and `check` tells it."""
    found = writer.loaded("servers: {a: {command: x, args: [b], disabled: it needs a new key}, b: {command: y}}")
    spec = found.specs["a"]
    assert isinstance(spec, ServerSpec)
    assert (spec.unavailable, spec.args) == ("it is switched off: it needs a new key", ("b",))
    assert [(p.severity, p.code) for p in found.problems] == [("warning", "unavailable")]
    (wrong,) = writer.messages("servers: {a: {command: x, disabled: 'false'}}")
    assert "expected true, false or a sentence that says why" in wrong
