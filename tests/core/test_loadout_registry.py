"""Loadouts built, registered and resolved over lists of plugins: the examples and behaviours of seed 003."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Loadout, LoadoutBuilder, LoadoutRegistry, UsageError
from pegboard.core.model.loadout_registry import SUBAGENTS, BuiltIn, Category, loadout_of_kind
from pegboard.core.model.loadouts import CATEGORIES, PLUGIN_CATEGORIES, category_of, matches_pattern, merge
from pegboard.core.model.tools import Plugin

OTHERS = ["docker", "docker-compose", "kubectl", "terraform", "mystery"]
ALL = [*PLUGIN_CATEGORIES, *OTHERS]


def of(*categories: str) -> set[str]:
    return {name for name in PLUGIN_CATEGORIES if category_of(name) in categories}


# -- names and categories --------------------------------------------------------------------------


def test_categories_and_built_in_names_have_constants() -> None:
    """L4, L5, JD1, JD4, JD6: 13 categories and five names, as the registry has them."""
    registry = LoadoutRegistry()
    assert [str(category) for category in LoadoutRegistry.CATEGORIES] == list(CATEGORIES)
    assert [loadout.name for loadout in registry.all()] == [str(name) for name in LoadoutRegistry.BUILT_IN]
    assert LoadoutRegistry.BUILT_IN.DEVELOPER == "developer"
    assert LoadoutRegistry.CATEGORIES.GITHUB == "GitHub"
    assert all(LoadoutRegistry.BUILT_IN)


def test_a_new_loadout_holds_nothing_but_its_name() -> None:
    """L1, JD3: collections are empty; there is no parent."""
    bare = Loadout(name="bare")
    assert (bare.parent, bare.plugins, bare.categories, bare.discoverable, bare.disabled) == (None, (), (), (), ())


def test_a_loadout_cannot_be_changed() -> None:
    """L1: it is an immutable value, equal to another one that says the same."""
    bare: Any = Loadout(name="bare")
    with pytest.raises(AttributeError):
        bare.name = "other"
    assert bare == LoadoutBuilder.create("bare").build()


# -- the builder -----------------------------------------------------------------------------------


def test_the_security_reviewer_of_the_seed_is_built() -> None:
    """L5, JD5: every method sets its field."""
    reviewer = (
        LoadoutBuilder.create("security-reviewer")
        .extends(BuiltIn.DEVELOPER)
        .include_category(Category.SECURITY)
        .add_plugin("think")
        .add_discoverable("docker*")
        .disable("websearch")
        .build()
    )
    assert reviewer == Loadout(
        name="security-reviewer", parent="developer", categories=("Security",), plugins=("think",),
        discoverable=("docker*",), disabled=("websearch",),
    )  # fmt: skip
    registry = LoadoutRegistry([reviewer])
    active = registry.resolve_active("security-reviewer", ALL)
    assert active == (registry.resolve_active("developer", ALL) | of("Security")) - {"websearch"}
    assert "websearch" not in registry.resolve_discoverable("security-reviewer", ALL)


def test_a_builder_goes_on_with_itself() -> None:
    """L5, JD5: a fluent builder is one object; what is built later has more."""
    builder = LoadoutBuilder.create("a")
    steps = (
        builder.extends("b"), builder.add_plugin("x"), builder.include_category("Git"),
        builder.add_discoverable("*"), builder.disable("y"),
    )  # fmt: skip
    assert all(step is builder for step in steps)
    first = builder.build()
    assert builder.add_plugin("z").build().plugins == ("x", "z")
    assert first.plugins == ("x",)


def test_a_builder_takes_a_name_once_whatever_its_case() -> None:
    """L1, JD5: plugins, categories, patterns and what is disabled."""
    built = (
        LoadoutBuilder.create("a").add_plugin("Git").add_plugin("GIT").disable("x").disable("X")
        .include_category("web").include_category(Category.WEB).add_discoverable("d*").add_discoverable("D*").build()
    )  # fmt: skip
    assert (built.plugins, built.disabled, built.categories, built.discoverable) == (
        ("Git",),
        ("x",),
        ("web",),
        ("d*",),
    )


@pytest.mark.parametrize("empty", ["", " ", None])
@pytest.mark.parametrize(
    "step",
    [
        LoadoutBuilder.create,
        LoadoutBuilder.create("a").extends,
        LoadoutBuilder.create("a").add_plugin,
        LoadoutBuilder.create("a").include_category,
        LoadoutBuilder.create("a").add_discoverable,
        LoadoutBuilder.create("a").disable,
        lambda name: LoadoutRegistry().register(Loadout(name=name)),
        lambda name: LoadoutRegistry().register(name),
    ],
)
def test_a_name_that_is_empty_is_refused(step: Callable[[Any], object], empty: str | None) -> None:
    """L5, JD2, JD5, JD8: names, parents, plugins, categories and patterns; with what would be right."""
    with pytest.raises(UsageError) as refused:
        step(empty)
    assert refused.value.code == "bad_loadout"
    assert refused.value.hint


# -- the registry ----------------------------------------------------------------------------------


def test_a_loadout_is_got_by_its_name_whatever_the_case() -> None:
    """L1, L5, JD7: an unknown one is None."""
    registry = LoadoutRegistry()
    found = registry.get("DevOps")
    assert found is not None
    assert (found.name, found.parent) == ("devops", "minimal")
    assert registry.get("unknown") is None


def test_registering_a_name_again_overwrites() -> None:
    """L5, JD8: a new one joins at the end; what was resolved before is forgotten."""
    registry = LoadoutRegistry()
    registry.register(LoadoutBuilder.create("mine").add_plugin("git").build())
    assert registry.resolve_active("mine", ALL) == {"git"}
    registry.register(LoadoutBuilder.create("MINE").add_plugin("web").build())
    assert registry.resolve_active("mine", ALL) == {"web"}
    assert [loadout.name for loadout in registry.all()][5:] == ["MINE"]


def test_a_built_in_one_can_be_replaced_and_its_children_follow() -> None:
    """L5, L6: names are all that links loadouts."""
    registry = LoadoutRegistry([LoadoutBuilder.create("minimal").add_plugin("think").build()])
    assert registry.resolve_active("research", ALL) == of("Search", "Web", "Memory", "Multimodal") | {"think"}
    assert LoadoutRegistry().get("minimal") != registry.get("minimal")


def test_the_data_analyst_of_the_seed_discovers_everything_else() -> None:
    """L2, L5, JD16, JD17: three categories, and `*`."""
    analyst = (
        LoadoutBuilder.create("data-analyst").include_category(Category.FILESYSTEM).include_category(Category.SEARCH)
        .include_category(Category.ANALYSIS).add_discoverable("*").build()
    )  # fmt: skip
    registry = LoadoutRegistry([analyst])
    active = registry.resolve_active("data-analyst", ALL)
    assert active == of("Filesystem", "Search", "Analysis")
    assert registry.resolve_discoverable("data-analyst", ALL) == set(ALL) - active


def test_a_plugin_with_a_category_of_its_own_is_taken_by_it() -> None:
    """L4: what the plugin says counts before the map of the seed."""
    registry = LoadoutRegistry([LoadoutBuilder.create("bills").include_category("Billing").build()])
    plugins = [Plugin(name="invoices", category="Billing"), Plugin(name="git", category="billing"), Plugin(name="web")]
    assert registry.resolve_active("bills", plugins) == {"invoices", "git"}
    assert registry.resolve_active("research", plugins) == {"web"}


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("docker", "docker", True), ("DOCKER", "Docker", True), ("docker", "docker-compose", False),
        ("docker*", "docker", True), ("docker*", "DOCKER-compose", True), ("docker*", "kube-ctl", False),
        ("abc*", "abc", True), ("*", "anything", True), ("*", "", True), ("", "", True), ("", "x", False),
        ("do*er", "docker", False), ("**", "docker", False), ("**", "*x", True),
    ],
)  # fmt: skip
def test_only_a_star_at_the_end_is_a_wildcard(pattern: str, name: str, fits: bool) -> None:
    """L2, JD18, JD19, JD29: exact, prefix and catch-all; a pattern of two stars is a prefix of one."""
    assert matches_pattern(pattern, name) is fits
    registry = LoadoutRegistry([Loadout(name="one", discoverable=(pattern,))])
    assert registry.resolve_discoverable("one", [name]) == ({name} if fits else set())


def test_equal_names_resolve_once() -> None:
    """L2, JD89: a plugin that is given twice is one, and the order does not count."""
    registry = LoadoutRegistry()
    assert registry.resolve_active("developer", ["git", "git", "shell"]) == {"git", "shell"}
    assert registry.resolve_active("developer", ["shell", "git"]) == {"git", "shell"}


def test_another_list_is_resolved_anew() -> None:
    """L5: what is remembered never answers for other plugins, also where a list was changed in place."""
    registry, plugins = LoadoutRegistry(), ["git"]
    assert registry.resolve_active("developer", plugins) == {"git"}
    plugins.append("shell")
    assert registry.resolve_active("developer", plugins) == {"git", "shell"}
    assert registry.resolve_active("developer", iter(["shell"])) == {"shell"}


# -- bad input -------------------------------------------------------------------------------------


def test_a_cycle_of_a_hundred_loadouts_is_cut_at_its_first_revisit() -> None:
    """L3, JD24, JD33: each has all hundred, once, and itself last."""
    ring = [Loadout(name=f"l{n}", parent=f"l{(n + 1) % 100}", plugins=(f"p{n}",)) for n in range(100)]
    registry = LoadoutRegistry(ring)
    for start in (0, 57):
        chain = [link.name for link in registry.chain(f"l{start}")]
        assert chain[-1] == f"l{start}"
        assert sorted(chain) == sorted(f"l{n}" for n in range(100))
        assert registry.resolve_active(f"l{start}", [f"p{n}" for n in range(100)]) == {f"p{n}" for n in range(100)}


# -- one and the same answer -----------------------------------------------------------------------

SOME = st.lists(st.sampled_from([*ALL, "Git", "SHELL"]), max_size=4).map(tuple)


@given(
    st.lists(
        st.builds(
            Loadout,
            name=st.sampled_from("abc"),
            parent=st.none() | st.sampled_from(["a", "B", "gone", "full", "minimal"]),
            plugins=SOME,
            categories=st.lists(st.sampled_from([*CATEGORIES, "Own"]), max_size=3).map(tuple),
            discoverable=st.lists(st.sampled_from(["*", "docker*", "git", "S*", "**", ""]), max_size=2).map(tuple),
            disabled=SOME,
        ),
        max_size=3,
    ),
    st.lists(st.tuples(st.sampled_from([*ALL, "", "Own"]), st.none() | st.sampled_from([*CATEGORIES, "own"]))),
)
def test_resolving_a_list_agrees_with_asking_for_each_plugin(
    given_: list[Loadout], pairs: list[tuple[str, str | None]]
) -> None:
    """L2, L5: one rule, however it is asked."""
    registry = LoadoutRegistry(given_)
    plugins = [Plugin(name=name, category=category) for name, category in dict(pairs).items()]
    known = {loadout.name.casefold(): loadout for loadout in registry.all()}
    for name in ("a", "b", "unknown"):
        merged = merge(name, known)
        said = {p.name: (p.category or category_of(p.name)) for p in plugins}
        active = {plugin for plugin, category in said.items() if merged.includes(plugin, category) is not None}
        open_ = {plugin for plugin, category in said.items() if merged.discovers(plugin, category) is not None}
        assert registry.resolve_active(name, plugins) == active
        assert registry.resolve_discoverable(name, plugins) == open_


# -- kinds of subagents ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "loadout"),
    [
        ("explore", "research"), ("task", "minimal"), ("plan", "developer"), ("review", "developer"),
        ("general", "full"), ("Explore", "research"), ("dance", "minimal"), ("", "minimal"),
    ],
)  # fmt: skip
def test_a_kind_of_subagent_has_its_loadout(kind: str, loadout: str) -> None:
    """L8, JD80, JD81: an unknown kind has `minimal`."""
    assert loadout_of_kind(kind) == loadout


def test_every_kind_has_something_and_kinds_differ_as_in_the_seed() -> None:
    """L8, JD82, JD83, JD84: none is empty; explore is not task; plan is review."""
    registry = LoadoutRegistry()
    held = {kind: registry.resolve_active(name, ALL) for kind, name in SUBAGENTS.items()}
    assert all(held.values())
    assert held["explore"] != held["task"]
    assert held["plan"] == held["review"]
