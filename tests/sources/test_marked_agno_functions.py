"""What Agno marks for confirmation waits for a person: through the library, the command and an MCP client (T13)."""

from pathlib import Path

import pytest

from pegboard import Pegboard

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
