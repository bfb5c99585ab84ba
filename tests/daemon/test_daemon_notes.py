"""What people read on the standard error of their client: what concerns it, once, and nothing of another client."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .daemon_clients import OwnDaemon, StdioClient, stdio_client, until


@pytest.fixture
def edit(config: Path) -> Callable[..., None]:
    """Return what writes more into the configuration, with a store that outlives the daemon."""

    def write(**more: Any) -> None:
        content = json.loads(config.read_text())
        for name, value in more.items():
            content[name] = {**content.get(name, {}), **value}
        config.write_text(json.dumps({**content, "store": "sqlite:///store.db"}))

    return write


def logged(daemon: OwnDaemon, text: str) -> int:
    return daemon.command("daemon", "logs").stdout.count(text)


def refused(client: StdioClient, tool: str) -> str:
    """Return the text that a call comes to which does not run."""
    answer = client.ask("tools/call", name=tool, arguments={})
    return json.dumps(answer.get("result") or answer["error"])


def test_g12_a_server_that_fails_is_reported_once_to_every_client(
    daemon: OwnDaemon, config: Path, edit: Callable[..., None]
) -> None:
    """G12, X1: also to those who come when it has failed, also with a list of its tools from an earlier start."""
    program = config.parent / "lost.py"
    program.write_text((config.parent / "box.py").read_text())
    box = json.loads(config.read_text())["servers"]["box"]
    agent = {"tools": ["box", "lost"], "unloaded_call": "run"}
    edit(servers={"lost": {**box, "args": [str(program)]}}, agents={"ada": agent})
    with stdio_client(daemon, config) as client:
        client.greet()
        assert "pid" in refused(client, "lost__where")
    assert daemon.command("daemon", "stop").returncode == 0
    until(lambda: not daemon.pids())
    program.write_text("raise SystemExit('out of paper')")
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        first.greet().call()
        second.greet().call()
        for client in (first, second, first):
            assert "out of paper" in refused(client, "lost__where")
        with stdio_client(daemon, config) as late:
            late.greet().call()
            assert "out of paper" in refused(late, "lost__where")
            for client in (first, second, late):
                _, written = client.end()
                assert len([line for line in written.splitlines() if "'lost'" in line and "out of paper" in line]) == 1
    assert logged(daemon, "out of paper") == 1


def test_g12_an_approval_is_a_note_for_the_client_that_asked(
    daemon: OwnDaemon, config: Path, edit: Callable[..., None]
) -> None:
    """G12, A3: no other client of the board reads of it."""
    box = json.loads(config.read_text())["servers"]["box"]
    edit(servers={"box": {**box, "approve": {"where": {"when": "always", "by": "operator"}}}})
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        first.greet()
        second.greet()
        assert "approval" in refused(second, "box__where")
        assert "approvals allow" in second.end()[1]
        assert "approvals allow" not in first.end()[1]
    assert logged(daemon, "waits for a person") == 1
