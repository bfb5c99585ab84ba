"""Boards of the daemon that start an equal server share its process, and nothing else of it."""

import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .daemon_clients import SERVER, OwnDaemon, alive, stdio_client, until


def configurations(folder: Path, count: int, **server: Any) -> list[Path]:
    """Return files that name the same server by names of their own, in one folder."""
    (folder / "box.py").write_text(SERVER)
    found: list[Path] = []
    for number in range(count):
        about = {"command": sys.executable, "args": [str(folder / "box.py")], "prefix": "box", **server}
        agent = {"tools": [f"box{number}"], "unloaded_call": "run"}
        found.append(folder / f"{number}.yaml")
        found[-1].write_text(json.dumps({"servers": {f"box{number}": about}, "agents": {"ada": agent}}))
    return found


def test_g12_an_equal_server_of_several_configurations_is_one_process(daemon: OwnDaemon, tmp_path: Path) -> None:
    """G12: five clients with five files; each client has its own answers, also of calls at the same time."""
    files = configurations(tmp_path, 5)
    with ExitStack() as stack:
        clients = [stack.enter_context(stdio_client(daemon, file)) for file in files]
        pids = {client.greet().call()["pid"] for client in clients}
        assert len(pids) == 1
        go = tmp_path / "go"
        asked = [
            client.send("tools/call", name="box__where", arguments={"until": str(go), "log": str(tmp_path / "log")})
            for client in clients
        ]
        go.touch()
        for client, number in zip(clients, asked, strict=True):
            assert "pid" in client.answer(number)["result"]["content"][0]["text"]
        assert (tmp_path / "log").read_text() == "ran\n" * 5
        assert len(daemon.status()["boards"]) == 5
        (pid,) = pids
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))
        others = {client.call()["pid"] for client in clients}
        assert len(others) == 1
        assert others != pids


@pytest.mark.parametrize(
    "different",
    [{"env": {"WHOSE": "other"}}, {"args": ["other"]}, {"cwd": "."}, {"instance": "client"}, {"confine": True}],
    ids=lambda different: next(iter(different)),
)
def test_g12_a_server_that_differs_or_is_not_for_all_is_not_shared(
    daemon: OwnDaemon, tmp_path: Path, different: dict[str, Any]
) -> None:
    """G12, G9, A7: by environment, arguments and folder; and one that is each client's, or confined."""
    first, second = configurations(tmp_path, 2)
    content = json.loads(second.read_text())
    server = content["servers"]["box1"]
    if "cwd" in different:
        (tmp_path / "other").mkdir()
        different = {"cwd": str(tmp_path / "other")}
    if "args" in different:
        different = {"args": [*server["args"], *different["args"]]}
    server |= different
    second.write_text(json.dumps(content))
    with stdio_client(daemon, first) as one, stdio_client(daemon, second) as two:
        assert one.greet().call()["pid"] != two.greet().call()["pid"]


def test_g12_a_shared_server_outlives_the_board_that_started_it(daemon: OwnDaemon, tmp_path: Path) -> None:
    """G12: and a board without the server leaves it to the other one; it ends with the last."""
    first, second = configurations(tmp_path, 2)
    with stdio_client(daemon, second) as two:
        with stdio_client(daemon, first) as one:
            pid = one.greet().call()["pid"]
            assert two.greet().call()["pid"] == pid
            first.write_text(json.dumps({"servers": {}, "agents": {"ada": {}}}))
            until(lambda: [len(board["servers"]) for board in daemon.status()["boards"]].count(0))
        assert two.call()["pid"] == pid
        second.write_text(json.dumps({"servers": {}, "agents": {"ada": {}}}))
        until(lambda: not alive(pid))
