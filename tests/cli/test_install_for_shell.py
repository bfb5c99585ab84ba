"""`pegboard init --install cli`: what coding agents with a shell read, their agent, and both taken out again."""

import json
from pathlib import Path

import pytest
from command_support import Run, put

from pegboard.config.clients.shell_instructions import MOST_LINES

CONFIG = """\
# mine
servers:
  git: {command: mcp-server-git, description: History of this project}
  fetch: {command: mcp-server-fetch, category: Web}
agents:
  default: {dialect: pegboard, discoverable: [git, fetch], permissions: {git__push: false}}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a `pegboard` that a shell finds."""
    program = put("bin/pegboard", "#!/bin/sh\n", 0o755).absolute()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_g12_the_instructions_of_each_agent_name_servers_agent_and_three_commands(
    run: Run, home: Path, program: Path
) -> None:
    """G12: at most 15 lines into what others read, nothing else changed, and twice is as once."""
    put("pegboard.yaml", CONFIG)
    put("AGENTS.md", "# Ours\n\nBe kind.\n")
    put("GEMINI.md", "Be brief.")
    put(".claude/settings.json", "{}")
    before = {name: Path(name).read_text() for name in ("pegboard.yaml", "AGENTS.md", "GEMINI.md")}
    dry = run("init", "--install", "cli", "--dry-run")
    assert dry.code == 0
    assert {name: Path(name).read_text() for name in before} == before
    for _ in range(2):
        done = run("init", "--install", "cli", "--json").json
        assert (done["status"], done["agent"], len(done["files"])) == ("installed", "cli", 3)
    for name in ("AGENTS.md", "GEMINI.md", ".claude/skills/pegboard/SKILL.md"):
        text = Path(name).read_text()
        assert text.startswith(before.get(name, "---\nname: pegboard\n"))
        added = text.removeprefix(before.get(name, "")).strip().splitlines()
        assert len(added) <= MOST_LINES
        for part in ("- git: History of this project", "- fetch: Web", "`pegboard call NAME key=value --agent cli`"):
            assert part in text
    assert run("tools", "--agent", "cli", "--json").code == 0
    switches = run("permissions", "show", "--json").json
    assert switches["cli"] == switches["default"] == {"git__push": False}
    assert run("init", "--uninstall", "cli").code == 0
    assert {name: Path(name).read_text() for name in before} == {**before, "GEMINI.md": "Be brief.\n"}
    assert not Path(".claude/skills/pegboard").exists()
    assert run("init", "--uninstall", "cli").code == 3


def test_g12_the_files_of_the_user_name_the_configuration_of_the_user(run: Run, home: Path, program: Path) -> None:
    """G12: a coding agent works in any folder."""
    put("home/.config/pegboard/pegboard.yaml", CONFIG)
    put("home/.codex/config.toml", "")
    ran = run("init", "--install", "cli", "--scope", "user")
    assert ran.code == 0, ran.err
    assert f"--agent cli --config {home}/.config/pegboard/pegboard.yaml`" in (home / ".codex/AGENTS.md").read_text()
    assert run("init", "--uninstall", "cli", "--scope", "user").code == 0
    assert not (home / ".codex/AGENTS.md").exists()


def test_g12_an_only_agent_of_another_name_is_that_of_the_command_line(run: Run, home: Path, program: Path) -> None:
    """G12: it stays the one that is meant where none is named."""
    put("pegboard.yaml", CONFIG.replace("default:", "worker:"))
    assert run("init", "--install", "cli", "--json").json["agent"] == "worker"
    assert Path("pegboard.yaml").read_text() == CONFIG.replace("default:", "worker:")
    assert "--agent worker" in Path("AGENTS.md").read_text()


def test_what_cannot_be_done_is_said_and_changes_nothing(
    run: Run, home: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G12: no configuration, no coding agent, lines that were cut, no installed command."""
    assert run("init", "--install", "cli").code != 0
    put(".mcp.json", '{"mcpServers": {"git": {"command": "mcp-server-git"}}}')
    assert "`pegboard init --from .mcp.json`" in run("init", "--install", "cli").err
    put("home/.config/pegboard/pegboard.yaml", CONFIG)
    assert "No coding agent" in run("init", "--install", "cli", "--scope", "user").err
    put("pegboard.yaml", CONFIG)
    put("AGENTS.md", "<!-- pegboard: begin -->\n")
    assert "by hand" in run("init", "--install", "cli").err
    Path("AGENTS.md").unlink()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    missing = run("init", "--install", "cli", "--json").json
    assert "uv tool install pegboard" in json.dumps(missing)
    assert Path("pegboard.yaml").read_text() == CONFIG
