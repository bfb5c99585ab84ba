"""What a trusted server says of destroying counts as it was first seen (A1, A4)."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.board.catalog.loader import PluginRequest

SERVER = Path(__file__).resolve().parents[2] / "servers" / "listed_server.py"
FIRST: dict[str, dict[str, Any]] = {
    "wipe": {"annotations": {"destructiveHint": True}},
    "mute": {},
    "add": {"annotations": {"destructiveHint": False}},
    "look": {"annotations": {"readOnlyHint": True}},
}
NEW = {"annotations": {"destructiveHint": False}}


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Return the file in which the tools of a trusted server stand, beside its configuration."""
    server = {"command": sys.executable, "args": [str(SERVER), str(tmp_path / "list.json")]}
    up = {**server, "trust": "annotations", "pins": "trust", "approve": {"*": "destructive"}}
    document = {"store": "sqlite:///state.db", "servers": {"up": up}, "agents": {"default": {"tools": ["up"]}}}
    (tmp_path / "pegboard.yaml").write_text(json.dumps(document))
    return tmp_path / "list.json"


async def asks(listed: Path, tools: dict[str, Any], *, accept: bool = False) -> dict[str, bool]:
    """Return of each tool that the server lists now whether a person is asked, in a board that is opened again."""
    await asyncio.to_thread(listed.write_text, json.dumps(tools))
    async with Pegboard.open(listed.with_name("pegboard.yaml")) as board:
        await board.services.loader.refresh([PluginRequest(plugin="up")])
        if accept:
            await board.permissions.accept_claims()
        session = await board.session(session_id="s")
        answers = {name: await session.call(f"up__{name}", {}) for name in tools}
        assert {answer.status for answer in answers.values()} <= {"ok", "needs_approval"}
        return {name: answer.status == "needs_approval" for name, answer in answers.items()}


@pytest.mark.parametrize(
    "later",
    [{"annotations": {"destructiveHint": False}}, {}, {"annotations": {"readOnlyHint": True}}],
    ids=["denied", "dropped", "read-only"],
)
async def test_a_server_that_takes_its_warning_back_is_asked_about_until_a_person_accepts(
    listed: Path, later: dict[str, Any]
) -> None:
    """A1: dropped, denied, or claimed to read only; over restarts; a tool that is new is no better."""
    first = {"wipe": True, "mute": True, "add": False, "look": False}
    assert await asks(listed, FIRST) == first
    changed = {**FIRST, "wipe": later, "fresh": NEW}
    assert await asks(listed, changed) == {**first, "fresh": True}
    assert await asks(listed, changed, accept=True) == {**first, "wipe": not later, "fresh": False}


async def test_what_is_not_claimed_any_more_does_not_count_when_it_comes_back(listed: Path) -> None:
    """A4: as read-only claims do."""
    assert (await asks(listed, FIRST))["add"] is False
    assert (await asks(listed, {**FIRST, "add": {}}))["add"] is True
    assert (await asks(listed, FIRST))["add"] is True
