"""Other users of the machine, other versions, and processes that were suspended."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import pegboard
from pegboard.thin.address import address_of
from pegboard.thin.connect import ask_all
from pegboard.thin.wire import VERSION, line_of

from .daemon_clients import DEADLINE, OwnDaemon, alive, stdio_client, until

OTHER = 65534
BECOME_OTHER = f"""
import os, socket, sys
from pegboard.thin import connect
from pegboard.thin.address import DaemonAddress, NoFolderError, address_of
os.setgroups([]); os.setgid({OTHER}); os.setuid({OTHER})
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_g12_another_user_reaches_neither_the_socket_nor_the_secret(daemon: OwnDaemon, config: Path) -> None:
    """G12: the folder is closed; were it open, the daemon and the client each ask the system who the other one is."""
    with stdio_client(daemon, config) as client:
        client.greet().call()
        folder = daemon.runtime / "pegboard"
        (place,) = folder.glob("*.sock")
        reach = f"""
for path in {str(place)!r}, {str(place.with_suffix(".secret"))!r}:
    try:
        socket.socket(socket.AF_UNIX).connect(path) if path.endswith("sock") else open(path)
    except PermissionError:
        print("closed")
try:
    print(address_of())
except NoFolderError as error:
    print("no folder")
"""
        assert as_other(daemon, reach) == ["closed", "closed", "no folder"]
        for path, mode in (daemon.runtime, 0o755), (folder, 0o755), (place, 0o666):
            path.chmod(mode)
        listens = f"""
address = DaemonAddress({str(folder)!r}, {place.stem!r}, "")
try:
    connect._open(address)
except connect.NoDaemonError as error:
    print(error)
other = socket.socket(socket.AF_UNIX)
other.connect({str(place)!r})
print(other.recv(1))
"""
        theirs, answer = as_other(daemon, listens)
        assert "another user (0)" in theirs
        assert answer == "b''"
        assert f"another user ({OTHER})" in until(lambda: refusals(folder))
        assert client.call()


def as_other(daemon: OwnDaemon, code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BECOME_OTHER + code], env=daemon.env, capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def refusals(folder: Path) -> str:
    (log,) = folder.glob("*.log")
    return "".join(line for line in log.read_text().splitlines() if "refused" in line)


def test_g12_another_version_is_refused_and_has_an_address_of_its_own(
    daemon: OwnDaemon, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G12: an upgrade while proxies run leaves these with their daemon; it serves no other version."""
    with stdio_client(daemon, config) as client:
        client.greet().call()
        address = address_of(env=daemon.env)
        with socket.socket(socket.AF_UNIX) as newer:
            newer.connect(address.socket)
            shown, _ = Path(address.secret).read_text().split()
            newer.sendall(line_of({"kind": "stdio", "version": "99.0", "cwd": "/", "env": {}, "secret": shown}))
            answer = json.loads(newer.makefile().readline())
        assert (answer["ok"], answer["code"]) == (False, VERSION)
        assert "99.0" in answer["reason"]
        monkeypatch.setattr("pegboard.thin.address.__version__", "99.0")
        monkeypatch.setattr("pegboard.thin.connect.__version__", "99.0")
        assert address_of(env=daemon.env).socket != address.socket
        monkeypatch.setenv("XDG_RUNTIME_DIR", daemon.env["XDG_RUNTIME_DIR"])
        (shown,), problems = ask_all("status")
        assert ([shown["pid"]], problems) == (daemon.pids(), [])
        assert client.call()


def test_g12_a_client_that_outlives_its_version_and_its_daemon_is_to_be_restarted(
    daemon: OwnDaemon, config: Path, tmp_path: Path
) -> None:
    """G12: after an upgrade its daemon goes on; once that has ended each request says what to do, and none runs."""
    installed = tmp_path / "installed"
    shutil.copytree(
        Path(pegboard.__file__).parent, installed / "pegboard", ignore=shutil.ignore_patterns("__pycache__")
    )
    daemon.env["PYTHONPATH"] = str(installed)
    with stdio_client(daemon, config) as client:
        client.greet().call()
        version = installed / "pegboard" / "support" / "version.py"
        version.write_text(version.read_text().replace(f'"{pegboard.__version__}"', '"99.0"'))
        assert client.call()
        (pid,) = daemon.pids()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not daemon.pids())
        until(lambda: "restart the client" in client.ask("tools/call", name="box__where")["error"]["message"])
        with stdio_client(daemon, config) as newer:
            newer.greet().call()
            assert daemon.status()["version"] == "99.0"


def test_g12_a_machine_that_was_suspended_goes_on(daemon: OwnDaemon, config: Path) -> None:
    """G12: daemon, proxy and server are stopped in the middle of a call, and continued; it is answered once."""
    go, log = config.parent / "go", config.parent / "log"
    with stdio_client(daemon, config) as client:
        server = client.greet().call()["pid"]
        (pid,) = daemon.pids()
        number = client.send("tools/call", name="box__where", arguments={"until": str(go), "log": str(log)})
        until(log.exists)
        every = (client.process.pid, pid, server)
        for one in every:
            os.kill(one, signal.SIGSTOP)
        until(lambda: all(stopped(one) for one in every))
        go.touch()
        for one in every:
            os.kill(one, signal.SIGCONT)
        assert json.loads(client.answer(number)["result"]["content"][0]["text"])["pid"] == server
        assert log.read_text() == "ran\n"
        assert daemon.pids() == [pid]


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_g12_a_fork_of_the_proxy_keeps_nothing_alive(daemon: OwnDaemon, config: Path) -> None:
    """G12: a process that has the descriptors of a client, too, does not keep the daemon from the client's end."""
    daemon.env["PEGBOARD_DAEMON_IDLE"] = "0.2"
    code = """
import os, sys, time
if os.fork() == 0:
    os.close(0)
    time.sleep(600)
from pegboard.cli import main
sys.argv[1:] = ["serve", "--stdio", *sys.argv[1:]]
sys.exit(main())
"""
    command = [sys.executable, "-c", code, "--config", str(config)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=subprocess.DEVNULL, env=daemon.env, start_new_session=True
    ) as process:
        try:
            (pid,) = until(daemon.pids)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(DEADLINE) == 0
            until(lambda: not alive(pid))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
