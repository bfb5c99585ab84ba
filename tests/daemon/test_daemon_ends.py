"""The daemon, a proxy or a server is killed: nothing is lost, nothing runs twice that may not, the next call works."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .daemon_clients import DEADLINE, OwnDaemon, alive, stdio_client, until


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))


def test_g12_a_call_that_ran_when_the_daemon_was_killed_is_answered_and_not_made_again(
    daemon: OwnDaemon, config: Path, tmp_path: Path
) -> None:
    """G12: the error says that it may have run; the next call works, and the old server is gone."""
    log, go = tmp_path / "log", tmp_path / "go"
    with stdio_client(daemon, config) as client:
        server = client.greet().call()["pid"]
        number = client.send("tools/call", name="box__where", arguments={"log": str(log), "until": str(go)})
        until(log.exists)
        (pid,) = daemon.pids()
        kill(pid)
        error = client.answer(number)["error"]
        assert "may have run" in error["message"]
        go.touch()
        assert client.call(log=str(tmp_path / "other"))["pid"] != server
        assert log.read_text() == "ran\n"
        changed = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
        assert {one["method"] for one in client.notifications} == changed
    until(lambda: not alive(server))


def test_g12_what_only_reads_is_asked_again_of_the_next_daemon(daemon: OwnDaemon, config: Path) -> None:
    """G12: also where the daemon did not get to it; a request is asked twice at most."""
    with stdio_client(daemon, config) as client:
        client.greet().call()
        (pid,) = daemon.pids()
        os.kill(pid, signal.SIGSTOP)
        number = client.send("tools/list")
        kill(pid)
        names = {tool["name"] for tool in client.answer(number)["result"]["tools"]}
        assert "box__where" in names
        assert client.end()[0] == 0


def test_g12_what_a_daemon_asked_that_has_ended_reaches_no_other_one(daemon: OwnDaemon, config: Path) -> None:
    """G12: the client is told that it is cancelled, and its answer goes nowhere."""
    with stdio_client(daemon, config) as client:
        client.greet()
        (pid,) = daemon.pids()
        kill(pid)
        client.write({"id": 99, "result": {}})  # of nothing that was asked
        assert client.call()["folder"] == str(config.parent)


def test_g12_killed_proxies_and_servers_leave_the_daemon_to_the_others(daemon: OwnDaemon, config: Path) -> None:
    """G12: with the killed client its call ends; a killed server is started again at the next call."""
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        server = first.greet().call()["pid"]
        second.greet()
        first.send("tools/call", name="box__where", arguments={"until": "/nowhere"})
        first.process.kill()
        first.process.wait()
        until(lambda: len(daemon.status()["clients"]) == 1)
        kill(server)
        assert second.call()["pid"] != server


def test_g12_a_socket_that_a_killed_daemon_has_left_is_replaced(daemon: OwnDaemon, config: Path) -> None:
    """G12: the next client starts another one."""
    with stdio_client(daemon, config) as client:
        client.greet()
    (pid,) = daemon.pids()
    kill(pid)
    assert list((daemon.runtime / "pegboard").glob("*.sock"))
    with stdio_client(daemon, config) as client:
        client.greet().call()
        assert client.end() == (0, "")


def test_g12_many_clients_at_once_start_one_daemon(daemon: OwnDaemon) -> None:
    """G12: and a second one that is started by hand goes away."""
    code = "from pegboard.thin.connect import connect; print(connect('status').answer['pid'])"
    command = [sys.executable, "-c", code]

    def asked(_: int) -> str:
        return subprocess.run(
            command, env=daemon.env, capture_output=True, text=True, timeout=DEADLINE, check=True
        ).stdout

    with ThreadPoolExecutor(12) as pool:
        found = set(pool.map(asked, range(12)))
    (pid,) = daemon.pids()
    assert found == {f"{pid}\n"}
    assert daemon.command("daemon", "run").returncode == 0
    assert daemon.pids() == [pid]


def test_g12_a_daemon_that_is_stopped_is_started_by_the_next_call(daemon: OwnDaemon, config: Path) -> None:
    """G12: and no sooner, whoever its clients are; a restart is one with another process."""
    with stdio_client(daemon, config) as client:
        client.greet().call()
        (pid,) = daemon.pids()
        assert daemon.command("daemon", "stop").returncode == 0
        until(lambda: not daemon.pids())
        ran = daemon.command("daemon", "status", "--json")
        assert (json.loads(ran.stdout)["running"], ran.returncode) == (False, 6)
        assert client.call()["folder"] == str(config.parent)
        shown = daemon.command("daemon", "status").stdout
        assert "tester" in shown
        assert "box" in shown
        assert daemon.command("daemon", "restart").returncode == 0
        assert client.call()["folder"] == str(config.parent)
        assert pid not in until(daemon.pids)
        assert client.end() == (0, "")
    assert "listening" in daemon.command("daemon", "logs").stdout


def test_g12_a_configuration_that_is_broken_meanwhile_is_an_error_of_the_call(daemon: OwnDaemon, config: Path) -> None:
    """G12: the client stays; once it is whole again the next call works."""
    text = config.read_text()
    with stdio_client(daemon, config) as client:
        client.greet().call()
        (pid,) = daemon.pids()
        kill(pid)
        config.write_text("servers: 1")
        answer = client.ask("tools/call", name="box__where", arguments={})
        assert "did not run" in answer["error"]["message"]
        config.write_text(text)
        assert client.call()["folder"] == str(config.parent)


def test_g12_the_proxy_imports_no_more_than_it_needs() -> None:
    """G12: each start of a client waits for it."""
    code = """
import sys
from pegboard.cli.serve_options import plain_options, served_by_daemon
import pegboard.thin.stdio_proxy
heavy = {"asyncio", "dataclasses", "pydantic", "typer", "rich", "yaml", "mcp", "logging", "inspect"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
