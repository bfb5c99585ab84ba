"""What can be switched of an agent, page by page: the rows of the whole panel, under names that mean them alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from made_configurations import KITS, agents, members, servers, source, switches

from pegboard import Pegboard, UnknownAgentError
from pegboard.operators.subjects import OperatorSubjects, make_subjects
from pegboard.operators.switches import SwitchRow
from pegboard.testing import Adapters, MemoryStore

SHARED = ("kind", "name", "label", "description", "default", "switch", "on")


def compare(row: SwitchRow, shown: Mapping[str, Any]) -> None:
    """Check a row against what the whole panel says of it."""
    assert [getattr(row, name) for name in SHARED] == [shown[name] for name in SHARED]
    assert (row.reason.code, row.reason.text, row.reason.where) == (
        shown["reason"]["code"],
        shown["reason"]["text"],
        shown["reason"]["where"] or "",
    )
    assert (row.available, row.unavailable) == (shown.get("available", True), shown.get("unavailable", ""))
    found = shown.get("members", [])
    assert (row.members, row.members_on) == (len(found), sum(member["on"] for member in found))


@settings(max_examples=20, deadline=None, phases=(Phase.generate,))
@given(
    found=servers(),
    kits=st.fixed_dictionaries(dict.fromkeys(KITS, members)),
    agent=agents(),
    stored=switches,
    known=st.booleans(),
)
def test_the_pages_are_the_whole_panel(
    found: dict[str, Any], kits: dict[str, list[str]], agent: dict[str, Any], stored: dict[str, bool], known: bool
) -> None:
    """P2, T6: row by row, whatever is configured, switched and known; members too."""
    config = {
        "servers": found,
        "toolkits": {kit: {"tools": tools} for kit, tools in kits.items()},
        "loadouts": {"mine": {"categories": ["Git"], "discoverable": ["s*"]}},
        "agents": {"ada": {**agent, "permissions": {**agent["permissions"], "nothing": True}}},
    }

    async def compared() -> None:
        async with Pegboard.open(config, adapters=Adapters(sources=[source()], store=MemoryStore())) as board:
            if known:
                await board.ready()
            for other, on in stored.items():
                await board.permissions.set("ada", other, on)
            subjects, whole = make_subjects(board.services), await board.permissions.panel("ada")
            first, rest = await subjects.panels.page("ada", limit=2), await subjects.panels.page("ada", offset=2)
            assert first.total == rest.total == len(whole)
            for row, shown in zip((*first.rows, *rest.rows), whole, strict=True):
                compare(row, shown)
                if row.kind in ("toolkit", "plugin"):
                    page = await subjects.panels.members("ada", row.kind, row.name)  # type: ignore[arg-type]
                    assert page.total == row.members
                    for member, inside in zip(page.rows, shown["members"], strict=True):
                        compare(member, inside)

    asyncio.run(compared())


TOOLS = '''
from pegboard import tool


def add_note(text: str) -> str:
    """Add a note about milk."""
    return text


@tool(title="Remove it")
def drop_note(name: str) -> str:
    """Drop a note."""
    return name
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "own_notes.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    document = {
        "store": "sqlite:///state.db",
        "plugins": {
            "notes": {"python": "own_notes", "description": "Paper."},
            "clock": {"python": "pegboard.quickstart.clock"},
        },
        "toolkits": {"notes": {"tools": ["drop_note"], "label": "Bin"}, "add_note": {"tools": ["clock"]}},
        "agents": {
            "ada": {
                "tools": ["self_config"],
                "discoverable": ["*"],
                "allowed_toolkits": ["notes", "add_note"],
                "dialect": "pegboard",
                "self_config": {"allow": ["switches"]},
            }
        },
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


@pytest.fixture
def subjects(board: Pegboard) -> OperatorSubjects:
    return make_subjects(board.services)


async def test_every_row_has_a_name_that_switches_it_alone(board: Pegboard, subjects: OperatorSubjects) -> None:
    """P2: a toolkit of a plugin's or a tool's name does not stand before it; `stored` is what undo restores."""
    toolkit, named_as_tool, plugin = (await subjects.panels.page("ada")).rows
    assert [(row.kind, row.name) for row in (toolkit, named_as_tool, plugin)] == [
        ("toolkit", "notes"),
        ("toolkit", "add_note"),
        ("plugin", "notes"),
    ]
    (tool,) = (await subjects.panels.members("ada", "plugin", "notes")).rows
    assert [row.switch_name for row in (toolkit, plugin, tool)] == ["notes", "plugin:notes", "tool:add_note"]
    await board.permissions.set("ada", plugin.switch_name, False, expected=plugin.stored)
    toolkit, _, plugin = (await subjects.panels.page("ada")).rows
    assert (toolkit.stored, plugin.stored, plugin.switch, plugin.on, plugin.members_on) == (
        None,
        False,
        False,
        False,
        0,
    )
    await board.permissions.set("ada", "notes/drop_note", True)
    (dropped,) = (await subjects.panels.members("ada", "toolkit", "notes")).rows
    assert (dropped.switch_name, dropped.stored, dropped.on) == ("notes/drop_note", True, True)
    await board.permissions.set("ada", dropped.switch_name, None, expected=dropped.stored)
    await board.permissions.set("ada", plugin.switch_name, None, expected=plugin.stored)
    assert [row.stored for row in (await subjects.panels.page("ada")).rows] == [None, None, None]


async def test_rows_are_found_by_their_words_and_those_of_their_members(subjects: OperatorSubjects) -> None:
    """T6: label, name and description, in any case; all words in one text."""

    async def names(query: str) -> list[tuple[str, str]]:
        return [(row.kind, row.name) for row in (await subjects.panels.page("ada", query=query)).rows]

    assert await names("MILK note") == [("plugin", "notes")]
    assert await names("remove") == await names("bin") == [("toolkit", "notes")]
    assert await names("paper") == [("plugin", "notes")]
    assert await names("milk remove") == []
    found = await subjects.panels.members("ada", "plugin", "notes", query="milk")
    assert ([row.name for row in found.rows], found.total) == (["add_note"], 1)
    assert found.rows[0].tokens == (await subjects.panels.page("ada", query="milk")).rows[0].tokens
    assert (await subjects.panels.members("ada", "plugin", "nothing")).total == 0
    with pytest.raises(UnknownAgentError):
        await subjects.panels.page("eve")
