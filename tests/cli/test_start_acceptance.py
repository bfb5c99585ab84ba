"""`serve --accept DIGEST`: who writes the start command accepts one text of the configuration, where no person is."""

import subprocess
from pathlib import Path

import pytest
from command_serving import serving
from command_support import Run

from sdk_servers import pegboard_command

CONFIG = "reload: ask\nagents: {ada: {tools: [file, calculator], permissions: {calculator: false}}}\n"
WIDER = CONFIG.replace(", permissions: {calculator: false}", "")
WIDEST = WIDER.replace("calculator]", "calculator, shell]")


def refused(*arguments: str) -> str:
    """Return what a gateway writes that does not start since something waits for a person."""
    command = pegboard_command("serve", "--port", "0", "--strict", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4, done.stderr
    return done.stderr


def test_a_start_accepts_the_text_that_it_names_and_no_later_one(run: Run, folder: Path) -> None:
    """P10: a container without a terminal takes a configuration that was widened; the trail names the start."""
    (folder / "pegboard.yaml").write_text(CONFIG)
    assert run("tools").code == 0
    (folder / "pegboard.yaml").write_text(WIDER)
    digest = run("check", "--digest").out.strip()
    assert run("check", "--digest", "--json").json == {"digest": digest}
    assert "agents.ada.permissions.calculator" in refused()
    with serving("--port", "0", "--strict", "--accept", digest) as running:
        assert "accepted: agents.ada.permissions.calculator: false → absent" in running.until("Pegboard serves MCP at ")
    assert "add" in [tool["name"] for tool in run("surface", "--agent", "ada", "--json").json["tools"]]
    record = run("audit", "--kind", "permission", "--json").json[0]
    assert (record["by"], record["outcome"]) == (f"serve --accept {digest}", "wider")
    (folder / "pegboard.yaml").write_text(WIDEST)
    said = refused("--accept", digest)
    assert "nothing of it is accepted" in said
    assert run("check", "--digest").out.strip() in said


def test_a_start_names_a_text_of_a_folder_that_nobody_has_accepted(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10, P11: by the variable, too; another text is not accepted by it."""
    (folder / "pegboard.yaml").write_text(CONFIG)
    digest = run("check", "--digest").out.strip()
    monkeypatch.setenv("PEGBOARD_ACCEPT", digest)
    (folder / "pegboard.yaml").write_text(WIDER)
    assert "pegboard.yaml was found in this folder and you have not accepted it" in refused()
    (folder / "pegboard.yaml").write_text(CONFIG)
    with serving("--port", "0", "--strict", accepted=False) as running:
        running.until("Pegboard serves MCP at ")
