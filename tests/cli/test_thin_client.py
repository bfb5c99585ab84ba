"""Commands by the daemon: the same answers, one process, the rights of the caller, and what happens when one ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.own_daemon import SMALL_SERVER

from acceptance import accept_found
from pegboard.thin.address import address_of
from pegboard.thin.connect import connect
from pegboard.thin.wire import message_of
from terminals import Terminal

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
COMMAND = [sys.executable, "-m", "pegboard"]
CONFIG = f"""
store: sqlite:///state.db
servers:
  plain: {{command: {sys.executable}, args: [{SERVER}], approve: {{refuse: always}}}}
agents:
  default: {{dialect: pegboard, discoverable: [plain], permissions: {{plain__meta: false}}}}
  other: {{dialect: pegboard, discoverable: [plain]}}
tokens: {{ada: {{token: hunter22hunter22, agents: [default, other], console: [see, configure]}}}}
"""
LIGHT = {"__future__", "gc", "binascii", "_blake2", "hashlib", "_hashlib", "pegboard"}
"""What a thin client imports besides JSON and sockets; `hashlib` only where an interpreter has no `_blake2`."""
BARE = "import json, socket, sys; print(*sys.modules)"
THIN = """
import sys
from pegboard.cli import main

code = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""
Ran = subprocess.CompletedProcess[str]
RunHere = Callable[..., Ran]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a configuration that is accepted, for a daemon of its own."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "pegboard.yaml").write_text(CONFIG)
    (tmp_path / "run").mkdir(mode=0o700)
    for name, value in {
        "HOME": tmp_path / "home",
        "XDG_STATE_HOME": tmp_path / "state",
        "XDG_CONFIG_HOME": tmp_path / "config",
        "XDG_CACHE_HOME": tmp_path / "cache",
        "XDG_RUNTIME_DIR": tmp_path / "run",
        "PEGBOARD_DAEMON_IDLE": "60",
    }.items():
        monkeypatch.setenv(name, str(value))
    (tmp_path / "home").mkdir()
    for name in ("PEGBOARD_DAEMON", "COLUMNS", "PEGBOARD_OPERATOR_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    accept_found(folder)
    yield folder
    for one in daemons():
        os.kill(one, signal.SIGTERM)


@pytest.fixture
def run(here: Path) -> RunHere:
    def run(*arguments: str, **options: Any) -> Ran:
        return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, **options)

    return run


def runtime() -> Path:
    """Return the folder of the daemon of this test: it may have a short name, since paths of sockets are."""
    return Path(address_of().folder)


def daemons() -> list[int]:
    """Return the processes of daemons of a test's folder."""
    found: list[int] = []
    for log in runtime().glob("*.log"):
        for line in log.read_text().splitlines():
            if "listening: process " in line:
                number = int(line.partition("process ")[2].partition(",")[0])
                if Path(f"/proc/{number}").exists():
                    found.append(number)
    return found


def test_g12_the_commands_of_coding_agents_import_nothing_heavy_and_run_in_one_daemon(here: Path, run: RunHere) -> None:
    """G12: the process of the command imports what any client of a socket needs, and next to nothing else."""
    lines = (
        ("call", "plain__echo", "text=hi"),
        ("call", "plain__echo", "--help"),
        ("search", "say it again"),
        ("tools", "--agent", "default"),
        ("load", "plain__pid"),
        ("unload", "plain__pid"),
        ("explain", "plain__echo"),
        ("approvals", "list"),
    )
    run("tools")  # the client that starts the daemon does more
    bare = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True).stdout.split()
    for line in lines:
        ran = subprocess.run([sys.executable, "-c", THIN, *line], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        more = set(ran.stderr.splitlines()[-1].split()) - set(bare)
        assert {name.partition(".")[0] for name in more} <= LIGHT, line
        assert {name.split(".")[1] for name in more if "." in name} <= {"cli", "support", "thin"}, line
    assert len(daemons()) == 1
    assert run("call", "plain__pid", "--load").stdout == run("call", "plain__pid").stdout


def test_g12_an_answer_by_the_daemon_is_that_of_the_commands_own_process(here: Path, run: RunHere) -> None:
    """G12: output, errors and exit codes; no command is written twice."""
    alone = {**os.environ, "PEGBOARD_DAEMON": "0"}
    run("call", "plain__echo", "text=hi")
    for line in (
        ("call", "plain__echo", "text=hi", "--json"),
        ("call", "plain__echo", "wrong", "text=hi"),
        ("call", "plain__meta"),
        ("call", "nothing"),
        ("call", "plain__echo", "--help"),
        ("call", "plain__echo", "text=--config=nowhere.yaml"),
        ("call", "plain__echo", "--text", "--config", "nowhere.yaml"),
        ("call", "plain__echo", "--", "--config=nowhere.yaml"),
        ("search", "say", "--limit", "many"),
        ("search", "say", "--json"),
        ("explain", "plain__meta", "--json"),
        ("tools", "--agent", "nobody"),
        ("load",),
    ):
        thin, own = run(*line), run(*line, env=alone)
        said = [one for one in own.stderr.splitlines() if "server 'plain'" not in one]
        assert (thin.returncode, thin.stderr.splitlines()) == (own.returncode, said), line
        assert thin.stdout.replace(f"{here}/", "") == own.stdout, line


def test_p3_p9_a1_permissions_approvals_and_the_audit_trail_are_those_of_mcp(here: Path, run: RunHere) -> None:
    """P3, P9, A1, X4: denied is not found, a gated call waits, and both stand in the trail."""
    denied, gated = run("call", "plain__meta"), run("call", "plain__refuse")
    assert (denied.returncode, denied.stdout) == (3, "")
    assert "was not found" in denied.stderr
    (waiting,) = json.loads(run("approvals", "list", "--json").stdout)
    assert gated.returncode == 4
    assert f"approval {waiting['id']}" in gated.stderr
    trail = json.loads(run("audit", "--json").stdout)
    assert [one["kind"] for one in trail if "meta" in one["subject"]] == ["deny"]
    assert {one["by"] for one in trail if one["kind"] in ("deny", "load")} == {"command line"}


def test_a4_a_tool_that_says_something_else_waits_for_a_person(here: Path, run: RunHere) -> None:
    """A4: by the command as by MCP: what differs from its pin is not run, and its record is in the trail."""
    server = here / "server.py"
    server.write_text(SMALL_SERVER.read_text())
    servers = {"small": {"command": sys.executable, "args": [str(server), str(here / "said")]}}
    agents = {"default": {"dialect": "pegboard", "discoverable": ["small"]}}
    (here / "pegboard.yaml").write_text(json.dumps({"servers": servers, "agents": agents}))
    accept_found(here)
    assert run("call", "small__say", "word=one").returncode == 0
    assert run("daemon", "stop").returncode == 0
    server.write_text(SMALL_SERVER.read_text().replace("Says it.", "Says it, and sends all of your mail."))
    changed = run("call", "small__say", "word=two")
    assert (changed.returncode, changed.stdout) == (6, "")
    assert "changed" in changed.stderr
    assert (here / "said").read_text() == "one\n"
    assert "small/say" in {one["subject"] for one in json.loads(run("audit", "--kind", "pin", "--json").stdout)}


def test_p10_arguments_that_name_files_of_pegboard_are_refused_over_the_command(here: Path, run: RunHere) -> None:
    """P10, X4: the store, by any way to write it; the tool does not run, and the trail says why."""
    run("load", "plain")
    for named in (f"{here}/state.db", "state.db", "../here/./state.db"):
        ran = run("call", "plain__echo", f"text={named}")
        assert (ran.returncode, ran.stdout) == (3, ""), named
    assert run("call", "plain__echo", "text=other.db").returncode == 0
    trail = json.loads(run("audit", "--json").stdout)
    assert [one["by"] for one in trail if (one["kind"], one["decision"]) == ("deny", "refused")] == ["command line"] * 3


def test_a3_a_call_that_a_person_allowed_runs_once_over_the_command(here: Path, run: RunHere) -> None:
    """A3, A5: the same call made again after the approval; the one after that waits again."""
    assert run("call", "plain__refuse").returncode == 4
    (waiting,) = json.loads(run("approvals", "list", "--json").stdout)
    with Terminal("y") as terminal:
        allowed = run("approvals", "allow", waiting["id"], start_new_session=True, preexec_fn=terminal.controls())
    assert allowed.returncode == 0, allowed.stderr
    codes = [run("call", "plain__refuse").returncode for _ in range(2)]
    assert codes == [1, 4]  # it ran and answered that it refuses; then another approval is due
    trail = json.loads(run("audit", "--kind", "call", "--json").stdout)
    assert [one["subject"] for one in trail if one["subject"] == "plain/refuse"] == ["plain/refuse"]


def test_what_goes_around_the_agent_of_the_command_line_is_recorded(here: Path, run: RunHere) -> None:
    """X4, P10: a command without the daemon, an own hello that says that a person agreed, and an own edit."""
    alone = {**os.environ, "PEGBOARD_DAEMON": "0"}
    assert run("call", "plain__echo", "text=hi", "--agent", "other", env=alone).returncode == 0
    argv = ["call", "plain__meta", "--agent", "other", "--principal", "bob"]
    forged = connect("command", {"argv": argv, "file": False, "columns": None, "agreed": True})
    while "exit" not in (answer := message_of(forged.lines.read())):
        pass
    forged.socket.close()
    assert answer == {"exit": 0}
    assert run("call", "plain__meta").returncode == 3
    wider = CONFIG.replace("plain__meta: false", "plain__meta: true")
    (here / "pegboard.yaml").write_text(wider)
    assert run("call", "plain__meta").returncode == 0
    trail = json.loads(run("audit", "--json").stdout)
    calls = {(one["agent"], one["principal"], one["subject"], one["by"]) for one in trail if one["kind"] == "call"}
    assert calls == {
        ("other", "local", "plain/echo", "command line"),
        ("other", "bob", "plain/meta", "command line"),
        ("default", "local", "plain/meta", "command line"),
    }
    assert "agents.default.permissions.plain__meta" in {one["subject"] for one in trail if one["kind"] == "permission"}


def test_a5_another_agent_principal_or_configuration_needs_a_person_or_an_operator(here: Path, run: RunHere) -> None:
    """A5: without a terminal exit 4; a token that suffices, or a yes at the terminal, runs it."""
    elsewhere = here.parent / "other.yaml"
    elsewhere.write_text(CONFIG)
    for option in (("--agent", "other"), ("--principal", "bob"), (f"--config={elsewhere}",)):
        refused = run("call", "plain__echo", "text=hi", *option, start_new_session=True)
        assert (refused.returncode, refused.stdout) == (4, ""), option
        wrong = {**os.environ, "PEGBOARD_OPERATOR_TOKEN": "wrong"}
        assert run("call", "plain__echo", "text=hi", *option, env=wrong).returncode == 4
        right = {**os.environ, "PEGBOARD_OPERATOR_TOKEN": "hunter22hunter22"}
        assert run("call", "plain__echo", "text=hi", *option, env=right).stdout == "hi\n"
    for answer, code in (("y", 0), ("n", 3)):
        line = ("call", "plain__echo", "text=hi", "--agent", "other")
        with Terminal(answer) as terminal:
            ran = run(*line, start_new_session=True, preexec_fn=terminal.controls())
        assert (ran.returncode, "as agent 'other'" in terminal.asked) == (code, True)
    assert run("call", "plain__echo", "text=hi", "--agent", "default").returncode == 0


def test_a_result_is_written_with_the_rights_and_in_the_folder_of_the_caller(here: Path, run: RunHere) -> None:
    """G12, A7: the daemon writes no file that a client names."""
    assert run("call", "plain__echo", "text=hi", "--out", "a.txt").returncode == 0
    assert (here / "a.txt").read_text() == "hi"
    assert (here / "a.txt").stat().st_mode & 0o077 == 0
    failed = run("call", "plain__echo", "text=hi", "--out", "no/folder")
    assert failed.returncode == 1
    assert "was not written" in failed.stderr


def test_input_of_two_megabytes_goes_through_the_daemon(here: Path, run: RunHere) -> None:
    """G12: what is no UTF-8 is refused there, too."""
    text = json.dumps({"text": "z" * 2_000_000})
    assert len(run("call", "plain__echo", "-", "--out", "-", input=text).stdout) == 2_000_001
    odd = subprocess.run([*COMMAND, "call", "plain__echo", b"text=\xff"], capture_output=True, check=False)
    assert (odd.returncode, odd.stdout) == (2, b"")


def test_a_configuration_that_is_not_accepted_is_asked_about_in_the_clients_own_process(
    here: Path, run: RunHere
) -> None:
    """P11: the daemon asks no one, and runs nothing of it."""
    folder = here.parent / "strange"
    folder.mkdir()
    (folder / "pegboard.yaml").write_text(CONFIG)
    refused = run("call", "plain__echo", "text=hi", cwd=folder, start_new_session=True)
    assert refused.returncode == 4
    assert "not accepted" in refused.stderr


def test_where_nobody_reads_its_output_any_more_a_command_ends_without_a_traceback(here: Path, run: RunHere) -> None:
    """G12: as with `| head`, or where a terminal is closed while a result is printed."""
    run("load", "plain")
    reading, writing = os.pipe()
    os.close(reading)
    line = [*COMMAND, "call", "plain__echo", "text=hi"]
    ran = subprocess.run(line, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_a_large_result_is_in_a_file_of_the_users_own_which_any_command_removes_after_a_day(
    here: Path, run: RunHere
) -> None:
    """G12: in the folder of the daemon, with the rights of its owner alone."""
    said = run("call", "plain__echo", "text=" + "z" * 50_000).stdout
    path = Path(said.splitlines()[-1].rpartition(" ")[2].rstrip("]"))
    assert path.read_text() == "z" * 50_000
    assert (path.stat().st_mode & 0o777, path.parent.parent) == (0o600, runtime())
    run("tools")
    assert path.exists()
    os.utime(path, (1, 1))
    run("tools")
    assert not path.exists()


def test_a_client_that_ends_while_it_waits_ends_its_call(here: Path, run: RunHere) -> None:
    """G12: a terminal that closes; the daemon goes on, and nothing waits in it."""
    waiting = subprocess.Popen(
        [*COMMAND, "call", "plain__refuse", "--wait", "forever"], stderr=subprocess.PIPE, text=True
    )
    assert waiting.stderr is not None
    while "approval " not in waiting.stderr.readline():
        assert waiting.poll() is None
    waiting.send_signal(signal.SIGHUP)
    assert waiting.wait(30) == -signal.SIGHUP
    waiting.stderr.close()
    assert run("call", "plain__echo", "text=hi").stdout == "hi\n"


def test_where_the_daemon_is_killed_during_a_call_it_is_not_made_twice(here: Path, run: RunHere) -> None:
    """G12: the caller reads that it may have been done; the next command starts another daemon."""
    line = [*COMMAND, "call", "plain__refuse", "--wait", "forever"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "approval " not in process.stderr.readline():
        assert process.poll() is None
    (daemon,) = daemons()
    os.kill(daemon, signal.SIGKILL)
    assert process.wait(30) == 6
    assert "may have been done" in process.stderr.read()
    process.stderr.close()
    assert run("call", "plain__echo", "text=hi").stdout == "hi\n"


def test_a_socket_that_is_not_the_daemons_is_said_once_and_the_command_runs_alone(here: Path, run: RunHere) -> None:
    """G12: no daemon is no reason for a command to fail."""
    run("tools")
    (daemon,) = daemons()
    os.kill(daemon, signal.SIGKILL)
    for secret in runtime().glob("*.secret"):
        secret.write_text("damaged")
    listener = socket.socket(socket.AF_UNIX)
    (path,) = runtime().glob("*.sock")
    path.unlink()
    listener.bind(str(path))
    listener.listen()
    ran = run("call", "plain__echo", "text=hi")
    listener.close()
    assert (ran.returncode, ran.stdout) == (0, "hi\n")
    assert ran.stderr.count("runs without the daemon") == 1


def test_a_thousand_clients_at_once_are_all_answered(here: Path, run: RunHere) -> None:
    """G12: none is turned away, and each has its own answer; `benchmarks/command_line.py` has as many processes."""
    run("load", "plain")
    waiting = [
        connect("command", {"argv": ["call", "plain__echo", f"text={number}"], "file": False, "columns": None})
        for number in range(1000)
    ]
    for number, connection in enumerate(waiting):
        answers = [message_of(connection.lines.read()) for _ in range(2)]
        assert answers == [{"out": f"{number}\n"}, {"exit": 0}]
        connection.socket.close()


def test_while_calls_wait_for_a_person_other_commands_are_answered(here: Path, run: RunHere) -> None:
    """A3: so that the person can see and decide what waits."""
    waiting = [
        subprocess.Popen([*COMMAND, "call", "plain__refuse", "--wait", "forever"], stderr=subprocess.PIPE)
        for _ in range(12)
    ]
    limit = time.monotonic() + 60
    while not (found := json.loads(run("approvals", "list", "--json").stdout)):
        assert time.monotonic() < limit
    assert run("approvals", "refuse", found[0]["id"]).returncode == 0
    assert {process.wait(60) for process in waiting} == {3}
    for process in waiting:
        assert process.stderr is not None
        process.stderr.close()


def test_g12_an_edit_counts_for_the_command_that_follows_it(here: Path, run: RunHere) -> None:
    """G12, P4: also within the time after which the daemon looks at the file itself."""
    run("tools")
    file = here / "pegboard.yaml"
    open_to_all = CONFIG.replace(
        "permissions: {plain__meta: false}", "permissions: {plain__meta: false, plain__pid: true}"
    )
    for text, allowed in ((CONFIG.replace("plain__meta", "plain__pid"), False), (open_to_all, True)) * 3:
        file.write_text(text)
        found = json.loads(run("explain", "plain__pid", "--json").stdout)
        assert found["permitted"] is allowed
    assert len(daemons()) == 1
