"""Loadouts: merged, cut, told."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.loadouts import BUILT_IN, CATEGORIES, PLUGIN_CATEGORIES, Loadout, category_of, chain, merge

ALL = [*PLUGIN_CATEGORIES, "docker", "docker-compose", "kubectl", "terraform", "mystery"]


def registry(*loadouts: Loadout) -> Mapping[str, Loadout]:
    return {**BUILT_IN, **{held.name.casefold(): held for held in loadouts}}


def active(name: str, loadouts: Mapping[str, Loadout] = BUILT_IN, plugins: list[str] = ALL) -> set[str]:
    merged = merge(name, loadouts)
    return {held for held in plugins if merged.includes(held, category_of(held)) is not None}


def discoverable(name: str, loadouts: Mapping[str, Loadout] = BUILT_IN, plugins: list[str] = ALL) -> set[str]:
    merged = merge(name, loadouts)
    return {held for held in plugins if merged.discovers(held, category_of(held)) is not None}


def of(*categories: str) -> set[str]:
    return {held for held in PLUGIN_CATEGORIES if category_of(held) in categories}


def test_there_are_the_13_categories_of_the_seed() -> None:
    """L4, JD1: in the order of the seed."""
    assert CATEGORIES == (
        "Filesystem", "Git", "GitHub", "Shell", "Web", "Search", "Network", "Memory", "Orchestration", "Analysis",
        "Scheduling", "Multimodal", "Security",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("plugin", "category"),
    [
        ("batchEdit", "Filesystem"), ("migration", "Filesystem"), ("git", "Git"), ("github", "GitHub"),
        ("runtime", "Shell"), ("browser", "Web"), ("websearch", "Search"), ("tailscale", "Network"),
        ("memory", "Memory"), ("mcpEcosystem", "Orchestration"), ("channels", "Orchestration"),
        ("parityDocs", "Analysis"), ("SKILLPARITY", "Analysis"), ("usage", "Analysis"), ("scheduler", "Scheduling"),
        ("multimodal", "Multimodal"), ("policy", "Security"), ("encoding", "Security"), ("docker", None),
    ],
)  # fmt: skip
def test_a_plugin_name_of_the_seed_has_its_category(plugin: str, category: str | None) -> None:
    """L4, JD9: whatever the case of the name."""
    assert category_of(plugin) == category


def test_every_category_has_a_plugin_in_the_map() -> None:
    """L4: 32 names, 13 categories."""
    assert set(PLUGIN_CATEGORIES.values()) == set(CATEGORIES)
    assert len(PLUGIN_CATEGORIES) == 32


def test_the_five_built_in_loadouts_are_there() -> None:
    """L4, JD6: with the parents of the seed."""
    assert {held.name: held.parent for held in BUILT_IN.values()} == {
        "minimal": None, "developer": "minimal", "research": "minimal", "devops": "minimal", "full": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "categories"),
    [
        ("minimal", ["Filesystem", "Shell"]),
        ("developer", ["Filesystem", "Shell", "Git", "GitHub", "Search", "Analysis", "Memory"]),
        ("research", ["Filesystem", "Shell", "Search", "Web", "Memory", "Multimodal"]),
        ("devops", ["Filesystem", "Shell", "Git", "Network", "Scheduling"]),
        ("full", CATEGORIES),
    ],
)
def test_a_built_in_loadout_has_its_categories_and_think(name: str, categories: list[str]) -> None:
    """L4, JD10, JD11, JD12, JD13: as tabled in the seed, with what is inherited."""
    assert active(name) & set(PLUGIN_CATEGORIES) == of(*categories) | {"think"}


@pytest.mark.parametrize("name", ["minimal", "developer", "research", "devops"])
def test_a_plugin_without_a_category_is_only_discoverable(name: str) -> None:
    """L2, JD15, JD17: `*` of minimal is inherited."""
    assert "mystery" not in active(name)
    assert discoverable(name) == set(ALL) - active(name)


def test_full_takes_everything() -> None:
    """L4: full also takes plugins without a category, and those of an author's own."""
    assert active("full") == set(ALL)
    merged = merge("full", BUILT_IN)
    assert merged.includes("invoices", "Billing") == merged.includes("mystery", None) == "full"
    assert discoverable("full") == set()


def test_a_loadout_can_be_built_on_full_and_leave_something_out() -> None:
    """L2: disabled wins over everything, also over what full takes without a category."""
    loadouts = registry(Loadout(name="most", parent="full", disabled=("mystery", "Shell")))
    assert active("most", loadouts) == set(ALL) - {"mystery", "shell"}


def test_what_a_parent_disables_no_child_enables() -> None:
    """L2, JD14, JD20, JD22: disabled at any level wins over names, categories and patterns."""
    loadouts = registry(
        Loadout(name="base", disabled=("Shell",)),
        Loadout(name="child", parent="base", plugins=("shell",), categories=("shell",), discoverable=("*", "shell")),
    )
    assert "shell" not in active("child", loadouts) | discoverable("child", loadouts)
    assert merge("child", loadouts).disables("SHELL") == "base"


def test_patterns_and_categories_accumulate_along_the_chain() -> None:
    """L2, JD21, JD23, JD30: root first, each once."""
    loadouts = registry(
        Loadout(name="a", categories=("Git",), plugins=("think",), discoverable=("docker*", "x")),
        Loadout(name="b", parent="A", categories=("web",), discoverable=("kube*", "docker*")),
    )
    merged = merge("B", loadouts)
    assert merged.discoverable == ("docker*", "x", "kube*")
    assert active("b", loadouts) == of("Git", "Web") | {"think"}
    assert discoverable("b", loadouts) == {"docker", "docker-compose", "kubectl"}


def test_without_patterns_nothing_is_discoverable() -> None:
    """L2, JD28."""
    assert discoverable("a", registry(Loadout(name="a", categories=("Git",)))) == set()


def test_the_loadout_that_decided_is_told() -> None:
    """F5: provenance: the link of the chain, not only the leaf."""
    merged = merge("developer", BUILT_IN)
    assert merged.includes("shell", "Shell") == "minimal"
    assert merged.includes("git", "Git") == "developer"


@pytest.mark.parametrize("name", ["unknown", ""])
def test_an_unknown_loadout_resolves_to_nothing(name: str) -> None:
    """L3, JD26, JD35, JD37: it does not raise."""
    assert active(name) == discoverable(name) == set()
    assert chain(name, BUILT_IN) == chain(name, {}) == ()


def names(links: tuple[Loadout, ...]) -> list[str]:
    return [held.name for held in links]


def test_a_chain_is_told_root_first() -> None:
    """L2, JD31, JD32: names compare case-insensitively (L1)."""
    loadouts = registry(Loadout(name="Mine", parent="DEVELOPER"))
    assert names(chain("mINE", loadouts)) == ["minimal", "developer", "Mine"]
    assert names(chain("full", loadouts)) == ["full"]


def test_a_cycle_is_cut_at_its_first_revisit() -> None:
    """L3, JD24, JD33, JD36: of two, of one, and one that is met on the way."""
    loadouts = registry(
        Loadout(name="a", parent="B", plugins=("git",)),
        Loadout(name="b", parent="A", plugins=("web",)),
        Loadout(name="self", parent="self"),
        Loadout(name="into", parent="a"),
    )
    assert names(chain("a", loadouts)) == ["b", "a"]
    assert names(chain("self", loadouts)) == ["self"]
    assert names(chain("into", loadouts)) == ["b", "a", "into"]
    assert active("a", loadouts) == active("b", loadouts) == {"git", "web"}


def test_an_unknown_parent_ends_the_chain() -> None:
    """L3, JD25, JD34."""
    loadouts = registry(Loadout(name="a", parent="gone", plugins=("git",)))
    assert names(chain("a", loadouts)) == ["a"]
    assert active("a", loadouts) == {"git"}


def test_without_plugins_there_is_nothing() -> None:
    """L2, JD27."""
    assert active("full", plugins=[]) == set()


SOME = st.lists(st.sampled_from(ALL), max_size=4).map(tuple)
LOADOUTS = st.lists(
    st.builds(
        Loadout,
        name=st.sampled_from("abcd"),
        parent=st.none() | st.sampled_from(["a", "B", "c", "gone", "full"]),
        plugins=SOME,
        categories=st.lists(st.sampled_from(CATEGORIES), max_size=3).map(tuple),
        discoverable=st.lists(st.sampled_from(["*", "docker*", "git", "s*"]), max_size=2).map(tuple),
        disabled=SOME,
    ),
    max_size=4,
)


@given(LOADOUTS, st.sampled_from("abcd"), st.sampled_from(ALL))
def test_disabling_only_takes_away(given_: list[Loadout], name: str, victim: str) -> None:
    """L2, P1: active, discoverable and disabled never overlap; disabling one plugin changes no other."""
    before = registry(*given_)
    was, might = active(name, before), discoverable(name, before)
    assert not was & might
    held = before.get(name, Loadout(name=name))
    after = {**before, name: Loadout(
        name=name, parent=held.parent, plugins=held.plugins, categories=held.categories,
        discoverable=held.discoverable, disabled=(*held.disabled, victim.upper()),
    )}  # fmt: skip
    assert active(name, after) == was - {victim}
    assert discoverable(name, after) == might - {victim}
