"""A session's active loadout, and the one that a budget lets in."""

from dataclasses import replace
from typing import Any

from builders import agent, known
from states import Desk, access_of, flat, plugin, statuses, tool, toolkit

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Budget
from pegboard.core.model.loadouts import Loadout
from pegboard.core.state.call_plans import LoadFirst, Refuse, Run, plan_call
from pegboard.core.state.commands import CommandContext, Outcome, SetLoadout
from pegboard.core.state.sessions import DEFAULT, from_text, to_text
from pegboard.core.state.subjects import reachable
from pegboard.core.surface.explanations import explain
from pegboard.core.surface.hints import hints

PLUGINS = (
    plugin("git", "log", category="Git"),
    plugin("shell", "run", category="Shell"),
    plugin("file", "read", "write", category="Filesystem"),
    plugin("web", "fetch", category="Web"),
    plugin("notes", "add"),
    plugin("docker", "ps"),
)
GITS = Loadout(name="Gits", categories=("Git",))


def desk(*, loadouts: tuple[Loadout, ...] = (GITS,), **profile: Any) -> Desk:
    permissions = access_of(*PLUGINS, loadouts=[replace(held, name=held.name) for held in loadouts], **profile)
    folded = {held.name.casefold(): held for held in permissions.world.loadouts.values()}
    return Desk(
        CompiledPermissions(replace(permissions.world, loadouts=folded), permissions.agent, permissions.constraints)
    )


def use(at: Desk, loadout: str | None) -> Outcome:
    return at.do(SetLoadout(loadout=loadout))


def codes(at: Desk, tool_id: str) -> list[str]:
    return [reason.code for reason in explain(at.permissions, at.state, known(at.permissions, tool_id)).reasons]


# -- the active loadout ----------------------------------------------------------------------------


def test_an_active_loadout_narrows_at_once_and_none_narrows_nothing() -> None:
    """L7, JD85: static and loaded tools are filtered, essentials stay; all comes back in its order."""
    at = desk(essential=["notes"], static=["web", "git"], discoverable=("*",))
    at.load("docker", "shell")
    before = at.out
    assert at.state.loadout is None
    outcome = use(at, "Gits")
    assert at.out == ["add", "log"]
    assert (outcome.status, set(outcome.removed)) == ("ok", {"fetch", "run", "ps"})
    assert at.surface.loadout == "Gits"
    back = use(at, None)
    assert (back.status, at.out) == ("ok", before)
    assert {held.wire for held in back.added} == {"fetch", "run", "ps"}


def test_what_an_active_loadout_makes_active_is_loaded_as_far_as_it_is_permitted() -> None:
    """L7, P7, JD85: it never grants; what it loads is behind the start, by the names of its plugins."""
    at = desk(essential=["notes"], static=["web"], allowed_toolkits=("some",), toolkits=[toolkit("some", "file/read")],
              discoverable=("shell",))  # fmt: skip
    assert at.out == ["add", "fetch"]
    outcome = use(at, "minimal")
    assert ([held.wire for held in outcome.added], at.out) == (["read", "run"], ["add", "read", "run"])
    assert statuses(at.unload("shell")) == ["sticky"]
    assert codes(at, "shell/run")[-1] == "loaded_loadout"
    use(at, "full")
    assert at.out == ["add", "fetch", "read", "run"]


def test_what_an_active_loadout_makes_discoverable_can_be_loaded_static_or_not() -> None:
    """L7: `minimal` has `*`: what is static and not active is not loaded, and may be."""
    at = desk(static=["web", "git"], discoverable=("docker",))
    use(at, "minimal")
    assert at.out == []
    assert isinstance(plan_call(at.permissions, at.state, "fetch"), LoadFirst)
    assert statuses(at.load("docker", "web", "file")) == ["loaded", "loaded", "not_found"]
    assert at.out == ["ps", "fetch"]
    use(at, "Gits")
    assert at.out == ["log"]


def test_an_unknown_loadout_is_refused_and_a_case_does_not_count() -> None:
    """L1, L7: the state keeps the name as it is defined; the refusal says what there is."""
    at = desk(static=["git", "web"])
    refused = use(at, "gitz")
    assert (refused.status, refused.items[0].status) == ("refused", "not_found")
    assert refused.message == "There is no loadout 'gitz'. Did you mean 'Gits'?"
    assert at.state == DEFAULT
    use(at, "GITS")
    assert at.state.loadout == "Gits"
    assert statuses(use(at, "gits")) == ["already_loaded"]
    assert [statuses(use(at, None)), statuses(use(at, None))] == [["unloaded"], ["not_loaded"]]


def test_without_a_session_id_no_loadout_can_be_active() -> None:
    """L7, S4: it is state, and there is none."""
    at = desk(static=["git"])
    at.terms = CommandContext(stable=False)
    assert statuses(use(at, "minimal")) == ["error"]
    assert at.state == DEFAULT


def test_an_active_loadout_survives_being_stored() -> None:
    """L7, S4: it is a difference from a new session."""
    at = desk(static=["git"])
    use(at, "gits")
    assert from_text(to_text(at.state) or "") == at.state


def test_a_call_of_what_the_active_loadout_excludes_is_not_found() -> None:
    """L7, F5, JD88: the reason is for explain and the audit; no load comes in between."""
    at = desk(static=["web"], discoverable=("*",), unloaded_call="run")
    use(at, "Gits")
    for name in ("fetch", "ps"):
        plan = plan_call(at.permissions, at.state, name)
        assert isinstance(plan, Refuse)
        assert (plan.status, plan.reason.code) == ("not_found", "narrowed_loadout")
        assert plan.message == f"Tool '{name}' was not found."
        assert plan.reason.text == "Loadout 'Gits', which is active in this session, excludes it."
    assert isinstance(plan_call(at.permissions, at.state, "log"), Run)
    told = explain(at.permissions, at.state, known(at.permissions, "web/fetch"))
    assert (told.permitted, told.loaded, told.visible, told.callable) == (True, False, False, False)
    assert codes(at, "web/fetch") == ["granted_static", "granted_discoverable", "narrowed_loadout"]


def test_what_the_active_loadout_excludes_is_not_found_by_loads_and_unloads() -> None:
    """L7, P9: by tool, plugin or toolkit, and it is not suggested either; what is active is loaded already."""
    at = desk(toolkits=[toolkit("all", "web", "docker")], allowed_toolkits=("all",), discoverable=("*",))
    use(at, "Gits")
    for name in ("web", "web/fetch", "all"):
        for outcome in (at.load(name), at.unload(name)):
            item = outcome.items[0]
            assert (item.status, item.message) == ("not_found", f"'{name}' was not found.")
    assert statuses(at.load("git")) == ["already_loaded"]


def test_nothing_that_is_left_out_is_hinted_searched_or_brought_by_fallback() -> None:
    """L7, P3, S8: the list to search is the same object as long as nothing changes."""
    files = Loadout(name="files", categories=("Shell",), discoverable=("fi*",))
    at = desk(static=["web"], essential=["notes"], discoverable=("*",), loadouts=(files,))
    use(at, "files")
    found = [held.wire for held in reachable(at.permissions, at.state)]
    assert found == ["run", "read", "write", "add"]
    assert reachable(at.permissions, at.state) is reachable(at.permissions, at.state)
    lines = hints(at.permissions, lambda text: len(text.split()), budget=500, loadout=at.state.loadout).lines
    assert [line.partition(":")[0] for line in lines] == ["read", "write"]
    at.fallback()
    assert set(at.out) == {"add", "run", "read", "write"}


def test_what_a_kept_tool_requires_stays_with_it() -> None:
    """L7, T8: whatever plugin it is of."""
    permissions = access_of(
        plugin("git", tool("git", "log", requires=("pager/show",)), category="Git"), plugin("pager", "show", "hide"),
        static=["git", "pager/hide"], discoverable=("pager",), loadouts=[Loadout(name="gits", categories=("Git",))],
    )  # fmt: skip
    at = Desk(permissions)
    use(at, "gits")
    assert at.out == ["log", "show"]


def test_a_loadout_that_is_gone_leaves_only_essentials() -> None:
    """L3, L7: an edit removed it; nothing raises, and nothing opens."""
    at = desk(static=["git"], essential=["notes"])
    at.state = replace(at.state, loadout="gone")
    assert at.out == ["add"]
    assert (
        "is not defined any more"
        in explain(at.permissions, at.state, known(at.permissions, "git/log")).reasons[-1].text
    )


def test_a_loadout_that_disables_itself_away_leaves_only_essentials() -> None:
    """L2, L7: a defined result."""
    none = Loadout(name="none", plugins=("git",), disabled=("git",))
    at = desk(static=["git", "web"], essential=["notes"], loadouts=(none,))
    use(at, "none")
    assert at.out == ["add"]


def test_a_child_has_no_more_than_the_active_loadout_of_its_parent() -> None:
    """P8, L7: essentials of the parent apart; what is not seen yet is judged alike."""
    unseen = replace(plugin("soon"), variants={})
    permissions = access_of(*PLUGINS, unseen, discoverable=("*",), essential=["notes"], loadouts=[GITS])
    world = replace(permissions.world, loadouts={"gits": GITS})
    parent = CompiledPermissions(world, permissions.agent, SessionConstraints(narrowed="gits"))
    child = CompiledPermissions(world, agent(discoverable=["*"]), SessionConstraints(parent=parent))
    assert [held.wire for held in child.permitted] == ["log", "add"]
    assert child.decide(known(child, "web/fetch")).code == "denied_parent"
    assert parent.decide(known(parent, "web/fetch")).code == "narrowed_loadout"
    assert not child.grants_unseen(unseen)
    assert CompiledPermissions(world, agent(discoverable=["*"])).grants_unseen(unseen)


# -- the budget ------------------------------------------------------------------------------------


def tight(tools: int | None = None, *, tokens: int | None = None, shrink: bool = True, **profile: Any) -> Desk:
    at = desk(budget=Budget(tools=tools, tokens=tokens, shrink=shrink), **profile)
    at.terms = CommandContext(price=flat(10))
    at.do(SetLoadout(loadout=None))
    return at


STATIC: dict[str, Any] = {"static": ["git", "shell", "file", "web"], "essential": ["notes"], "discoverable": ("*",)}


def test_the_largest_loadout_that_fits_steps_in() -> None:
    """S9, JD67: measured, not by the size of a window: developer, research, then minimal; `full` narrows nothing."""
    chosen = {room: tight(room, **STATIC).state.shrunk for room in (6, 5, 4)}
    assert chosen == {6: None, 5: "developer", 4: "minimal"}
    assert tight(5, **STATIC).out == ["add", "log", "run", "read", "write"]
    assert tight(tokens=50, **STATIC).state.shrunk == "developer"
    assert tight(tokens=60, **STATIC).state.shrunk is None


def test_the_chain_of_the_agents_own_loadout_comes_before_built_in_ones() -> None:
    """S9: equal ones are taken in this order."""
    mine = (Loadout(name="base", categories=("Git", "Shell")), Loadout(name="mine", parent="base", plugins=("web",)))
    at = tight(3, static=["git", "shell", "web", "docker"], loadout="mine", loadouts=mine)
    assert (at.state.shrunk, at.out) == ("mine", ["log", "run", "fetch"])
    assert tight(2, static=["git", "shell", "web"], loadout="mine", loadouts=mine).state.shrunk == "base"


def test_never_is_everything_taken_away() -> None:
    """S9: where none fits, the nearest steps in; one that leaves nothing does not."""
    at = tight(1, **STATIC)
    assert (at.state.shrunk, at.out) == ("minimal", ["add", "run", "read", "write"])
    others = tight(1, static=["notes", "docker"])
    assert (others.state.shrunk, others.out) == (None, ["add", "ps"])


def test_it_comes_back_when_the_budget_grows() -> None:
    """S9: nothing of it is stored."""
    at = tight(4, **STATIC)
    assert to_text(at.state) is None
    roomy = replace(at.permissions.agent, budget=Budget(tools=6, shrink=True))
    at.permissions = CompiledPermissions(at.permissions.world, roomy)
    use(at, None)
    assert (at.state.shrunk, len(at.out)) == (None, 6)


def test_what_was_loaded_stays_and_the_start_makes_room_for_it() -> None:
    """S9: known fault elsewhere: what was activated past the threshold went again in silence."""
    at = tight(6, **STATIC)
    outcome = at.load("docker")
    assert outcome.status == "ok"
    assert (at.state.shrunk, at.out) == ("developer", ["add", "log", "run", "read", "write", "ps"])
    assert "fetch" in outcome.removed
    at.unload("docker")
    assert (at.state.shrunk, at.out) == (None, ["add", "log", "run", "read", "write", "fetch"])


def test_what_steps_in_can_be_asked_about_and_loaded_around() -> None:
    """S9, F5: the reason names the loadout; the tool may be loaded again, and makes room for itself."""
    at = tight(5, **STATIC)
    assert codes(at, "web/fetch") == ["granted_static", "granted_discoverable", "narrowed_budget"]
    assert isinstance(plan_call(at.permissions, at.state, "fetch"), LoadFirst)
    assert at.load("fetch").status == "ok"
    assert at.out == ["add", "run", "read", "write", "fetch"]
    assert isinstance(plan_call(at.permissions, at.state, "fetch"), Run)


def test_without_shrink_the_refusal_proposes_the_loadout() -> None:
    """S9: and the surface stays unchanged; what cannot fit is refused with shrink too."""
    at = tight(6, shrink=False, **STATIC)
    item = at.load("docker").items[0]
    assert (item.status, item.details["loadout"], at.state.shrunk) == ("over_budget", "developer", None)
    assert item.message.endswith(
        "It would fit with loadout 'developer' for what is loaded from the start (budget: shrink)."
    )
    full = tight(4, **STATIC)
    assert statuses(full.load("docker")) == ["over_budget"]
    assert full.out == ["add", "run", "read", "write"]


def test_an_initial_toolkit_that_the_budget_took_away_can_be_loaded() -> None:
    """S9, S10: it is not out, so it is not loaded already."""
    at = tight(
        2, static=["shell", "git"], toolkits=[toolkit("surf", "web")], allowed_toolkits=("surf",),
        initial_toolkits=("surf",),
    )  # fmt: skip
    assert at.out == ["run", "log"]
    assert statuses(at.load("surf")) == ["loaded"]
    assert at.out == ["run", "fetch"]
