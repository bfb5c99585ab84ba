"""Turns, use, fallback; and what no sequence of commands can break."""

from typing import Any

import pytest
from states import Desk, access_of, flat, plugin, statuses, tool

from pegboard.core.model.agents import Budget
from pegboard.core.model.leases import TURN, UNLOAD, LeaseReason, LeaseTerm
from pegboard.core.state.commands import NO_SESSION, CommandContext, EndTurn, Fallback, MarkTurn
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.policy import apply_with_policy

IDLE = LeaseTerm("idle", 5)


def desk_of(*plugins: Any, **changes: Any) -> Desk:
    held = plugins or (plugin("file", "read"), plugin("git", "log", "diff"), plugin("docker", "ps"))
    profile: dict[str, Any] = {"discoverable": ("*",), "static": ["file"], **changes}
    return Desk(access_of(*held, **profile), terms=CommandContext(until=IDLE))


# -- turns -------------------------------------------------------------------------------------------


def test_five_idle_turns_stay_and_six_go() -> None:
    """S7, MI8: counted from the turn of loading."""
    desk = desk_of()
    desk.load("git")
    assert desk.end_turns(6) == ()
    assert desk.end_turns() == ("log", "diff")
    assert desk.said[-1].items[0].message == "Plugin 'git' was unloaded (idle(5))."
    assert desk.state == State(turn=8, evicted=("git",))
    desk.end_turns()
    assert desk.state == State(turn=9), "it is told of once"


def test_use_refreshes_the_whole_lease() -> None:
    """S7, MI7: the use of one tool of a plugin."""
    desk = desk_of()
    desk.load("git")
    desk.end_turns(6)
    desk.use("git/diff")
    assert desk.end_turns(6) == ()
    assert desk.end_turns() == ("log", "diff")


def test_the_use_of_what_is_required_refreshes_what_requires_it() -> None:
    """S7, T8: it is loaded because of that lease alone."""
    desk = desk_of(plugin("git", "push", "auth", "key", requires={"push": "git/auth", "auth": "git/key"}), static=[])
    desk.load("push")
    desk.end_turns(6)
    desk.use("git/key")
    assert desk.end_turns(6) == ()
    assert desk.end_turns() == ("push", "auth", "key")


def test_use_changes_the_state_once_in_a_turn() -> None:
    """S2: last_used is written once per turn."""
    desk = desk_of()
    desk.load("git")
    desk.end_turns()
    desk.use("git/log")
    once = desk.state
    desk.use("git/log")
    assert desk.state is once
    assert once.recent == ("git/log",)
    desk.use("git/diff")
    assert desk.state.recent == ("git/diff", "git/log")


@pytest.mark.parametrize("tool_id", ["file/read", "git/log", "nobody/nothing", "", "file"])
def test_the_use_of_what_no_lease_holds_changes_nothing(tool_id: str) -> None:
    """S4, S7: static tools need no refreshing."""
    desk = desk_of()
    desk.use(tool_id)
    assert desk.state == DEFAULT


def test_what_was_loaded_for_a_turn_goes_at_its_end() -> None:
    """S5, MI14: the ephemeral goes, the pinned stays."""
    desk = desk_of()
    desk.load("git", until=TURN)
    desk.load("docker", until=UNLOAD)
    assert desk.end_turns() == ("log", "diff")
    assert desk.end_turns(50) == ()
    assert desk.out == ["read", "ps"]


def test_what_was_loaded_in_this_turn_stays_at_its_end() -> None:
    """S7: also with a threshold of nothing."""
    desk = desk_of()
    desk.load("git", until=LeaseTerm("idle", 0))
    assert desk.end_turns() == ()
    assert desk.end_turns() == ("log", "diff")


def test_several_leases_lapse_together_and_each_is_said() -> None:
    """S7, MI13: one eviction does not stop the others."""
    desk = desk_of()
    desk.load("git", "docker")
    desk.end_turns(6)
    outcome = desk.do(EndTurn())
    assert [(item.name, item.status) for item in outcome.items] == [("git", "unloaded"), ("docker", "unloaded")]
    assert outcome.turn == 8


def test_another_turn_label_ends_the_turn_and_the_first_one_does_not() -> None:
    """S6, G3: a label said twice ends nothing either."""
    desk = desk_of()
    desk.load("git", until=TURN)
    turns = [desk.do(MarkTurn(label=label)).turn for label in ("a", "a", "b", "b", "a")]
    assert turns == [1, 1, 2, 2, 3]
    assert (desk.state.label, desk.out) == ("a", ["read"])


# -- fallback ----------------------------------------------------------------------------------------


def test_fallback_takes_out_everything_permitted_for_one_turn() -> None:
    """S8, MI9, MI10: denied tools stay away; what was out keeps its lease."""
    desk = desk_of(switches={"diff": False})
    desk.load("docker", until=UNLOAD)
    item = desk.fallback()
    assert item.message == "Fallback mode: All 3 tools loaded for this turn only"
    assert dict(item.details) == {"loaded": 3, "permitted": 3, "excluded": []}
    assert desk.out == ["read", "ps", "log"]
    log = desk.surface.find("log")
    assert log is not None
    assert (log.until, log.because) == (TURN, (LeaseReason.FALLBACK,))
    assert desk.end_turns() == ("log",)
    assert desk.out == ["read", "ps"]


def test_fallback_keeps_within_the_budget_and_says_what_it_left_out() -> None:
    """S8, S9: N of M; meta-tools take room and are not counted in either."""
    desk = desk_of(budget=Budget(tools=4))
    desk.terms = CommandContext(meta=(tool("pegboard", "load_tools"),))
    item = desk.fallback()
    assert item.message == "Fallback mode: 3 of 4 tools loaded for this turn only"
    assert desk.said[-1].message == f"{item.message}. Not loaded: ps."
    assert dict(item.details) == {"loaded": 3, "permitted": 4, "excluded": ["ps"]}
    assert desk.out == ["read", "log", "diff"]


def test_fallback_takes_what_was_used_last_first() -> None:
    """S8: nearest use first, the rest in the order of the catalog."""
    desk = desk_of(budget=Budget(tools=3))
    desk.load("docker", until=UNLOAD)
    desk.use("docker/ps")
    desk.unload("docker")
    desk.load("diff")
    desk.use("git/diff")
    desk.unload("diff")
    assert statuses(desk.do(Fallback())) == ["loaded"]
    assert desk.out == ["read", "diff", "ps"]


def test_fallback_keeps_within_a_budget_of_tokens() -> None:
    """S8, S9: priced as the surface is."""
    desk = desk_of(budget=Budget(tokens=250))
    desk.terms = CommandContext(price=flat(100))
    assert desk.fallback().message == "Fallback mode: 2 of 4 tools loaded for this turn only"


def test_fallback_counts_what_a_tool_requires_and_takes_both_or_none() -> None:
    """S8, T8: the budget holds for what is really out."""
    needy = plugin("git", "push", "log", "auth", requires={"push": "git/auth"})
    desk = desk_of(needy, static=[], budget=Budget(tools=1))
    assert desk.fallback().details["excluded"] == ["push", "auth"]
    assert desk.out == ["log"]
    desk = desk_of(needy, static=[], budget=Budget(tools=2))
    assert desk.fallback().message == "Fallback mode: 2 of 3 tools loaded for this turn only"
    assert desk.out == ["push", "auth"]


def test_fallback_leaves_out_what_cannot_run_or_lacks_what_it_requires() -> None:
    """S8, P6, T8: it promises no tool that would not work."""
    lacking = tool("git", "log", unavailable="Set GIT_TOKEN.")
    down = plugin("docker", "ps").with_fault("", "It is down.")
    needy = plugin("ci", "run", requires={"run": "docker/ps"})
    desk = desk_of(plugin("file", "read"), plugin("git", lacking, "diff"), down, needy)
    item = desk.fallback()
    assert desk.out == ["read", "diff"]
    assert item.message == "Fallback mode: 2 of 3 tools loaded for this turn only"
    assert item.details["excluded"] == ["run"]


def test_fallback_needs_a_session() -> None:
    """S4: error without an id."""
    desk = desk_of()
    desk.terms = CommandContext(stable=False)
    item = desk.fallback()
    assert (item.status, item.message, desk.state) == ("error", NO_SESSION, DEFAULT)


def test_a_tool_of_the_fallback_can_be_kept_by_loading_it() -> None:
    """S5, S8: the stronger lease counts from then on."""
    desk = desk_of()
    desk.fallback()
    assert statuses(desk.load("log")) == ["already_loaded"]
    assert desk.end_turns() == ("diff", "ps")
    assert desk.out == ["read", "log"]


def test_a_command_heals_first() -> None:
    """S3: what is no longer permitted is gone before anything is decided."""
    permissions = access_of(plugin("git", "log"), discoverable=("git",))
    desk = Desk(permissions)
    desk.load("git", until=UNLOAD)
    assert desk.state.leases
    state, outcome = apply_with_policy(access_of(plugin("git", "log")), desk.state, EndTurn(), CommandContext())
    assert (state, outcome.removed) == (State(turn=2), ())
