"""Switches and pauses of several agents over a real board: all or none, and taken back exactly (P2, P4, X4)."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from pegboard import Pegboard, UnknownAgentError, UsageError
from pegboard.board.switch_actions import apply_plan, last_standing, plan_switch, planned_pause, undo_action
from pegboard.core.access.switches import Pauses

TOOLS = '''
def note_add(text: str) -> str:
    """Add a note."""
    return f"added {text}"


def note_list() -> str:
    """List the notes."""
    return "none"
'''
CONFIG = """
store: sqlite:///state.db
plugins: {notes: {python: notes_tools}, clock: {python: pegboard.quickstart.clock}}
toolkits: {research: {tools: [notes]}, time: {tools: [clock]}}
agents:
  ada: {allowed_toolkits: [research, time], initial_toolkits: [research]}
  bob: {allowed_toolkits: [research], permissions: {time: true}}
  cy: {discoverable: ["*"], tools: [self_config], may_delegate: [ada]}
"""
AGENTS = ("ada", "bob", "cy")
NAMES = ("research", "toolkit:research", "notes", "plugin:notes", "note_add", "tool:note_add", "time", "clock")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "notes_tools.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


async def stored(board: Pegboard) -> tuple[Mapping[str, Mapping[str, bool]], Mapping[str, Pauses]]:
    permissions = await board.services.store.stored_permissions()
    return permissions.switches, permissions.pauses


async def test_taking_back_restores_exactly_what_stood_before(config: Path) -> None:
    """P2: whatever stood there, whatever was set: other spellings come back with it."""
    chance = random.Random(20261126)
    async with Pegboard.open(config) as board:
        services = board.services
        for agent in AGENTS:
            await (await board.session(agent=agent, session_id="s")).surface()
        replaced = 0
        for _ in range(150):
            for agent in AGENTS:
                for name in chance.sample(NAMES, 2):
                    await services.store.set_switch(agent, name, chance.choice((True, False, None)))
            before = await stored(board)
            agents = chance.sample(AGENTS, chance.randint(1, 3))
            if chance.random() < 0.3:
                plan = await planned_pause(services, agents, chance.choice((None, "notes")), on=chance.random() < 0.7)
            else:
                plan = await plan_switch(services, agents, chance.choice(NAMES), chance.choice((True, False, None)))
            action = await apply_plan(services, plan, by="ada", seen=plan.digest_seen)
            replaced += len(action.changes) > len({one.agent for one in action.changes})
            if not action.changes:
                assert await stored(board) == before
                continue
            assert await stored(board) != before
            undone = await undo_action(services, action.mark, by="bob")
            assert await stored(board) == before
            again = await undo_action(services, undone.mark, by="bob")
            await undo_action(services, again.mark, by="bob")
            assert await stored(board) == before
        assert replaced > 10, "no example removed another spelling"


async def test_what_was_set_since_is_not_taken_back(config: Path) -> None:
    """X4: not even in part; someone else decided meanwhile."""
    async with Pegboard.open(config) as board:
        services = board.services
        action = await apply_plan(services, await plan_switch(services, AGENTS, "research", False), by="ada")
        await board.permissions.set("cy", "research", True, by="grace")
        between = await stored(board)
        with pytest.raises(UsageError) as caught:
            await undo_action(services, action.mark, by="ada")
        assert (caught.value.code, await stored(board)) == ("switch_changed", between)
        assert await last_standing(services, AGENTS) == {}
        with pytest.raises(UsageError, match="no action 'none'"):
            await undo_action(services, "none", by="ada")
        with pytest.raises(UsageError, match="no action"):
            await undo_action(services, action.mark, by="ada", agents=["ada", "bob"])


async def test_a_pause_outlives_a_restart_and_denies_all_but_touches_no_switch(config: Path) -> None:
    """P4, P8: tools, toolkits and host tools; what delegates to it goes on; resumed it is as before."""
    async with Pegboard.open(config) as board:
        await (await board.session(agent="ada", session_id="s")).surface()
        await board.permissions.set("bob", "note_list", False)
        before = await stored(board)
        services = board.services
        plan = await planned_pause(services, ["bob", "cy"], None, on=True)
        paused = await apply_plan(services, plan, by="ada")
    async with Pegboard.open(config) as board:
        for agent in ("bob", "cy"):
            session = await board.session(agent=agent, session_id="s")
            assert (await session.call("note_add", {"text": "x"})).status == "not_found"
            assert (await session.load("research", "notes")).status == "refused"
            assert not {tool.wire for tool in (await session.snapshot()).permissions.permitted}
            reasons = (await session.explain("note_add")).reasons
            assert (reasons[0].code, reasons[0].text) == ("denied_pause", f"Agent '{agent}' is paused by an operator.")
        session = await board.session(agent="cy", session_id="s")
        assert "self_config" not in (await session.surface()).names
        other = await board.session(agent="ada", session_id="s")
        assert (await other.call("note_add", {"text": "x"})).status == "ok"
        assert (await board.permissions.show())["bob"] == {"time": True, "note_list": False}
        await undo_action(board.services, paused.mark, by="ada")
        session = await board.session(agent="bob", session_id="s")
        assert (await session.load("research")).status == "ok"
        await session.end_turn()
        assert (await session.call("note_add", {"text": "x"})).status == "ok"
        assert (await session.call("note_list")).status == "not_found"
        assert await stored(board) == before


async def test_a_paused_plugin_is_denied_while_others_go_on(config: Path) -> None:
    """P4: the next call is bound in a session that goes on, and a child of it."""
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="s")
        child = await session.child("general")
        assert (await session.call("note_list")).status == "ok"
        plan = await planned_pause(board.services, AGENTS, "notes", on=True)
        await apply_plan(board.services, plan, by="ada")
        assert (await session.call("note_list")).status == "not_found"
        assert (await child.call("note_list")).status == "not_found"
        assert (await session.load("time")).status == "ok"
        await apply_plan(board.services, await planned_pause(board.services, ["ada"], "notes", on=False), by="ada")
        assert (await session.call("note_list")).status == "ok"
        records = await board.services.store.entries(kind="permission")
        assert [(one.agent, one.subject, one.decision) for one in records] == [
            ("ada", "notes", "resumed"),
            ("cy", "notes", "paused"),
            ("bob", "notes", "paused"),
            ("ada", "notes", "paused"),
        ]
        assert len({one.reason for one in records}) == 2


async def test_where_one_of_them_cannot_be_set_none_is(config: Path) -> None:
    """P2: an agent or name that there is not, and a plan that someone saw before something changed."""
    async with Pegboard.open(config) as board:
        services = board.services
        with pytest.raises(UnknownAgentError):
            await plan_switch(services, ["ada", "nobody"], "research", False)
        with pytest.raises(UsageError, match="is not a toolkit"):
            await plan_switch(services, AGENTS, "reserach", False)
        with pytest.raises(UsageError, match="no server or plugin"):
            await planned_pause(services, AGENTS, "nots", on=True)
        plan = await plan_switch(services, AGENTS, "research", False)
        await board.permissions.set("bob", "research", False)
        before = await stored(board)
        for late in (plan, await plan_switch(services, AGENTS, "research", False)):
            with pytest.raises(UsageError) as caught:
                await apply_plan(services, late, by="ada", seen=plan.digest_seen)
            assert (caught.value.code, await stored(board)) == ("switch_changed", before)
