"""``category:NAME`` through the library."""

from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.errors import UsageError

CONFIG = """
store: "memory:"
plugins:
  pens: {python: pens, category: Writing}
  brushes: {python: brushes, category: Painting}
agents: {a: {discoverable: ["*"]}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "pens.py").write_text('def write() -> str:\n    """Write a line."""\n    return "written"\n')
    (tmp_path / "brushes.py").write_text('def paint() -> str:\n    """Paint a wall."""\n    return "painted"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


async def test_a_category_whose_tools_are_not_known_yet_is_loaded_searched_and_unloaded(config: Path) -> None:
    """S10, P3."""
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")
        outcome = await session.load("category:writing")
        assert (outcome.status, [tool.wire for tool in outcome.added]) == ("ok", ["write"])
        assert (await session.call("write", {})).status == "ok"
        assert [hit.name for hit in (await session.search("category:Writing")).results] == ["write"]
        assert [hit.name for hit in (await session.search("category:writing", "wall")).results][:1] == ["write"]
        assert (await session.unload("category:Writing")).removed == ("write",)


async def test_a_category_is_switched_at_run_time(config: Path) -> None:
    """P2, P4: with everything in it."""
    async with Pegboard.open(config) as board:
        session = await board.session(session_id="s")
        await session.load("pens", "brushes")
        await board.permissions.set("a", "category:Writing", False)
        assert (await session.call("write", {})).status == "not_found"
        assert (await session.call("paint", {})).status == "ok"
        assert (await board.permissions.show())["a"] == {"category:Writing": False}
        await board.permissions.set("a", "category:Writing", None)
        assert (await session.load("write")).status == "ok"
        with pytest.raises(UsageError, match="'category:None' is not a toolkit, plugin or tool"):
            await board.permissions.set("a", "category:None", True)


@pytest.mark.parametrize("name", ["paint", "brushes/paint", "brushes", "category:painting"])
def test_a_tool_requires_what_another_plugin_has_that_was_not_asked_yet(config: Path, name: str) -> None:
    """T8: also by its bare name."""
    config.write_text(CONFIG.replace("category: Writing", f"category: Writing, requires: {{write: ['{name}']}}"))
    with Pegboard.open_sync(config) as board:
        outcome = board.session(session_id="s").load("write")
        assert [tool.wire for tool in outcome.added] == ["write", "paint"]
