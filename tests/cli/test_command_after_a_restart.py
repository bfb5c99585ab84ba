"""What the command knows of plugins that are code, before they are loaded, and of what cannot run (X1, P6, F4)."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from command_support import Run

CONFIG = """
plugins: {notes: {python: notes}}
toolkits:
  sums: {description: Calculate, tools: [calculator]}
  code: {description: Look at code, tools: [github]}
agents:
  default: {tools: [csv], allowed_toolkits: [sums, code], discoverable: [notes], dialect: pegboard, unloaded_call: run}
"""
PLAIN = Path(__file__).parents[1] / "servers" / "plain_server.py"
SERVER = """
servers: {git: {command: not-there}}
agents: {default: {tools: [git/git_status]}}
"""


@pytest.fixture
def known(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which every plugin has been asked once."""
    monkeypatch.delenv("GITHUB_ACCESS_TOKEN", raising=False)
    (project / "pegboard.yaml").write_text(CONFIG)
    run("check", "--probe")
    return project


def test_tools_search_and_explain_see_plugins_that_nobody_has_loaded(run: Run, known: Path) -> None:
    """X1, F5: modules and toolkits of Agno, loadable and static."""
    tools = {tool["name"]: tool for tool in run("tools", "--agent", "default", "--json").json}
    assert {"add_note": True, "multiply": True, "read_csv_file": True}.items() <= {
        name: tool["available"] for name, tool in tools.items()
    }.items()
    assert all(tools[name]["tokens"] for name in ("add_note", "multiply", "read_csv_file"))
    assert "multiply" in [found["name"] for found in run("search", "multiply two numbers", "--json").json["results"]]
    explained = run("explain", "multiply", "--json").json
    assert (explained["permitted"], explained["loaded"]) == (True, False)
    assert run("call", "multiply", '{"a": 6, "b": 7}', "--json").json["status"] == "ok"


def test_what_cannot_run_counts_in_no_sum(run: Run, known: Path) -> None:
    """F4, P6: a plugin that is known to be unavailable keeps no figure from being known."""
    assert run("session", "load", "code", "--json").json["items"][0]["status"] == "tool_unavailable"
    (known / "pegboard.yaml").write_text(CONFIG.replace("tools: [csv]", "tools: [csv, github]"))
    tokens = run("surface", "--json").json["tokens"]
    assert tokens["unknown"] == []
    assert isinstance(tokens["saved"], int)


def test_a_switch_knows_what_it_means_before_its_plugin_is_loaded(run: Run, known: Path) -> None:
    """P2, X1: a tool of a plugin that the store knows is a tool."""
    assert run("permissions", "set", "read_csv_file", "false", "--agent", "default").code == 0
    rows = run("permissions", "show", "--panel", "--json").json["default"]
    kinds = {row["name"]: row["kind"] for group in rows for row in (group, *group.get("members", ()))}
    assert kinds["read_csv_file"] == "tool"
    assert "unknown" not in kinds.values()
    assert "read_csv_file" not in [tool["name"] for tool in run("surface", "--json").json["tools"]]


def test_tools_say_what_is_known_as_it_was(run: Run, known: Path) -> None:
    """X1: code that has changed and cannot be imported any longer is listed as unavailable, with its old tools."""
    module = known / "notes.py"
    changed = module.stat().st_mtime_ns + 2_000_000_000
    module.write_text("raise RuntimeError('broken')\n")
    os.utime(module, ns=(changed, changed))
    rows = {tool["name"]: tool for tool in run("tools", "--json").json}
    assert not rows["add_note"]["available"]
    assert "RuntimeError: broken" in rows["add_note"]["reason"]
    assert "stale" in [reason["code"] for reason in run("explain", "add_note", "--json").json["reasons"]]


@pytest.mark.parametrize(
    ("written", "tool"), [("", "git/git_status"), ("", "git__git_status"), (", prefix: vcs", "vcs__git_status")]
)
def test_a_static_tool_of_a_server_that_is_not_there_is_missing(
    run: Run, folder: Path, written: str, tool: str
) -> None:
    """P6, T3: `surface` lists its server, `check` warns at its place, whatever name the tool is listed by."""
    text = SERVER.replace("not-there", f"not-there{written}").replace("git/git_status", tool)
    (folder / "pegboard.yaml").write_text(text)
    (missing,) = run("surface", "--json").json["missing"]
    assert (missing["plugin"], "'not-there' was not found" in missing["reason"]) == ("git", True)
    checked = run("check", "--strict")
    assert checked.code == 1
    assert "pegboard.yaml:2:11: servers.git: server 'git' cannot be started: there is no command" in checked.out


def test_a_static_tool_that_a_plugin_does_not_have_is_missing(run: Run, folder: Path) -> None:
    """P6, T3: the reason names it, and what may have been meant."""
    (folder / "pegboard.yaml").write_text("agents: {default: {tools: [calculator/multiplies]}}\n")
    assert run("surface", "--json").json["missing"] == [
        {"plugin": "calculator", "reason": "It has no tool 'multiplies'. Did you mean 'multiply'?"}
    ]


def test_a_server_that_does_not_start_delays_no_command_about_another(run: Run, project: Path) -> None:
    """G8: only what a name may be of is asked, and waited for."""
    tried = project / "tried"
    hangs = {"command": "sh", "args": ["-c", f"echo x >> {tried}; exec sleep 600"]}
    plain = {"command": sys.executable, "args": [str(PLAIN)]}
    document = {"servers": {"slow": hangs, "plain": plain}, "agents": {"default": {"discoverable": ["*"]}}}
    (project / "pegboard.yaml").write_text(json.dumps(document))
    for command in (
        ("explain", "plain__echo"),
        ("session", "load", "plain"),
        ("call", "plain__echo", '{"text": "hello"}'),
        ("call", "plain/echo", '{"text": "hello"}'),
    ):
        ran = run(*command)
        assert "did not answer" not in ran.err, ran.err
    assert not tried.exists()
    for command in (("tools",), ("search", "echo"), ("surface",)):
        ran = run(*command)
        assert ran.code == 0
        assert "did not answer" not in ran.err, ran.err
        assert "the tools of slow" in ran.err, "what is missing is named"
    assert "plain__echo" in run("tools").out


def test_a_first_look_asks_all_and_does_not_wait_long_for_the_one_that_says_nothing(run: Run, project: Path) -> None:
    """G8: what the others have is shown; a server that hangs is named with how long it was waited for."""
    hangs = {"command": "sh", "args": ["-c", "exec sleep 600"]}
    plain = {"command": sys.executable, "args": [str(PLAIN)]}
    document = {"servers": {"slow": hangs, "plain": plain}, "agents": {"default": {"discoverable": ["*"]}}}
    (project / "pegboard.yaml").write_text(json.dumps(document))
    ran = run("search", "echo")
    assert ran.code == 0
    assert "plain__echo" in ran.out
    waited = re.search(r"slow did not answer within (\d+) s", ran.err)
    assert waited is not None
    assert int(waited[1]) < 20


@pytest.mark.parametrize("name", ["calculator/add", "calculator", "plugin:calculator", "tool:calculator/add"])
def test_what_a_tool_requires_of_a_known_plugin_is_no_fault(run: Run, known: Path, name: str) -> None:
    """T8, X1: `check` takes it before anything is known, and after it is."""
    config = known / "pegboard.yaml"
    config.write_text(CONFIG.replace("plugins: {", f"plugins: {{csv: {{requires: {{read_csv_file: ['{name}']}}}}, "))
    for more in ((), ("--probe",), ()):
        ran = run("check", "--json", *more)
        assert [one["message"] for one in ran.json["problems"] if one["code"] == "unknown_tool"] == []
        assert ran.code == 0
