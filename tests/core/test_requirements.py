"""What tools require: names, chains, and what cannot come."""

from dataclasses import replace
from typing import Any

import pytest
from states import Desk, access_of, plugin, statuses, tool, toolkit

from pegboard.core.model.tools import Plugin
from pegboard.core.state.requirements import unresolved_requirements
from pegboard.core.state.sessions import DEFAULT


def test_what_a_tool_requires_comes_with_it_however_long_the_chain() -> None:
    """T8, MI11: requirements of requirements too; the chain may be a circle."""
    long = [plugin(f"p{n}", tool(f"p{n}", f"t{n}", requires=(f"p{n + 1}/t{n + 1}",))) for n in range(1500)]
    desk = Desk(access_of(*long, plugin("p1500", "t1500"), discoverable=("*",)))
    desk.load("t0")
    assert len(desk.out) == 1501
    circle = plugin("git", "a", "b", "c", requires={"a": "git/b", "b": "git/c", "c": "git/a"})
    desk = Desk(access_of(circle, discoverable=("*",)))
    desk.load("b")
    assert desk.out == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("permissions", "needs"),
    [
        (
            access_of(plugin("git", "a", requires={"a": "git/gone"}), discoverable=("*",)),
            "a needs 'git/gone', which is not available to this agent.",
        ),
        (
            access_of(plugin("git", "a", "b", requires={"a": "b"}), discoverable=("*",), switches={"git/b": False}),
            "a needs 'b', which is not available to this agent.",
        ),
        (
            access_of(
                plugin("git", "a", "b", "c", requires={"a": "git/b", "b": "git/c"}), discoverable=("*",),
                switches={"git/c": False},
            ),
            "b needs 'git/c', which is not available to this agent.",
        ),
        (
            access_of(
                plugin("git", "a", requires={"a": "auth/b"}), plugin("auth", "b").with_fault("", "down"),
                discoverable=("*",),
            ),
            "a needs 'b', which is not available now: down",
        ),
        (
            access_of(
                plugin("git", "a", requires={"a": "run"}), *(plugin(name, "run", prefix=name) for name in "xy"),
                discoverable=("*",),
            ),
            "a needs 'run', which may be 'x__run' or 'y__run'.",
        ),
    ],
    ids=["gone", "denied", "denied further on", "its plugin is down", "ambiguous"],
)  # fmt: skip
def test_a_tool_whose_requirement_cannot_come_is_unavailable(permissions: Any, needs: str) -> None:
    """T8, P6: it would not work, so the load names what is missing and leaves the state."""
    desk = Desk(permissions)
    item = desk.load("a").items[0]
    assert (item.status, desk.state) == ("tool_unavailable", DEFAULT)
    assert item.message == f"Tool 'a' is not available now: {needs.rstrip('.')}."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fetch", ["a", "fetch"]),
        ("web/fetch", ["a", "fetch"]),
        ("tool:fetch", ["a", "fetch"]),
        ("b", ["a", "b"]),
        ("web", ["a", "fetch", "save"]),
        ("plugin:web", ["a", "fetch", "save"]),
        ("toolkit:net", ["a", "save"]),
        ("net", ["a", "save"]),
        ("category:Web", ["a", "fetch", "save"]),
    ],
)
def test_a_requirement_is_named_as_every_lookup_takes_it(name: str, expected: list[str]) -> None:
    """T8: a sibling first, then toolkit, plugin or tool of the whole catalog."""
    needy = plugin("git", "a", "b", requires={"a": name})
    web = plugin("web", "fetch", "save", category="Web")
    other = plugin("other", "b", prefix="other")
    kit = toolkit("net", "web/save")
    desk = Desk(access_of(needy, web, other, toolkits=[kit], allowed_toolkits=("net",), discoverable=("*",)))
    assert statuses(desk.load("git/a")) == ["loaded"]
    assert desk.out == expected
    desk.unload("git/a")
    assert desk.out == []


def test_requirements_that_nothing_can_meet_are_found_whoever_asks() -> None:
    """T8: for `check`; what a plugin may have that was not asked yet is no mistake."""
    needy = plugin(
        "git",
        *(tool("git", f"t{n}", requires=(name,)) for n, name in enumerate(
            ["t0", "run", "x/run", "gone", "plugin:gone", "x/gone", "net", "category:Web", "category:None", "late/soon"]
        )),
    )  # fmt: skip
    world = access_of(
        needy, *(plugin(name, "run", prefix=name, category="Web") for name in "xy"), toolkits=[toolkit("net", "x")]
    ).world  # fmt: skip
    nothing = "no toolkit, plugin or tool is known under this name"
    assert [(tool.name, name, why) for tool, name, why in unresolved_requirements(world)] == [
        ("t1", "run", "it may be 'x/run' or 'y/run'"),
        *(("t3", "gone", nothing), ("t4", "plugin:gone", nothing), ("t5", "x/gone", nothing)),
        *(("t8", "category:None", nothing), ("t9", "late/soon", nothing)),
    ]
    later = replace(world, catalog=world.catalog.with_plugins([Plugin(name="late", kind="server")]))
    assert [name for _, name, _ in unresolved_requirements(later)] == ["run", "plugin:gone", "x/gone", "category:None"]


def test_a_requirement_leaves_with_the_last_tool_that_needs_it() -> None:
    """T8: counted."""
    needy = plugin("git", "push", "pull", "auth", requires={"push": "git/auth", "pull": "git/auth"})
    desk = Desk(access_of(needy, discoverable=("*",)))
    desk.load("push", "pull")
    assert desk.out == ["push", "auth", "pull"]
    desk.unload("push")
    assert desk.out == ["pull", "auth"]
    assert desk.unload("pull").removed == ("pull", "auth")


@pytest.mark.parametrize("name", ["auth", "keys"])
def test_a_required_tool_that_is_loaded_by_its_name_stays_when_what_required_it_goes(name: str) -> None:
    """S5, T8: the load is answered as one that brings nothing; the tool has the reason `loaded` too, however often."""
    git, keys = plugin("git", "push", requires={"push": "keys/auth"}), plugin("keys", "auth")
    desk = Desk(access_of(git, keys, discoverable=("*",)))
    desk.load("push")
    assert statuses(desk.load(name)) == statuses(desk.load(name)) == ["already_loaded"]
    assert desk.unload("push").removed == ("push",)
    assert desk.out == ["auth"]
    assert desk.unload(name).removed == ("auth",)
