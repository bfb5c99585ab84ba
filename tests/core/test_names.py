"""What a name means: to a load, to a call, and to an operator."""

from dataclasses import replace

import pytest
from builders import known
from states import access_of, plugin, toolkit

from pegboard.core.access.names import (
    ExactName,
    HiddenTool,
    NearName,
    UnknownName,
    UnseenTool,
    lookup,
    resolve,
    resolve_called,
    resolve_tool,
)
from pegboard.core.access.switches import switchable
from pegboard.core.model.catalog import Ref
from pegboard.core.model.tools import Plugin
from pegboard.core.state.call_plans import Refuse, plan_call
from pegboard.core.state.sessions import DEFAULT

HUB = Plugin(name="hub", kind="server", prefix="gh")
SECRET = Plugin(name="vault", kind="server", prefix="v")
KNOWN = (plugin("git", "Log", "diff", kind="server"), plugin("off", "erase", "Log", kind="server"))
PERMISSIONS = access_of(*KNOWN, HUB, SECRET, discoverable=("git", "hub"), toolkits=(toolkit("Dev", "git"),))
CATALOG = PERMISSIONS.world.catalog
LOG, DIFF, ERASE = (known(PERMISSIONS, tool_id) for tool_id in ("git/Log", "git/diff", "off/erase"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("git", ExactName(Ref("plugin", "git"))),
        ("GIT", NearName(Ref("plugin", "git"))),
        ("git__diff", ExactName(Ref("tool", "git/diff"))),
        ("tool:DIFF", NearName(Ref("tool", "git/diff"))),
        ("Log", ExactName(Ref("tool", "git/Log"))),
        ("erase", UnknownName()),
        ("off", UnknownName()),
        ("hub", ExactName(Ref("plugin", "hub"))),
        ("hub/push", UnseenTool(HUB)),
        ("tool:gh__push", UnseenTool(HUB)),
        ("v__read", UnknownName()),
        ("vault", UnknownName()),
        ("nothing", UnknownName()),
    ],
)
def test_what_a_load_names(name: str, expected: object) -> None:
    """P9: what is denied, a plugin that no one asked among it, is like what there is not."""
    assert resolve(PERMISSIONS, name) == expected
    assert lookup(PERMISSIONS, name) == (expected.meant if isinstance(expected, ExactName | NearName) else None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("git__diff", ExactName(DIFF)),
        ("git/diff", ExactName(DIFF)),
        ("GIT__diff", NearName(DIFF)),
        ("Log", ExactName(LOG)),
        ("DIFF", NearName(DIFF)),
        ("gh__push", UnseenTool(HUB)),
        ("hub__push", UnseenTool(HUB)),
        ("v__read", UnknownName()),
        ("nothing", UnknownName()),
    ],
)
def test_what_a_call_names(name: str, expected: object) -> None:
    """P9, X1: a tool; the plugin that may have it is asked, by its name or its prefix."""
    assert resolve_called(PERMISSIONS, name) == expected
    plan = plan_call(PERMISSIONS, DEFAULT, name)
    if isinstance(expected, UnseenTool | UnknownName):
        assert isinstance(plan, Refuse)
        assert plan.owner == (HUB.name if isinstance(expected, UnseenTool) else "")
        assert (plan.message, plan.reason.code) == (f"Tool '{name}' was not found.", "unknown")


@pytest.mark.parametrize("name", ["erase", "off/erase"])
def test_a_denied_tool_that_is_called_is_hidden_with_its_reason(name: str) -> None:
    """P9: the reason goes to the audit, the model reads what it reads of a name that there is not."""
    hidden = resolve_called(PERMISSIONS, name)
    assert isinstance(hidden, HiddenTool)
    assert (hidden.tool, hidden.reason.code) == (ERASE, "not_granted")
    plan = plan_call(PERMISSIONS, DEFAULT, name)
    assert isinstance(plan, Refuse)
    assert (plan.message, plan.reason) == (f"Tool '{name}' was not found.", hidden.reason)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("erase", ExactName(ERASE)),
        ("tool:ERASE", NearName(ERASE)),
        ("Log", UnknownName()),
        ("toolkit:erase", UnknownName()),
        ("gh__push", UnseenTool(HUB)),
        ("vault", UnseenTool(SECRET)),
        ("git", UnknownName()),
    ],
)
def test_what_an_operator_names(name: str, expected: object) -> None:
    """F5: a tool of any plugin, whoever may use it; a name that several have means none."""
    assert resolve_tool(CATALOG, name) == expected


@pytest.mark.parametrize(("name", "can"), [("gh__push", True), ("hub__push", True), ("gh", False), ("tool:hub", False)])
def test_a_tool_of_a_plugin_that_was_not_asked_can_be_switched(name: str, can: bool) -> None:
    """P2: by its plugin's name or prefix, not by these alone."""
    assert switchable(PERMISSIONS.world, name) is can
    asked = replace(
        PERMISSIONS.world, catalog=CATALOG.with_plugins([plugin("hub", "pull", kind="server", prefix="gh")])
    )
    assert not switchable(asked, name)
