"""What demands that a person approves a call (A1, T13)."""

from typing import Any

import pytest

from pegboard.core.access.approvals.demands import Demand, ToolRules, demand_of, rules_of
from pegboard.core.access.read_only import CountedClaims
from pegboard.core.model.specs import PythonSpec, ServerSpec
from pegboard.core.model.tools import Confirmation, Frozen, Plugin, Tool

SCHEMA = Frozen(
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "force": {"type": "boolean", "default": True}, "paths": {}},
    }
)


def tool(name: str = "wipe", **fields: Any) -> Tool:
    return Tool(plugin="disk", name=name, wire=f"disk__{name}", input_schema=SCHEMA, **fields)


def rules(
    approve: dict[str, Any],
    *,
    server: bool = True,
    trusted: bool = False,
    counted: tuple[str, ...] = (),
    harmless: tuple[str, ...] = (),
    **fields: Any,
) -> ToolRules | None:
    plugin = Plugin(name="disk", kind="server" if server else "python", trusted=trusted)
    spec = ServerSpec(name="disk", approve=approve) if server else PythonSpec(name="disk", target="d", approve=approve)
    return rules_of(
        plugin, spec, tool(**fields), CountedClaims(read_only=frozenset(counted), harmless=frozenset(harmless))
    )


def asks(approve: dict[str, Any], arguments: dict[str, Any] | None = None, **more: Any) -> Demand | None:
    found = rules(approve, **more)
    return None if found is None else demand_of(found, tool(), arguments or {})


def test_nothing_is_demanded_where_no_rule_and_no_mark_speaks_of_the_tool() -> None:
    """A1: then the gate is not even asked."""
    assert rules({}) is None
    assert rules({"other": "always"}) is None
    assert rules({"wipe_all": "always", "w?pe_": "always"}) is None


@pytest.mark.parametrize("key", ["wipe", "disk__wipe", "wip*", "*"])
def test_always_demands_it_of_every_call_of_the_tools_that_a_name_or_pattern_means(key: str) -> None:
    """A1: `approve: {tool: always}`."""
    found = asks({key: "always"})
    assert found is not None
    assert found.reason == f"approve.{key} is always"


@pytest.mark.parametrize(
    ("server", "trusted", "counted", "harmless", "annotations", "expected"),
    [
        (True, True, (), (), {"destructiveHint": True}, True),
        (True, True, (), ("wipe",), {"destructiveHint": True}, True),
        (True, True, (), (), {}, True),
        (True, True, (), ("wipe",), {}, True),
        (True, True, (), (), {"destructiveHint": False}, True),
        (True, True, (), ("wipe",), {"destructiveHint": False}, False),
        (True, True, (), (), {"destructiveHint": "no"}, True),
        (True, True, ("wipe",), (), {"readOnlyHint": True}, False),
        (True, True, (), (), {"readOnlyHint": True}, True),
        (True, True, ("wipe",), (), {"readOnlyHint": True, "destructiveHint": True}, True),
        (True, False, (), (), {}, True),
        (True, False, (), ("wipe",), {"destructiveHint": False}, True),
        (True, False, ("wipe",), (), {"readOnlyHint": True}, True),
        (False, False, (), (), {"destructiveHint": True}, True),
        (False, False, (), (), {}, False),
    ],
)
def test_destructive_believes_whom_the_operator_trusts_as_first_seen(
    server: bool,
    trusted: bool,
    counted: tuple[str, ...],
    harmless: tuple[str, ...],
    annotations: dict[str, Any],
    expected: bool,
) -> None:
    """A1, A4: of a trusted server all but what counts as harmless; of another everything; of own plugins hints."""
    claims: dict[str, Any] = {"counted": counted, "harmless": harmless}
    found = asks({"*": "destructive"}, server=server, trusted=trusted, annotations=Frozen(annotations), **claims)
    assert (found is not None) is expected


@pytest.mark.parametrize(
    ("patterns", "arguments", "expected"),
    [
        ({"path": ("/etc/*",)}, {"path": "/etc/passwd"}, True),
        ({"path": ("/etc/*",)}, {"path": "/tmp/../etc/passwd"}, True),
        ({"path": ("/etc/*",)}, {"path": "%2Fetc%2Fpasswd"}, True),
        ({"path": ("/etc/*",)}, {"path": "/srv/a"}, False),
        ({"path": ("/etc/*",)}, {}, False),
        ({"paths": ("/etc/*",)}, {"paths": ["/srv/a", "/etc/b"]}, True),
        ({"force": ("true",)}, {}, True),
        ({"force": ("true",)}, {"force": False}, False),
        ({"pth": ("/etc/*",)}, {"path": "/srv/a"}, True),
    ],
)
def test_a_rule_about_an_argument_is_compared_as_guards_are(
    patterns: dict[str, tuple[str, ...]], arguments: dict[str, Any], expected: bool
) -> None:
    """A1: dot segments and encodings hide nothing; a default counts; a misspelt argument lets nothing through."""
    assert (asks({"wipe": patterns}, arguments) is not None) is expected


def test_of_several_rules_about_one_argument_each_counts() -> None:
    """A1, P10: one that is added takes none away."""
    approve: dict[str, Any] = {"wipe": {"path": ["/etc/*"]}, "w*": {"path": ["/srv/*"]}}
    for path in ("/etc/passwd", "/srv/data"):
        assert asks(approve, {"path": path}) is not None
    assert asks(approve, {"path": "docs"}) is None


@pytest.mark.parametrize("kind", ["confirm", "user_input", "external"])
def test_a_mark_of_the_source_counts_without_any_rule_and_goes_before_one(kind: Any) -> None:
    """T13: what a person does is as the source says."""
    marked = Confirmation(kind=kind, fields=("code",), schema=Frozen({"properties": {"code": {}}}))
    for approve in ({}, {"wipe": "always"}):
        found = asks(approve, confirmation=marked)
        assert found is not None
        assert (found.kind, found.fields) == (kind, marked.schema)


def test_a_hook_of_the_source_is_asked_only_where_nothing_else_demands_it() -> None:
    """A1: the rules hold whatever the hook says."""
    hooked = Confirmation(hook=True)
    found = rules({}, confirmation=hooked)
    assert found is not None
    assert (found.hook, demand_of(found, tool(), {})) == (True, None)
    assert asks({"wipe": "always"}, confirmation=hooked) is not None


def test_what_is_in_force_changes_with_the_rules_and_the_guards_of_the_tool() -> None:
    """A2: an approval is bound to it."""
    plugin = Plugin(name="disk", kind="server")
    always = {"wipe": "always"}
    specs = [
        ServerSpec(name="disk", approve=always),
        ServerSpec(name="disk", approve={**always, "*": "destructive"}),
        ServerSpec(name="disk", approve=always, guards={"wipe": {"path": {"deny": ["/etc/*"]}}}),
    ]
    found = [rules_of(plugin, spec, tool(), CountedClaims()) for spec in specs]
    assert len({str(one.in_force) for one in found if one is not None}) == 3
    other = ServerSpec(name="disk", approve={**always, "read": "always"}, guards={"read": {}})
    assert rules_of(plugin, other, tool(), CountedClaims()) == found[0]
