"""What goes to the model, in which order."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, tool, toolkit

from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import UNLOAD, Lease, LeaseTerm
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.tools import Plugin, counted_json
from pegboard.core.state.active_tools import loadable
from pegboard.core.state.call_plans import Run, plan_call
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import remove_dead_leases
from pegboard.core.surface.explanations import explain
from pegboard.core.surface.surfaces import Costs, Surface, resolve

META = (tool("pegboard", "search_tools", wire="search_tools"), tool("pegboard", "load_tools", wire="load_tools"))
ALL = tuple(plugin(name, f"{name}_tool") for name in ("zeta", "file", "notes", "arxiv", "on", "git", "mid", "late"))
CODE = [Loadout(name="code", plugins=("mid", "git"))]


def full() -> Desk:
    permissions = access_of(
        *ALL, static=["zeta", "file"], essential=["notes"], toolkits=[toolkit("research", "arxiv")],
        allowed_toolkits=("research",), initial_toolkits=("research",), switches={"on": True}, loadout="code",
        loadouts=CODE, discoverable=("late",),
    )  # fmt: skip
    return Desk(permissions)


def test_the_order_is_fixed() -> None:
    """F1: essentials, static as declared, meta-tools, initials, active of the loadout by name, then the loaded."""
    desk = full()
    desk.load("late")
    surface = resolve(desk.permissions, desk.state, session="s", meta=META)
    assert surface.names == (
        "notes_tool", "zeta_tool", "file_tool", "search_tools", "load_tools", "arxiv_tool", "on_tool", "git_tool",
        "mid_tool", "late_tool",
    )  # fmt: skip
    because = [out.because for out in surface.tools]
    assert [reason.name for (reason,) in because] == [
        "ESSENTIAL", "STATIC", "STATIC", "META", "META", "INITIAL",
        "SWITCH", "LOADOUT", "LOADOUT", "LOADED",
    ]  # fmt: skip
    assert (surface.agent, surface.session, surface.turn) == ("assistant", "s", 1)


def test_what_is_required_stands_behind_its_group_and_moves_no_declared_tool() -> None:
    """F1, T8: static tools keep their declared order; what only a requirement brings comes after them."""
    needy = plugin("git", "push", "log", "auth", "extra", requires={"push": "git/log", "log": "git/auth"})
    permissions = access_of(needy, static=["push", "extra", "log"], discoverable=("*",))
    assert Desk(permissions).out == ["push", "extra", "log", "auth"]
    essential = access_of(needy, essential=["push"], static=["extra", "log"], discoverable=("*",))
    assert Desk(essential).out == ["push", "extra", "log", "auth"]


def test_loads_follow_each_other_in_the_order_of_loading() -> None:
    """F1, MR27: not in that of the catalog; an upgrade moves nothing."""
    desk = Desk(access_of(*ALL, discoverable=("*",)))
    desk.load("late", "arxiv", "zeta", until=LeaseTerm("idle", 5))
    desk.load("late", "arxiv", until=UNLOAD)
    assert desk.out == ["late_tool", "arxiv_tool", "zeta_tool"]
    desk.unload("late")
    desk.load("late")
    assert desk.out == ["arxiv_tool", "zeta_tool", "late_tool"]


def wire(surface: Surface) -> bytes:
    return json.dumps([json.loads(counted_json(out.tool)) for out in surface.tools]).encode()


@given(names=st.lists(st.sampled_from([p.name for p in ALL]), max_size=6))
def test_surfaces_of_equal_state_are_equal_byte_for_byte(names: list[str]) -> None:
    """F1: in another process too, since nothing depends on the order of a set."""
    first, second = full(), full()
    first.load(*names)
    second.load(*names)
    assert resolve(first.permissions, first.state, meta=META) == resolve(second.permissions, second.state, meta=META)
    assert wire(first.surface) == wire(second.surface)


SUBJECTS = st.one_of(
    st.builds(Ref, st.sampled_from(["toolkit", "plugin", "tool", "category"]), st.text(max_size=6)),
    st.sampled_from(
        [Ref("toolkit", "research"), Ref("plugin", "late"), Ref("tool", "git/git_tool"), Ref("plugin", "")]
    ),
)
STATES = st.builds(
    State,
    turn=st.integers(-1, 9),
    loadout=st.none() | st.sampled_from(["code", "minimal", "nowhere", ""]),
    leases=st.lists(
        st.builds(Lease, subject=SUBJECTS, until=st.just(UNLOAD), from_turn=st.integers(0, 9)), max_size=5
    ).map(tuple),
)


@given(state=STATES)
def test_resolve_answers_for_any_state_at_all(state: State) -> None:
    """S3, L3: total; healing changes nothing of what is loaded."""
    permissions = full().permissions
    assert resolve(permissions, state).tools == resolve(permissions, remove_dead_leases(permissions, state)).tools


def test_what_is_unavailable_is_loaded_and_not_on_the_surface() -> None:
    """P6: loaded and visible are two things."""
    permissions = access_of(plugin("git", "log").with_fault("", "It is down."), static=["git"])
    assert Desk(permissions).out == []
    (log,) = permissions.world.catalog
    said = explain(permissions, State(), log)
    assert (said.permitted, said.loaded, said.visible, said.callable) == (True, True, False, False)
    assert [reason.code for reason in said.reasons] == ["granted_static", "loaded_static", "unavailable"]


def test_a_sessions_loadout_narrows_at_once_and_keeps_essentials_and_meta_tools() -> None:
    """L7: static tools are filtered too; None narrows nothing."""
    desk = full()
    narrowed = resolve(desk.permissions, State(loadout="code"), meta=META)
    assert narrowed.names == ("notes_tool", "search_tools", "load_tools", "git_tool", "mid_tool")
    assert resolve(desk.permissions, State(loadout="nowhere"), meta=META).names == (
        "notes_tool", "search_tools", "load_tools",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "needed"),
    [
        ({}, False),
        ({"static": ["git"]}, False),
        ({"discoverable": ("*",)}, True),
        ({"discoverable": ("git",), "static": ["git"]}, False),
        ({"allowed_toolkits": ("review",)}, True),
        ({"allowed_toolkits": ("review",), "initial_toolkits": ("review",)}, False),
        ({"allowed_toolkits": ("review",), "switches": {"git": False}}, False),
    ],
)
def test_meta_tools_come_where_something_may_be_loaded(profile: Any, needed: bool) -> None:
    """T4: by themselves, and only there."""
    permissions = access_of(plugin("git", "log"), toolkits=[toolkit("review", "git")], **profile)
    assert loadable(permissions) is needed


def test_a_plugin_that_has_not_been_asked_yet_is_something_to_load() -> None:
    """T3, T4: what it brings is not known, so it counts."""
    unseen = Plugin(name="git", kind="server")
    assert loadable(access_of(unseen, discoverable=("git",)))
    assert not loadable(access_of(unseen))
    assert loadable(access_of(unseen, toolkits=[toolkit("review", "git")], allowed_toolkits=("review",)))


def test_explain_names_the_lease_and_what_needs_a_tool() -> None:
    """F5: the chain of reasons, each with a code."""
    needy = plugin("git", "push", "auth", "idle", requires={"push": "git/auth"})
    desk = Desk(access_of(needy, discoverable=("*",)))
    desk.load("push")
    push, auth, idle = desk.permissions.world.catalog

    def said(of: Any) -> list[tuple[str, str]]:
        return [(r.code, r.text) for r in explain(desk.permissions, desk.state, of).reasons[1:]]

    assert said(push) == [
        ("loaded_loaded", "It is loaded because tool 'git/push' was loaded in turn 1, until it is unloaded."),
    ]  # fmt: skip
    assert said(auth) == [("loaded_required", "It is loaded because push requires it.")]
    runs = "It is not loaded; a call loads it, and runs where it comes through call_tool and is safe."
    assert said(idle) == [("not_loaded", runs)]


@pytest.mark.parametrize("index", range(8))
@given(state=STATES)
def test_explain_agrees_with_resolve(index: int, state: State) -> None:
    """F5, D2: visible is what the surface shows, loaded what stands on it now or from the next request on."""
    permissions = full().permissions
    asked = list(permissions.world.catalog)[index]
    shown = resolve(permissions, state).find(asked.wire) is not None
    said = explain(permissions, state, asked)
    pending = any(reason.code == "next_request" for reason in said.reasons)
    assert (said.visible, said.loaded) == (shown, shown or pending)
    assert said.callable == (said.permitted and shown)
    assert isinstance(plan_call(permissions, state, asked.wire), Run) == said.callable


def test_costs_need_a_counter() -> None:
    """F4: a surface that was resolved alone says so."""
    surface = full().surface
    with pytest.raises(ValueError, match="without a token counter"):
        _ = surface.tokens
    costs = Costs(tools=3, text=1, total=4, catalog=10, saved=6)
    assert Surface(agent="a", session=None, turn=1, tools=(), count=lambda: costs).tokens is costs


def test_what_is_counted_is_the_schema_as_a_provider_takes_it() -> None:
    """F4: name, description and input schema, compact."""
    assert counted_json(tool("git", "log", wire="git__log", description="Zeigt é.")) == (
        '{"name":"git__log","description":"Zeigt é.","inputSchema":{"type":"object","properties":{}}}'
    )
