"""Say "these tools": members, filters, patterns."""

import pytest
from builders import members, plugin, tool, toolkit

from pegboard.core.model.catalog import Catalog, Ref
from pegboard.core.model.loadouts import matches_any, matches_pattern
from pegboard.core.model.selectors import entries, entry_of, find, member
from pegboard.core.model.tools import Manifest, variant_key

CATALOG = Catalog(
    [
        plugin("git", "log", "push", kind="server", category="Git"),
        plugin("shell", "run", "kill", category="Shell"),
        plugin("zsh", "zrun", category="Shell"),
    ]
)


def stands_for(*items: str | tuple[str, dict[str, object]]) -> list[list[str]]:
    return [[held.id for held in entry.tools] for entry in entries(members(items), CATALOG)]


def test_a_member_names_a_plugin_or_a_tool() -> None:
    """T1: a name is a plugin or a tool: by wire name, id or own name."""
    assert stands_for("git", "git__log", "shell/run", "kill") == [
        ["git/log", "git/push"], ["git/log"], ["shell/run"], ["shell/kill"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "ref"),
    [
        ("plugin:git", Ref("plugin", "git")),
        ("tool:log", Ref("tool", "git/log")),
        ("category:Shell", Ref("category", "Shell")),
        ("tool:git", None),
        ("plugin:log", None),
        ("toolkit:git", None),
        ("nothing", None),
    ],
)
def test_a_kind_in_front_says_what_is_meant(written: str, ref: Ref | None) -> None:
    """§2: `toolkit:`, `plugin:`, `tool:`, `category:` say which."""
    assert find(written, CATALOG) == ref


def test_a_plugin_is_found_before_a_tool_of_the_same_name() -> None:
    """§2: lookup of a bare name: toolkit, then plugin, then tool."""
    catalog = Catalog([plugin("web", "search"), plugin("search", "query")])
    assert find("search", catalog) == Ref("plugin", "search")
    assert find("tool:search", catalog) == Ref("tool", "web/search")


def test_a_category_stands_for_all_its_plugins() -> None:
    assert stands_for("category:shell") == [["shell/run", "shell/kill"], ["zsh/zrun"]]


def test_a_member_that_is_not_known_yet_stands_for_nothing() -> None:
    """T3: tools of a server without a manifest count when it arrives."""
    assert stands_for("later", "git") == [["git/log", "git/push"]]


def test_filters_are_taken_out_of_the_overrides() -> None:
    """T1: include_tools and exclude_tools filter functions; the rest are overrides."""
    held = member("shell", {"include_tools": ["run"], "exclude_tools": ["kill"], "cwd": "/tmp"})
    assert dict(held.overrides) == {"cwd": "/tmp"}
    assert (held.include, held.exclude, held.filtered) == ({"run"}, {"kill"}, True)
    assert member("shell", {"exclude_tools": []}).filtered is False


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"include_tools": ["push"]}, ["git/push"]),
        ({"include_tools": []}, []),
        ({"exclude_tools": ["push"]}, ["git/log"]),
        ({"exclude_tools": ["git__push"]}, ["git/log"]),
        ({"include_tools": ["log", "push"], "exclude_tools": ["log"]}, ["git/push"]),
        ({"include_tools": ["unheard-of"]}, []),
    ],
)
def test_a_filter_keeps_the_functions_that_it_names(filters: dict[str, object], left: list[str]) -> None:
    """P2: function filters, by own or wire name; what is excluded stays excluded even where it is included."""
    (entry,) = entries(members([("git", filters)]), CATALOG)
    assert [held.id for held in entry.tools] == left
    assert entry.ids == set(left)
    assert entry.names == {"git/log", "git/push"}


def test_the_tools_of_a_plugin_depend_on_its_overrides() -> None:
    """T1: an entry shows what the plugin has under the overrides of the entry."""
    key = variant_key({"admin": True})
    held = plugin("db").with_manifest("", Manifest(tools=(tool("db/read"),)))
    held = held.with_manifest(key, Manifest(tools=(tool("db/read"), tool("db/drop"))))
    assert [t.name for t in entry_of(held, member("db")).tools] == ["read"]
    assert [t.name for t in entry_of(held, member("db", {"admin": True})).tools] == ["read", "drop"]


def test_a_toolkit_keeps_the_order_of_its_members() -> None:
    """F1: toolkits are read in their written order."""
    held = toolkit("ops", "shell", ("git", {"repo": "."}))
    assert [(entry.plugin, dict(entry.overrides)) for entry in held.entries(CATALOG)] == [
        ("shell", {}), ("git", {"repo": "."}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("docker", "docker", True),
        ("docker", "dockerx", False),
        ("docker*", "docker", True),
        ("docker*", "docker-compose", True),
        ("DOCKER*", "docker-compose", True),
        ("docker*", "Docker", True),
        ("docker*", "kube-ctl", False),
        ("abc*", "abc", True),
        ("*", "anything", True),
        ("*", "", True),
        ("", "", True),
        ("", "x", False),
        ("*x", "ax", False),
        ("a*c", "abc", False),
        ("straße*", "STRASSE-1", True),
    ],
)
def test_a_pattern_is_exact_or_a_prefix(pattern: str, name: str, expected: bool) -> None:
    """L2, JD18, JD19, JD29: exact, `prefix*` or `*`; only a trailing star is a wildcard."""
    assert matches_pattern(pattern, name) is expected


def test_the_first_pattern_that_matches_is_told() -> None:
    """L2: explain names the pattern."""
    assert matches_any(["git", "dock*", "*"], "docker") == "dock*"
    assert matches_any([], "docker") is None
