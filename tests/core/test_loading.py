"""Loading: what a name means, and why it may be refused."""

from typing import Any

import pytest
from states import Desk, access_of, flat, member, plugin, statuses, tool, toolkit

from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.agents import Budget
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import TURN, UNLOAD, LeaseTerm
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import Plugin
from pegboard.core.state.commands import NO_SESSION, CommandContext
from pegboard.core.state.sessions import DEFAULT, State

SQL = plugin("sql", "query", parameters={"pool": "integer", "db_url": "string"})


def seed(**changes: Any) -> Desk:
    """Return the desk of seed 000's assistant."""
    plugins = [plugin(name, f"{name}_run") for name in ("file", "shell", "docker", "aws_lambda", "github", "arxiv")]
    profile: dict[str, Any] = {
        "static": ["file", "shell"], "allowed_toolkits": ("devops", "research"), "initial_toolkits": ("research",),
        **changes,
    }  # fmt: skip
    kits = [toolkit("devops", "docker", "aws_lambda", "github"), toolkit("research", "arxiv"), toolkit("not", "file")]
    return Desk(access_of(*plugins, toolkits=kits, **profile))


def test_a_loaded_toolkit_brings_all_its_tools_behind_what_is_out() -> None:
    """S10, MR44, MR56: loaded, then already_loaded; messages exact."""
    desk = seed()
    first, second = desk.load("devops"), desk.load("devops")
    assert (statuses(first), statuses(second)) == (["loaded"], ["already_loaded"])
    assert first.items[0].message == "Toolkit 'devops' is loaded; call it from the next step on, not in the same batch."
    assert second.items[0].message == "Toolkit 'devops' is already loaded."
    assert [t.wire for t in first.added] == ["docker_run", "aws_lambda_run", "github_run"]
    assert desk.out == ["file_run", "shell_run", "arxiv_run", "docker_run", "aws_lambda_run", "github_run"]
    assert first.loaded == tuple(desk.out)
    assert (first.status, first.takes_effect, second.added) == ("ok", "next_step", ())


def test_the_message_of_a_load_that_comes_with_the_next_request_is_that_of_the_seed() -> None:
    """D2, MR44: the wording of seed 000."""
    desk = seed()
    desk.terms = CommandContext(takes_effect="next_request")
    outcome = desk.load("devops")
    assert outcome.items[0].message == "Toolkit 'devops' will be available on the next request in this session."
    assert outcome.takes_effect == "next_request"


def test_an_initial_toolkit_is_loaded_already() -> None:
    """S4: nothing is stored for it."""
    desk = seed()
    assert statuses(desk.load("research")) == ["already_loaded"]
    assert desk.state == DEFAULT


def test_a_list_of_names_is_answered_name_by_name() -> None:
    """S10, MI5: partial success; a name said twice is answered once."""
    outcome = seed().load("devops", "nowhere", "research", "devops")
    assert statuses(outcome) == ["loaded", "not_found", "already_loaded"]
    assert outcome.status == "partial"


def test_what_is_not_allowed_is_not_found_and_not_suggested() -> None:
    """P9, MR47: an unknown and a forbidden name look the same."""
    desk = seed()
    unknown, forbidden = desk.load("nott"), desk.load("not")
    assert unknown.items[0].message == "'nott' was not found."
    assert forbidden.items[0].message == "'not' was not found."
    assert unknown.status == "refused"
    assert desk.load("devop").items[0].message == "'devop' was not found. Did you mean 'devops'?"
    assert desk.state == DEFAULT


def test_a_name_is_taken_exactly_first_then_but_for_its_case() -> None:
    """S10: case-insensitive where only one name fits."""
    assert seed().load("DevOps").items[0].subject == Ref("toolkit", "devops")
    desk = Desk(access_of(plugin("git", "log", "Diff", "diff"), discoverable=("*",)))
    assert desk.load("diff").items[0].subject == Ref("tool", "git/diff")
    assert statuses(desk.load("DIFF")) == ["not_found"]


def test_a_session_without_an_id_cannot_load() -> None:
    """S4, MR30: error, after already_loaded."""
    desk = seed()
    desk.terms = CommandContext(stable=False)
    items = desk.load("devops", "research").items
    assert [(item.status, item.message) for item in items] == [
        ("error", NO_SESSION),
        ("already_loaded", "Toolkit 'research' is already loaded."),
    ]
    assert NO_SESSION == "Dynamic toolkit changes require a stable session_id."


# -- the same tool from two places -------------------------------------------------------------------


def two_places(first: Any, second: Any, *, loaded: bool = False) -> Desk:
    kits = [toolkit("data", ("sql", second)), toolkit("other", ("sql", first))]
    static = [] if loaded else [("sql", first)]
    desk = Desk(access_of(SQL, toolkits=kits, static=static, allowed_toolkits=("data", "other")))
    if loaded:
        desk.load("other")
    return desk


SAME = [({}, {}), ({"pool": 5}, {"pool": "5"}), ({"pool": 5, "db_url": "x"}, {"db_url": "x", "pool": 5})]


@pytest.mark.parametrize("loaded", [False, True], ids=["static", "loaded"])
@pytest.mark.parametrize(("first", "second"), SAME)
def test_equal_overrides_are_one_tool_and_the_first_is_kept(first: Any, second: Any, loaded: bool) -> None:
    """T5, MR33, MR35, MR36: spelling and order of keys do not matter."""
    desk = two_places(first, second, loaded=loaded)
    assert statuses(desk.load("data")) == ["loaded"]
    assert desk.out == ["query"]
    assert desk.surface.tools[0].overrides == first


@pytest.mark.parametrize("loaded", [False, True], ids=["static", "loaded"])
def test_different_overrides_refuse_the_load_and_leave_the_state_untouched(loaded: bool) -> None:
    """T5, MR34, MR47: both overrides are shown, secrets masked."""
    desk = two_places({"db_url": "postgres://ada:pw@a/x"}, {"db_url": "b", "password": "hunter2"}, loaded=loaded)
    desk.terms = CommandContext(masker=Masker(["b-secret"]))
    before = desk.state
    item = desk.load("data").items[0]
    assert desk.state is before
    assert item.status == "conflict"
    assert dict(item.details) == {
        "conflicting_tool": "sql",
        "existing_overrides": {"db_url": "postgres://***@a/x"},
        "candidate_overrides": {"db_url": "b", "password": "***"},
    }
    how = "already with other settings. Unload it first, or" if loaded else "from the start with other settings, and"
    assert item.message.startswith(f"Toolkit 'data' conflicts: 'sql' is loaded {how}")


# -- availability and scope --------------------------------------------------------------------------


def test_what_is_unavailable_is_refused_with_what_to_do_and_takes_the_whole_load_with_it() -> None:
    """P6, S10, MR98: all or nothing."""
    plugins = (plugin("git", "log"), plugin("docker", "ps").with_fault("", "Run `pip install docker`."))
    permissions = access_of(*plugins, toolkits=[toolkit("devops", "git", "docker")], allowed_toolkits=("devops",))
    desk = Desk(permissions)
    item = desk.load("devops").items[0]
    assert (item.status, desk.state) == ("tool_unavailable", DEFAULT)
    assert item.details["unavailable_messages"] == ["docker: Run `pip install docker`."]
    assert item.message == (
        "Toolkit 'devops' is not available now: docker: Run `pip install docker`. "
        "Nothing of it is loaded; the rest of it works and can be loaded by name: git."
    )


def test_a_tool_that_lacks_its_environment_is_unavailable() -> None:
    """P6: the condition of one tool."""
    lacking = tool("git", "push", unavailable="Set GIT_TOKEN.")
    desk = Desk(access_of(plugin("git", "log", lacking), discoverable=("*",)))
    assert [statuses(desk.load(name)) for name in ("push", "git", "log")] == [
        ["tool_unavailable"], ["tool_unavailable"], ["loaded"],
    ]  # fmt: skip


def test_a_plugin_that_cannot_be_asked_is_unavailable_and_a_plugin_of_nobody_is_not_found() -> None:
    """P6, P9: a server that does not answer differs from one that is not granted."""
    down = Plugin(name="git", kind="server").with_fault("", "It does not answer.")
    assert statuses(Desk(access_of(down, discoverable=("*",))).load("git")) == ["tool_unavailable"]
    assert statuses(Desk(access_of(down)).load("git")) == ["not_found"]


@pytest.mark.parametrize(
    ("profile", "label"),
    [
        ({"worker_scope": "user"}, "worker_scope=user"),
        ({"worker_scope": "user_agent"}, "worker_scope=user_agent"),
        ({"private_per": "user"}, "private.per=user"),
        ({"circumstances": SessionConstraints(worker_scope="user")}, "worker_scope=user"),
    ],
)
def test_a_shared_only_plugin_is_refused_where_work_is_kept_apart(profile: Any, label: str) -> None:
    """P5, MR48, MR55: scope_incompatible, whether the profile or the session narrows."""
    plugins = (plugin("spotify", "play", shared_only=True), plugin("git", "log"))
    desk = Desk(access_of(*plugins, toolkits=[toolkit("m", "git", "spotify")], allowed_toolkits=("m",), **profile))
    item = desk.load("m").items[0]
    assert (item.status, desk.state) == ("scope_incompatible", DEFAULT)
    assert dict(item.details) == {"scope_label": label, "unsupported_tools": ["spotify"]}


# -- the budget --------------------------------------------------------------------------------------


def budgeted(budget: Budget, **changes: Any) -> Desk:
    plugins = (plugin("file", "read"), plugin("git", "log", "diff"), plugin("docker", "ps"))
    desk = Desk(access_of(*plugins, static=["file"], discoverable=("*",), budget=budget, **changes))
    desk.terms = CommandContext(meta=(tool("pegboard", "load_tools"),), price=flat(100))
    return desk


def test_a_load_over_the_budget_of_tools_is_refused_and_names_what_could_go() -> None:
    """S9: meta-tools count; nothing is unloaded by itself."""
    desk = budgeted(Budget(tools=4))
    desk.load("git")
    before = desk.state
    item = desk.load("docker").items[0]
    assert (item.status, desk.state) == ("over_budget", before)
    assert item.details["could_unload"] == ["git"]
    assert item.message == (
        "Plugin 'docker' does not fit the budget: it would take 5 tools of 4. Unload first, for example: git."
    )
    desk.unload("git")
    assert statuses(desk.load("docker")) == ["loaded"]


def test_a_load_over_the_budget_of_tokens_is_refused() -> None:
    """S9: tokens are those of the whole surface."""
    desk = budgeted(Budget(tokens=399))
    assert desk.load("git").items[0].message == (
        "Plugin 'git' does not fit the budget: it would take 400 tokens of 399."
    )
    assert statuses(desk.load("docker")) == ["loaded"]


def test_what_a_tool_requires_counts_against_the_budget() -> None:
    """S9, T8: leased with it, counted with it."""
    needy = plugin("git", "push", "auth", requires={"push": "git/auth"})
    desk = Desk(access_of(needy, discoverable=("*",), budget=Budget(tools=1)))
    assert statuses(desk.load("push")) == ["over_budget"]
    assert statuses(desk.load("auth")) == ["loaded"]


def test_tools_that_could_go_are_named_as_the_model_knows_them() -> None:
    """S9, G10: by their wire names."""
    server = plugin("git", "log", "diff", kind="server")
    desk = Desk(access_of(server, discoverable=("*",), budget=Budget(tools=1)))
    assert desk.load("git/log").items[0].message.startswith("Tool 'git__log' is loaded")
    assert desk.load("git__diff").items[0].details["could_unload"] == ["git__log"]


# -- loading again -----------------------------------------------------------------------------------


def test_loading_again_refreshes_an_idle_lease() -> None:
    """S7: what was loaded in this turn stays, also when it was out already."""
    desk = Desk(access_of(plugin("git", "log"), discoverable=("*",)))
    desk.load("git", until=LeaseTerm("idle", 5))
    desk.end_turns(6)
    desk.load("log", until=TURN)
    assert desk.end_turns() == ()
    assert desk.end_turns(5) == ()
    assert desk.out == ["log"]
    assert desk.end_turns() == ("log",)


def test_what_was_hung_back_out_of_a_toolkit_comes_back_at_the_end() -> None:
    """F1, S10: nothing moves when it is loaded again, and one unload takes all of it."""
    plugins = (plugin("git", "log", "diff"), plugin("docker", "ps"))
    permissions = access_of(
        *plugins, toolkits=[toolkit("review", "git")], allowed_toolkits=("review",), discoverable=("*",)
    )  # fmt: skip
    desk = Desk(permissions)
    desk.load("review", "docker")
    for _ in range(3):
        desk.unload("log")
        assert desk.out == ["diff", "ps"]
        assert statuses(desk.load("review")) == ["loaded"]
        assert desk.out == ["diff", "ps", "log"]
    assert len(desk.state.leases) == 3
    assert desk.unload("review").removed == ("diff", "log")


def test_a_plugin_is_loaded_already_where_all_its_tools_are_out() -> None:
    """S5: a longer lease is kept all the same."""
    permissions = access_of(
        plugin("git", "log"), toolkits=[toolkit("review", "git")], allowed_toolkits=("review",), discoverable=("*",)
    )  # fmt: skip
    desk = Desk(permissions)
    desk.load("review", until=TURN)
    assert statuses(desk.load("git", until=UNLOAD)) == ["already_loaded"]
    assert desk.end_turns() == ()
    assert desk.out == ["log"]


def test_a_toolkit_is_loaded_for_itself_where_its_tools_are_static() -> None:
    """T5, MR33: identical duplicates are kept once, and the toolkit counts as loaded."""
    permissions = access_of(
        plugin("git", "log"), static=["git"], toolkits=[toolkit("r", "git")], allowed_toolkits=("r",)
    )
    desk = Desk(permissions)
    assert [statuses(desk.load("r")), statuses(desk.load("r"))] == [["loaded"], ["already_loaded"]]
    assert desk.out == ["log"]


def test_function_filters_shape_what_a_load_brings() -> None:
    """T1, MR97: include_tools and exclude_tools of the entry."""
    git = plugin("git", "log", "diff", "push")
    kits = [toolkit("read", member("git", {"exclude_tools": ["push"]}))]
    desk = Desk(access_of(git, toolkits=kits, allowed_toolkits=("read",)))
    desk.load("read")
    assert desk.out == ["log", "diff"]


def test_a_toolkit_that_only_a_switch_grants_is_out_and_loaded_from_the_start() -> None:
    """P2, S10: as an initial one."""
    permissions = access_of(plugin("git", "log"), toolkits=[toolkit("review", "git")], switches={"review": True})
    desk = Desk(permissions)
    assert desk.out == ["log"]
    assert [statuses(desk.load("review")), statuses(desk.unload("review"))] == [["already_loaded"], ["sticky"]]


def test_what_the_active_loadout_leaves_out_cannot_be_loaded_either() -> None:
    """L7: a load that would bring nothing does not say that it did."""
    permissions = access_of(
        plugin("git", "log", category="Git"), plugin("docker", "ps"), static=["docker"], discoverable=("*",),
        loadouts=[Loadout(name="gits", categories=("Git",))],
    )  # fmt: skip
    desk = Desk(permissions, State(loadout="gits"))
    assert desk.out == ["log"]
    assert statuses(desk.load("docker", "git")) == ["not_found", "already_loaded"]
    assert desk.out == ["log"]
