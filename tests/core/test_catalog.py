"""Every plugin and tool known."""

import re
from dataclasses import replace
from itertools import chain

import pytest
from builders import plugin
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.catalog import Catalog, Ref, split_kind
from pegboard.core.model.tools import Plugin

NAMES = st.text(alphabet="abAB_-./ é", min_size=1, max_size=6)


def wires(catalog: Catalog) -> list[str]:
    return [held.wire for held in catalog]


def test_tools_of_servers_carry_the_name_of_their_plugin_and_others_do_not() -> None:
    """G10: `{plugin}__{tool}` for servers, the function's own name for other plugins."""
    catalog = Catalog([plugin("git", "log", kind="server"), plugin("notes", "add"), plugin("x", "go", prefix="gh")])
    assert wires(catalog) == ["git__log", "add", "gh__go"]


def test_a_tool_is_found_by_its_wire_name_its_id_and_its_own_name() -> None:
    catalog = Catalog([plugin("git", "log", kind="server")])
    (log,) = catalog
    assert catalog.by_wire("git__log") == (log,)
    assert catalog.by_id("git/log") is log
    assert catalog.find_tool("log") is log
    assert catalog.find_tool("git__log") is log
    assert catalog.by_id("log") is catalog.by_id("git/none") is catalog.by_id("no/log") is None


def test_an_own_name_that_two_tools_have_names_neither() -> None:
    catalog = Catalog([plugin("git", "log", kind="server"), plugin("svn", "log", kind="server")])
    assert catalog.find_tool("log") is None
    assert [held.id for held in catalog.named("log")] == ["git/log", "svn/log"]


def test_tools_of_two_plugins_with_one_wire_name_are_both_known() -> None:
    """G10: a wire name belongs to a tool only among what is loaded together; order is that of the plugins."""
    catalog = Catalog([plugin("one", "read", "write"), plugin("two", "read", "list")])
    assert wires(catalog) == ["read", "write", "read", "list"]
    assert [tool.id for tool in catalog.by_wire("read")] == ["one/read", "two/read"]
    assert catalog.find_tool("read") is None
    assert [catalog.find_tool(tool_id) for tool_id in ("one/read", "two/read")] == [*catalog.by_wire("read")]


@pytest.mark.parametrize("late", ["one", "two"])
def test_the_order_of_tools_with_one_name_is_that_of_the_plugins_not_of_their_arrival(late: str) -> None:
    """G10: whichever plugin answers last."""
    known = {"one": plugin("one", "read"), "two": plugin("two", "read")}
    first = [replace(whole, tools=()) if name == late else whole for name, whole in known.items()]
    catalog = Catalog(first).with_plugins([known[late]])
    assert [tool.id for tool in catalog.by_wire("read")] == ["one/read", "two/read"]
    assert [tool.id for tool in catalog.with_plugins([replace(known["one"], tools=())]).by_wire("read")] == ["two/read"]


def test_of_two_plugins_with_one_name_the_later_counts() -> None:
    """Plugins of the configuration shadow registered ones, and leave nothing of them behind."""
    catalog = Catalog([plugin("file", "read", "old"), plugin("file", "read", "new")])
    assert wires(catalog) == ["read", "new"]
    assert catalog.by_wire("old") == ()


def test_slashes_in_names_never_make_two_tools_of_one_id() -> None:
    """G10: an id names one tool, whatever the plugins are called."""
    catalog = Catalog([plugin("a", "b/c", "d", kind="server"), plugin("a/b", "c", "d", kind="server")])
    assert [(held.plugin, held.name) for held in catalog] == [("a", "d"), ("a/b", "c"), ("a/b", "d")]
    grown = Catalog([plugin("a", "b/c", "d", kind="server")]).with_plugins([plugin("a/b", "c", "d", kind="server")])
    assert list(grown) == list(catalog)
    for held in catalog:
        assert catalog.by_id(held.id) is held


def test_a_changed_plugin_keeps_its_place() -> None:
    """F1: what is in front of a change does not move."""
    catalog = Catalog([plugin("a", "x"), plugin("b", "y"), plugin("c", "z")])
    changed = catalog.with_plugins([plugin("b", "y2"), plugin("d", "w")])
    assert wires(changed) == ["x", "y2", "z", "w"]
    assert wires(catalog) == ["x", "y", "z"]
    assert len(changed) == 4


def test_a_name_is_found_whatever_its_case() -> None:
    catalog = Catalog([plugin("Git", "Git_Log", kind="server"), plugin("GIT")])
    assert catalog.find_folded("git") == ("Git", "GIT")
    assert set(catalog.find_folded("GIT__git_log")) == {"Git__Git_Log"}
    assert catalog.find_folded("none") == ()


def test_a_category_holds_its_plugins_whatever_its_case() -> None:
    """L4: an author's own categories count like the thirteen."""
    catalog = Catalog([plugin("a", category="Billing"), plugin("b", category="billing"), plugin("c")])
    assert [held.name for held in catalog.category("BILLING")] == ["a", "b"]


@pytest.mark.parametrize("kind", ["toolkit", "plugin", "tool", "category"])
def test_a_reference_is_read_as_it_was_written(kind: str) -> None:
    ref = Ref.parse(f"{kind}:a:b")
    assert str(ref) == f"{kind}:a:b"
    assert split_kind(str(ref)) == (kind, "a:b")


@pytest.mark.parametrize("text", ["", "git", "server:git", "tool:", ":x"])
def test_anything_else_is_no_reference(text: str) -> None:
    with pytest.raises(ValueError, match="not a reference"):
        Ref.parse(text)


@st.composite
def catalogs(draw: st.DrawFn) -> list[Plugin]:
    names = draw(st.lists(NAMES, max_size=5))
    return [
        plugin(
            name,
            *draw(st.lists(NAMES, max_size=5)),
            kind=draw(st.sampled_from(["server", "python"])),
            prefix=draw(st.none() | st.sampled_from(["", "gh"])),
        )
        for name in names
    ]


@given(catalogs())
def test_wire_names_are_valid_and_ids_lead_back(plugins: list[Plugin]) -> None:
    """G10: at most 64 characters, reversible; an id means one tool."""
    catalog = Catalog(plugins)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in wires(catalog))
    assert len(catalog) == len(list(catalog)) == len({held.id for held in catalog})
    assert {held.id for held in catalog} == {held.id for whole in catalog.plugins.values() for held in whole.tools}
    given_ = {held.id for whole in {whole.name: whole for whole in plugins}.values() for held in whole.tools}
    assert {held.id for held in catalog} == given_
    for held in catalog:
        assert held in catalog.by_wire(held.wire)
        assert catalog.by_id(held.id) is held


CHANGES = st.lists(st.tuples(catalogs(), st.booleans()), min_size=1, max_size=6)


@given(CHANGES)
def test_a_catalog_that_grew_is_the_one_that_was_built_at_once(changes: list[tuple[list[Plugin], bool]]) -> None:
    """G10: names and order depend on what there is, and not on how it came."""
    grown, given_ = Catalog(), dict[str, Plugin]()
    for changed, looked_up in changes:
        if looked_up:
            grown.named("a")
        before = dict(grown.plugins)
        grown = grown.with_plugins(changed)
        given_ |= {held.name: held for held in changed}
        at_once = Catalog(given_.values())
        assert grown.plugins == at_once.plugins
        assert list(grown.plugins) == list(at_once.plugins)
        assert len(grown) == len(at_once)
        for held in chain.from_iterable(whole.tools for whole in given_.values()):
            assert grown.by_id(held.id) == at_once.by_id(held.id)
            assert grown.named(held.name) == at_once.named(held.name)
            assert set(grown.find_folded(held.name.upper())) == set(at_once.find_folded(held.name.upper()))
        for held in at_once:
            assert grown.by_wire(held.wire) == at_once.by_wire(held.wire)
        for name, held in before.items():
            if grown.plugins[name] == held:
                assert grown.plugins[name] is held


def test_a_tool_that_stands_twice_in_a_plugin_is_kept_once() -> None:
    """G10: of two tools of one id the first is kept."""
    once = plugin("kit", "scan", kind="python")
    catalog = Catalog([replace(once, tools=once.tools * 2)])
    assert [tool.name for tool in catalog] == ["scan"]
