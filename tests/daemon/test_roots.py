"""Servers that work in the folder of a client, and those that keep its conversation: no other client has them."""

import json
import sys
from pathlib import Path

import pytest

from .daemon_clients import SERVER, OwnDaemon, stdio_client


@pytest.mark.parametrize("where", ["args", "cwd", "relative"])
def test_g12_a_server_that_works_in_the_folder_of_a_client_is_that_folders(
    daemon: OwnDaemon, tmp_path: Path, where: str
) -> None:
    """G12: `${root}`; in the user's own configuration an argument that is a relative path says the same."""
    program = tmp_path / "box.py"
    program.write_text(SERVER)
    more = {"args": ["${root}"], "cwd": [], "relative": ["."]}[where]
    server = {"command": sys.executable, "args": [str(program), *more]}
    if where == "cwd":
        server["cwd"] = "${root}"
    settings = tmp_path / "settings"
    (settings / "pegboard").mkdir(parents=True)
    daemon.env["XDG_CONFIG_HOME"] = str(settings)
    config = settings / "pegboard" / "pegboard.yaml"
    config.write_text(
        json.dumps({"servers": {"box": server}, "agents": {"a": {"tools": ["box"], "unloaded_call": "run"}}})
    )
    said = []
    for name in "one", "two", "one":
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        with stdio_client(daemon, config, folder=folder) as client:
            said.append(client.greet().call())
    of = [one["args"][0] if where == "args" else one["folder"] for one in said]
    assert of == [str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "one")]
    assert said[0]["pid"] == said[2]["pid"] != said[1]["pid"]


def test_g12_a_server_that_keeps_a_conversation_is_one_clients(daemon: OwnDaemon, config: Path) -> None:
    """G12, G9: browsers and terminals are known by the names of their packages; `instance: all` shares one."""
    content = json.loads(config.read_text())
    content["servers"]["box"]["args"].append("@playwright/mcp@latest")
    config.write_text(json.dumps(content))
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        assert first.greet("one").call()["pid"] != second.greet("two").call()["pid"]
