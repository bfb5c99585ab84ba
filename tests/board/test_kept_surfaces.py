"""A surface is made again where something that it was made of is another, and only there."""

from pathlib import Path

import pytest

from pegboard import Pegboard, Session

CONFIG = """
plugins:
  files: {python: pegboard.quickstart.files}
  calc: {python: pegboard.quickstart.calc}
toolkits:
  numbers: {description: Arithmetic., tools: [calc]}
agents:
  mira: {tools: [files, delegate], allowed_toolkits: [numbers], dialect: pegboard, may_delegate: [mira]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def focused(config: Path) -> Path:
    config.write_text(CONFIG.replace("tools: [calc]}", "tools: [calc], focus: {when: sum, tools: [calculate]}}"))
    return config


async def done(child: Session, task: str) -> str:
    return task


async def test_nothing_is_made_anew_where_nothing_has_changed(config: Path) -> None:
    """F1: a call changes nothing of it either, once the tool is known to be used in this turn."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="mira", session_id="s")
        first = await session.surface()
        assert await session.surface() is first
        await session.call("list_files", {})
        used = await session.surface()
        await session.call("list_files", {})
        assert await session.surface() is used
        assert used == first


async def test_a_switch_of_another_process_is_seen_by_the_next_surface_and_call(config: Path) -> None:
    """P3, P4: what was shown a moment ago is refused, and listed again when the switch is."""
    async with Pegboard.open(config) as board, Pegboard.open(config) as operator:
        session = await board.session(agent="mira", session_id="s")
        before = await session.surface()
        assert "list_files" in before.names
        await operator.permissions.set("mira", "files/list_files", False)
        assert (await session.call("list_files", {})).status == "not_found"
        assert "list_files" not in (await session.surface()).names
        await operator.permissions.set("mira", "files/list_files", None)
        assert await session.surface() == before


async def test_what_another_object_of_the_session_loads_is_there(config: Path) -> None:
    """S2, F1: and gone when that unloads it."""
    async with Pegboard.open(config) as board, Pegboard.open(config) as other:
        session = await board.session(agent="mira", session_id="s")
        before = (await session.surface()).names
        twin = await other.session(agent="mira", session_id="s")
        await twin.load("numbers")
        assert {"calculate"} <= set((await session.surface()).names) - set(before)
        await twin.unload("numbers")
        assert (await session.surface()).names == before


async def test_what_the_host_can_do_meanwhile_is_there(config: Path) -> None:
    """P6: `delegate` is listed as soon as someone runs what is delegated."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="mira", session_id="s")
        assert "delegate" not in (await session.surface()).names
        board.on_delegate = done
        assert "delegate" in (await session.surface()).names


async def test_the_focus_of_a_message_is_not_kept(focused: Path) -> None:
    """F3: a step without a message has no focus, and its tools are those of before."""
    async with Pegboard.open(focused) as board:
        session = await board.session(agent="mira", session_id="s")
        await session.load("numbers")
        narrowed = await session.surface(message="What is the sum?")
        plain = await session.surface()
        assert (narrowed.focus is None, plain.focus) == (False, None)
        assert narrowed.tools == plain.tools
