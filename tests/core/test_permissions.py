"""May it? Grants, denials, switches."""

from functools import cache
from typing import Any

import pytest
from builders import agent, codes, known, permissions_of, permitted, plugin, toolkit, world

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import World
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.active_tools import loadable

# -- what grants -----------------------------------------------------------------------------------


def test_what_nothing_grants_is_not_reachable() -> None:
    """P7: an agent with an empty profile has nothing."""
    held = permissions_of(world(plugin("git", "log"), plugin("shell", "run")))
    assert permitted(held) == set()
    assert codes(held, "git/log") == ["not_granted"]
    assert loadable(held) is False


WORLD = world(
    plugin("git", "log", "push", kind="server", category="Git"),
    plugin("shell", "run", category="Shell"),
    plugin("docker", "ps"),
    plugin("web", "get"),
    toolkits=[toolkit("dev", "git", "shell")],
    loadouts=[Loadout(name="mine", categories=("git",), discoverable=("dock*",), disabled=("web",))],
    sub_apps={"billing": ["web"]},
)


@pytest.mark.parametrize(
    ("profile", "expected", "code"),
    [
        ({"tools": ["git"]}, {"git/log", "git/push"}, "granted_static"),
        ({"tools": ["git__push"]}, {"git/push"}, "granted_static"),
        ({"essential": ["shell"]}, {"shell/run"}, "granted_essential"),
        ({"allowed": ["dev"]}, {"git/log", "git/push", "shell/run"}, "granted_toolkit"),
        ({"discoverable": ["dock*"]}, {"docker/ps"}, "granted_discoverable"),
        ({"discoverable": ["GIT"]}, {"git/log", "git/push"}, "granted_discoverable"),
        ({"switches": {"dev": True}}, {"git/log", "git/push", "shell/run"}, "granted_switch"),
        ({"switches": {"docker": True}}, {"docker/ps"}, "granted_switch"),
        ({"switches": {"git__log": True}}, {"git/log"}, "granted_switch"),
        ({"switches": {"tool:log": True}}, {"git/log"}, "granted_switch"),
        ({"stored": {"docker": True}}, {"docker/ps"}, "granted_switch"),
        ({"sub_app": "billing"}, {"web/get"}, "granted_static"),
    ],
)
def test_each_grant_reaches_what_it_names_and_nothing_else(
    profile: dict[str, Any], expected: set[str], code: str
) -> None:
    """P1, P2, P7, T9: the reason carries a stable code."""
    held = permissions_of(WORLD, **profile)
    assert permitted(held) == expected
    for tool_id in expected:
        assert codes(held, tool_id) == [code]


def test_a_star_opens_everything() -> None:
    """P7: `*` opens."""
    assert permitted(permissions_of(WORLD, discoverable=["*"])) == {t.id for t in WORLD.catalog}


def test_a_loadout_grants_what_is_active_and_what_is_discoverable() -> None:
    """P2, L7: an agent's loadout grants; what it disables stays out."""
    held = permissions_of(WORLD, loadout="MINE")
    assert permitted(held) == {"git/log", "git/push", "docker/ps"}
    assert codes(held, "git/log") == ["granted_loadout"]
    assert codes(held, "docker/ps") == ["granted_discoverable"]
    assert codes(held, "web/get") == ["denied_loadout", "not_granted"]


def test_an_unknown_loadout_grants_nothing_and_does_not_raise() -> None:
    """L3: it resolves to nothing."""
    assert permitted(permissions_of(WORLD, loadout="gone")) == set()


def test_initial_toolkits_grant_by_being_allowed() -> None:
    """T2, P2: initial is within allowed; alone it grants nothing."""
    assert permitted(permissions_of(WORLD, initial=["dev"])) == set()


def test_every_grant_is_told_the_strongest_first() -> None:
    """P1, F5: a decision carries the chain of its reasons."""
    held = permissions_of(
        WORLD, tools=["git"], essential=["git"], allowed=["dev"], discoverable=["*"], switches={"git": True}
    )
    assert codes(held, "git/log") == [
        "granted_essential", "granted_static", "granted_toolkit", "granted_discoverable", "granted_switch",
    ]  # fmt: skip


# -- what denies -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "code"),
    [
        ({"loadout": "strict"}, "denied_loadout"),
        ({"switches": {"git": False}}, "denied_switch"),
        ({"switches": {"log": False}}, "denied_switch"),
        ({"switches": {"dev": False}}, "denied_switch"),
        ({"stored": {"git": False}, "switches": {"git": True}}, "denied_switch"),
        ({"scope": "user"}, "denied_scope"),
        ({"worker_scope": "user_agent"}, "denied_scope"),
        ({"private_per": "user"}, "denied_scope"),
    ],
)
def test_a_denial_beats_every_grant(profile: dict[str, Any], code: str) -> None:
    """P1, P2: deny beats grant across all layers, and is the first reason."""
    held = world(
        plugin("git", "log", shared_only=True),
        toolkits=[toolkit("dev", "git"), toolkit("other", "git")],
        loadouts=[Loadout(name="strict", plugins=("git",), disabled=("git",))],
    )
    granted: dict[str, Any] = {"tools": ["git"], "essential": ["git"], "allowed": ["other"], "discoverable": ["*"]}
    assert permitted(permissions_of(held, **granted)) == {"git/log"}
    denied = permissions_of(held, **granted, **profile)
    assert permitted(denied) == set()
    assert codes(denied, "git/log")[0] == code


def test_every_denial_is_told() -> None:
    """F5: who undoes one denial sees the next."""
    held = world(plugin("spotify", "play", shared_only=True), loadouts=[Loadout(name="strict", disabled=("spotify",))])
    denied = permissions_of(held, tools=["spotify"], loadout="strict", scope="user", switches={"spotify": False})
    assert codes(denied, "spotify/play") == ["denied_switch", "denied_loadout", "denied_scope", "granted_static"]


def test_a_session_may_narrow_the_scope_and_never_widens_it() -> None:
    """P5: `board.session(worker_scope=…)`."""
    held = world(plugin("spotify", "play", shared_only=True))
    assert permitted(permissions_of(held, tools=["spotify"], scope="shared")) == {"spotify/play"}
    assert permitted(permissions_of(held, tools=["spotify"], scope="shared", worker_scope="user")) == set()
    assert permissions_of(held, scope="user_agent").scope.label == "worker_scope=user_agent"
    assert permissions_of(held, private_per="user").scope.label == "private.per=user"
    assert permissions_of(held).scope.label == "worker_scope=shared"


def test_a_filter_denies_where_every_entry_leaves_the_function_out() -> None:
    """P2: a pattern does not bring back what `exclude_tools` took away."""
    held = world(plugin("shell", "run", "kill"), toolkits=[toolkit("all", "shell")])
    shell = ("shell", {"exclude_tools": ["kill"]})
    denied = permissions_of(held, tools=[shell], discoverable=["*"])
    assert permitted(denied) == {"shell/run"}
    assert codes(denied, "shell/kill") == ["denied_filter", "granted_discoverable"]
    assert permitted(permissions_of(held, tools=[shell], allowed=["all"])) == {"shell/run", "shell/kill"}


def test_two_filters_add_up() -> None:
    """P2: each entry says what it brings."""
    held = world(plugin("shell", "run", "kill", "ls"))
    both = permissions_of(
        held, tools=[("shell", {"include_tools": ["run"]})], essential=[("shell", {"include_tools": ["ls"]})]
    )
    assert permitted(both) == {"shell/run", "shell/ls"}


def test_a_revoked_permission_binds_the_next_decision() -> None:
    """P4: the same agent, compiled with the stored switch."""
    assert "git/log" in permitted(permissions_of(WORLD, tools=["git"]))
    revoked = permissions_of(WORLD, tools=["git"], stored={"git": False})
    assert permitted(revoked) == set()
    reason = revoked.decide(known(WORLD, "git/log")).reasons[0]
    assert reason.text == "The plugin 'git' is switched off at run time for agent 'ada'."
    assert reason.where is None


# -- children --------------------------------------------------------------------------------------


def test_a_child_has_at_most_what_its_parent_has() -> None:
    """P8: whatever its own profile grants."""
    parent = permissions_of(WORLD, tools=["git"], switches={"push": False})
    child = permissions_of(WORLD, parent=parent, discoverable=["*"])
    assert permitted(child) == {"git/log"}
    assert codes(child, "git/push") == ["denied_parent", "granted_discoverable"]
    assert permitted(permissions_of(WORLD, parent=child, tools=["git__push"])) == set()


def test_a_child_does_not_reach_what_its_parent_has_not_seen() -> None:
    """P8, P9: also where the tools are not known yet."""
    held = world(Plugin(name="later", kind="server"))
    child = permissions_of(held, parent=permissions_of(held), discoverable=["*"])
    assert child.grants_unseen(held.catalog.plugins["later"]) is False
    assert loadable(child) is False
    assert loadable(permissions_of(held, parent=permissions_of(held, tools=["later"]), discoverable=["*"])) is True


# -- plugins that were not asked yet ---------------------------------------------------------------

LATER = world(
    Plugin(name="later", kind="server", default_on=False),
    Plugin(name="soon", kind="server"),
    toolkits=[toolkit("kit", "later", "soon"), toolkit("less", ("soon", {"exclude_tools": ["x"]}))],
    loadouts=[Loadout(name="strict", disabled=("soon",))],
)


@pytest.mark.parametrize(
    ("name", "profile", "expected"),
    [
        ("soon", {}, False),
        ("soon", {"tools": ["soon"]}, True),
        ("soon", {"allowed": ["kit"]}, True),
        ("soon", {"discoverable": ["s*"]}, True),
        ("soon", {"switches": {"soon": True}}, True),
        ("soon", {"switches": {"kit": True}}, True),
        ("soon", {"tools": ["soon"], "switches": {"soon": False}}, False),
        ("soon", {"tools": ["soon"], "switches": {"kit": False}}, False),
        ("soon", {"tools": ["soon"], "switches": {"less": False}}, True),
        ("soon", {"tools": ["soon"], "loadout": "strict"}, False),
        ("later", {"tools": ["later"]}, False),
        ("later", {"tools": ["later"], "switches": {"later": True}}, True),
        ("later", {"tools": ["later"], "switches": {"kit": True}}, True),
    ],
)
def test_a_plugin_that_was_not_asked_is_granted_by_the_same_rules(
    name: str, profile: dict[str, Any], expected: bool
) -> None:
    """P1, P3: nothing is started for what would be denied, and what would be granted can be loaded."""
    held = permissions_of(LATER, **profile)
    assert held.grants_unseen(LATER.catalog.plugins[name]) is expected
    assert held.may_have_tools_of(LATER.catalog.plugins[name]) is expected


def test_a_name_that_is_not_known_yet_is_noticed() -> None:
    """T3: it may be a tool of a server that was not asked."""
    assert permissions_of(LATER, tools=["soon"]).entries.unresolved is False
    assert permissions_of(LATER, tools=["soon__get"]).entries.unresolved is True
    assert permissions_of(LATER, switches={"soon__get": True}).entries.unresolved is True


# -- T4 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ({"tools": ["git"]}, False),
        ({"tools": ["git__log"], "discoverable": ["git"]}, True),
        ({"allowed": ["dev"]}, True),
        ({"allowed": ["dev"], "initial": ["dev"]}, False),
        ({"allowed": ["dev"], "tools": ["git", "shell"]}, False),
        ({"allowed": ["dev"], "switches": {"dev": False}}, False),
        ({"discoverable": ["docker"], "switches": {"docker": False}}, False),
        ({"loadout": "mine"}, True),
        ({"switches": {"docker": True}}, False),
    ],
)
def test_an_agent_has_meta_tools_where_it_may_load_something(profile: dict[str, Any], expected: bool) -> None:
    """T4: no one lists them; who has everything out needs none."""
    assert loadable(permissions_of(WORLD, **profile)) is expected


# -- totality and speed ----------------------------------------------------------------------------


def test_a_tool_that_is_not_in_the_catalog_is_not_permitted() -> None:
    """P1, P7: a decision is total: a tool of a plugin that went away is refused, not an error."""
    decision = permissions_of(WORLD, discoverable=["*"]).decide(Tool(plugin="gone", name="x"))
    assert (decision.permitted, decision.code) == (False, "unknown")


def test_a_plugin_called_like_the_id_of_a_tool_is_decided_apart() -> None:
    """P1: names with slashes do not mix decisions up."""
    held = permissions_of(
        world(plugin("a", "b", "c", kind="server"), plugin("a/b", "d", kind="server")),
        tools=["plugin:a"],
        switches={"tool:a/b": False},
    )
    assert permitted(held) == {"a/c"}


@cache
def of_100_000_tools(*, plugins: int) -> World:
    names = [f"tool_{n}" for n in range(100_000 // plugins)]
    return world(*(plugin(f"p{n}", *names, kind="server") for n in range(plugins)))


@pytest.mark.parametrize("kind", ["open", "child", "switches", "one plugin"])
def test_deciding_for_100_000_tools_leaves_out_only_what_is_off(kind: str) -> None:
    """P1: what decides alike is decided once."""
    held = of_100_000_tools(plugins=1 if kind == "one plugin" else 1000)
    parent = CompiledPermissions(held, agent(discoverable=["*"])) if kind == "child" else None
    off = {"switches": [f"p{n}/tool_7" for n in range(100)], "one plugin": ["p0/tool_7"]}.get(kind, [])
    profile = agent(discoverable=["*"], switches=dict.fromkeys(off, False))

    assert len(CompiledPermissions(held, profile, SessionConstraints(parent=parent)).permitted) == 100_000 - len(off)
