"""What a call by a model comes to, before anything runs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, toolkit

from pegboard.core.access.names import find_called
from pegboard.core.model.leases import UNLOAD
from pegboard.core.state.call_plans import LoadFirst, Refuse, Run, answer, plan_call
from pegboard.core.state.sessions import DEFAULT


def desk_of(**changes: Any) -> Desk:
    plugins = (plugin("file", "read"), plugin("git", "log", "Diff", kind="server"), plugin("off", "never"))
    profile: dict[str, Any] = {"static": ["file"], "discoverable": ("git",), **changes}
    return Desk(access_of(*plugins, **profile))


def test_a_tool_that_is_out_runs_under_the_overrides_of_its_entry() -> None:
    """X1: by its wire name, its id, or its own name."""
    desk = desk_of(static=[("file", {"root": "x"})])
    for name in ("read", "file/read", "READ"):
        plan = plan_call(desk.permissions, desk.state, name)
        assert isinstance(plan, Run)
        assert (plan.loaded.tool.id, plan.loaded.overrides) == ("file/read", {"root": "x"})


@pytest.mark.parametrize("then", ["safe", "schema", "run"])
@pytest.mark.parametrize("name", ["git__log", "git/log", "log", "GIT__LOG", "git__diff"])
def test_a_permitted_tool_that_is_not_loaded_is_loaded_first(name: str, then: Any) -> None:
    """X1, MI16: it alone; what follows is the agent's choice."""
    desk = desk_of(unloaded_call=then)
    plan = plan_call(desk.permissions, desk.state, name)
    assert isinstance(plan, LoadFirst)
    assert (plan.tool.plugin, plan.then) == ("git", then)
    desk.load(f"tool:{plan.tool.id}")
    assert desk.out == ["read", plan.tool.wire]
    assert isinstance(plan_call(desk.permissions, desk.state, name), Run)


def test_a_call_that_loads_leases_the_tool_and_not_its_toolkit() -> None:
    """X1: the toolkit stays as it was."""
    permissions = access_of(
        plugin("git", "log", "diff"), toolkits=[toolkit("review", "git")], allowed_toolkits=("review",)
    )
    plan = plan_call(permissions, DEFAULT, "log")
    assert isinstance(plan, LoadFirst)
    desk = Desk(permissions)
    desk.load(f"tool:{plan.tool.id}")
    assert desk.out == ["log"]


def test_an_agent_may_refuse_calls_of_what_is_not_loaded() -> None:
    """X1: reject."""
    plan = plan_call(desk_of(unloaded_call="reject").permissions, DEFAULT, "log")
    assert isinstance(plan, Refuse)
    assert (plan.status, plan.message, plan.reason.code) == (
        "not_loaded", "'git__log' is not loaded. Load it first.", "not_loaded",
    )  # fmt: skip


def test_a_denied_and_an_unknown_tool_look_the_same_and_the_reason_is_kept_for_the_audit() -> None:
    """P3, P9: not_found; only the reason differs."""
    permissions = desk_of(switches={"git": False}).permissions
    plans = {name: plan_call(permissions, DEFAULT, name) for name in ("git__log", "never", "nothing")}
    codes: list[str] = []
    for name, plan in plans.items():
        assert isinstance(plan, Refuse)
        assert (plan.status, plan.message, plan.tool) == ("not_found", f"Tool '{name}' was not found.", None)
        codes.append(plan.reason.code)
    assert codes == ["denied_switch", "not_granted", "unknown"]


def test_a_revoked_permission_binds_the_next_call() -> None:
    """P4, P3: although the lease still is in the state."""
    desk = desk_of()
    desk.load("git", until=UNLOAD)
    plan = plan_call(desk_of(discoverable=()).permissions, desk.state, "git__log")
    assert isinstance(plan, Refuse)


def test_of_two_own_names_a_denied_one_hides_nothing() -> None:
    """P9: an own name is taken as if there were no denied tool of that name."""
    twice = access_of(plugin("a", "log", prefix="a"), plugin("b", "log", prefix="b"), discoverable=("b",))
    found = find_called(twice, "log")
    assert found is not None
    assert found.id == "b/log"
    both = access_of(plugin("a", "log", prefix="a"), plugin("b", "log", prefix="b"), discoverable=("*",))
    assert find_called(both, "log") is None


@pytest.mark.parametrize("name", ["echo", "talk/echo"])
def test_a_name_on_the_wire_never_begins_to_mean_another_tool(name: str) -> None:
    """P4, P9: what is switched off is not found, although a server has a permitted tool of that own name."""
    plugins = (plugin("talk", "echo"), plugin("up", "echo", kind="server"))
    on = access_of(*plugins, discoverable=("*",))
    found = find_called(on, name)
    assert found is not None
    assert found.id == "talk/echo"
    off = access_of(*plugins, discoverable=("*",), switches={"talk": False})
    assert find_called(off, name) is None
    plan = plan_call(off, DEFAULT, name)
    assert isinstance(plan, Refuse)
    assert (plan.status, plan.message, plan.tool) == ("not_found", f"Tool '{name}' was not found.", None)
    assert plan.reason.code == "denied_switch"
    assert find_called(off, "up__echo") is not None
    assert find_called(access_of(plugins[1], discoverable=("*",)), "echo") is not None


def test_a_tool_that_is_out_and_unavailable_says_what_to_do() -> None:
    """P6: not as if it were unknown."""
    permissions = access_of(plugin("git", "log").with_fault("", "Start the server."), static=["git"])
    plan = plan_call(permissions, DEFAULT, "log")
    assert isinstance(plan, Refuse)
    assert (plan.status, plan.message) == ("tool_unavailable", "'log' is not available now: Start the server.")


@given(name=st.text(max_size=300))
def test_any_name_can_be_called(name: str) -> None:
    """P9: whatever a model makes up is answered, and shortly."""
    plan = plan_call(desk_of().permissions, DEFAULT, name)
    assert not isinstance(plan, Refuse) or len(plan.message) < 130


def test_an_answer_to_what_did_not_run_is_an_error_with_its_data_as_a_second_block() -> None:
    """X1: is_error, so that a client does not validate it as a result."""
    alone, more = answer("refused", "No."), answer("not_loaded", "Loaded now.", data={"name": "é"})
    assert (alone.is_error, alone.status, alone.result.content) == (True, "refused", ({"type": "text", "text": "No."},))
    assert more.is_error
    assert json.loads(more.result.content[1]["text"]) == {"name": "é"}
