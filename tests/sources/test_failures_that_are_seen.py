"""What fails of a server, or is excluded of its list, is said where a person and a model look."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import SERVERS, gateway, requests_of

from sdk_servers import pegboard_command

GOOD = {"name": "good", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
BAD = {"name": "bad", "inputSchema": {"type": "object"}, "annotations": {"title": 3}}
FAILING: dict[str, dict[str, Any]] = {
    "a command that is not there": {"command": "no-such-program-here"},
    "a program that ends": {"command": sys.executable, "args": ["-c", "raise SystemExit('out of paper')"]},
    "an address where nothing answers": {"url": "http://127.0.0.1:9/mcp"},
    "a folder that is not there": {"command": sys.executable, "args": ["-c", "0"], "cwd": "no/such/folder"},
}
REASONS = ["no-such-program-here", "out of paper", "no connection", "no/such/folder"]


def listed(folder: Path, *tools: dict[str, Any], name: str = "odd") -> dict[str, Any]:
    """Return a server that lists these tools."""
    files = [folder / f"{name}.{kind}" for kind in ("state", "log", "page")]
    files[0].write_text("polite 1")
    files[2].write_text(json.dumps({"tools": tools}))
    return {"command": sys.executable, "args": [str(SERVERS / "era_server.py"), *map(str, files)]}


def served(folder: Path, servers: dict[str, Any], *calls: str) -> tuple[list[str], list[str]]:
    """Return what a client of a gateway over stdio is answered to calls, and the lines on standard error."""
    process = gateway(folder, servers, fast_path=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(requests_of(*((name, {}) for name in calls)))
    process.stdin.flush()
    answers: dict[int, str] = {}
    while len(answers) < len(calls):
        message = json.loads(process.stdout.readline())
        if message.get("id"):
            answers[message["id"]] = json.dumps(message.get("result") or message["error"])
    _, errors = process.communicate()
    return [answers[number] for number in sorted(answers)], errors.splitlines()


@pytest.mark.parametrize(("kind", "reason"), list(zip(FAILING, REASONS, strict=True)), ids=FAILING)
def test_a_server_that_fails_is_named_by_the_log_and_by_a_call_of_its_tool(
    tmp_path: Path, kind: str, reason: str
) -> None:
    """G8, X1: one line on standard error however often it is called; no tool of another server is suggested."""
    servers = {"broken": FAILING[kind], "fine": listed(tmp_path, {**GOOD, "name": "send"})}
    answers, errors = served(tmp_path, servers, "fine__send", "broken__send", "broken__send")
    assert "polite" in answers[0]
    for answer in answers[1:]:
        assert "broken" in answer
        assert reason in answer
        assert "fine__send" not in answer
    assert len([line for line in errors if "broken" in line]) == 1


LISTS = {
    "an error": ({"error": {"code": -32603, "message": "out of ink"}}, "out of ink"),
    "no list": ({"result": {"x": 1}}, "tools/list"),
    "a text": ({"result": {"tools": "none"}}, "tools/list"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_server_that_runs_and_does_not_list_its_tools_is_named_too(tmp_path: Path, kind: str) -> None:
    """G8, X1: one line on standard error, as for a server that does not start."""
    answer, reason = LISTS[kind]
    code = f"""
import json, sys
ABOUT = {{"capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "b", "version": "1"}}}}
ANSWERS = {{"initialize": {{"result": {{"protocolVersion": "2025-06-18", **ABOUT}}}}, "tools/list": {answer!r}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = ANSWERS.get(message["method"], {{"error": {{"code": -32601, "message": "no"}}}})
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **answer}}), flush=True)
"""
    broken = {"command": sys.executable, "args": ["-c", code]}
    answers, errors = served(tmp_path, {"broken": broken}, "broken__send", "broken__send")
    assert all("broken" in answer and reason in answer for answer in answers)
    assert len([line for line in errors if "broken" in line and reason in line]) == 1


def test_a_call_of_an_excluded_tool_says_why_it_is(tmp_path: Path) -> None:
    """G8: and the log has one line for the list."""
    answers, errors = served(tmp_path, {"odd": listed(tmp_path, GOOD, BAD)}, "odd__good", "odd__bad", "odd/bad")
    assert "polite" in answers[0]
    for answer in answers[1:]:
        assert "annotations.title" in answer
    assert len([line for line in errors if "excluded" in line]) == 1


Command = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return what a command prints on standard output, in front of a server with an excluded tool."""
    page = listed(tmp_path, GOOD, BAD, {**GOOD, "name": "cut", "icons": [{"size": 1}]})
    config = {"servers": {"odd": page}, "agents": {"default": {"tools": ["odd"]}}, "store": "sqlite:///store.db"}
    path = tmp_path / "pegboard.yaml"
    path.write_text(json.dumps(config))

    def run(*arguments: str) -> str:
        line = [*pegboard_command(*arguments), "--config", str(path)]
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        return subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=env, check=False).stdout

    return run


@pytest.mark.parametrize("era", ["--handshake", ""])
def test_what_does_not_pass_is_named_by_check_and_measure(tmp_path: Path, era: str) -> None:
    """G7: one line for each server that declares what no client is told of."""
    program = [sys.executable, str(SERVERS / "extension_server.py"), *([era] if era else [])]
    servers = {
        "docs": {"command": program[0], "args": program[1:]},
        "plain": {"command": program[0], "args": [*program[1:], "--plain"]},
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*arguments: str) -> dict[str, Any]:
        line = pegboard_command(*arguments, "--json")
        return json.loads(
            subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=env, check=False).stdout
        )

    (problem,) = [
        one for one in run("check", "--probe", "--config", str(path))["problems"] if one["code"] == "not_passed"
    ]
    (row,) = [one for one in run("measure", str(path))["servers"] if one["message"]]
    for text in (problem["message"], row["message"]):
        assert "io.modelcontextprotocol/oauth-client-credentials, experimental: x-preview" in text
        assert "skills" not in text
    assert row["name"] == "docs"


def test_what_is_excluded_stands_in_check_tools_and_surface(command: Command) -> None:
    """G8: with the true reason, also where another process has read the list."""
    found = json.loads(command("check", "--probe", "--json"))["problems"]
    excluded = [one for one in found if one["code"] == "tool_excluded"]
    assert len(excluded) == 2
    assert "'bad' (annotations.title: " in excluded[0]["message"]
    assert "`icons` of 'cut' (icons.0.src: " in excluded[1]["message"]
    rows = {row["name"]: row for row in json.loads(command("tools", "--json"))}
    assert [name for name, row in rows.items() if row["available"]] == ["odd__good", "odd__cut"]
    assert rows["odd__bad"]["reason"].startswith("It is excluded: annotations.title: ")
    (missing,) = json.loads(command("surface", "--json"))["missing"]
    assert missing["plugin"] == "odd"
    assert "'bad' (annotations.title: " in missing["reason"]
