"""What an operator sees of an agent's switches, and what the audit trail has of who sets them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, UsageError

EVOLUTION = '''
from pegboard import tool


@tool(policy="Commit only what was reviewed.", title="Commit and push")
def github_commit_push(message: str) -> str:
    """Commit and push."""
    return f"pushed {message}"


@tool(default_on=False)
def reload_source() -> str:
    """Reload the code."""
    return "reloaded"


def plan_change(what: str) -> str:
    """Plan a change."""
    return what
'''
SCHEDULER = '''
class Scheduler:
    """Run things later."""

    def __init__(self, token: str = "") -> None:
        self.token = token

    def schedule_job(self, when: str) -> str:
        """Run something later."""
        return when

    def cancel_job(self, name: str) -> str:
        """Run it not."""
        return name
'''
CONFIG = """
store: sqlite:///state.db
plugins:
  evolution: {python: evolution_tools, description: It changes itself.}
  scheduler: {python: "scheduler_tools:Scheduler"}
  absent: {python: no_such_module}
toolkits:
  self_evolution_toolkit:
    label: Self-evolution
    icon: sprout
    description: It changes its own code.
    tools: [github_commit_push, reload_source]
agents:
  sea:
    tools: [{scheduler: {token: "${SCHEDULER_TOKEN}"}}]
    allowed_toolkits: [self_evolution_toolkit]
    permissions: {cancel_job: false, gone: true}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "evolution_tools.py").write_text(EVOLUTION)
    (tmp_path / "scheduler_tools.py").write_text(SCHEDULER)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


def by_name(rows: tuple[Any, ...]) -> dict[str, Any]:
    return {row["name"]: row for row in rows}


async def test_the_panel_shows_atomic_tools_and_plugins_outside_toolkits(config: Path) -> None:
    """T6, SJ11: label, default, switch, state and reason of each; what a toolkit has is in it alone."""
    async with Pegboard.open(config, env={"SCHEDULER_TOKEN": "s3cret-token"}) as board:
        shown = await board.permissions.panel("sea")
        rows = by_name(shown)
        assert [(row["kind"], row["name"]) for row in shown] == [
            ("toolkit", "self_evolution_toolkit"),
            ("plugin", "evolution"),
            ("plugin", "scheduler"),
            ("plugin", "absent"),
            ("unknown", "gone"),
        ]
        assert [member["name"] for member in rows["evolution"]["members"]] == ["plan_change"]
        schedule, cancel = rows["scheduler"]["members"]
        assert (schedule["default"], schedule["switch"], schedule["on"]) == (True, None, True)
        assert schedule["reason"]["code"] == "granted_static"
        assert (cancel["default"], cancel["switch"], cancel["on"]) == (True, False, False)
        assert cancel["reason"]["text"] == "The tool 'cancel_job' is switched off for agent 'sea'."
        assert "pegboard.yaml:17:" in cancel["reason"]["where"]
        push, reload = rows["self_evolution_toolkit"]["members"]
        assert (push["label"], push["on"]) == ("Commit and push", True)
        assert (reload["default"], reload["on"], reload["reason"]["code"]) == (False, False, "denied_default")
        assert (rows["absent"]["on"], rows["absent"]["available"]) == (False, False)
        assert "no module 'no_such_module'" in rows["absent"]["unavailable"]
        assert (rows["gone"]["switch"], rows["gone"]["on"]) == (True, False)
        assert "s3cret-token" not in json.dumps(shown), "and nothing in it is a callable: it is JSON"


async def test_a_flip_of_the_one_switch_shows_in_every_member(config: Path) -> None:
    """P2, SJ4, SJ5: true brings what is off by default, false takes all of it; what no switch is stays `default`."""
    async with Pegboard.open(config, env={"SCHEDULER_TOKEN": "x"}) as board:
        for value, states in ((True, [True, True]), (False, [False, False]), (None, [True, False])):
            await board.permissions.set("sea", "self_evolution_toolkit", value)
            row = by_name(await board.permissions.panel("sea"))["self_evolution_toolkit"]
            assert (row["switch"], [member["on"] for member in row["members"]]) == (value, states)
            assert [member["default"] for member in row["members"]] == [True, False]
        await board.permissions.set("sea", "evolution", True)
        plugin = by_name(await board.permissions.panel("sea"))["evolution"]
        assert (plugin["default"], plugin["switch"], plugin["on"]) == (False, True, True)
        assert plugin["reason"]["code"] == "granted_switch"


async def test_the_audit_trail_has_who_set_a_switch(config: Path) -> None:
    """X4: in one transaction with the switch; who sets none is `local`."""
    events: list[Any] = []
    async with Pegboard.open(config, env={"SCHEDULER_TOKEN": "x"}) as board:
        board.on("permissions_changed", events.append)
        await board.permissions.set("sea", "scheduler", False, by="ada@example.org")
        await board.permissions.set("sea", "scheduler", None)
        later, first = await board.services.store.entries(kind="permission")
        assert (first.by, first.agent, first.subject, first.decision) == ("ada@example.org", "sea", "scheduler", "off")
        assert (later.by, later.decision) == ("local", "unset")
        assert [event["by"] for event in events] == ["ada@example.org", "local"]


async def test_two_operators_who_flip_at_once_are_both_on_record(config: Path) -> None:
    """X4, S2: whoever is last in the trail is who set what is in force."""
    env = {"SCHEDULER_TOKEN": "x"}
    async with Pegboard.open(config, env=env) as one, Pegboard.open(config, env=env) as two:
        flips = [one.permissions.set("sea", "scheduler", True, by="ada") for _ in range(10)]
        flips += [two.permissions.set("sea", "scheduler", False, by="bob") for _ in range(10)]
        await asyncio.gather(*flips)
        trail = await one.services.store.entries(kind="permission", limit=100)
        assert sorted(entry.by for entry in trail) == ["ada"] * 10 + ["bob"] * 10
        in_force = (await two.permissions.show())["sea"]["scheduler"]
        assert (trail[0].by, trail[0].decision) == (("ada", "on") if in_force else ("bob", "off"))


@pytest.mark.parametrize("name", ["", "x" * 600, "scheduler\ud800", "no\nsuch", "tool:", "category:", "plugin:evil"])
async def test_a_switch_of_an_odd_name_is_refused_in_one_sentence(config: Path, name: str) -> None:
    """P2: nothing is stored, nothing is on record."""
    async with Pegboard.open(config, env={"SCHEDULER_TOKEN": "x"}) as board:
        with pytest.raises(UsageError) as raised:
            await board.permissions.set("sea", name, True)
        assert "\n" not in raised.value.message
        assert len(raised.value.message) < 200
        assert not await board.services.store.entries(kind="permission")


@pytest.mark.parametrize("value", ["true", 1, 0, [], "off"])
async def test_a_switch_of_an_odd_value_is_refused(config: Path, value: Any) -> None:
    """P2: a switch is a boolean, or taken back."""
    async with Pegboard.open(config, env={"SCHEDULER_TOKEN": "x"}) as board:
        with pytest.raises(UsageError, match="A switch is True, False or None, not"):
            await board.permissions.set("sea", "scheduler", value)


@pytest.mark.parametrize("by", ["", "y" * 600, "\ud800", 3])
async def test_who_sets_a_switch_is_a_short_text(config: Path, by: Any) -> None:
    """X4: else the switch is not set."""
    async with Pegboard.open(config, env={"SCHEDULER_TOKEN": "x"}) as board:
        with pytest.raises(UsageError, match="`by` "):
            await board.permissions.set("sea", "scheduler", False, by=by)
        assert (await board.permissions.show())["sea"] == {"cancel_job": False, "gone": True}
