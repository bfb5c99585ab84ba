"""`pegboard init --install` starts what it is about to give to a client, and changes nothing where that fails."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_support import Run, as_client_starts, put, servers_in
from test_install import FILES, placed

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Tool
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.support.own_folder import folder_of
from sdk_servers import pegboard_command

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
pytestmark = pytest.mark.usefixtures("home")

SERVED = """\
#!{python}
import atexit, json, os, runpy, sys, time
from pathlib import Path

began = Path("{folder}") / "began"
with began.open("a") as file:
    file.write(f"{{os.getpid()}}\\n")
{more}
sys.argv = ["{server}"]
runpy.run_path("{server}", run_name="__main__")
"""
TOGETHER = """\
with began.open() as file:
    first = file.read().split()[:4]
while len(began.read_text().split()) < 4:
    time.sleep(0.01)
alive = [pid for pid in began.read_text().split() if Path("/proc", pid).exists()]
with (began.parent / "alive").open("a") as file:
    file.write(f"{len(alive)}\\n")
"""
PROMPTING = "print('Which account? ', end='', file=sys.stderr, flush=True)\nwhile True: time.sleep(60)\n"


@pytest.fixture
def programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of the path, with a server that each of the clients' files names."""
    found = folder / "programs"
    found.mkdir()
    monkeypatch.setenv("PATH", f"{found}{os.pathsep}{os.environ['PATH']}")
    for name in ("mcp-server-git", "mcp-server-time"):
        program(found, name)
    return found


def program(folder: Path, name: str, more: str = "") -> str:
    """Write a program that notes its process, does something more, and is a server then."""
    text = SERVED.format(python=sys.executable, folder=folder, server=SERVER, more=more)
    return str(put(str(folder / name), text, 0o755))


def began(programs: Path) -> list[int]:
    """Return the processes of the servers that were started."""
    place = programs / "began"
    return [int(pid) for pid in place.read_text().split()] if place.exists() else []


def running(programs: Path) -> list[int]:
    """Return those that still run."""
    found: list[int] = []
    for pid in began(programs):
        with suppress(FileNotFoundError, ProcessLookupError):  # what no one waits for stays as a zombie
            if Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(pid)
    return found


def all_ended(programs: Path) -> bool:
    """Wait until none of them runs any longer; what ends them may be gone a moment before they are."""
    deadline = time.monotonic() + 60
    while running(programs) and time.monotonic() < deadline:
        time.sleep(0.01)
    return running(programs) == []


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "programs" not in path.parts}


def cursor(**servers: Any) -> Path:
    return put("home/.cursor/mcp.json", json.dumps({"mcpServers": servers}))


@pytest.mark.parametrize("client", FILES)
def test_every_client_gets_servers_that_came_up_before_its_file_was_changed(
    run: Run, programs: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    """P10: as they were written, confined by nothing; none runs any longer."""
    for name in ("KEY", "GH_TOKEN"):
        monkeypatch.setenv(name, "a value of the environment")
    path = placed(client)
    if client == "codex":  # the remote one is on no machine
        first, _, rest = path.read_text().partition('[mcp_servers."docs server"]')
        path.write_text(f"{first}# profiles{rest.partition('# profiles')[2]}")
    before = path.read_bytes()
    ran = run("init", "--install", client, "--json")
    assert (ran.code, ran.json["checked"], ran.json["confined"]) == (0, ran.json["servers"], []), ran.err
    assert len(began(programs)) == 2 * len(ran.json["servers"]) > 0
    assert running(programs) == []
    assert f"{len(ran.json['servers'])} of {len(ran.json['servers'])} server" in ran.err
    assert run("init", "--uninstall", client).code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "no-such-command"}, "the command 'no-such-command' was not found. Install it"),
        ({"command": sys.executable, "args": [str(SERVER), "--exit", "3", "--complain", "no licence"]}, "no licence"),
        ({"command": "mcp-server-git", "env": {"A": "${NO_SUCH_KEY}"}}, "variable NO_SUCH_KEY is not set"),
        ({"command": "mcp-server-git", "cwd": "/no/such/folder"}, "its folder '/no/such/folder' does not exist"),
    ],
)
def test_a_server_that_does_not_come_up_stays_with_the_client_and_the_reason_is_said(
    run: Run, folder: Path, programs: Path, entry: dict[str, Any], reason: str
) -> None:
    """It is moved once that is corrected; where none comes up nothing is changed."""
    path = cursor(git={"command": "mcp-server-git"}, broken=entry)
    before = path.read_bytes()
    ran = run("init", "--install", "cursor", "--json")
    assert (ran.code, ran.json["servers"], servers_in(path)["broken"]) == (0, ["git"], entry)
    (staying,) = ran.json["staying"]
    assert (staying["name"], reason in staying["reason"]) == ("broken", True)
    assert (running(programs), len(began(programs)) >= 2) == ([], True)
    again = run("init", "--install", "cursor", "--json").json["error"]
    assert (again["code"], reason in again["message"]) == ("server_not_started", True)
    assert run("init", "--uninstall", "cursor").code == 0
    assert path.read_bytes() == before
    cursor(broken=entry)
    before_all = files_in(folder)
    ran = run("init", "--install", "cursor")
    assert (ran.code, ran.out, files_in(folder)) == (6, "", before_all)
    assert "left as it is, because none of its servers can be moved" in ran.err
    assert run("init", "--no-check", "--install", "cursor").code == 0


def test_a_server_that_asks_a_person_ends_at_its_limit_and_that_is_said(
    run: Run, folder: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it and its child do not want to end."""
    monkeypatch.setattr("pegboard.cli.server_starts.PATIENCE", 8.0)
    monkeypatch.setattr("pegboard.cli.server_starts.SAID_EVERY", 0.5)
    cursor(asks={"command": program(programs, "asks", PROMPTING)})
    before = files_in(folder)
    ran = run("init", "--install", "cursor")
    assert (ran.code, files_in(folder), running(programs)) == (6, before, [])
    assert "it does not start when Cursor starts it: it did not answer within 8 s" in ran.err
    assert "pegboard: still waiting for asks" in ran.err
    assert "Which account?" in ran.err
    assert "It has no terminal: if it asks a person for something, put that into its settings." in ran.err


def test_what_is_switched_off_is_not_started(run: Run, programs: Path) -> None:
    gone = {"command": "no-such-command", "env": {"A": "${NO_SUCH_KEY}"}, "disabled": True}
    cursor(git={"command": "mcp-server-git"}, off=gone)
    ran = run("init", "--install", "cursor", "--json")
    assert (ran.code, ran.json["servers"], ran.json["checked"]) == (0, ["git", "off"], ["git"])
    assert len(began(programs)) == 2


def test_what_only_the_client_asks_its_user_for_is_not_started_and_that_is_said(run: Run, programs: Path) -> None:
    placed("vscode")
    ran = run("init", "--install", "vscode")
    assert ran.code == 0
    assert "git was not started: it needs what only VS Code asks for." in ran.out
    assert len(began(programs)) == 2


def test_four_servers_start_at_a_time(run: Run, programs: Path) -> None:
    names = [f"s{number}" for number in range(7)]
    cursor(**{name: {"command": program(programs, name, TOGETHER)} for name in names})
    assert run("init", "--install", "cursor").code == 0
    alive = [int(count) for count in (programs / "alive").read_text().split()]
    assert (len(alive), max(alive)) == (14, 4)


def test_a_file_that_the_client_changes_meanwhile_is_left_as_it_is_and_no_configuration_stays(
    run: Run, folder: Path, programs: Path
) -> None:
    path = put(".cursor/mcp.json", "")
    change = f"Path({str(path.absolute())!r}).write_text('{{\"mcpServers\": {{}}}}')"
    secret = {"A_TOKEN": "a-secret-of-the-file"}
    put(
        ".cursor/mcp.json",
        json.dumps({"mcpServers": {"git": {"command": program(programs, "git", change), "env": secret}}}),
    )
    ran = run("init", "--install", "cursor")
    assert ran.code == 3
    assert "was changed in the meantime, so it was not overwritten" in ran.err
    assert path.read_text() == '{"mcpServers": {}}'
    assert [found for found in (Path("pegboard.yaml"), folder_of(Path("pegboard.yaml"))) if found.exists()] == []


def test_what_was_started_ends_with_an_installation_that_is_interrupted(folder: Path, programs: Path) -> None:
    cursor(asks={"command": program(programs, "asks", PROMPTING)})
    before = files_in(folder)
    command = pegboard_command("init", "--install", "cursor")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not began(programs) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert len(began(programs)) == 1
    assert all_ended(programs)
    assert files_in(folder) == before


async def called(entry: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Start Pegboard as a client does in a project, the current folder, and return what calls answer."""
    (command, *arguments), folder = as_client_starts(entry, Path.cwd())
    spec = ServerSpec(name="pegboard", command=command, args=tuple(arguments), cwd=folder, timeout=180)
    source, answers = McpSource(start_timeout=60), list[str]()
    try:
        for name, given in calls:
            answer = await source.call(spec, {}, Tool(plugin="pegboard", name=name), given, CallContext())
            assert not answer.is_error, answer.content
            answers.append("".join(block["text"] for block in answer.content))
    finally:
        await source.aclose()
    return answers


@pytest.mark.parametrize(("client", "place"), [("codex", "home/.codex/config.toml"), ("claude-code", ".mcp.json")])
async def test_a_server_of_a_package_makes_and_changes_files_behind_what_was_installed(
    run: Run, folder: Path, programs: Path, client: str, place: str
) -> None:
    """P10: in a project and for the user, as it did before: `init` confines nothing by itself."""
    program(programs, "npx", f"runpy.run_path({str(SERVER.with_name('reaching_server.py'))!r}, run_name='__main__')")
    entry = {"command": "npx", "args": ["-y", "files"]}
    text = json.dumps({"mcpServers": {"files": entry}})
    if place.endswith(".toml"):
        text = f"[mcp_servers.files]\ncommand = 'npx'\nargs = {json.dumps(entry['args'])}\n"
    path = put(place, text)
    assert (await asyncio.to_thread(run, "init", "--install", client)).code == 0
    target, other = folder / "new.txt", str(folder / "other.txt")
    attempts = {
        "make": f"open({str(target)!r}, 'w').write('one')",
        "change": f"import os; open({other!r}, 'w').write('two'); os.replace({other!r}, {str(target)!r})",
    }
    coded = {name: base64.b64encode(code.encode()).decode() for name, code in attempts.items()}
    wanted = {"name": "files__reach", "arguments": {"attempts": coded}}
    answers = await called(servers_in(path)["pegboard"], [("load_tools", {"names": ["files"]}), ("call_tool", wanted)])
    assert json.loads(answers[1]) == {"make": "done: ", "change": "done: "}
    assert target.read_text() == "two"
