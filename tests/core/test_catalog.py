"""Every plugin and tool known."""

import re
from dataclasses import replace
from itertools import chain

import pytest
from builders import plugin, tool
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.catalog import Catalog, Ref, split_kind
from pegboard.core.model.tools import Manifest, Plugin

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
    assert catalog.by_wire("git__log") is log
    assert catalog.by_id("git/log") is log
    assert catalog.find_tool("log") is log
    assert catalog.find_tool("git__log") is log
    assert catalog.by_id("log") is catalog.by_id("git/none") is catalog.by_id("no/log") is None


def test_an_own_name_that_two_tools_have_names_neither() -> None:
    catalog = Catalog([plugin("git", "log", kind="server"), plugin("svn", "log", kind="server")])
    assert catalog.find_tool("log") is None
    assert [held.id for held in catalog.named("log")] == ["git/log", "svn/log"]


def test_the_later_of_two_tools_with_one_wire_name_is_left_out_and_both_are_reported() -> None:
    """G10: two equal wire names are an error that names both; the list goes on."""
    catalog = Catalog([plugin("one", "read", "write"), plugin("two", "read", "list")])
    assert wires(catalog) == ["read", "write", "list"]
    ((clash),) = catalog.clashes
    assert (clash.wire, clash.first, clash.second) == ("read", "one/read", "two/read")


@pytest.mark.parametrize("first", ["free", "gated"])
def test_no_tool_takes_the_name_of_one_that_an_approval_gates(first: str) -> None:
    """G10: whichever stands or arrives first; of two that are gated, and of two that are not, the later one goes."""
    free, gated = plugin("free", "send", "read"), replace(plugin("gated", "send"), gates=("sen*",))
    early, late = (free, gated) if first == "free" else (gated, free)
    for catalog in (Catalog([early, late]), Catalog([early]).with_plugins([late])):
        assert catalog.by_wire("send") is catalog.by_id("gated/send")
        assert [tool.id for tool in catalog.plugins["free"].tools] == ["free/read"]
        (clash,) = catalog.clashes
        assert clash.text == (
            "'gated/send' and 'free/send' are both called 'send'; the one that no approval gates is excluded."
        )
        assert catalog.clashes_of("free") == (clash,)
        other = replace(plugin("other", "send"), gates=("send",))
        both = catalog.with_plugins([other])
        assert [(one.first, one.second, one.gated) for one in both.clashes] == [
            ("gated/send", "free/send", True), ("gated/send", "other/send", False),
        ]  # fmt: skip
        without = both.with_plugins([plugin("gated", "send"), plugin("other")])
        assert without.by_wire("send") is without.by_id(f"{early.name}/send")


def test_a_clash_stays_reported_when_other_plugins_change() -> None:
    """G10: a clash is not forgotten while it lasts."""
    catalog = Catalog([plugin("one", "read"), plugin("two", "read"), plugin("three")])
    for changed in (plugin("three", "list"), plugin("four", "write")):
        catalog = catalog.with_plugins([changed])
        assert [clash.second for clash in catalog.clashes] == ["two/read"]


def test_a_tool_whose_fault_is_reported_keeps_its_clash() -> None:
    """G10: what a manifest still lists is still in the way."""
    two = plugin("two").with_manifest("", Manifest(tools=(tool("two/read"), tool("two/list"))))
    catalog = Catalog([plugin("one", "read"), two])
    catalog = catalog.with_plugins([catalog.plugins["two"].with_fault("", "down")])
    assert [clash.second for clash in catalog.clashes] == ["two/read"]


def test_a_tool_returns_when_the_one_that_had_its_name_goes() -> None:
    """G10: excluded is not lost."""
    catalog = Catalog([plugin("one", "read", "write"), plugin("two", "read")])
    catalog = catalog.with_plugins([plugin("one", "write")])
    assert catalog.clashes == ()
    assert {held.id for held in catalog} == {"one/write", "two/read"}


def test_of_two_plugins_with_one_name_the_later_counts() -> None:
    """Plugins of the configuration shadow registered ones, and leave nothing of them behind."""
    catalog = Catalog([plugin("file", "read", "old"), plugin("file", "read", "new")])
    assert wires(catalog) == ["read", "new"]
    assert catalog.clashes == ()
    assert catalog.by_wire("old") is None


def test_slashes_in_names_never_make_two_tools_of_one_id() -> None:
    """G10: an id names one tool, whatever the plugins are called."""
    catalog = Catalog([plugin("a", "b/c", "d", kind="server"), plugin("a/b", "c", "d", kind="server")])
    assert [(clash.first, clash.second) for clash in catalog.clashes] == [("a/b/c", "a/b/c")]
    for held in catalog:
        assert catalog.by_id(held.id) is held


def test_a_changed_plugin_keeps_its_place() -> None:
    """F1: what stands in front of a change does not move."""
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
    plugins = (
        plugin(
            name,
            *draw(st.lists(NAMES, max_size=5)),
            kind=draw(st.sampled_from(["server", "python"])),
            prefix=draw(st.none() | st.sampled_from(["", "gh"])),
        )
        for name in names
    )
    return [replace(one, gates=draw(st.sampled_from([(), ("*",), ("a*", "b")]))) for one in plugins]


@given(catalogs())
def test_wire_names_are_valid_distinct_and_lead_back(plugins: list[Plugin]) -> None:
    """G10: at most 64 characters, collision-free but for what is reported, reversible."""
    catalog = Catalog(plugins)
    names = wires(catalog)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == len(names) == len(catalog) == len({held.id for held in catalog})
    given_ = sum(len(held.tools) for held in {held.name: held for held in plugins}.values())
    assert len(catalog) + len(catalog.clashes) == given_
    for held in catalog:
        assert catalog.by_wire(held.wire) is held
        assert catalog.by_id(held.id) is held


CHANGES = st.lists(st.tuples(catalogs(), st.booleans()), min_size=1, max_size=6)


@given(CHANGES)
def test_a_catalog_that_grew_is_the_one_that_was_built_at_once(changes: list[tuple[list[Plugin], bool]]) -> None:
    """G10: clashes, names and order depend on what there is, and not on how it came."""
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
        assert grown.clashes == at_once.clashes
        assert len(grown) == len(at_once)
        for held in chain.from_iterable(whole.tools for whole in given_.values()):
            assert grown.by_id(held.id) == at_once.by_id(held.id)
            assert grown.named(held.name) == at_once.named(held.name)
            assert set(grown.find_folded(held.name.upper())) == set(at_once.find_folded(held.name.upper()))
        for held in at_once:
            found = grown.by_wire(held.wire)
            assert found == held
            assert found is grown.by_id(held.id)
        for clash in at_once.clashes:
            assert grown.by_wire(clash.wire) == at_once.by_wire(clash.wire)
        for name, held in before.items():
            if grown.plugins[name] == held:
                assert grown.plugins[name] is held


def test_a_tool_that_stands_twice_in_a_plugin_is_kept_once() -> None:
    """G10: the same value twice clashes with itself, and the first of it stays."""
    once = plugin("kit", "scan", kind="python")
    catalog = Catalog([replace(once, tools=once.tools * 2)])
    assert [(clash.first, clash.second) for clash in catalog.clashes] == [("kit/scan", "kit/scan")]
    assert [tool.name for tool in catalog] == ["scan"]
