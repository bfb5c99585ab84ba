"""Booleans over toolkits, plugins and tools, as seed 004 has them."""

from itertools import product

from builders import codes, known, permissions_of, permitted, plugin, tool, toolkit, world

from pegboard.core.model.leases import LeaseReason
from pegboard.core.state.active_tools import starting_tools

BOOLEANS = (None, True, False)

WORLD = world(
    plugin("git", "log", "push", kind="server"),
    plugin("shell", "run"),
    plugin("docker", "ps"),
    toolkits=[toolkit("dev", "git", "shell")],
)


def by_the_text_of_p2(
    toolkits: tuple[bool | None, ...], own_plugin: bool | None, own_tool: bool | None, default_on: bool, granted: bool
) -> bool:
    """Return what P2 says of one tool, written from its text alone."""
    said = [value for value in toolkits if value is not None]
    own = own_plugin if own_tool is None else own_tool
    if False in said:
        return False
    if True in said:
        on = True if own is None else own
    elif own is not None:
        on = own
    else:
        on = default_on
    return on and (granted or True in said or own is True)


def test_switches_decide_as_p2_says() -> None:
    """P2, SJ4, SJ5, SJ6, SJ7, SJ8, SJ9: every combination of two toolkits, plugin, tool, default and grant."""
    for default_on in ("on", "tool off", "plugin off"):
        item = tool("github/read", default_on=default_on != "tool off")
        held = world(
            plugin("github", item, default_on=default_on != "plugin off"),
            toolkits=[toolkit("one", "github"), toolkit("two", "tool:read")],
        )
        for *said, granted in product(*[BOOLEANS] * 4, (True, False)):
            first, second, own_plugin, own_tool = said
            names = ("one", "two", "github", "tool:read")
            switches = {name: value for name, value in zip(names, said, strict=True) if value is not None}
            tools = ["github"] if granted else []
            expected = by_the_text_of_p2((first, second), own_plugin, own_tool, default_on == "on", bool(granted))
            from_file = permissions_of(held, tools=tools, switches=switches)
            assert (permitted(from_file) == {"github/read"}) is expected, (default_on, said, granted)
            stored = permissions_of(
                held, tools=tools, stored=switches, switches={name: not on for name, on in switches.items()}
            )
            assert permitted(stored) == permitted(from_file), (default_on, said, granted)


def test_a_toolkit_that_is_on_brings_members_that_are_off_by_default() -> None:
    """P2, SJ4: and it is told so."""
    held = world(plugin("github", tool("github/read", default_on=False)), toolkits=[toolkit("evolution", "github")])
    assert codes(permissions_of(held, tools=["github"]), "github/read") == ["denied_default", "granted_static"]
    on = permissions_of(held, tools=["github"], switches={"evolution": True})
    assert codes(on, "github/read") == ["granted_static", "granted_switch"]


def test_a_switch_of_a_toolkit_reaches_only_its_members() -> None:
    """P2: not the rest of their plugin."""
    held = world(plugin("github", "read", "write"), toolkits=[toolkit("reading", "tool:read")])
    assert permitted(permissions_of(held, tools=["github"], switches={"reading": False})) == {"github/write"}
    assert permitted(permissions_of(held, switches={"reading": True})) == {"github/read"}


def test_what_only_a_switch_grants_is_out_from_the_start() -> None:
    """P2, S5: as initial; what something else grants too keeps its own reason."""
    held = permissions_of(WORLD, switches={"docker": True, "git": True}, tools=["git__log"])
    start = starting_tools(held)
    assert {out.tool.id: out.because for out in (*start.head.values(), *start.tail.values())} == {
        "git/log": (LeaseReason.STATIC,),
        "docker/ps": (LeaseReason.SWITCH,),
        "git/push": (LeaseReason.SWITCH,),
    }


def test_what_is_switched_on_and_discoverable_is_not_out_from_the_start() -> None:
    """P2: only what a switch alone grants is loaded."""
    held = permissions_of(WORLD, switches={"docker": True}, discoverable=["*"])
    assert starting_tools(held).tail == {}


def test_a_stored_switch_replaces_the_one_of_the_file() -> None:
    """P2: for the same name, however it is written; the other names stay."""
    held = permissions_of(
        WORLD,
        tools=["git", "shell"],
        switches={"plugin:git": False, "shell": False, "typo": True},
        stored={"git": True},
    )
    assert permitted(held) == {"git/log", "git/push"}
    assert held.switches.effective == {"shell": False, "typo": True, "git": True}


def test_a_subject_that_a_file_switches_twice_is_off() -> None:
    """P1: deny beats grant, in whichever order it is written."""
    for on, off in (("git", "plugin:git"), ("plugin:git", "git")):
        for written in ({on: True, off: False}, {off: False, on: True}):
            held = permissions_of(WORLD, tools=["git"], switches=written)
            assert permitted(held) == set()
            assert held.decide(known(WORLD, "git/log")).reasons[0].where == held.agent.switch_places[off]


def test_switching_a_toolkit_off_does_not_undo_its_filters() -> None:
    """P1, P2: what it excluded while it was on is not granted by a pattern afterwards."""
    held = world(plugin("shell", "run", "kill"), toolkits=[toolkit("safe", ("shell", {"exclude_tools": ["kill"]}))])
    assert permitted(permissions_of(held, discoverable=["*"], switches={"safe": True})) == {"shell/run"}
    assert permitted(permissions_of(held, discoverable=["*"], switches={"safe": False})) == set()


def test_a_bare_name_that_two_tools_have_switches_both_off_and_neither_on() -> None:
    """P1, P2: a denial is not lost because another plugin arrives."""
    held = world(plugin("git", "log", kind="server"), plugin("svn", "log", "add", kind="server"))
    assert permitted(permissions_of(held, tools=["git", "svn"], switches={"log": False})) == {"svn/add"}
    assert permitted(permissions_of(held, switches={"log": True})) == set()
    assert permitted(permissions_of(held, tools=["git"], switches={"log": False}, stored={"log": True})) == {"git/log"}


def test_a_switch_that_means_nothing_known_changes_nothing() -> None:
    """P2: `check` warns; nothing raises."""
    held = permissions_of(WORLD, tools=["git"], switches={"gone": False, "toolkit:git": False, "category:Git": False})
    assert permitted(held) == {"git/log", "git/push"}
    assert set(held.switches.effective) == {"gone", "toolkit:git", "category:Git"}


def test_a_toolkit_may_be_loaded_if_it_is_allowed_or_on_and_not_off() -> None:
    """P2: initial, allowed and switched on alike."""
    cases = product([[], ["dev"]], BOOLEANS)
    for allowed, switch in cases:
        held = permissions_of(WORLD, allowed=allowed, switches={} if switch is None else {"dev": switch})
        assert held.may_load_toolkit("dev") is (bool(allowed) if switch is None else switch)
    assert permissions_of(WORLD, allowed=["gone"]).may_load_toolkit("gone") is False
