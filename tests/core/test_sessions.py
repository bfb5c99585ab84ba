"""What is stored of a session, and how it heals."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, toolkit

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import ALWAYS, TURN, UNLOAD, Lease, LeaseReason, LeaseTerm
from pegboard.core.model.tools import Plugin
from pegboard.core.state.sessions import DEFAULT, Failure, ShownHints, State, from_text, to_text, turn_of_messages
from pegboard.core.state.subjects import remove_dead_leases

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
SUBJECTS = st.builds(Ref, st.sampled_from(["toolkit", "plugin", "tool"]), NAMES)
UNTILS = st.one_of(st.sampled_from([TURN, UNLOAD, ALWAYS]), st.integers(0, 99).map(lambda n: LeaseTerm("idle", n)))
STATES = st.builds(
    State,
    turn=st.integers(1, 10**9),
    label=st.none() | NAMES,
    loadout=st.none() | NAMES,
    leases=st.lists(
        st.builds(
            Lease,
            subject=SUBJECTS,
            until=UNTILS,
            because=st.sampled_from(LeaseReason),
            loaded_turn=st.integers(1, 99),
            used_turn=st.integers(1, 99),
            excluded=st.frozensets(NAMES, max_size=3),
            from_turn=st.integers(0, 99),
        ),
        max_size=4,
    ).map(tuple),
    failure=st.none() | st.builds(Failure, call=NAMES, count=st.integers(1, 9)),
    recent=st.lists(NAMES, max_size=3).map(tuple),
    unloaded=st.lists(SUBJECTS, max_size=3).map(tuple),
    hints=st.none()
    | st.builds(
        ShownHints,
        lines=st.lists(NAMES, max_size=3).map(tuple),
        about=st.frozensets(NAMES, max_size=3),
        form=st.sampled_from(["toolkits", "plugins", "rest", "tools"]),
        loadout=st.none() | NAMES,
        by_plugin=st.booleans(),
        whole=st.booleans(),
    ),
)


def lease(kind: Any, name: str) -> Lease:
    return Lease(subject=Ref(kind, name), until=UNLOAD)


@given(state=STATES)
def test_what_is_stored_is_read_back(state: State) -> None:
    """S2, S4: a state survives storing; only the default is not stored."""
    text = to_text(state)
    back = from_text(text) if text is not None else DEFAULT
    assert back == state
    assert back.hints == state.hints or text is None
    assert (text is None) is (state == DEFAULT)


def test_hints_alone_are_no_difference_from_the_default() -> None:
    """S4, F2: a session that only looked stores nothing."""
    assert to_text(State(hints=ShownHints(lines=("git: Show the log.",)))) is None


@pytest.mark.parametrize("state", [State(turn=2), State(label="a"), State(loadout="minimal"), State(recent=("a/b",))])
def test_a_moved_turn_counter_or_label_is_a_difference_from_the_default(state: State) -> None:
    """S4, MR32: only a state equal to the default is omitted of the store."""
    assert to_text(DEFAULT) is None
    assert to_text(state) is not None


GOOD = {"turn": 1, "leases": [{"subject": "tool:a/b", "until": "turn", "because": "loaded", "loaded": 1, "used": 1}]}


@pytest.mark.parametrize(
    "text",
    [
        "", "nonsense", "[]", "null", "7", "{}", '{"turn": 1}', '{"turn": "x", "leases": []}',
        '{"turn": 1e999, "leases": []}', '{"turn": 1, "leases": 5}', '{"turn": 1, "leases": [], "failure": ["x"]}',
        *(json.dumps({**GOOD, "leases": [{**GOOD["leases"][0], **damage}]}) for damage in (
            {"subject": "nobody"}, {"until": "forever"}, {"until": None}, {"because": "whim"}, {"used": "x"},
            {"loaded": None}, {"minus": 3},
        )),
    ],
)  # fmt: skip
def test_a_damaged_text_is_a_value_error_and_nothing_else(text: str) -> None:
    """S2: what was not written by us is refused, so that a later step does not fail on it."""
    assert from_text(json.dumps(GOOD)).leases[0].until == TURN
    with pytest.raises(ValueError, match=r".+"):
        from_text(text)


@given(text=st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_reading_any_text_gives_a_state_or_a_value_error(text: str) -> None:
    """S2: no text leads to another exception."""
    try:
        state = from_text(text)
    except ValueError:
        return
    assert isinstance(state, State)


@pytest.mark.parametrize(("messages", "turn"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (101, 51)])
def test_a_host_may_derive_its_turn_from_the_number_of_messages(messages: int, turn: int) -> None:
    """S6, MI12: (n + 1) // 2."""
    assert turn_of_messages(messages) == turn


def world(*plugins: Plugin, **changes: Any) -> CompiledPermissions:
    profile: dict[str, Any] = {"allowed_toolkits": ("devops",), "discoverable": ("git",), **changes}
    return access_of(
        *(plugins or (plugin("docker", "ps"), plugin("git", "log"), plugin("spotify", "play", shared_only=True))),
        toolkits=[toolkit("devops", "docker"), toolkit("music", "spotify"), toolkit("other", "git")],
        **profile,
    )


HELD = State(leases=(lease("toolkit", "devops"), lease("plugin", "git"), lease("tool", "git/log")))


def subjects(permissions: CompiledPermissions, state: State = HELD) -> list[str]:
    return [str(held.subject) for held in remove_dead_leases(permissions, state).leases]


def test_what_is_granted_stays_and_the_same_state_comes_back() -> None:
    """S3: reading what needs no healing changes nothing."""
    assert remove_dead_leases(world(), HELD) is HELD


@pytest.mark.parametrize(
    ("permissions", "left"),
    [
        (world(allowed_toolkits=()), ["plugin:git", "tool:git/log"]),
        (world(discoverable=()), ["toolkit:devops"]),
        (world(switches={"git": False}), ["toolkit:devops"]),
        (world(switches={"devops": False}), ["plugin:git", "tool:git/log"]),
        (world(plugin("docker", "ps")), ["toolkit:devops"]),
        (world(plugin("docker", "ps"), plugin("git", "diff")), ["toolkit:devops", "plugin:git"]),
    ],
    ids=["not allowed", "not granted", "denied", "toolkit denied", "plugin gone", "tool gone"],
)
def test_a_lease_goes_whose_subject_is_gone_or_not_permitted_any_more(
    permissions: CompiledPermissions, left: list[str]
) -> None:
    """S3, MR28: healing drops exactly those."""
    assert subjects(permissions) == left


def test_a_toolkit_that_is_not_defined_any_more_is_gone() -> None:
    """S3, MR28: the subject itself is gone, although the agent still names it."""
    gone = State(leases=(lease("toolkit", "removed"),))
    assert remove_dead_leases(world(allowed_toolkits=("removed",)), gone) == DEFAULT


@pytest.mark.parametrize("subject", [("toolkit", "music"), ("plugin", "spotify"), ("tool", "spotify/play")])
def test_a_narrowed_scope_drops_what_works_only_where_it_is_shared(subject: tuple[str, str]) -> None:
    """S3, P5, MR55: out of scope does not count."""
    profile: dict[str, Any] = {"allowed_toolkits": ("music",), "discoverable": ("*",)}
    held = State(leases=(lease(*subject),))
    assert remove_dead_leases(world(**profile), held) == held
    assert remove_dead_leases(world(**profile, circumstances=SessionConstraints(worker_scope="user")), held) == DEFAULT


def test_a_toolkit_is_out_of_scope_as_a_whole_as_it_is_loaded() -> None:
    """S3, MR28: one shared-only member is enough, since such a toolkit could not be loaded now."""
    kits = [toolkit("party", "git", "spotify")]
    plugins = (plugin("git", "log"), plugin("spotify", "play", shared_only=True))
    held = State(leases=(lease("toolkit", "party"),))
    shared = access_of(*plugins, toolkits=kits, allowed_toolkits=("party",))
    apart = access_of(
        *plugins, toolkits=kits, allowed_toolkits=("party",), circumstances=SessionConstraints(worker_scope="user"),
    )  # fmt: skip
    assert remove_dead_leases(shared, held) == held
    assert remove_dead_leases(apart, held) == DEFAULT


def test_unavailable_is_not_gone() -> None:
    """S3, P6: the lease stands while the server is down; its tools are not on the surface."""
    down = plugin("git", "log").with_fault("", "the server is down")
    permissions = world(plugin("docker", "ps"), down)
    assert subjects(permissions) == ["toolkit:devops", "plugin:git", "tool:git/log"]
    assert Desk(permissions, HELD).out == ["ps"]


def test_a_server_that_has_not_been_asked_yet_is_not_gone() -> None:
    """S3, T3: after a restart nothing is known of a server; what was loaded of it waits."""
    unseen = Plugin(name="git", kind="server")
    assert subjects(world(plugin("docker", "ps"), unseen)) == ["toolkit:devops", "plugin:git", "tool:git/log"]
    denied = world(plugin("docker", "ps"), unseen, switches={"git": False})
    assert subjects(denied) == ["toolkit:devops"]


def test_a_toolkit_waits_for_a_member_that_is_a_tool_of_an_unseen_server() -> None:
    """S3, T3: a member that names no plugin may be a tool that arrives with a manifest."""
    permissions = access_of(
        Plugin(name="git", kind="server"), toolkits=[toolkit("review", "git__log")], allowed_toolkits=("review",),
    )  # fmt: skip
    assert subjects(permissions, State(leases=(lease("toolkit", "review"),))) == ["toolkit:review"]


@given(
    state=STATES,
    allowed=st.sets(st.sampled_from(["devops", "music", "other"])),
    discoverable=st.sets(st.sampled_from(["git", "spotify", "*"])),
    scope=st.sampled_from(["shared", "user"]),
    held=st.lists(
        st.sampled_from(["toolkit:devops", "toolkit:music", "plugin:git", "tool:git/log", "tool:spotify/play"]),
        unique=True,
    ),
)
def test_healing_is_pure_and_healing_twice_is_healing_once(
    state: State, allowed: set[str], discoverable: set[str], scope: Any, held: list[str]
) -> None:
    """S3: only leases go, in any world, and the rest keeps its order."""
    permissions = world(allowed_toolkits=tuple(allowed), discoverable=tuple(discoverable), worker_scope=scope)
    leases = (*state.leases, *(Lease(subject=Ref.parse(text), until=UNLOAD) for text in held))
    before = State(turn=state.turn, label=state.label, leases=leases)
    text = to_text(before)
    healed = remove_dead_leases(permissions, before)
    assert to_text(before) == text
    assert remove_dead_leases(permissions, healed) is healed
    assert healed == State(turn=state.turn, label=state.label, leases=healed.leases)
    assert [le for le in before.leases if le in healed.leases] == list(healed.leases)


def test_a_new_initial_toolkit_reaches_a_session_that_is_under_way() -> None:
    """S4, MR24, MR29: initials are joined at each read and never stored."""
    desk = Desk(world())
    desk.load("git")
    desk.permissions = world(initial_toolkits=("devops",))
    assert desk.out == ["ps", "log"]
    assert "devops" not in (to_text(desk.state) or "")


def test_a_revoked_lease_leaves_the_store_with_the_next_change() -> None:
    """S3: reading does not write; the next command stores the healed state."""
    desk = Desk(world())
    desk.load("devops", "git")
    desk.permissions = world(discoverable=())
    desk.end_turns()
    assert [str(held.subject) for held in desk.state.leases] == ["toolkit:devops"]
