"""The two statuses of the toolkits dialect that cannot occur over the wire, and the full examples with Agno's tools."""

import json
import shutil
from pathlib import Path

import pytest

from pegboard import Pegboard, Session

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = """
store: "memory:"
plugins: {home: {python: home_tools, shared_only: true}, notes: {python: home_tools}}
toolkits: {house: {tools: [home]}, paper: {tools: [notes]}}
agents: {a: {allowed_toolkits: [house, paper], dialect: toolkits}}
"""


async def ask(session: Session, toolkit: str) -> dict[str, object]:
    answer = await session.call("load_tools", {"toolkit": toolkit})
    return json.loads(answer.result.content[0]["text"])


async def test_a_session_whose_scope_was_narrowed_and_one_without_an_id(tmp_path: Path) -> None:
    """P5, S4, MR48: scope_incompatible with its keys, and error."""
    (tmp_path / "home_tools.py").write_text('def lamp() -> str:\n    """Switch the lamp."""\n    return "on"\n')
    config = CONFIG.replace("notes: {python: home_tools}", "notes: {python: note_tools}")
    (tmp_path / "note_tools.py").write_text('def note() -> str:\n    """Note."""\n    return ""\n')
    (tmp_path / "pegboard.yaml").write_text(config)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        apart = await board.session(session_id="s", worker_scope="user")
        answer = await ask(apart, "house")
        assert answer["status"] == "scope_incompatible"
        assert (answer["scope_label"], answer["unsupported_tools"]) == ("worker_scope=user", ["home"])
        assert (await ask(apart, "paper"))["status"] == "loaded"
        nameless = await board.session()
        assert (await nameless.surface()).names == ()
        answer = await ask(nameless, "paper")
        assert (answer["status"], answer["message"]) == (
            "error",
            "Dynamic toolkit changes require a stable session_id.",
        )


@pytest.mark.parametrize("name", ["assistant.yaml", "data-agents.yaml"])
async def test_the_full_examples_show_the_real_tools_of_agno(tmp_path: Path, name: str) -> None:
    """T1, P6: what is static and initial is there, `file` and `csv` really work, what is missing says so."""
    shutil.copy(EXAMPLES / name, tmp_path / "pegboard.yaml")
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        session = await board.session(agent="assistant", session_id="s")
        surface = await session.surface()
        plugins = {out.tool.plugin for out in surface.tools}
        assert plugins >= {"file", "shell", "duckduckgo", "arxiv", "wikipedia", "pegboard"}
        assert "list_files" in surface.names
        assert (await session.call("list_files", {})).status == "ok"
        assert (await session.load("devops")).items[0].status == "tool_unavailable"
        if name == "data-agents.yaml":
            assert (await session.load("csv")).status == "ok"
            await session.end_turn()
            assert (await session.call("list_csv_files", {})).status == "ok"
