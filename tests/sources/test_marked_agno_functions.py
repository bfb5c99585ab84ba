"""What Agno marks for confirmation waits for a person: through the library, the command and an MCP client (T13)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from pegboard import Pegboard
from pegboard.cli import main

CONFIG = """
store: sqlite:///state.db
agents:
  coder: {tools: [{workspace: {root: "FOLDER"}}]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    pytest.importorskip("agno")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "victim.txt").write_text("precious")
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG.replace("FOLDER", str(tmp_path / "work")))
    return path


def victim(config: Path) -> Path:
    return config.parent / "work" / "victim.txt"


async def test_delete_file_of_workspace_does_nothing_before_approval_in_the_library(config: Path) -> None:
    """T13, A3: nothing has run."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="coder", session_id="thread")
        answer = await session.call("delete_file", {"path": "victim.txt"})
        assert (answer.status, victim(config).exists()) == ("needs_approval", True)
        assert answer.approval is not None
        await board.approvals.refuse(answer.approval.id, by="grace", reason="Keep it.")
        assert "grace refused it: Keep it." in (await session.call("delete_file", {"path": "victim.txt"})).message
        await board.approvals.allow(answer.approval.id, by="grace")
        assert victim(config).exists()
        assert (await session.resume(answer.approval.id)).status == "ok"
        assert not victim(config).exists()
        assert (await session.call("list_files", {})).status == "ok"


@pytest.mark.usefixtures("terminal")
def test_delete_file_of_workspace_does_nothing_before_approval_in_the_command(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T13, A3: as the command calls it."""
    call = ["call", "delete_file", '{"path": "victim.txt"}', "--config", str(config), "--json"]
    assert main(call) == 1
    asked = json.loads(capsys.readouterr().out)
    assert (asked["status"], victim(config).exists()) == ("needs_approval", True)
    assert main(["approvals", "allow", asked["structured"]["approval"]["id"], "--config", str(config)]) == 0
    assert victim(config).exists()
    assert main(call) == 0
    assert not victim(config).exists()


async def test_delete_file_of_workspace_does_nothing_before_approval_for_an_mcp_client(config: Path) -> None:
    """T13, A3: the client says only that it cannot be asked; the operator decides meanwhile, in another process."""
    command = ["-m", "pegboard", "serve", "--config", str(config), "--stdio"]
    target: Any = StdioServerParameters(command=sys.executable, args=command)
    async with Client(target) as client:
        asked = await client.call_tool("delete_file", {"path": "victim.txt"})
        assert asked.is_error
        assert victim(config).exists()
        assert asked.structured_content is not None
        async with Pegboard.open(config) as board:
            await board.approvals.allow(asked.structured_content["approval"]["id"], by="grace")
        assert victim(config).exists()
        assert not (await client.call_tool("delete_file", {"path": "victim.txt"})).is_error
    assert not victim(config).exists()
