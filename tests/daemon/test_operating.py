"""`pegboard daemon status`, `stop` and `logs` know every process of a user, and who uses what (G12)."""

import os
import signal
from pathlib import Path

from .daemon_clients import OwnDaemon, StdioClient, alive, stdio_client, until


def list_files(client: StdioClient) -> None:
    """Use a plugin in code of the packaged quickstart."""
    client.ask("tools/call", name="load_tools", arguments={"names": ["files"]})
    assert "result" in client.ask("tools/call", name="list_files", arguments={})


def test_g12_status_stop_and_logs_are_about_the_processes_of_plugins_in_code_too(
    daemon: OwnDaemon, config: Path, tmp_path: Path
) -> None:
    """G12: also where the daemon that gave them their clients has ended."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with stdio_client(daemon, config) as first, stdio_client(daemon, None, folder=folder) as second:
        first.greet("cursor").call()
        list_files(second.greet("zed"))
        main, own = daemon.processes()
        assert sorted(daemon.pids()) == sorted((main["pid"], own["pid"]))
        assert [[one["client"] for one in each["clients"]] for each in (main, own)] == [["cursor"], ["zed"]]
        shown = daemon.command("daemon", "status").stdout
        assert "cursor" in shown
        assert "zed" in shown
        os.kill(main["pid"], signal.SIGKILL)
        until(lambda: not alive(main["pid"]))
        assert [one["pid"] for one in daemon.processes()] == [own["pid"]]
        assert first.call()
        assert len(daemon.processes()) == 2
        logged = daemon.command("daemon", "logs", "-n", "1000").stdout
        assert all(f"process {pid}," in logged for pid in (main["pid"], own["pid"]))
        assert daemon.command("daemon", "stop").returncode == 0
        until(lambda: not daemon.pids())
        assert daemon.processes() == []
        list_files(second)  # the next request starts another one
        assert len(daemon.processes()) == 2


def test_g12_status_shows_which_client_and_agent_has_called_which_server(daemon: OwnDaemon, config: Path) -> None:
    """G12: with the process and the memory of each client and server."""
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        server = first.greet("cursor").call()["pid"]
        first.call()
        second.greet("zed").ask("tools/list")
        found = daemon.status()
        clients = {one["client"]: one for one in found["clients"]}
        assert {name: one["calls"] for name, one in clients.items()} == {"cursor": {"box": 2}, "zed": {}}
        assert {one["agent"] for one in clients.values()} == {"ada"}
        assert {one["pid"] for one in clients.values()} == {first.process.pid, second.process.pid}
        ((box,),) = [board["servers"] for board in found["boards"]]
        assert box["pid"] == server
        assert min(found["memory"], box["memory"], *(one["memory"] for one in clients.values())) > 1 << 20
        assert "cursor (ada): 2" in daemon.command("daemon", "status").stdout


def test_g12_a_daemon_that_does_not_answer_is_named_and_the_others_are_shown(
    daemon: OwnDaemon, config: Path, tmp_path: Path
) -> None:
    """G12: one that is suspended is no reason to say that none runs."""
    with stdio_client(daemon, config) as first, stdio_client(daemon, None, folder=tmp_path) as second:
        first.greet().call()
        list_files(second.greet())
        main, own = daemon.processes()
        os.kill(own["pid"], signal.SIGSTOP)
        try:
            ran = daemon.command("daemon", "status")
            stopped = daemon.command("daemon", "stop")
        finally:
            os.kill(own["pid"], signal.SIGCONT)
        assert f"Process {main['pid']}" in ran.stdout
        assert "does not answer" in ran.stderr
        assert (stopped.returncode, "does not answer" in stopped.stderr) == (6, True)
