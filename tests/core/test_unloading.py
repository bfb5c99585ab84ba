"""Unloading."""

from typing import Any

import pytest
from states import Desk, access_of, plugin, statuses, toolkit

from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import UNLOAD, Lease
from pegboard.core.state.commands import NO_SESSION, CommandContext
from pegboard.core.state.sessions import DEFAULT, State


def desk_of(**changes: Any) -> Desk:
    plugins = (
        plugin("file", "read"), plugin("git", "log", "diff", category="Git"), plugin("docker", "ps", "run"),
        plugin("arxiv", "find"),
    )  # fmt: skip
    kits = [toolkit("devops", "docker", "git"), toolkit("research", "arxiv"), toolkit("files", "file")]
    profile: dict[str, Any] = {
        "static": ["file"], "allowed_toolkits": ("devops", "research", "files"), "initial_toolkits": ("research",),
        "discoverable": ("*",), **changes,
    }  # fmt: skip
    return Desk(access_of(*plugins, toolkits=kits, **profile))


def test_a_toolkit_is_unloaded_once_and_not_loaded_after() -> None:
    """S10, MR46: unloaded, then not_loaded; nothing fails."""
    desk = desk_of()
    desk.load("devops")
    first, second = desk.unload("devops"), desk.unload("devops")
    assert (statuses(first), statuses(second)) == (["unloaded"], ["not_loaded"])
    assert (first.status, second.status) == ("ok", "ok")
    assert first.removed == ("ps", "run", "log", "diff")
    assert first.items[0].message == "Toolkit 'devops' is unloaded."
    assert second.items[0].message == "Toolkit 'devops' is not loaded."


def test_the_message_of_an_unload_that_comes_with_the_next_request_is_that_of_the_seed() -> None:
    """D2, MR46: the wording of seed 000."""
    desk = desk_of()
    desk.terms = CommandContext(takes_effect="next_request")
    desk.load("devops")
    assert desk.unload("devops").items[0].message == (
        "Toolkit 'devops' will be removed on the next request in this session."
    )


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("research", {}),
        ("arxiv", {}),
        ("find", {}),
        ("file", {}),
        ("read", {}),
        ("read", {"static": [], "essential": ["file"]}),
        ("git", {"loadout": "developer"}),
        ("log", {"discoverable": (), "allowed_toolkits": ("research",), "switches": {"git": True}}),
    ],
    ids=["toolkit", "initial plugin", "initial tool", "static", "static tool", "essential", "loadout", "switch"],
)
def test_what_is_out_from_the_start_is_sticky(name: str, changes: Any) -> None:
    """S10, MR45, MI6: refused, and still out."""
    desk = desk_of(**changes)
    before = desk.out
    outcome = desk.unload(name)
    assert (statuses(outcome), outcome.status) == (["sticky"], "refused")
    assert outcome.items[0].message.endswith("cannot be unloaded: it is loaded from the start.")
    assert (desk.out, desk.state) == (before, DEFAULT)


@pytest.mark.parametrize("subject", [Ref("toolkit", "research"), Ref("plugin", "file"), Ref("tool", "file/read")])
def test_a_lease_from_before_something_became_sticky_does_not_unload_it(subject: Ref) -> None:
    """S10: what the configuration has made initial or static since is sticky."""
    desk = desk_of()
    desk.state = State(leases=(Lease(subject=subject, until=UNLOAD),))
    assert statuses(desk.unload(str(subject))) == ["sticky"]


def test_a_toolkit_of_static_tools_is_just_not_loaded() -> None:
    """S10: only initial toolkits are sticky; its tools are static for themselves."""
    desk = desk_of()
    assert statuses(desk.unload("files")) == ["not_loaded"]
    desk.load("files")
    assert statuses(desk.unload("files")) == ["unloaded"]
    assert desk.out == ["read", "find"]


def test_a_session_without_an_id_says_what_is_not_loaded_before_it_says_error() -> None:
    """S4: the order of seed 000's checks: sticky, not_loaded, error."""
    desk = desk_of()
    desk.load("devops")
    desk.terms = CommandContext(stable=False)
    assert statuses(desk.unload("research", "files", "devops")) == ["sticky", "not_loaded", "error"]
    assert desk.said[-1].items[2].message == NO_SESSION
    assert "ps" in desk.out


def test_an_unknown_and_a_denied_name_look_the_same() -> None:
    """P9, S10: not_found, also for what was loaded before it was denied."""
    desk = desk_of()
    desk.load("docker")
    desk.permissions = desk_of(switches={"docker": False}).permissions
    assert [item.message for item in desk.unload("docker", "nothing").items] == [
        "'docker' was not found.",
        "'nothing' was not found.",
    ]


def test_one_tool_leaves_a_toolkit_and_the_rest_stays() -> None:
    """S10: it goes from every lease that covers it."""
    desk = desk_of()
    desk.load("devops", "git")
    assert desk.unload("log").removed == ("log",)
    assert desk.out == ["read", "find", "ps", "run", "diff"]
    assert statuses(desk.unload("log")) == ["not_loaded"]


def test_a_plugin_leaves_a_toolkit_and_the_last_one_takes_the_lease_with_it() -> None:
    """S10: a lease of which nothing is left is no lease."""
    desk = desk_of()
    desk.load("devops")
    desk.unload("docker")
    assert desk.out == ["read", "find", "log", "diff"]
    desk.unload("git")
    assert desk.state.leases == ()


def test_a_toolkit_leaves_what_was_loaded_for_itself() -> None:
    """S5: several leases on one tool; one goes, the other stands."""
    desk = desk_of()
    desk.load("log", "devops")
    assert desk.unload("devops").removed == ("ps", "run", "diff")
    assert desk.out == ["read", "find", "log"]


def test_a_required_tool_is_sticky_while_something_needs_it() -> None:
    """T8, S10: the answer names what needs it."""
    desk = Desk(access_of(plugin("git", "push", "auth", requires={"push": "git/auth"}), discoverable=("*",)))
    desk.load("push")
    item = desk.unload("auth").items[0]
    assert (item.status, item.message) == ("sticky", "Tool 'auth' cannot be unloaded: push needs it.")


def test_a_tool_that_was_loaded_and_is_required_loses_its_lease_and_stays_out() -> None:
    """T8: the answer does not pretend that it is gone."""
    desk = Desk(access_of(plugin("git", "push", "auth", requires={"push": "git/auth"}), discoverable=("*",)))
    desk.load("auth", "push")
    outcome = desk.unload("auth")
    assert outcome.items[0].message == "Tool 'auth' is unloaded. A part of it stays loaded: push needs it."
    assert (outcome.removed, sorted(desk.out)) == ((), ["auth", "push"])
    assert desk.unload("push").removed == ("push", "auth")
