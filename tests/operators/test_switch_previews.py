"""What a switch would change is what it changes: for the agent and in every session, on any configuration."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from made_configurations import KITS, NAMES, SERVERS, TOOLS, agents, members, servers, source, switches, values

from pegboard import Pegboard, Session, UnknownAgentError, UsageError
from pegboard.core.model.leases import LeaseReason
from pegboard.core.model.tools import Tool
from pegboard.operators.subjects import make_subjects
from pegboard.operators.switch_preview import SwitchPreview, SwitchPreviews
from pegboard.testing import Adapters, MemoryStore
from sdk_servers import pegboard_command

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"


def usable(board: Pegboard, agent: str) -> set[str]:
    return {tool.wire for tool in board.services.compiler.permissions_of_agent(agent).permitted}


async def loaded(session: Session) -> dict[str, Tool]:
    """Return what is loaded by wire name, without what is there to manage it."""
    shown = (await session.surface()).tools
    return {one.tool.wire: one.tool for one in shown if one.because != (LeaseReason.META,)}


@settings(max_examples=20, deadline=None, phases=(Phase.generate,))
@given(
    found=servers(),
    kits=st.fixed_dictionaries(dict.fromkeys(KITS, members)),
    agent=agents(),
    stored=switches,
    loads=st.lists(st.lists(st.sampled_from((*SERVERS, *TOOLS, *KITS)), max_size=3), min_size=1, max_size=3),
    narrowed=st.sampled_from((None, "mine", "minimal")),
    name=st.sampled_from(NAMES),
    value=values,
)
def test_a_preview_is_what_setting_the_switch_changes(
    found: dict[str, Any],
    kits: dict[str, list[str]],
    agent: dict[str, Any],
    stored: dict[str, bool],
    loads: list[list[str]],
    narrowed: str | None,
    name: str,
    value: bool | None,
) -> None:
    """P2, P4: for the agent and session by session, whatever is configured, stored and loaded; tokens too."""
    config = {
        "servers": found,
        "toolkits": {kit: {"tools": tools} for kit, tools in kits.items()},
        "loadouts": {"mine": {"categories": ["Git"], "discoverable": ["s*"]}},
        "agents": {"ada": agent},
    }

    async def compared() -> None:
        async with Pegboard.open(config, adapters=Adapters(sources=[source()], store=MemoryStore())) as board:
            await board.ready()
            for other, on in stored.items():
                await board.permissions.set("ada", other, on)
            sessions = [await board.session(session_id=str(n), principal="eve") for n in range(len(loads))]
            for session, names in zip(sessions, loads, strict=True):
                if names:
                    await session.load(*names)
                    await session.end_turn()  # what is to come with the next turn is loaded before that, and not shown
            if narrowed is not None:
                await sessions[0].use_loadout(narrowed)
            was = [await loaded(session) for session in sessions]
            could, store = usable(board, "ada"), await board.services.store.sessions()
            preview = await SwitchPreviews(board.services).of_switch("ada", name, value)
            assert await board.services.store.sessions() == store, "nothing is stored"
            assert [await loaded(session) for session in sessions] == was, "nothing is changed"
            await board.permissions.set("ada", name, value, expected=preview.stored)
            now = [await loaded(session) for session in sessions]
            compare(preview, was, now, board)
            can = usable(board, "ada")
            assert {*preview.gained} - {"self_config"} == can - could
            assert {*preview.lost} - {"self_config"} == could - can

    asyncio.run(compared())


def compare(preview: SwitchPreview, was: list[dict[str, Tool]], now: list[dict[str, Tool]], board: Pegboard) -> None:
    """Check what was foreseen for each session against what has come."""
    found = {change.session: change for change in preview.sessions}
    changed = [str(n) for n, (before, after) in enumerate(zip(was, now, strict=True)) if before.keys() != after.keys()]
    assert sorted(found) == changed
    assert preview.unchanged == len(was) - len(changed)
    for session, change in found.items():
        before, after = was[int(session)], now[int(session)]
        assert change.gained == tuple(sorted(after.keys() - before.keys()))
        assert change.lost == tuple(sorted(before.keys() - after.keys()))
        price = board.services.prices
        assert (change.tokens_before, change.tokens_after) == (price(before.values()), price(after.values()))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "notes.py").write_text('def add_note(text: str) -> str:\n    """Add a note."""\n    return text\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(
        json.dumps(
            {
                "store": "sqlite:///state.db",
                "servers": {"plain": {"command": sys.executable, "args": [str(SERVER)]}},
                "plugins": {"notes": {"python": "notes"}},
                "agents": {"ada": {"discoverable": ["*"], "dialect": "pegboard"}},
            }
        )
    )
    return path


async def run(config: Path, *arguments: str) -> None:
    """Run the command in a process of its own."""
    command = pegboard_command(*arguments, "--config", str(config))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0


async def test_a_preview_counts_the_sessions_of_every_process(config: Path) -> None:
    """P2, P4: what another process stored, and what this one only showed; no server is started for it."""
    await run(config, "session", "load", "plain__echo", "notes", "--principal", "eve", "--session", "elsewhere")
    async with Pegboard.open(config) as board:
        await (await board.session(session_id="here", principal="bob")).surface()
        subjects = make_subjects(board.services)
        found = await subjects.previews.of_switch("ada", "plain", False)
        assert [(one.principal, one.session, one.lost) for one in found.sessions] == [
            ("eve", "elsewhere", ("plain__echo",))
        ]
        assert (found.unchanged, found.stored, found.gained) == (1, None, ())
        assert "plain__echo" in found.lost
        assert found.lost_tokens > found.sessions[0].tokens_before - found.sessions[0].tokens_after > 0
        await run(config, "permissions", "set", "plain", "false", "--by", "eve")
        undone = await subjects.previews.of_switch("ada", "plain", None)
        assert (undone.stored, undone.sessions[0].gained) == (False, ("plain__echo",))
        assert undone.gained == found.lost
        await run(config, "session", "unload", "notes", "--principal", "eve", "--session", "elsewhere")
        await run(config, "session", "load", "notes", "--principal", "eve", "--session", "later")
        newest = await subjects.previews.of_switch("ada", "notes", False)
        assert ([one.session for one in newest.sessions], newest.unchanged) == (["later"], 2)


async def test_a_preview_of_what_cannot_be_set_is_refused(config: Path) -> None:
    """P2: as setting it is."""
    async with Pegboard.open(config) as board:
        subjects = make_subjects(board.services)
        with pytest.raises(UsageError, match="'plian' is not a toolkit, plugin or tool"):
            await subjects.previews.of_switch("ada", "plian", True)
        with pytest.raises(UsageError, match="A switch is True, False or None"):
            await subjects.previews.of_switch("ada", "plain", "off")  # type: ignore[arg-type]
        with pytest.raises(UnknownAgentError):
            await subjects.previews.of_switch("adda", "plain", True)
