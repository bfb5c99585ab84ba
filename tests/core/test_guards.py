"""What an argument may be: patterns, and the ways around them that do not lead around them."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import tool

from pegboard.core.access.guards import broken_rule, first_match
from pegboard.core.model.tools import Tool

READ = tool(
    "files",
    "read",
    wire="files__read",
    input_schema={"type": "object", "properties": {"path": {}, "mode": {}, "url": {}}},
)


def says(rule: dict[str, Any], value: Any, *, argument: str = "path") -> str:
    return broken_rule({"read": {argument: rule}}, READ, {argument: value})


def test_a_refusal_names_the_rule_and_not_the_value() -> None:
    """T10, X4: the rule by its place in the configuration."""
    assert says({"deny": ["/etc/*"]}, "/etc/passwd") == (
        "'files__read' is not called: its argument 'path' may not match '/etc/*' (guards.read.path.deny)."
    )
    assert says({"allow": ["docs/*", "*.md"]}, "secret.key") == (
        "'files__read' is not called: its argument 'path' must match one of 'docs/*', '*.md' (guards.read.path.allow)."
    )


def test_rules_under_both_names_of_a_tool_count_together() -> None:
    """T10, P10: one that is added takes none away."""
    guards = {"files__read": {"path": {"deny": ["/etc/*"]}}, "read": {"path": {"deny": ["/srv/*"]}}}
    assert "guards.files__read.path.deny" in broken_rule(guards, READ, {"path": "/etc/passwd"})
    assert "guards.read.path.deny" in broken_rule(guards, READ, {"path": "/srv/a"})
    assert broken_rule(guards, READ, {"path": "docs/a"}) == ""


def test_what_keeps_to_the_rules_may_run() -> None:
    """T10: deny beats allow; no rule, or an argument that is omitted, breaks nothing."""
    rule = {"allow": ["docs/*", "*.md"], "deny": ["*secret*"]}
    assert says(rule, "docs/a/b.txt") == ""
    assert says(rule, "./docs//a.txt") == ""
    assert says(rule, "README.md") == ""
    assert "deny" in says(rule, "docs/secret.md")
    assert broken_rule({"read": {"path": rule}}, READ, {"mode": "x"}) == ""
    assert broken_rule({"other": {"path": rule}}, READ, {"path": "secret"}) == ""
    assert broken_rule({}, READ, {"path": "secret"}) == ""


@pytest.mark.parametrize(
    "value",
    [
        "docs/../etc/passwd",
        "docs/./../etc/passwd",
        "./docs/../../etc/passwd",
        "docs\\..\\etc\\passwd",
        "docs/%2e%2e/etc/passwd",
        "docs/%252e%252e%252fetc/passwd",
        "docs/%2e%2e/%2564ocs/x",
        "docs/..",
        "..",
        "file:///docs/../etc/passwd",
        ["docs/a", "docs/../etc/passwd"],
        [],
        {"docs/a": "docs/a"},
        None,
    ],
)
def test_no_way_of_writing_a_path_leads_out_of_what_is_allowed(value: Any) -> None:
    """T10: dot segments, backslashes, encoding, lists."""
    assert "allow" in says({"allow": ["docs/*"]}, value)


@pytest.mark.parametrize(
    "value",
    [
        "/etc/passwd",
        "//etc/passwd",
        "/srv/../etc/passwd",
        "/./etc/./passwd",
        " /etc/passwd",
        "../../../etc/passwd",
        "a/../../etc/passwd",
        "\\etc\\passwd",
        "/%65tc/passwd",
        "file:///etc/passwd",
        "file://localhost/srv/../etc/passwd",
        ["notes", "/etc/passwd"],
        {"from": {"at": ["/etc/passwd"]}},
    ],
)
def test_no_way_of_writing_a_path_leads_into_what_is_denied(value: Any) -> None:
    """T10: however it is written, and wherever in the value."""
    assert "deny" in says({"deny": ["/etc/*"]}, value)


def test_addresses_are_compared_without_their_dot_segments() -> None:
    """T10: scheme and host in small letters."""
    rule = {"allow": ["https://api.example.com/v1/*"]}
    assert says(rule, "https://api.example.com/v1/users/", argument="url") == ""
    assert says(rule, "HTTPS://API.example.com/v1/a?b=c", argument="url") == ""
    assert says(rule, "https://api.example.com/v1/../admin", argument="url") != ""
    assert says(rule, "https://evil.example.com/https://api.example.com/v1/x", argument="url") != ""


def test_what_is_no_text_is_compared_as_json() -> None:
    """T10: numbers, booleans, lists and mappings."""
    assert says({"allow": ["5", "true", "null"]}, 5) == ""
    assert says({"allow": ["5", "true", "null"]}, True) == ""
    assert says({"allow": ["5", "true", "null"]}, None) == ""
    assert says({"deny": ["false"]}, False) != ""
    assert says({"deny": ["*admin*"]}, {"role": "admin"}) != ""
    assert says({"allow": ['["a", "b"]']}, ["a", "b"]) == ""
    assert says({"allow": ["a", "b"]}, ["a", "b"]) == ""
    assert says({"allow": []}, "anything") != ""


@pytest.mark.parametrize("value", [1e6, 1e16, -1e16, 1.5e16, 1e300, sys.float_info.max])
def test_a_pattern_that_counts_characters_misses_no_large_number(value: float) -> None:
    """T10, A1: a rule made from a card asks about a million and more, however JSON writes the number."""
    assert first_match(["???????*"], value) is not None
    assert says({"allow": ["??????"]}, value) != ""


def test_a_guard_of_an_argument_that_does_not_exist_refuses_every_call() -> None:
    """T10: a guard that is misspelt lets nothing through."""
    said = broken_rule({"read": {"paht": {"deny": ["x"]}}}, READ, {"path": "a"})
    assert said == "'files__read' is guarded by guards.read.paht, and it has no argument 'paht'; it cannot be called."
    odd: Tool = tool("files", "read", wire="files__read", input_schema={"type": "object"})
    assert broken_rule({"files__read": {"path": {"deny": ["x"]}}}, odd, {}) != ""


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner))


@given(value=JSON)
def test_a_rule_that_denies_everything_lets_nothing_through(value: Any) -> None:
    """T10: whatever the value, both lists answer."""
    assert says({"deny": ["*"]}, value) != ""
    assert says({"deny": ["*"], "allow": ["*"]}, value) != ""


@given(value=st.text())
def test_climbing_never_reaches_what_is_outside(value: str) -> None:
    """T10: what is let through by a folder's pattern stays below that folder."""
    path = f"docs/{value}"
    if not says({"allow": ["docs/*"]}, path):
        import posixpath
        from urllib.parse import unquote

        for reading in (path, unquote(path), unquote(unquote(path))):
            assert posixpath.normpath(reading.replace("\\", "/")).startswith("docs/")
