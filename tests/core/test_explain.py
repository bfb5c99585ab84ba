"""Why may it (not), why is it (not) out; and what a name means."""

from typing import Any

import pytest
from builders import codes, known, permissions_of, plugin, tool, toolkit, world

from pegboard.core.access.names import lookup, suggestion
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import UNLOAD, Lease, LeaseReason, LeaseTerm
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.tools import Plugin
from pegboard.core.state.active_tools import active_tools, starting_tools
from pegboard.core.state.commands import not_found_item
from pegboard.core.state.sessions import State
from pegboard.core.surface.explanations import Explanation, explain
from pegboard.core.surface.surfaces import loaded_meta_tools, order, resolve

WORLD = world(
    plugin("git", "log", "push", kind="server", category="Git"),
    plugin("shell", tool("shell/run", requires=("git/log",)), category="Shell"),
    plugin("mail", tool("mail/send", unavailable="MAIL_URL is not set. Set it and start again.")),
    plugin("notes", "add"),
    plugin("beta", tool("beta/try", default_on=False)),
    plugin("spotify", "play", shared_only=True),
    toolkits=[toolkit("dev", "git", "shell")],
    loadouts=[Loadout(name="strict", parent="minimal", disabled=("notes",)), Loadout(name="mine", categories=("Git",))],
)


def told(held: CompiledPermissions, tool_id: str, state: State | None = None, **more: Any) -> Explanation:
    return explain(held, state or State(), known(held, tool_id), **more)


def texts(held: CompiledPermissions, tool_id: str, state: State | None = None) -> list[str]:
    return [reason.text for reason in told(held, tool_id, state).reasons]


def predicates(found: Explanation) -> tuple[bool, bool, bool, bool]:
    return found.permitted, found.loaded, found.visible, found.callable


def out(name: str, kind: str = "plugin", until: LeaseTerm = UNLOAD, because: LeaseReason = LeaseReason.LOADED) -> State:
    ref = Ref.parse(f"{kind}:{name}")
    return State(turn=3, leases=(Lease(subject=ref, until=until, because=because, loaded_turn=2, used_turn=2),))


@pytest.mark.parametrize(
    ("profile", "tool_id", "expected"),
    [
        ({}, "notes/add", ["Nothing grants it to agent 'ada'."]),
        (
            {"tools": ["notes"], "switches": {"notes": False}},
            "notes/add",
            ["The plugin 'notes' is switched off for agent 'ada'.", "It is a static tool of agent 'ada'."],
        ),
        (
            {"tools": ["notes"], "loadout": "STRICT"},
            "notes/add",
            ["Loadout 'strict' disables plugin 'notes'.", "It is a static tool of agent 'ada'."],
        ),
        (
            {"essential": ["spotify"], "worker_scope": "user"},
            "spotify/play",
            [
                "Plugin 'spotify' works only where it is shared, not with worker_scope=user.",
                "It is an essential tool of agent 'ada'.",
            ],
        ),
        (
            {"discoverable": ["*"], "tools": [("git", {"exclude_tools": ["push"]})]},
            "git/push",
            [
                "Every entry of its plugin excludes it (include_tools, exclude_tools).",
                "It is discoverable (pattern '*').",
            ],
        ),
        (
            {"discoverable": ["b*"]},
            "beta/try",
            ["It is off until it is switched on (default_on).", "It is discoverable (pattern 'b*')."],
        ),
    ],
)
def test_a_denied_tool_says_what_denies_it_first(profile: dict[str, Any], tool_id: str, expected: list[str]) -> None:
    """F5, P1: then what would have granted it; no word about loading."""
    held = permissions_of(WORLD, **profile)
    assert texts(held, tool_id) == expected
    assert predicates(told(held, tool_id)) == (False, False, False, False)


def test_a_rule_from_a_file_says_its_line() -> None:
    """P1, F5: file and line where it came from YAML."""
    held = permissions_of(WORLD, tools=["git"], switches={"shell": True, "git__push": False})
    reason = held.decide(known(held, "git/push")).reasons[0]
    assert (reason.code, str(reason.where)) == ("denied_switch", "pegboard.yaml:2")
    assert reason.text == "The tool 'git__push' is switched off for agent 'ada'."


def test_a_loadout_says_which_of_its_chain_decided() -> None:
    """F5, L2: the leaf, and the link."""
    held = permissions_of(WORLD, loadout="developer")
    assert texts(held, "shell/run")[0] == "Loadout 'developer' makes it active (by 'minimal')."
    assert texts(held, "notes/add")[0] == "Loadout 'developer' makes it discoverable (pattern '*')."


def test_a_tool_that_is_permitted_and_not_loaded_says_both() -> None:
    """F5: four predicates that must never be confused."""
    found = told(permissions_of(WORLD, allowed=["dev"]), "git/log")
    assert predicates(found) == (True, False, False, False)
    assert [reason.code for reason in found.reasons] == ["granted_toolkit", "not_loaded"]
    assert found.reasons[0].text == "Toolkit 'dev' is allowed."


@pytest.mark.parametrize(
    ("unloaded_call", "words"),
    [("safe", "through call_tool"), ("schema", "it may be."), ("run", "and runs"), ("reject", "not by a call")],
)
def test_a_tool_that_is_not_loaded_says_what_a_call_of_it_does(unloaded_call: str, words: str) -> None:
    """F5, X1: it is not callable as it stands; where calls load, a call runs all the same."""
    held = permissions_of(WORLD, discoverable=["notes"], unloaded_call=unloaded_call)
    assert predicates(told(held, "notes/add")) == (True, False, False, False)
    assert words in texts(held, "notes/add")[-1]


def test_a_loaded_tool_says_by_what_since_when_and_until_when() -> None:
    """F5, S5: the lease that stands."""
    held = permissions_of(WORLD, allowed=["dev"])
    found = told(held, "git/log", out("dev", "toolkit", LeaseTerm("idle", 5)))
    assert predicates(found) == (True, True, True, True)
    assert found.reasons[1].text == (
        "It is loaded because toolkit 'dev' was loaded in turn 2, until it is unused for 5 turns."
    )
    assert found.reasons[-1].code == "loaded_required"
    assert found.reasons[-1].text == "It is loaded because run requires it."


@pytest.mark.parametrize(
    ("profile", "code", "words"),
    [
        ({"essential": ["git"]}, "loaded_essential", "cannot be unloaded"),
        ({"tools": ["git"]}, "loaded_static", "cannot be unloaded"),
        ({"allowed": ["dev"], "initial": ["dev"]}, "loaded_initial", "sticky"),
        ({"loadout": "mine"}, "loaded_loadout", "sticky"),
        ({"switches": {"git": True}}, "loaded_switch", "sticky"),
    ],
)
def test_a_sticky_tool_says_why_it_stays(profile: dict[str, Any], code: str, words: str) -> None:
    """F5, S10: what no unload takes away is told as such."""
    found = told(permissions_of(WORLD, **profile), "git/push")
    assert predicates(found) == (True, True, True, True)
    assert found.reasons[-1].code == code
    assert words in found.reasons[-1].text


def test_an_unavailable_tool_is_permitted_and_says_what_to_do() -> None:
    """P6, F5: unavailable is not denied."""
    found = told(permissions_of(WORLD, tools=["mail"]), "mail/send")
    assert predicates(found) == (True, True, False, False)
    assert found.reasons[-1].code == "unavailable"
    assert found.reasons[-1].text == "MAIL_URL is not set. Set it and start again."


def test_a_plugin_that_is_down_makes_its_tools_unavailable() -> None:
    """P6: its tools stay known."""
    down = plugin("git", "log").with_fault("", "git-mcp did not start: exit code 1.")
    held = permissions_of(world(down), discoverable=["*"])
    found = told(held, "git/log")
    assert predicates(found) == (True, False, False, False)
    assert [reason.code for reason in found.reasons] == ["granted_discoverable", "not_loaded", "unavailable"]


def test_a_denied_tool_does_not_say_that_it_is_unavailable() -> None:
    """P6, F5: what would not help is not told."""
    assert [reason.code for reason in told(permissions_of(WORLD), "mail/send").reasons] == ["not_granted"]


def test_a_conflict_is_told() -> None:
    """F5, T5: why a load would be refused."""
    held = permissions_of(WORLD, allowed=["dev"])
    found = told(held, "git/log", known_conflict="Toolkit 'dev' conflicts.")
    assert found.reasons[-1].code == "conflict"
    assert found.reasons[-1].text == "Toolkit 'dev' conflicts."


def test_every_text_is_a_sentence_on_one_line() -> None:
    """F5: people read them."""
    profiles: list[dict[str, Any]] = [
        {"tools": ["git", "mail"], "essential": ["shell"], "discoverable": ["*"], "loadout": "developer"},
        {"allowed": ["dev"], "initial": ["dev"], "stored": {"beta": True, "git": False}, "loadout": "strict"},
        {"scope": "user_agent", "switches": {"spotify": True, "dev": True}, "parent": permissions_of(WORLD)},
    ]
    for profile in profiles:
        for item in WORLD.catalog:
            for text in texts(permissions_of(WORLD, **profile), item.id, out("notes")):
                assert text[0].isupper()
                assert text.endswith((".", "?"))
                assert "  " not in text
                assert text.isprintable()


# -- the order of what is loaded ----------------------------------------------------------------------


def test_what_is_out_stands_in_the_order_of_f1() -> None:
    """F1: essentials, statics in declared order, meta-tools, initials, switched, loadout by name, then loaded."""
    held = permissions_of(
        world(
            *(plugin(name, f"{name}1") for name in ("z", "y", "x", "w", "v", "u", "b", "a")),
            plugin("n", "n1", category="Git"),
            plugin("m", "m1", category="Git"),
            toolkits=[toolkit("first", "w"), toolkit("second", "v")],
            loadouts=[Loadout(name="mine", categories=("Git",))],
        ),
        essential=["z"],
        tools=["y", "x", "z"],
        allowed=["second", "first"],
        initial=["second", "first"],
        switches={"u": True},
        loadout="mine",
        discoverable=["b", "a"],
    )
    state = State(leases=(out("b").leases[0], out("a").leases[0], out("y").leases[0]))
    surface = resolve(held, state, meta=[tool("pegboard/load_tools", wire="load_tools")])
    assert surface.names == ("z1", "y1", "x1", "load_tools", "v1", "w1", "u1", "m1", "n1", "b1", "a1")
    assert resolve(held, state, meta=[tool("pegboard/load_tools", wire="load_tools")]) == surface


def test_a_tool_that_is_out_for_two_reasons_stands_once_at_its_first_place() -> None:
    """F1, S5: several reasons may stand."""
    held = permissions_of(WORLD, essential=["git__log"], tools=["git"], allowed=["dev"], initial=["dev"])
    log = active_tools(held, State())["git/log"]
    assert log.because == (LeaseReason.ESSENTIAL, LeaseReason.STATIC, LeaseReason.INITIAL, LeaseReason.REQUIRED)
    assert resolve(held, State()).names == ("git__log", "git__push", "run")


def test_the_first_overrides_are_kept() -> None:
    """T5: the same tool from two places is one, the first kept."""
    held = permissions_of(
        world(plugin("sql", "query", parameters={"port": "integer"}), toolkits=[toolkit("data", ("sql", {"port": 5}))]),
        tools=[("sql", {"port": "5"})],
        allowed=["data"],
        initial=["data"],
    )
    assert dict(active_tools(held, State())["sql/query"].overrides) == {"port": "5"}


def test_what_is_denied_or_unavailable_is_not_on_the_surface() -> None:
    """P3, P6: denied is not out; unavailable is loaded and not shown."""
    held = permissions_of(WORLD, tools=["git", "mail", "notes"], switches={"push": False})
    assert resolve(held, State()).names == ("git__log", "add")
    assert "mail/send" in active_tools(held, State())
    assert order(held, {}, loaded_meta_tools([])) == ()
    assert starting_tools(held) is starting_tools(held)


# -- what a name means -----------------------------------------------------------------------------

NAMES = world(
    plugin("search", "query", kind="server"),
    plugin("web", "search", "get"),
    plugin("Mail", "send", kind="server"),
    plugin("a", "log", kind="server"),
    plugin("b", "log", kind="server"),
    Plugin(name="later", kind="server"),
    toolkits=[toolkit("web", "web"), toolkit("Ops", "a")],
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web", "toolkit:web"),
        ("plugin:web", "plugin:web"),
        ("search", "plugin:search"),
        ("tool:search", "tool:web/search"),
        ("search__query", "tool:search/query"),
        ("search/query", "tool:search/query"),
        ("query", "tool:search/query"),
        ("mail", "plugin:Mail"),
        ("MAIL__SEND", "tool:Mail/send"),
        ("ops", "toolkit:Ops"),
        ("toolkit:OPS", "toolkit:Ops"),
        ("later", "plugin:later"),
        ("log", None),
        ("toolkit:search", None),
        ("category:Git", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_name_means_toolkit_then_plugin_then_tool(name: str, expected: str | None) -> None:
    """P9: exact first, then a unique match but for case; a kind in front says which."""
    found = lookup(permissions_of(NAMES, allowed=["web", "Ops"], discoverable=["*"]), name)
    assert (None if found is None else str(found)) == expected


def test_what_is_denied_stands_in_the_way_of_nothing() -> None:
    """P9: a name means the same as if the denied one did not exist."""
    held = permissions_of(
        NAMES, allowed=["web"], discoverable=["*"], switches={"plugin:search": False, "b": False, "web": False}
    )
    assert lookup(held, "web") is None
    held = permissions_of(NAMES, discoverable=["*"], switches={"plugin:search": False, "b": False})
    assert lookup(held, "search") == Ref("tool", "web/search")
    assert lookup(held, "log") == Ref("tool", "a/log")
    assert lookup(held, "LOG") == Ref("tool", "a/log")


@pytest.mark.parametrize("name", ["Mail", "mail", "send", "Mail__send", "Mail/send", "plugin:Mail", "tool:send"])
def test_denied_and_unknown_look_the_same(name: str) -> None:
    """P9: in the answer and in what is suggested; the true reason is for explain."""
    denied = permissions_of(NAMES, discoverable=["*"], switches={"Mail": False})
    absent = permissions_of(world(*(p for p in NAMES.catalog.plugins.values() if p.name != "Mail")), discoverable=["*"])
    assert lookup(denied, name) is lookup(absent, name) is None
    assert not_found_item(denied, State(), name) == not_found_item(absent, State(), name)
    assert codes(denied, "Mail/send")[0] == "denied_switch"


def test_only_what_is_permitted_is_suggested() -> None:
    """P9: nothing else leaks through a question."""
    assert suggestion(permissions_of(NAMES, discoverable=["*"]), "Mial") == "Did you mean 'Mail'?"
    assert suggestion(permissions_of(NAMES, discoverable=["web"]), "Mial") == ""
    assert suggestion(permissions_of(NAMES, allowed=["Ops"]), "tool:op") == "Did you mean 'Ops'?"
    assert suggestion(permissions_of(NAMES, allowed=["Ops"], switches={"Ops": False}), "op") == ""


def test_what_only_the_scope_denies_is_found_so_that_the_scope_can_be_told() -> None:
    """P5, P9: `scope_incompatible` is an answer; what something else denies as well is not found."""
    assert lookup(permissions_of(WORLD, discoverable=["*"], scope="user"), "spotify") == Ref("plugin", "spotify")
    assert lookup(permissions_of(WORLD, discoverable=["*"], scope="user"), "play") == Ref("tool", "spotify/play")
    assert lookup(permissions_of(WORLD, switches={"spotify": True}, scope="user"), "spotify") == Ref(
        "plugin", "spotify"
    )
    others: list[dict[str, Any]] = [{}, {"discoverable": ["*"], "switches": {"play": False}}, {"tools": ["git"]}]
    for profile in others:
        held = permissions_of(WORLD, scope="user", **profile)
        assert lookup(held, "spotify") is lookup(held, "play") is None
    parent = permissions_of(WORLD, tools=["git"])
    child = permissions_of(WORLD, discoverable=["*"], scope="user", parent=parent)
    assert lookup(child, "spotify") is lookup(child, "play") is None
