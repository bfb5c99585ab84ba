"""Clients over stdio share one daemon: its boards, its servers, and nothing that is one client's."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.thin.address import address_of

from .daemon_clients import OwnDaemon, StdioClient, alive, stdio_client, until


def test_g12_clients_of_one_configuration_share_its_servers(daemon: OwnDaemon, config: Path, tmp_path: Path) -> None:
    """G12, G1: one process for each server, started in the project's folder; each client has its own session."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with (
        stdio_client(daemon, config, folder=folders[0]) as first,
        stdio_client(daemon, config, folder=folders[1]) as second,
    ):
        said = [client.greet(name).call() for client, name in ((first, "cursor"), (second, "zed"))]
        status = daemon.status()
        assert [one["folder"] for one in said] == [str(config.parent)] * 2
        assert said[0]["pid"] == said[1]["pid"]
        assert daemon.pids() == [status["pid"]]
        clients = {client["client"]: (client["folder"], client["agent"]) for client in status["clients"]}
        assert clients == {"cursor": (str(folders[0]), "ada"), "zed": (str(folders[1]), "ada")}
        assert [(board["clients"], len(board["servers"])) for board in status["boards"]] == [(2, 1)]
        sessions = {record["session"].partition(":")[0] for record in audited(daemon, config)} - {""}
        assert sessions == {"cursor", "zed"}


def audited(daemon: OwnDaemon, config: Path) -> list[dict[str, str]]:
    ran = daemon.command("audit", "--config", str(config), "--json")
    return json.loads(ran.stdout)


def test_g12_the_daemon_is_no_part_of_the_client_that_started_it(daemon: OwnDaemon, config: Path) -> None:
    """G12: it has a session of its own and none of the descriptors, and serves others after a kill of that client."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    command = [sys.executable, "-m", "pegboard", "serve", "--stdio", "--config", str(config)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=daemon.env, close_fds=False) as process:
        pid = StdioClient(process).greet().call()["pid"]
        process.kill()
    os.close(writing)
    assert os.read(reading, 1) == b""  # no one else has it open
    os.close(reading)
    (left,) = daemon.pids()
    assert os.getsid(left) != os.getsid(0)
    with stdio_client(daemon, config) as other:
        assert other.greet().call()["pid"] == pid


def test_g12_the_daemon_ends_after_its_last_client(daemon: OwnDaemon, config: Path) -> None:
    """G12: and its servers with it."""
    daemon.env["PEGBOARD_DAEMON_IDLE"] = "0.2"
    with stdio_client(daemon, config) as client:
        server = client.greet().call()["pid"]
        assert client.end() == (0, "")
    until(lambda: not daemon.pids() and not alive(server))
    assert not list((daemon.runtime / "pegboard").glob("*.sock"))


def test_g12_a_client_that_is_to_be_alone_starts_no_daemon(daemon: OwnDaemon, config: Path) -> None:
    """G12: by an option, or by a variable."""
    for options, variable in (("--alone",), "1"), ((), "0"):
        with stdio_client(daemon, config, *options, PEGBOARD_DAEMON=variable) as client:
            assert client.greet().call()["folder"] == str(Path.cwd())
            assert client.end() == (0, "")
    assert daemon.pids() == []


def test_g12_a_configuration_that_cannot_be_used_is_reported_as_without_a_daemon(
    daemon: OwnDaemon, config: Path
) -> None:
    """G12: the same text, the same code."""
    config.write_text("servers: 1")
    said: list[tuple[int, str]] = []
    for options in (), ("--alone",):
        with stdio_client(daemon, config, *options) as client:
            said.append(client.end())
    assert said[0] == said[1]
    assert said[0][0] != 0
    assert "servers" in said[0][1]


def test_g12_clients_with_other_values_of_a_variable_that_is_named_share_nothing(
    daemon: OwnDaemon, config: Path
) -> None:
    """G12: a board is of one configuration with the values of the variables that it names, and of no other ones."""
    content = json.loads(config.read_text())
    content["servers"]["box"]["args"].append("${WHOSE}")
    config.write_text(json.dumps(content))
    said = []
    for whose, other in ("ada", "1"), ("bob", "1"), ("ada", "2"):
        with stdio_client(daemon, config, WHOSE=whose, UNNAMED=other) as client:
            said.append(client.greet().call())
    assert [one["args"] for one in said] == [["ada"], ["bob"], ["ada"]]
    assert said[0]["pid"] == said[2]["pid"] != said[1]["pid"]


def test_g12_plugins_in_code_run_in_a_process_for_their_configuration_and_folder(
    daemon: OwnDaemon, tmp_path: Path
) -> None:
    """G12: the packaged quickstart works in the client's folder, so each folder has a process."""
    said: list[str] = []
    for name in "one", "two":
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"of-{name}").touch()
        with stdio_client(daemon, None, folder=folder) as client:
            client.greet()
            tools = client.ask("tools/call", name="load_tools", arguments={"names": ["files"]})
            assert "result" in tools
            listed = client.ask("tools/call", name="list_files", arguments={})
            said.append(json.dumps(listed))
    assert "of-one" in said[0]
    assert "of-two" in said[1]
    assert "of-two" not in said[0]
    assert len(daemon.pids()) == 3


def test_g12_a_stranger_in_place_of_the_daemon_is_not_used(daemon: OwnDaemon, config: Path) -> None:
    """G12: who does not know the secret is answered nothing, and the client is served alone, which is said once."""
    with stdio_client(daemon, config) as client:
        client.greet()
        (pid,) = daemon.pids()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not daemon.pids())
    (place,) = (daemon.runtime / "pegboard").glob("*.sock")
    place.unlink()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(place))
        stranger.listen()
        with stdio_client(daemon, config) as client:
            number = client.send("ping")
            taken, _ = stranger.accept()
            with taken:
                while not taken.recv(1 << 20).endswith(b"\n"):
                    pass
                taken.sendall(b'{"ok":true,"secret":"guessed"}\n')
                assert client.answer(number)["id"] == number
            code, written = client.end()
    assert code == 0
    assert written.count("served without the daemon") == 1
    assert "secret" in written


@pytest.mark.parametrize("fault", ["a file", "open to others"])
def test_g12_without_a_folder_of_the_users_own_a_client_is_served_alone(
    daemon: OwnDaemon, config: Path, fault: str
) -> None:
    """G12: and it is said once why."""
    places = [daemon.runtime / "pegboard", daemon.runtime / "state" / "pegboard" / "run"]
    for place in places:
        if fault == "a file":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        else:
            place.mkdir(parents=True)
            place.chmod(0o755)
    with stdio_client(daemon, config) as client:
        client.greet().call()
        code, written = client.end()
    assert code == 0
    assert written.count("served without the daemon") == 1
    assert all(str(place) in written for place in places)
    assert daemon.pids() == []


def test_g12_a_runtime_folder_that_cannot_be_written_has_another_one_in_its_place(
    daemon: OwnDaemon, config: Path
) -> None:
    """G12: as on a read-only file system; no one can make a folder in that of the processes."""
    daemon.env["XDG_RUNTIME_DIR"] = "/proc"
    with stdio_client(daemon, config) as client:
        client.greet().call()
        status = daemon.status()
        assert Path(status["log"]).parent == daemon.runtime / "state" / "pegboard" / "run"
        assert daemon.command("daemon", "stop").returncode == 0
        client.end()
    until(lambda: not alive(status["pid"]))


@pytest.mark.parametrize("kind", ["sock", "lock", "secret.new", "start", "log"])
def test_g12_a_folder_in_which_none_can_listen_leaves_a_client_alone(
    daemon: OwnDaemon, config: Path, kind: str
) -> None:
    """G12: a file system without sockets or locks; the reason is said once, in words."""
    address = address_of(env=daemon.env)
    (Path(address.folder) / f"{address.name}.{kind}").mkdir()
    with stdio_client(daemon, config) as client:
        client.greet().call()
        code, written = client.end()
    assert code == 0
    assert written.count("served without the daemon") == 1
    assert "Is a directory" in written
    assert daemon.pids() == []
    assert all("Traceback" not in log.read_text() for log in Path(address.folder).glob("*.log") if log.is_file())


def test_g12_a_long_path_of_the_runtime_folder_is_no_obstacle(daemon: OwnDaemon, config: Path) -> None:
    """G12: a socket's path has about 100 bytes; the folder in its place is this user's alone."""
    long = daemon.runtime / ("x" * 200)
    long.mkdir()
    with stdio_client(daemon, config, XDG_RUNTIME_DIR=str(long)) as client:
        client.greet().call()
        daemon.env["XDG_RUNTIME_DIR"] = str(long)
        status = daemon.status()
        place = Path(status["log"]).parent
        assert place.stat().st_mode & 0o777 == 0o700
        assert daemon.command("daemon", "stop").returncode == 0
        client.end()
    until(lambda: not alive(status["pid"]))
    for file in place.iterdir():
        file.unlink()
    place.rmdir()


def test_g12_an_edit_that_adds_a_plugin_in_code_takes_its_clients_to_a_process_of_their_own(
    daemon: OwnDaemon, config: Path
) -> None:
    """G12: the daemon runs none of the code; the same client has the new tool, and its call in flight its answer."""
    (config.parent / "mine.py").write_text(
        "import os\n\ndef whose() -> int:\n    '''Says whose.'''\n    return os.getpid()\n"
    )
    content = json.loads(config.read_text())
    content["reload"] = "all"
    config.write_text(json.dumps(content))
    go, log = config.parent / "go", config.parent / "log"
    with stdio_client(daemon, config) as client, stdio_client(daemon, config) as other:
        client.greet().call()
        other.greet().call()
        (shared,) = daemon.pids()
        number = client.send("tools/call", name="box__where", arguments={"until": str(go), "log": str(log)})
        until(log.exists)
        content["plugins"] = {"mine": {"python": "mine"}}
        content["agents"]["ada"]["tools"].append("mine")
        config.write_text(json.dumps(content))
        assert "result" in other.ask("ping")

        until(lambda: [pid for pid in daemon.pids() if pid != shared])
        go.touch()
        assert "result" in client.answer(number)
        for each in client, other:
            answer = each.ask("tools/call", name="whose", arguments={})
            assert answer["result"]["content"][0]["text"] in {str(pid) for pid in daemon.pids() if pid != shared}
        assert [board["configuration"] for board in daemon.status()["boards"]] == []


def test_g12_a_client_in_a_folder_without_a_configuration_has_that_of_its_user(
    daemon: OwnDaemon, config: Path, tmp_path: Path
) -> None:
    """G12: over the daemon as by itself; its servers start in the home. What is its clients' there, Pegboard leaves."""
    users = tmp_path / "settings" / "pegboard" / "pegboard.yaml"
    users.parent.mkdir(parents=True)
    users.write_text(config.read_text())
    empty = tmp_path / "empty"
    empty.mkdir()
    marker = tmp_path / "started"
    clients = {"mcpServers": {"theirs": {"command": "touch", "args": [str(marker)]}}}
    (empty / ".mcp.json").write_text(json.dumps(clients))
    with stdio_client(daemon, None, folder=empty, XDG_CONFIG_HOME=str(tmp_path / "settings")) as client:
        assert client.greet().call()["folder"] == str(Path.home())
        ((box,),) = [board["servers"] for board in daemon.status()["boards"]]
    assert (box["name"], marker.exists()) == ("box", False)
