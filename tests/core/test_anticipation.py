"""What is loaded ahead of being asked for, and what gives way to what."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, flat, plugin, statuses, tool, toolkit

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.anticipation.anticipated_leases import Anticipation, newly_anticipated
from pegboard.core.anticipation.by_message import with_anticipated
from pegboard.core.model.agents import Anticipate, Budget
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import UNLOAD, LeaseReason
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.commands import CommandContext, EndTurn, Fallback, Load, Unload, Use
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.state.shrinking import excess
from pegboard.core.surface.explanations import explain
from pegboard.core.surface.policy import apply_with_policy
from pegboard.core.surface.surfaces import resolve

EACH = 100
PRICED = CommandContext(price=flat(EACH))
GIT = plugin("git", "log", "diff", "blame", "push")
DOCKER = plugin("docker", "ps", "run", "stop")
NOTES = plugin("notes", "add", "find")
PLUGINS = (GIT, DOCKER, NOTES)
NAMES = ("git", "docker", "notes", "log", "ps", "run", "devops", "add")


def anticipation(carried: int = 10_000, limits: Anticipate | None = None) -> Anticipation:
    return Anticipation(limits=limits or Anticipate(), carried=carried, whole=carried, until=UNLOAD, price=flat(EACH))


def permissions_of(*plugins: Plugin, **profile: Any) -> CompiledPermissions:
    kits = [toolkit("devops", "docker", "log")]
    profile = {"allowed_toolkits": ("devops",), "discoverable": ("*",), **profile}
    return access_of(*(plugins or PLUGINS), toolkits=kits, **profile)


def hits(permissions: CompiledPermissions, *names: str, falls: float = 0.9) -> list[tuple[Tool, float]]:
    """Return tools as a ranker found them, each with a share of the score of the one before."""
    catalog = permissions.world.catalog
    found = (catalog.find_tool(name) for name in names)
    return [(one, falls**place) for place, one in enumerate(found) if one is not None]


def loaded_by(
    permissions: CompiledPermissions,
    found: Sequence[tuple[Tool, float]],
    state: State = DEFAULT,
    *,
    limits: Anticipate | None = None,
    carried: int = 10_000,
    terms: CommandContext = PRICED,
) -> State:
    return with_anticipated(permissions, state, found, anticipation(carried, limits), terms)[0]


def names(permissions: CompiledPermissions, state: State) -> list[str]:
    return list(resolve(permissions, state).names)


# -- what a message brings -----------------------------------------------------------------------


def test_the_plugin_that_is_clearly_meant_comes_whole() -> None:
    """S5: a clear hit brings the siblings that are used together, where carrying them is cheap."""
    permissions = permissions_of()
    state = loaded_by(permissions, hits(permissions, "log", "diff", "ps"))
    assert names(permissions, state) == ["log", "diff", "blame", "push"]
    assert [str(lease.subject) for lease in state.leases] == ["plugin:git"]


def test_of_a_plugin_that_is_dear_only_the_best_few_come() -> None:
    """S5: what carrying a plugin costs is weighed against the calls that it saves."""
    permissions = permissions_of()
    state = loaded_by(permissions, hits(permissions, "log", "diff", "ps"), carried=250)
    assert names(permissions, state) == ["log", "diff"]


def test_where_no_plugin_is_clear_the_best_few_tools_come_within_their_bounds() -> None:
    """S5: `anticipate` bounds the tools and the tokens of one turn."""
    permissions = permissions_of()
    found = hits(permissions, "log", "ps", "add", "diff", "run", "find")
    assert names(permissions, loaded_by(permissions, found)) == ["log", "ps", "add", "diff", "run"]
    three = Anticipate(tools=3, tokens=1000)
    assert names(permissions, loaded_by(permissions, found, limits=three)) == ["log", "ps", "add"]
    small = Anticipate(tools=5, tokens=2 * EACH)
    assert names(permissions, loaded_by(permissions, found, limits=small)) == ["log", "ps"]


def test_a_message_that_goes_on_with_the_work_in_hand_brings_nothing_else() -> None:
    """S5: where a plugin in use is clearly meant, nothing speaks for another one."""
    permissions = permissions_of()
    desk = Desk(permissions)
    desk.load("git")
    desk.use("git/log")
    found = hits(permissions, "log", "ps", "diff")
    assert names(permissions, loaded_by(permissions, found, desk.state)) == ["log", "diff", "blame", "push"]


def test_where_the_work_in_hand_is_not_clearly_meant_the_best_few_of_another_plugin_come() -> None:
    """S5: a message may go on with the work in hand and need something else."""
    permissions = permissions_of()
    desk = Desk(permissions)
    desk.load("git")
    desk.use("git/log")
    found = hits(permissions, "log", "ps")
    assert names(permissions, loaded_by(permissions, found, desk.state)) == ["log", "diff", "blame", "push", "ps"]
    far = hits(permissions, "log", "ps", falls=0.6)
    assert names(permissions, loaded_by(permissions, far, desk.state)) == ["log", "diff", "blame", "push"]


def test_the_siblings_of_what_was_used_join_behind_it() -> None:
    """S5, F1: nothing before an addition moves."""
    permissions = permissions_of()
    desk = Desk(permissions)
    desk.load("diff", "ps")
    desk.use("git/diff")
    after = loaded_by(permissions, (), desk.state)
    assert names(permissions, after) == ["diff", "ps", "log", "blame", "push"]
    assert [tool.name for tool in newly_anticipated(permissions, after)] == ["log", "blame", "push"]


def test_the_siblings_of_what_a_model_loads_come_with_it() -> None:
    """S5: a load brings what is used together with it, in the same answer."""
    permissions = permissions_of()
    state, outcome = apply_with_policy(
        permissions, DEFAULT, Load(names=("log",), siblings=True), PRICED, anticipation()
    )
    assert [tool.name for tool in outcome.added] == ["log", "diff", "blame", "push"]
    assert [str(ref) for ref in outcome.anticipated] == ["plugin:git"]
    assert resolve(permissions, state).names == outcome.loaded


def test_what_was_unloaded_does_not_come_back_by_itself() -> None:
    """S10: an unload stands until someone loads again."""
    permissions = permissions_of()
    desk = Desk(permissions, state=loaded_by(permissions, hits(permissions, "log", "diff")))
    desk.use("git/log")
    assert statuses(desk.unload("push")) == ["unloaded"]
    assert "push" not in names(permissions, loaded_by(permissions, hits(permissions, "push", "log"), desk.state))


def test_what_cannot_run_or_is_not_known_is_not_loaded_ahead() -> None:
    """S5, P6: no server is started and no plugin constructed for a guess."""
    broken = plugin("git", "log", tool("git", "diff", unavailable="git is missing"))
    permissions = permissions_of(broken, DOCKER, NOTES, Plugin(name="far", kind="server"))
    assert names(permissions, loaded_by(permissions, hits(permissions, "diff", "log"))) == ["log"]
    catalog = permissions.world.catalog
    assert not catalog.plugins["far"].tools


def test_an_explanation_says_that_nobody_asked_for_it() -> None:
    """F5: the reason stands among the others."""
    permissions = permissions_of()
    state = loaded_by(permissions, hits(permissions, "log", "diff"))
    log = permissions.world.catalog.find_tool("log")
    assert log is not None
    reasons = [reason for reason in explain(permissions, state, log).reasons if reason.code == "loaded_anticipated"]
    assert [reason.text for reason in reasons] == [
        "It is loaded because plugin 'git' was loaded ahead of being asked for in turn 1, until it is unloaded."
    ]


def test_a_real_load_makes_it_loaded_for_good() -> None:
    """S5: anticipated is the weakest reason."""
    permissions = permissions_of()
    desk = Desk(permissions, state=loaded_by(permissions, hits(permissions, "log", "ps", "add")))
    assert statuses(desk.load("log")) == ["already_loaded"]
    assert {str(lease.subject): lease.because for lease in desk.state.leases}["tool:git/log"] is LeaseReason.LOADED
    desk.load("devops")
    assert desk.surface.find("log") is not None
    assert not any(lease.subject == Ref("tool", "git/log") for lease in desk.state.anticipated)


# -- what gives way --------------------------------------------------------------------------------


def test_a_load_that_needs_room_ends_what_nobody_asked_for() -> None:
    """S9: anticipated leases give way first, the one that was used longest ago before the others."""
    permissions = permissions_of(budget=Budget(tools=4))
    desk = Desk(permissions, state=loaded_by(permissions, hits(permissions, "log", "add", "ps")), terms=PRICED)
    desk.end_turns()
    desk.use("notes/add")
    outcome = desk.load("run", "stop")
    assert statuses(outcome) == ["loaded", "loaded"]
    assert [str(ref) for ref in outcome.gave_way] == ["tool:git/log"]
    assert desk.out == ["add", "ps", "run", "stop"]


def test_what_conflicts_with_a_load_gives_way_to_it() -> None:
    """S9, T5: a guess under other settings never is in the way."""
    shell = plugin("shell", "run", "list", parameters={"base": "string"})
    kit = toolkit("safe", ("shell", {"base": "/srv"}))
    permissions = access_of(shell, toolkits=[kit], allowed_toolkits=("safe",), discoverable=("shell",))
    lone = Desk(permissions)
    plain = statuses(lone.load("safe"))
    desk = Desk(permissions, state=loaded_by(permissions, hits(permissions, "run", "list")))
    assert (plain, statuses(desk.load("safe"))) == (["loaded"], ["loaded"])


@pytest.mark.parametrize("bound", [Budget(tools=3), Budget(tokens=3 * EACH)])
def test_a_guess_never_ends_another_and_never_exceeds_the_budget(bound: Budget) -> None:
    """S9: there is room, or nothing is loaded ahead."""
    permissions = permissions_of(budget=bound)
    state = loaded_by(permissions, hits(permissions, "log", "ps", "add", "run", "diff", falls=0.99))
    assert names(permissions, state) == ["log", "ps", "add"]
    assert loaded_by(permissions, hits(permissions, "run", "log"), state) == state


# -- what no guess can break -----------------------------------------------------------------------

COMMANDS = st.one_of(
    st.builds(Load, names=st.tuples(st.sampled_from(NAMES))),
    st.builds(Unload, names=st.tuples(st.sampled_from(NAMES))),
    st.sampled_from([tool.id for one in PLUGINS for tool in one.tools]).map(lambda tool_id: Use(tool=tool_id)),
    st.just(EndTurn()),
    st.just(Fallback()),
)
MESSAGES = st.lists(st.sampled_from([tool.wire for one in PLUGINS for tool in one.tools]), unique=True, max_size=6)
BUDGETS = st.sampled_from([Budget(), Budget(tools=3), Budget(tokens=4 * EACH), Budget(tools=6, tokens=5 * EACH)])
CARRIED = st.sampled_from([0, 2 * EACH, 4 * EACH, 100 * EACH])


@given(budget=BUDGETS, carried=CARRIED, messages=st.lists(MESSAGES, max_size=4), name=st.sampled_from(NAMES))
def test_a_guess_changes_nothing_that_a_load_can_do(
    budget: Budget, carried: int, messages: list[list[str]], name: str
) -> None:
    """S9: what could be loaded without guesses can be loaded with them, within the same budget."""
    permissions = permissions_of(budget=budget)
    state = DEFAULT
    for message in messages:
        state = loaded_by(permissions, hits(permissions, *message), state, carried=carried)
    (plain,) = apply_with_policy(permissions, DEFAULT, Load(names=(name,)), PRICED)[1].items
    after, outcome = apply_with_policy(permissions, state, Load(names=(name,)), PRICED)
    assert (outcome.items[0].status in ("loaded", "already_loaded")) == (plain.status == "loaded")
    assert not excess(permissions, after, PRICED)


@given(
    budget=BUDGETS,
    carried=CARRIED,
    steps=st.lists(st.one_of(COMMANDS, MESSAGES), max_size=8),
    message=MESSAGES,
)
def test_a_guess_joins_at_the_end_within_its_bounds_and_is_made_once(
    budget: Budget, carried: int, steps: list[object], message: list[str]
) -> None:
    """S5, S9, F1: nothing before it moves, nothing goes, the budget is kept, and the same message brings no more."""
    permissions = permissions_of(budget=budget)
    state = DEFAULT
    for step in steps:
        if isinstance(step, list):
            state = loaded_by(permissions, hits(permissions, *step), state, carried=carried)
        else:
            state, _ = apply_with_policy(permissions, state, step, PRICED)  # type: ignore[arg-type]
    before = names(permissions, state)
    found = hits(permissions, *message)
    after = loaded_by(permissions, found, state, carried=carried)
    assert names(permissions, after)[: len(before)] == before
    assert after == state or not excess(permissions, after, PRICED)
    assert loaded_by(permissions, found, after, carried=carried) == after
    assert {lease.because for lease in after.leases[len(state.leases) :]} <= {LeaseReason.ANTICIPATED}
