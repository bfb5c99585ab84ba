"""What people read as the name of a tool, in every place that shows one: MCP's order, the tool's own title first."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.clients import until
from pegboard import Pegboard
from pegboard.core.model.tools import Tool
from pegboard.operators.subjects import make_subjects
from pegboard.search.documents import field_texts
from sdk_servers import pegboard_command

from .programs import program, serving

SERVER = str(Path(__file__).parent.parent / "servers" / "listed_server.py")
TITLES = {
    "wipe_both": ("Erase everything", "Hinted bin", "Erase everything"),
    "wipe_own": ("Clear a shelf", None, "Clear a shelf"),
    "wipe_hinted": (None, "Empty a drawer", "Empty a drawer"),
    "wipe_blank": (" \t", "Burn a letter", "Burn a letter"),
    "wipe_plain": (None, None, ""),
}
"""Each tool with its ``title``, its ``annotations.title``, and what is to be shown; nothing is its name."""
TOKEN = "ada-ada-ada-ada-ada-ada"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "list.json").write_text(
        json.dumps(
            {
                name: {
                    "description": "Wipe something.",
                    **({"title": title} if title is not None else {}),
                    "annotations": {"destructiveHint": True, **({"title": hint} if hint is not None else {})},
                }
                for name, (title, hint, _) in TITLES.items()
            }
        )
    )
    path = tmp_path / "pegboard.yaml"
    server = {"command": sys.executable, "args": [SERVER, str(tmp_path / "list.json")], "prefix": ""}
    document = {
        "store": "sqlite:///state.db",
        "servers": {"disk": {**server, "approve": dict.fromkeys(TITLES, "always")}},
        "agents": {"ada": {"tools": ["disk"]}},
        "tokens": {"ada": {"token": TOKEN, "agents": ["ada"], "console": True}},
    }
    path.write_text(json.dumps(document))
    return path


async def test_every_place_shows_the_same_title_of_a_tool(config: Path) -> None:
    """``title`` before ``annotations.title`` before the name, as MCP has it; a blank one is none."""
    shown = {name: title or name for name, (_, _, title) in TITLES.items()}
    async with Pegboard.open(config) as board, serving(board) as (app, _), program(app, TOKEN) as ada:
        session = await board.session(agent="ada", session_id="thread")
        for name in TITLES:
            await session.call(name, {})
        subjects = make_subjects(board.services)

        async def indexed() -> bool:
            return not (await subjects.search.for_agent("ada", "wipe")).indexing

        await until(indexed)
        approvals = (await subjects.approvals.open()).waiting
        assert {one.tool: one.title for one in approvals} == {name: title for name, (_, _, title) in TITLES.items()}
        (plugin,) = await board.permissions.panel("ada")
        assert {row["name"]: row["label"] for row in plugin["members"]} == shown
        page = await subjects.panels.members("ada", "plugin", "disk")
        assert {row.name: row.label for row in page.rows} == shown
        for name, title in shown.items():
            (hit,) = (await subjects.search.for_agent("ada", name)).names
            assert hit.title == title
            (common,) = [one for one in (await subjects.search.for_agents(["ada"], name)).hits if one.name == name]
            assert common.title == title
            found = await subjects.panels.members("ada", "plugin", "disk", query=title)
            assert [row.name for row in found.rows] == [name]
            of_model = await session.search(title, limit=1)
            assert [one.name for one in of_model.results] == [name]
        assert (await subjects.panels.members("ada", "plugin", "disk", query="hinted bin")).rows == ()
        answer = await ada.ask("GET", "/api/approvals")
        assert {one["tool"]: one["title"] for one in answer["waiting"]} == {n: t for n, (_, _, t) in TITLES.items()}
    command = pegboard_command("permissions", "show", "--config", str(config), "--json", "--panel")
    printed = subprocess.run(command, capture_output=True, check=True, text=True, cwd=config.parent)  # noqa: ASYNC221
    (plugin,) = json.loads(printed.stdout)["ada"]
    assert {row["name"]: row["label"] for row in plugin["members"]} == shown


@pytest.mark.parametrize(
    ("title", "hint", "expected"),
    [
        ("Own", "Hint", "Own"),
        ("Own", 5, "Own"),
        (5, "Hint", "Hint"),
        ("", "Hint", "Hint"),
        ("  ", "Hint", "Hint"),
        (["Own"], {"a": 1}, "log"),
        (None, " ", "log"),
    ],
)
def test_a_title_that_is_no_text_or_blank_hides_no_other(title: object, hint: object, expected: str) -> None:
    tool = Tool(plugin="git", name="log", extra={"title": title}, annotations={"title": hint})
    assert tool.title == expected
    assert field_texts(tool, "")[0] == ("log" if expected == "log" else f"log {expected}")
