"""The configuration of the user counts in a folder that has none (G12)."""

import os
from pathlib import Path

import pytest
from command_support import Run

CLOCK = "plugins: {clock: {python: pegboard.quickstart.clock}}\nagents: {default: {tools: [clock]}}\n"
CALC = "plugins: {calc: {python: pegboard.quickstart.calc}}\nagents: {default: {tools: [calc]}}\n"


@pytest.fixture
def users(folder: Path) -> Path:
    """Return the user's own configuration."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "pegboard" / "pegboard.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(CLOCK)
    return path


def plugins(run: Run) -> set[str]:
    return {tool["plugin"] for tool in run("tools", "--json").json}


def test_it_counts_where_a_folder_has_none_and_the_folder_first(run: Run, folder: Path, users: Path) -> None:
    """G12: no configuration is mixed with another, and without any it is the packaged quickstart."""
    (folder / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "no-such-server"}}}')
    assert plugins(run) == {"clock"}
    (folder / "pegboard.yaml").write_text(CALC)
    assert plugins(run) == {"calc"}
    (folder / "pegboard.yaml").unlink()
    users.unlink()
    assert "files" in plugins(run)
