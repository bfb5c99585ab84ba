"""What holds for every world and every agent: no denial grants, and every answer is the same fold."""

from dataclasses import replace
from itertools import product
from typing import Any

from builders import permissions_of, permitted, plugin, tool, toolkit, world
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.selectors import Member
from pegboard.core.model.tools import Plugin
from pegboard.core.state.sessions import State
from pegboard.core.surface.explanations import explain

PLUGINS = ("git", "shell", "web")
FUNCTIONS = ("read", "write", "kill")
NAMES = [*PLUGINS, *(f"{p}__{f}" for p in PLUGINS for f in FUNCTIONS), *FUNCTIONS, "one", "two", "plugin:git"]
KITS = ("one", "two")
FILTERS: list[dict[str, Any]] = [
    {"include_tools": ["read"]},
    {"include_tools": ["read", "kill"]},
    {"include_tools": []},
    {"exclude_tools": ["kill"]},
    {"exclude_tools": ["read", "write"]},
    {"include_tools": ["write", "kill"], "exclude_tools": ["kill"]},
]
entries = st.lists(st.sampled_from([*NAMES[:12], *product(PLUGINS, FILTERS)]), max_size=3)
switches = st.dictionaries(st.sampled_from(NAMES), st.booleans(), max_size=4)
some = st.lists(st.sampled_from(PLUGINS), max_size=2).map(tuple)


def variations(name: str) -> list[Plugin]:
    """Return the plugin with none, one, two or three tools, off and on by default, shared only or not …"""
    return [
        plugin(
            name,
            *(tool(f"{name}/{f}", default_on=f not in off) for f in FUNCTIONS[:count]),
            kind="server",
            default_on=default_on,
            shared_only=shared_only,
            category=category,
        )
        for count, off, default_on, shared_only, category in product(
            (3, 2, 1, 0), ((), ("read",), ("write", "kill")), (True, False), (False, True), ("Git", "Shell", None)
        )
    ]


plugins = st.tuples(*(st.sampled_from(variations(name)) for name in PLUGINS))
loadouts = st.builds(
    Loadout,
    name=st.just("mine"),
    plugins=some,
    categories=st.sampled_from([(), ("git",), ("Shell", "Git")]),
    discoverable=st.sampled_from([(), ("*",), ("g*", "web")]),
    disabled=st.sampled_from([(), *((name,) for name in PLUGINS)]),
)


@st.composite
def accesses(draw: st.DrawFn, *, parents: bool = True) -> CompiledPermissions:
    held = world(*draw(plugins), toolkits=[toolkit(name, *draw(entries)) for name in KITS], loadouts=[draw(loadouts)])

    def one(parent: CompiledPermissions | None = None) -> CompiledPermissions:
        allowed = draw(st.sampled_from([(), ("one",), ("two", "one")]))
        return permissions_of(
            held,
            stored=draw(switches),
            scope=draw(st.sampled_from([None, "user"])),
            parent=parent,
            tools=draw(entries),
            essential=draw(entries),
            allowed=allowed,
            initial=allowed[: draw(st.integers(0, 2))],
            discoverable=draw(st.sampled_from([(), ("*",), ("s*",)])),
            loadout=draw(st.none() | st.just("mine")),
            switches=draw(switches),
        )

    return one(one()) if parents and draw(st.booleans()) else one()


def again(
    held: CompiledPermissions, *, profile: Agent | None = None, held_world: World | None = None, **more: Any
) -> CompiledPermissions:
    return CompiledPermissions(held_world or held.world, profile or held.agent, replace(held.constraints, **more))


@given(accesses(), st.sampled_from(NAMES), st.booleans())
def test_switching_something_off_never_grants(held: CompiledPermissions, name: str, at_run_time: bool) -> None:
    """P1, P2: in the file or at run time, whatever else is said."""
    if at_run_time:
        after = again(held, stored={**held.constraints.stored, name: False})
    else:
        after = again(held, profile=replace(held.agent, switches={**held.agent.switches, name: False}))
    assert permitted(after) <= permitted(held)


@given(accesses(), st.sampled_from(PLUGINS))
def test_disabling_in_a_loadout_never_grants(held: CompiledPermissions, victim: str) -> None:
    """P1, L2."""
    mine = held.world.loadouts["mine"]
    stricter = {**held.world.loadouts, "mine": replace(mine, disabled=(*mine.disabled, victim))}
    after = again(held, held_world=replace(held.world, loadouts=stricter))
    assert permitted(after) <= permitted(held)
    if held.agent.loadout:
        assert not any(tool_id.startswith(f"{victim}/") for tool_id in permitted(after))


def without(items: tuple[Member, ...], function: str) -> tuple[Member, ...]:
    return tuple(replace(item, exclude=item.exclude | {function}) for item in items)


@given(accesses(), st.sampled_from(FUNCTIONS), st.sampled_from(["static", "essential", *KITS]))
def test_excluding_a_function_never_grants(held: CompiledPermissions, function: str, where: str) -> None:
    """P1, P2: wherever a filter stands, except in a toolkit that is off: what it excludes is not off with it."""
    if where in KITS:
        if held.switches.toolkits.get(where) is not None and not held.switches.toolkits[where].on:
            return
        kit = held.world.toolkits[where]
        kits = {**held.world.toolkits, where: replace(kit, members=without(kit.members, function))}
        after = again(held, held_world=replace(held.world, toolkits=kits))
    else:
        changed: dict[str, Any] = {where: without(getattr(held.agent, where), function)}
        profile = replace(held.agent, **changed)
        after = again(held, profile=profile)
    assert permitted(after) <= permitted(held)


@given(accesses())
def test_a_narrower_scope_never_grants(held: CompiledPermissions) -> None:
    """P1, P5."""
    after = again(held, worker_scope="user")
    assert permitted(after) <= permitted(held)
    assert not any(held.world.catalog.plugins[t.plugin].shared_only for t in after.permitted)


@given(accesses(parents=False), accesses(parents=False))
def test_a_parent_never_grants(held: CompiledPermissions, other: CompiledPermissions) -> None:
    """P1, P8: a child has what both have."""
    parent = again(other, held_world=held.world)
    assert permitted(again(held, parent=parent)) == permitted(held) & permitted(parent)


def fresh(held: CompiledPermissions) -> CompiledPermissions:
    parent = held.constraints.parent
    return again(held, parent=None if parent is None else fresh(parent))


@given(accesses())
def test_a_decision_is_the_same_whatever_was_asked_before(held: CompiledPermissions) -> None:
    """P1: total and deterministic; tools that are decided alike share nothing that is not theirs."""
    tools = list(held.world.catalog)
    decisions = [held.decide(item) for item in tools]
    assert decisions == [fresh(held).decide(item) for item in tools]
    for decision in decisions:
        assert decision.reasons
        assert decision.permitted is all(r.code.startswith("granted_") for r in decision.reasons)
    assert tuple(t for t, d in zip(tools, decisions, strict=True) if d.permitted) == held.permitted


@given(accesses(), st.sampled_from(PLUGINS).flatmap(lambda name: st.sampled_from(variations(name))), switches)
def test_what_is_taken_over_from_before_a_change_is_decided_as_if_anew(
    held: CompiledPermissions, changed: Plugin, stored: dict[str, bool]
) -> None:
    """P1, P4: the arrival of a plugin, and a switch, change what they concern and nothing else."""
    everything = list(held.world.catalog.plugins.values())
    for item in held.world.catalog:
        held.decide(item)
    assert [held.grants_unseen(whole) for whole in everything] == [fresh(held).grants_unseen(p) for p in everything]
    assert held.permitted == fresh(held).permitted
    later = replace(held.world, catalog=held.world.catalog.with_plugins([changed]))
    constraints = replace(held.constraints, stored=stored)
    after = CompiledPermissions(later, held.agent, constraints, before=held)
    anew = CompiledPermissions(later, held.agent, constraints)
    assert after.permitted == anew.permitted
    assert [after.decide(item) for item in later.catalog] == [anew.decide(item) for item in later.catalog]
    for whole in later.catalog.plugins.values():
        assert after.may_have_tools_of(whole) is anew.may_have_tools_of(whole)
        assert after.grants_unseen(whole) is anew.grants_unseen(whole)


@given(accesses())
def test_explain_agrees_with_the_decision(held: CompiledPermissions) -> None:
    """F5, P1: for every tool of the catalog; what is loaded is permitted."""
    for item in held.world.catalog:
        told = explain(held, State(), item)
        decision = held.decide(item)
        assert told.permitted is decision.permitted
        assert told.reasons[: len(decision.reasons)] == decision.reasons
        assert told.callable is (told.permitted and told.loaded)
        assert told.visible is told.loaded
        assert told.permitted or not told.loaded


@given(accesses())
def test_every_entry_of_what_is_held_may_be_held(held: CompiledPermissions) -> None:
    """P3: what is listed, hinted and looked up comes from the same fold."""
    for item in held.world.catalog.plugins.values():
        if item.tools:
            assert held.may_have_tools_of(item) is any(held.permits(t) for t in item.tools)
