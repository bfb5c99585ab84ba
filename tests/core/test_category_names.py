"""``category:NAME`` is a name like any other: for lists, loads, switches, lookups."""

from typing import Any

import pytest
from states import Desk, access_of, member, plugin, statuses, toolkit

from pegboard.core.access.names import lookup
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.catalog import Ref
from pegboard.core.state.sessions import DEFAULT, from_text, to_text
from pegboard.core.state.subjects import reachable_in_category, remove_dead_leases
from pegboard.core.surface.surfaces import suffix

GIT = plugin("git", "log", "push", category="Git")
HUB = plugin("hub", "pulls", category="git")
FILE = plugin("file", "read", category="Filesystem")


def desk_of(**changes: Any) -> Desk:
    profile: dict[str, Any] = {"discoverable": ("*",), **changes}
    return Desk(access_of(GIT, HUB, FILE, **profile))


def test_a_category_is_loaded_and_unloaded_as_one() -> None:
    """S10: in whatever case it is written."""
    desk = desk_of()
    assert [item.message for item in desk.load("category:GIT").items] == [
        "Category 'Git' is loaded; call it from the next step on, not in the same batch."
    ]
    assert desk.out == ["log", "push", "pulls"]
    assert suffix(desk.permissions, desk.state) == "Loaded now: category:Git."
    assert statuses(desk.load("category:git")) == ["already_loaded"]
    assert statuses(desk.unload("push")) == ["unloaded"]
    assert desk.out == ["log", "pulls"]
    assert (statuses(desk.unload("category:Git")), desk.out) == (["unloaded"], [])
    assert statuses(desk.unload("category:Git")) == ["not_loaded"]


def test_a_lease_on_a_category_is_stored_and_heals() -> None:
    """S3: it stands as long as something of the category is permitted."""
    desk = desk_of()
    desk.load("category:Git")
    stored = from_text(to_text(desk.state) or "")
    assert stored == desk.state
    assert remove_dead_leases(desk.permissions, stored) == stored
    assert remove_dead_leases(access_of(GIT, HUB, discoverable=("*",), switches={"git": False}), stored) == stored
    assert (
        remove_dead_leases(access_of(GIT, HUB, discoverable=("*",), switches={"category:git": False}), stored)
        == DEFAULT
    )
    assert remove_dead_leases(access_of(FILE, discoverable=("*",)), stored) == DEFAULT


def test_a_denied_plugin_of_a_category_is_not_loaded_and_an_empty_category_is_not_found() -> None:
    """P9: one of which everything is denied looks like one that does not exist."""
    desk = desk_of(switches={"hub": False})
    desk.load("category:Git")
    assert desk.out == ["log", "push"]
    denied = desk_of(switches={"category:Git": False})
    for name in ("category:Git", "category:None"):
        assert [(item.status, item.message) for item in denied.load(name).items] == [
            ("not_found", f"'{name}' was not found.")
        ]
    assert desk_of().load("category:Gi").items[0].message == "'category:Gi' was not found. Did you mean 'category:Git'?"


def test_what_works_only_where_it_is_shared_does_not_come_with_its_category() -> None:
    """P5: alone in its category it says so."""
    music = [plugin(n, f"{n}_play", category="Music", shared_only=n == "spotify") for n in ("spotify", "radio")]
    narrow = SessionConstraints(worker_scope="user")
    desk = Desk(access_of(*music, discoverable=("*",), circumstances=narrow))
    assert (statuses(desk.load("category:Music")), desk.out) == (["loaded"], ["radio_play"])
    desk = Desk(access_of(music[0], discoverable=("*",), circumstances=narrow))
    assert statuses(desk.load("category:Music")) == ["scope_incompatible"]


def test_a_category_stands_in_every_list_of_tools() -> None:
    """T1: static tools, essentials and members of toolkits."""
    assert desk_of(static=["category:Git"]).out == ["log", "push", "pulls"]
    assert desk_of(essential=["category:git"]).out == ["log", "push", "pulls"]
    kit = toolkit("vc", member("category:Git"))
    desk = Desk(access_of(GIT, HUB, FILE, toolkits=[kit], allowed_toolkits=("vc",)))
    assert (statuses(desk.load("vc")), desk.out) == (["loaded"], ["log", "push", "pulls"])


@pytest.mark.parametrize(
    ("switches", "expected", "effective"),
    [
        ({"category:Git": True}, ["log", "push", "pulls"], {"category:Git": True}),
        ({"category:Git": True, "hub": False}, ["log", "push"], {"category:Git": True, "hub": False}),
        ({"category:Git": False, "hub": True}, [], {"category:Git": False}),
        ({"category:None": True}, [], {"category:None": True}),
    ],
)
def test_a_switch_of_a_category_stands_for_its_plugins(
    switches: dict[str, bool], expected: list[str], effective: dict[str, bool]
) -> None:
    """P2, P1: and off wins."""
    permissions = access_of(GIT, HUB, FILE, switches=switches)
    assert [tool.wire for tool in permissions.permitted] == expected
    assert permissions.switches.effective == effective


def test_the_reason_names_the_category_that_is_switched() -> None:
    """P1: as it is written."""
    permissions = access_of(GIT, discoverable=("*",), switches={"category:Git": False})
    assert permissions.decide(GIT.tools[0]).reasons[0].text == (
        "The category 'category:Git' is switched off for agent 'assistant'."
    )


def test_a_bare_name_never_means_a_category() -> None:
    """toolkit, then plugin, then tool."""
    permissions = desk_of().permissions
    assert lookup(permissions, "Git") == Ref("plugin", "git")
    assert lookup(permissions, "Filesystem") is None
    assert lookup(permissions, "category:filesystem") == Ref("category", "Filesystem")


def test_a_search_for_a_category_finds_what_can_be_reached_of_it() -> None:
    """P3: nothing denied, nothing that the active loadout excludes."""
    permissions: CompiledPermissions = desk_of(switches={"log": False}).permissions
    assert [tool.wire for tool in reachable_in_category(permissions, DEFAULT, "category:git")] == ["push", "pulls"]
    assert reachable_in_category(permissions, DEFAULT, "git") == ()
    assert reachable_in_category(permissions, DEFAULT, "category:none") == ()
