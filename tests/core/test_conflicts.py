"""The same tool from two places, and two tools of one name."""

from typing import Any

import pytest
from builders import permissions_of, plugin, toolkit, world

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.masking import Masker
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.commands import CommandContext, Load
from pegboard.core.state.loading import Conflict, conflict_of, convert_overrides, equal
from pegboard.core.state.sessions import State
from pegboard.core.state.transitions import transition

TYPES = {"port": "integer", "ratio": "number", "safe": "boolean", "host": "string", "tags": "array", "more": "object"}
SQL = plugin("sql", "query", parameters=TYPES, secrets=frozenset({"db_url"}))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"port": 5}, {"port": "5"}),
        ({"port": " 5 "}, {"port": 5}),
        ({"ratio": 1}, {"ratio": "1.0"}),
        ({"ratio": 0.5}, {"ratio": "0.50"}),
        ({"safe": True}, {"safe": "TRUE"}),
        ({"safe": False}, {"safe": "false"}),
        ({"host": 5432}, {"host": "5432"}),
        ({"port": 5, "host": "x"}, {"host": "x", "port": 5}),
        ({"more": {"a": 1, "b": [2]}}, {"more": {"b": [2], "a": 1}}),
        ({"unheard": 1}, {"unheard": 1}),
        ({}, {}),
    ],
)
def test_spellings_of_the_same_settings_are_equal(left: dict[str, Any], right: dict[str, Any]) -> None:
    """T5, MR35, MR36: after normalisation: `5` and `"5"` for an int field, key order."""
    assert equal(SQL, left, right)
    assert equal(SQL, right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"port": 5}, {"port": 6}),
        ({"port": 5}, {"port": "five"}),
        ({"port": 5}, {}),
        ({"host": "a"}, {"host": "A"}),
        ({"safe": True}, {"safe": "no"}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}),
        ({"unheard": 5}, {"unheard": "5"}),
    ],
)
def test_other_settings_are_not_equal(left: dict[str, Any], right: dict[str, Any]) -> None:
    """T5: what differs after normalisation differs."""
    assert not equal(SQL, left, right)
    assert not equal(SQL, right, left)


def test_normalising_never_raises() -> None:
    """T5: what cannot be read as the type stays unchanged."""
    for kind in (*TYPES, "unheard"):
        for value in ("", "x", "9" * 5000, "1e999", None, [], {}, True, float("inf")):
            assert equal(SQL, {kind: value}, {kind: value}), (kind, value)
            assert set(convert_overrides(SQL, {kind: value})) == {kind}, (kind, value)


def static_and_toolkit(
    static: dict[str, Any], candidate: dict[str, Any], masker: Masker | None = None
) -> Conflict | None:
    held = permissions_of(
        world(SQL, toolkits=[toolkit("data", ("sql", candidate))]), tools=[("sql", static)], allowed=["data"]
    )
    return found(held, "data", masker)


def found(held: CompiledPermissions, name: str, masker: Masker | None = None) -> Conflict | None:
    return conflict_of(held, active_tools(held, State()), held.entries.toolkits[name], masker or Masker())


def test_equal_settings_in_two_places_do_not_conflict() -> None:
    """T5, MR33: one, the first kept."""
    assert static_and_toolkit({"port": 5}, {"port": "5"}) is None
    assert static_and_toolkit({}, {}) is None


def test_different_settings_conflict_and_both_are_shown() -> None:
    """T5, MR34: the tool and both overrides are named."""
    conflict = static_and_toolkit({"port": 5}, {"port": 6})
    assert conflict == Conflict(
        tool="sql",
        existing={"port": 5},
        candidate={"port": 6},
        message="conflicts: 'sql' is loaded from the start with other settings, and cannot be unloaded. "
        "Write the same settings in both places.",
    )


def test_secrets_are_masked_in_a_conflict() -> None:
    """T5, X5: declared secrets, values that came from the environment, and the userinfo of URLs."""
    conflict = static_and_toolkit(
        {"db_url": "postgres://ada:pw@db/x", "host": "hunter22", "port": 1},
        {"db_url": "sqlite://", "host": "https://bob:pw@host/", "api_key": "k"},
        Masker(["hunter22"]),
    )
    assert conflict is not None
    assert conflict.existing == {"db_url": "***", "host": "***", "port": 1}
    assert conflict.candidate == {"db_url": "***", "host": "https://***@host/", "api_key": "***"}


def test_what_a_filter_leaves_out_does_not_conflict() -> None:
    """T5: the same tool, not the same plugin."""
    held = world(plugin("sql", "query", "drop"), toolkits=[toolkit("data", ("sql", {"port": 6}), "sql/drop")])
    one = permissions_of(held, tools=[("sql", {"port": 5, "include_tools": ["query"]})], allowed=["data"])
    other = world(
        plugin("sql", "query", "drop"), toolkits=[toolkit("data", ("sql", {"port": 6, "include_tools": ["drop"]}))]
    )
    two = permissions_of(other, tools=[("sql", {"port": 5, "include_tools": ["query"]})], allowed=["data"])
    assert found(one, "data") is not None
    assert found(two, "data") is None


def test_a_toolkit_that_wants_a_tool_twice_with_other_settings_conflicts_with_itself() -> None:
    """T5: the same tool from two places of one toolkit."""
    held = permissions_of(world(SQL, toolkits=[toolkit("data", ("sql", {"port": 5}), "tool:query")]), allowed=["data"])
    conflict = found(held, "data")
    assert conflict is not None
    assert (conflict.tool, conflict.existing, conflict.candidate) == ("sql", {"port": 5}, {})
    assert conflict.message.startswith("conflicts: 'sql' is in it twice, with different settings.")


def sharing(*, exclude: tuple[str, ...] = (), static: tuple[str, ...] = ()) -> CompiledPermissions:
    one, two = plugin("one", "read"), plugin("two", "read", "list")
    kits = [toolkit("kit", ("two", {"exclude_tools": list(exclude)})), toolkit("both", "one", "two")]
    return permissions_of(world(one, two, toolkits=kits), tools=static, allowed=["kit", "both"])


def tried(held: CompiledPermissions, *names: str) -> list[tuple[str, str]]:
    state, items = State(), list[tuple[str, str]]()
    for name in names:
        state, outcome = transition(held, state, Load(names=(name,)), CommandContext())
        items += [(item.status, item.message) for item in outcome.items]
    return items


def test_a_load_of_a_name_that_is_loaded_is_a_conflict_with_both_ids() -> None:
    """G10: what is loaded keeps its name, whatever loaded it; the message says what gives the other one a name."""
    for held, names in ((sharing(static=("one",)), ["kit"]), (sharing(), ["one/read", "kit"])):
        status, message = tried(held, *names)[-1]
        assert status == "conflict"
        assert all(part in message for part in ("'one/read'", "'two/read'", "'read'", "prefix for plugin 'two'"))


def test_a_load_that_brings_two_tools_of_one_name_is_a_conflict() -> None:
    """G10, S10: a toolkit with both is never half loaded."""
    (status, message), *_ = tried(sharing(), "both")
    assert (status, "'one/read'" in message, "'two/read'" in message) == ("conflict", True, True)


def test_a_name_that_a_filter_leaves_out_is_free() -> None:
    """G10, P2: only what would come counts."""
    assert tried(sharing(static=("one",), exclude=("read",)), "kit")[0][0] == "loaded"


def test_a_bare_name_of_two_tools_is_refused_with_both_ids_until_one_is_loaded() -> None:
    """G10: each is loaded by its id, and then the bare name means that one."""
    held = sharing()
    (status, message), *_ = tried(held, "read")
    assert (status, "'one/read', 'two/read'" in message) == ("conflict", True)
    assert [one for one, _ in tried(held, "two/read", "read")] == ["loaded", "already_loaded"]
