"""What a model is told of tools: only while it has them, and of nothing that it does not have."""

from dataclasses import replace
from typing import Any

from states import Desk, access_of, plugin, tool, toolkit

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import Tool
from pegboard.core.surface.policy import initial, policy_of_added

FORGE = plugin("forge", "forge_check", "forge_deploy", "forge_merge")
TEXT = "Use {tools} with care.\nCall forge_deploy after forge_check.\nAsk before forge_merge."


def forge(policy: str = TEXT, *more: Any, **profile: Any) -> CompiledPermissions:
    kit = replace(toolkit("evolution", "forge", *more), policy=policy)
    given: dict[str, Any] = {"allowed_toolkits": ("evolution",), **profile}
    return access_of(FORGE, toolkits=[kit], **given)


def known(permissions: CompiledPermissions, *names: str) -> list[Tool]:
    return [held for name in names for held in permissions.world.catalog.by_wire(name)]


def test_the_policy_of_an_initial_toolkit_stands_in_the_prefix() -> None:
    """T6: `{tools}` stands for the visible members, by their wire names."""
    desk = Desk(forge(initial_toolkits=("evolution",)))
    assert initial(desk.permissions, desk.state) == (
        "Use forge_check, forge_deploy, forge_merge with care.\n"
        "Call forge_deploy after forge_check.\nAsk before forge_merge."
    )


def test_policy_is_absent_while_no_member_is_visible() -> None:
    """SJ13, T6: not loaded, switched off, or unavailable."""
    desk = Desk(forge())
    assert initial(desk.permissions, desk.state) == ""
    off = Desk(forge(initial_toolkits=("evolution",), switches={"evolution": False}))
    assert initial(off.permissions, off.state) == ""
    gone = FORGE.with_fault("", "It is down.")
    kit = replace(toolkit("evolution", "forge"), policy=TEXT)
    down = access_of(gone, toolkits=[kit], allowed_toolkits=("evolution",), initial_toolkits=("evolution",))
    assert initial(down, Desk(down).state) == ""


def test_policy_names_only_members_that_are_visible() -> None:
    """SJ14, T6: a line that names another member is excluded, and `{tools}` does not name it either."""
    desk = Desk(forge(initial_toolkits=("evolution",), switches={"forge_deploy": False}))
    assert initial(desk.permissions, desk.state) == "Use forge_check, forge_merge with care.\nAsk before forge_merge."


def test_a_member_is_found_by_its_wire_name_its_own_name_and_as_it_is_written() -> None:
    """SJ14, T6: whole words only; a line in another script counts too."""
    server = plugin("git", "log", "push", kind="server")
    chat = plugin("chat", "say")
    policy = "A: git__push\nB: use push\nC: chat first\nD: pushing\nE: git__push_all\nF: 用git__push吧\nG: git__log"
    kit = replace(toolkit("dev", "git", "chat"), policy=policy)
    off = {"git/push": False, "chat": False}
    permissions = access_of(
        server, chat, toolkits=[kit], allowed_toolkits=("dev",), initial_toolkits=("dev",), switches=off
    )
    assert initial(permissions, Desk(permissions).state) == "D: pushing\nE: git__push_all\nG: git__log"


def test_a_name_that_a_visible_member_has_too_is_no_other_member() -> None:
    """T6: two servers with a tool of the same own name."""
    one, two = plugin("one", "search", kind="server"), plugin("two", "search", kind="server")
    kit = replace(toolkit("find", "one", "two"), policy="Try search first.\nThen two__search.")
    permissions = access_of(
        one, two, toolkits=[kit], allowed_toolkits=("find",), initial_toolkits=("find",), switches={"two": False}
    )
    assert initial(permissions, Desk(permissions).state) == "Try search first."


def test_a_later_load_brings_its_policy_and_the_prefix_stays() -> None:
    """T6, F1: what is said in the prefix does not change when something is loaded."""
    desk = Desk(forge())
    desk.load("forge_check")
    assert initial(desk.permissions, desk.state) == ""
    assert (
        policy_of_added(desk.permissions, desk.state, known(desk.permissions, "forge_check"))
        == "Use forge_check with care."
    )
    desk.load("evolution")
    assert "Ask before forge_merge." in policy_of_added(
        desk.permissions, desk.state, known(desk.permissions, "forge_merge")
    )


def test_what_the_prefix_says_already_is_not_said_again() -> None:
    """T6: unless a load makes more of it true."""
    permissions = forge(static=["forge_check"])
    desk = Desk(permissions)
    assert initial(permissions, desk.state) == "Use forge_check with care."
    assert policy_of_added(permissions, desk.state, known(permissions, "forge_check")) == ""
    desk.load("forge_deploy")
    said = policy_of_added(permissions, desk.state, known(permissions, "forge_deploy"))
    assert said == "Use forge_check, forge_deploy with care.\nCall forge_deploy after forge_check."


def test_the_policy_of_a_toolkit_that_is_not_the_agents_is_not_said() -> None:
    """T6, P9: even where a member is visible for another reason."""
    permissions = forge(static=["forge_check"], allowed_toolkits=())
    assert initial(permissions, Desk(permissions).state) == ""


def test_a_tool_has_policy_of_its_own() -> None:
    """T6: said after that of toolkits, while that tool is visible."""
    shell = plugin("shell", tool("shell", "run", policy="Never run {tools} as root.\x07"), "stop")
    permissions = access_of(shell, static=["run"], discoverable=("*",))
    assert initial(permissions, Desk(permissions).state) == "Never run run as root."
    later_on = access_of(shell, static=["stop"], discoverable=("*",))
    desk = Desk(later_on)
    assert initial(later_on, desk.state) == ""
    desk.load("run")
    assert policy_of_added(later_on, desk.state, known(later_on, "run")) == "Never run run as root."
