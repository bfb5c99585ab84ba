"""What is loaded from the next request on, and turns whose number a host derives."""

from typing import Any

import pytest
from states import Desk, access_of, plugin, statuses, toolkit

from pegboard import turn_of_messages
from pegboard.core.model.agents import Budget
from pegboard.core.model.leases import TURN, LeaseTerm
from pegboard.core.state.call_plans import LoadFirst, Refuse, Run, plan_call
from pegboard.core.state.commands import CommandContext, EndTurn, Load
from pegboard.core.surface.explanations import explain
from pegboard.core.surface.surfaces import suffix

NEXT = CommandContext(takes_effect="next_request", from_next_turn=True)
AT_ONCE = CommandContext(takes_effect="next_request")


def desk_of(**profile: Any) -> Desk:
    """Return a desk with git, whose push needs auth, and files; loads count from the next turn."""
    git = plugin("git", "log", "push", requires={"push": "keys/auth"})
    permissions = access_of(
        git, plugin("keys", "auth"), plugin("files", "read"), toolkits=[toolkit("work", "git")],
        discoverable=("*",), allowed_toolkits=("work",), **profile,
    )  # fmt: skip
    return Desk(permissions, terms=NEXT)


def plan(desk: Desk, name: str) -> object:
    return plan_call(desk.permissions, desk.state, name)


def test_a_load_is_loaded_counted_and_already_loaded_but_not_visible_before_the_turn_ends() -> None:
    """D2: it joins the surface after the end of the turn, behind what was there (F1)."""
    desk = desk_of()
    first, again = desk.load("work"), desk.load("work")
    assert (statuses(first), statuses(again), first.takes_effect) == (["loaded"], ["already_loaded"], "next_request")
    assert first.loaded == ("log", "push", "auth")
    assert desk.out == []
    desk.end_turns()
    assert desk.out == ["log", "push", "auth"]


@pytest.mark.parametrize("unloaded_call", ["safe", "schema", "run", "reject"])
def test_a_call_before_the_turn_ends_says_from_when_on(unloaded_call: str) -> None:
    """D2, X1: whatever the agent says of calls of what is not loaded."""
    desk = desk_of(unloaded_call=unloaded_call)
    desk.load("git")
    found = plan(desk, "log")
    assert isinstance(found, Refuse)
    assert (found.status, found.reason.code) == ("next_request", "next_request")
    assert (
        found.message == "'log' is loaded from the next request on. It has not run; it cannot be called in this turn."
    )
    desk.end_turns()
    assert isinstance(plan(desk, "log"), Run)


def test_explain_says_loaded_and_neither_visible_nor_callable() -> None:
    """D2, F5: the four predicates agree with the surface and with a call; what is required waits as well (T8)."""
    desk = desk_of()
    desk.load("push")
    for tool in (one for one in desk.permissions.world.catalog if one.wire in ("push", "auth")):
        before = explain(desk.permissions, desk.state, tool)
        assert (before.permitted, before.loaded, before.visible, before.callable) == (True, True, False, False)
        assert before.reasons[-1].code == "next_request"
    desk.end_turns()
    tool = next(one for one in desk.permissions.world.catalog if one.wire == "auth")
    after = explain(desk.permissions, desk.state, tool)
    assert (after.loaded, after.visible, after.callable) == (True, True, True)


def test_what_was_there_stays_there_when_it_is_loaded_again() -> None:
    """D2: a load of more takes nothing away that the model has."""
    desk = desk_of()
    desk.load("log")
    desk.end_turns()
    desk.load("work")
    assert desk.out == ["log"]
    assert isinstance(plan(desk, "log"), Run)
    assert isinstance(plan(desk, "push"), Refuse)


def test_whoever_asks_at_once_gets_it_at_once() -> None:
    """D2: an operator's command and a gateway's request are requests of their own."""
    desk = desk_of()
    desk.load("push")
    desk.terms = AT_ONCE
    assert statuses(desk.load("push")) == ["already_loaded"]
    assert desk.out == ["push", "auth"]


def test_a_lease_for_a_turn_lasts_for_the_turn_in_which_it_is_there() -> None:
    """D2, S5, S8: loaded for a turn from the next request on means that next turn; fallback too."""
    desk = desk_of()
    desk.do(Load(names=("read",), until=TURN))
    desk.fallback()
    desk.end_turns()
    assert sorted(desk.out) == ["auth", "log", "push", "read"]
    desk.end_turns()
    assert desk.out == []


def test_a_pending_load_counts_in_the_budget() -> None:
    """D2, S9: what is loaded is counted, whether it is seen or not."""
    desk = desk_of(budget=Budget(tools=1))
    assert statuses(desk.load("log", "read")) == ["loaded", "over_budget"]


def test_the_line_behind_the_history_says_from_when_on() -> None:
    """D2, F2: a model is not led to call what is not there yet."""
    desk = desk_of()
    desk.load("work")
    assert suffix(desk.permissions, desk.state) == "Loaded from the next request on: work."
    desk.end_turns()
    assert suffix(desk.permissions, desk.state) == "Loaded now: work."


@pytest.mark.parametrize("name", ["work", "git", "log"])
def test_no_call_loads_again_in_its_turn_what_was_unloaded_by_name(name: str) -> None:
    """D2, X1: a toolkit, plugin or tool; a load by name does, and so does a call in the next turn."""
    desk = desk_of()
    desk.terms = CommandContext()
    desk.load(name)
    desk.unload(name)
    found = plan(desk, "log")
    assert isinstance(found, Refuse)
    assert (found.status, found.reason.code) == ("not_loaded", "unloaded_in_turn")
    tool = next(one for one in desk.permissions.world.catalog if one.wire == "log")
    assert explain(desk.permissions, desk.state, tool).reasons[-1].code == "unloaded_in_turn"
    assert statuses(desk.load(name)) == ["loaded"]
    assert isinstance(plan(desk, "log"), Run)
    desk.unload(name)
    desk.end_turns()
    assert isinstance(plan(desk, "log"), LoadFirst)


# -- the number of the turn ------------------------------------------------------------------------


def test_the_number_of_a_turn_follows_from_the_messages() -> None:
    """S6: a user's message begins a turn, an answer ends none."""
    assert [turn_of_messages(count) for count in (0, 1, 2, 3, 4, 5)] == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("turn", [-1, 0, 1, 4, 5])
def test_a_number_that_is_not_greater_changes_nothing(turn: int) -> None:
    """S6: the counter only grows."""
    desk = desk_of()
    desk.do(EndTurn(turn=5))
    desk.terms = CommandContext()
    desk.do(Load(names=("read",), until=TURN))
    before = desk.state
    assert desk.do(EndTurn(turn=turn)).items == ()
    assert desk.state == before


@pytest.mark.parametrize(("turn", "stays"), [(7, True), (8, False)])
def test_turns_that_are_passed_over_were_idle(turn: int, stays: bool) -> None:
    """S6, S7: five idle turns stay, six go, counted or jumped over."""
    desk = desk_of()
    desk.terms = CommandContext(until=LeaseTerm("idle", 5))
    desk.load("read")
    outcome = desk.do(EndTurn(turn=turn))
    assert (desk.state.turn, outcome.turn) == (turn, turn)
    assert desk.out == (["read"] if stays else [])
