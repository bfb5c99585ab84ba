"""Every place that says why a tool cannot run says the same reason, whatever the reason comes from."""

from collections.abc import Callable
from typing import Any

import pytest
from builders import known
from states import Desk, access_of, plugin, tool, toolkit

from pegboard.core.access.permissions import CompiledPermissions, tool_fault
from pegboard.core.access.settings.panels import PanelRows, groups
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import UNLOAD, Lease
from pegboard.core.model.tools import Frozen
from pegboard.core.state.active_tools import active_tools, available_tools
from pegboard.core.state.call_plans import Refuse, plan_call
from pegboard.core.state.requirements import missing_requirements, usable
from pegboard.core.surface.explanations import explain

WHY = "Set the key and start again."


def of_tool(**profile: Any) -> CompiledPermissions:
    lacking = tool("git", "push", unavailable=WHY)
    return access_of(plugin("git", "log", lacking), plugin("ci", "run", requires={"run": "git/push"}), **profile)


def of_predicate(**profile: Any) -> CompiledPermissions:
    permissions = access_of(plugin("git", "log", "push"), plugin("ci", "run", requires={"run": "git/push"}), **profile)
    return permissions.with_faults(Frozen({"git/push": WHY}))


def of_plugin(**profile: Any) -> CompiledPermissions:
    down = plugin("git", "log", "push").with_fault("", WHY)
    return access_of(down, plugin("ci", "run", requires={"run": "git/push"}), **profile)


KINDS = pytest.mark.parametrize("permissions_of", [of_tool, of_predicate, of_plugin])


@KINDS
def test_every_place_says_why_a_tool_cannot_run(permissions_of: Callable[..., CompiledPermissions]) -> None:
    """P6, T12: a load, a call, an explanation, a panel, and what requires it; a model never sees it."""
    permissions = permissions_of(discoverable=("*",), toolkits=(toolkit("kit", "push"),))
    push, run = known(permissions, "git/push"), known(permissions, "ci/run")
    desk = Desk(permissions)
    said = {"all": tool_fault(permissions, push)}
    said["load"] = desk.load("push").items[0].details["unavailable_messages"][0].partition(": ")[2]
    leased = desk.state.with_lease(Lease(subject=Ref("tool", "git/push"), until=UNLOAD))
    plan = plan_call(permissions, leased, "push")
    assert isinstance(plan, Refuse)
    said["call"] = plan.reason.text
    said["explained, not loaded"] = explain(permissions, desk.state, push).reasons[-1].text
    said["explained, loaded"] = explain(permissions, leased, push).reasons[-1].text
    (kit,) = [group for group in groups(permissions) if group.name == "kit"]
    (row,) = PanelRows(permissions, permissions).members(kit)
    said["panel"] = row.fault or ""
    said["required"] = missing_requirements(permissions, (run,))[0].partition("not available now: ")[2]
    assert said == dict.fromkeys(said, WHY)
    assert push.id in active_tools(permissions, leased)
    assert push not in available_tools(permissions, leased)
    assert push not in usable(permissions)


def test_a_fault_counts_under_the_overrides_that_it_concerns() -> None:
    """P6: a plugin that cannot run as one toolkit sets it runs by its own name."""
    broken = plugin("git", "push").with_fault('{"root": "x"}', WHY)
    permissions = access_of(broken, discoverable=("*",), toolkits=(toolkit("kit", ("git", {"root": "x"})),))
    (push,) = broken.tools
    assert tool_fault(permissions, push) == ""
    assert tool_fault(permissions, push, '{"root": "x"}') == WHY
    assert (broken.unavailable, broken.faults(), broken.faults(without={'{"root": "x"}'})) == (WHY, (WHY,), ())
