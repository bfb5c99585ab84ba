"""What servers offer besides tools: who sees it, and under which name."""

from collections.abc import Mapping
from typing import Any

import pytest
from builders import agent, permissions_of, plugin, toolkit, world
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.access.listed_items import (
    MergedList,
    alias,
    merge_lists,
    owners,
    plugins_with_lists,
    server_for_completion,
    unalias,
    why_not,
)
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.tools import Plugin

SERVER: dict[str, Any] = {"kind": "server"}
WORLD = world(
    plugin("git", "log", "push", **SERVER),
    plugin("docs", **SERVER),
    plugin("off", "x", default_on=False, **SERVER),
    plugin("own", "run"),
    Plugin(name="unseen", kind="server"),
    toolkits=[toolkit("kit", "docs", "git")],
    loadouts=[Loadout(name="quiet", plugins=("docs", "git"), disabled=("git",))],
)


def seen(held: CompiledPermissions) -> list[str]:
    return [found.name for found in plugins_with_lists(held)]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ({}, []),
        ({"tools": ["git/log"]}, ["git"]),
        ({"tools": ["docs"]}, ["docs"]),
        ({"allowed": ["kit"]}, ["git", "docs"]),
        ({"discoverable": ["*"]}, ["git", "docs", "unseen"]),
        ({"discoverable": ["*"], "switches": {"git": False}}, ["docs", "unseen"]),
        ({"discoverable": ["*"], "switches": {"docs": False, "off": True}}, ["git", "off", "unseen"]),
        ({"allowed": ["kit"], "switches": {"kit": False}}, []),
        ({"loadout": "quiet"}, ["docs"]),
    ],
)
def test_an_agent_sees_the_offers_of_servers_of_which_something_is_permitted(
    profile: Mapping[str, Any], expected: list[str]
) -> None:
    """P1, P3: one permitted tool, or the server as a whole where it has none; in the order of the configuration."""
    assert seen(permissions_of(WORLD, **profile)) == expected


def test_a_switch_at_run_time_counts_and_a_child_sees_no_more_than_its_parent() -> None:
    """P4, P8: the same fold as for tools."""
    everything = agent(discoverable=["*"])
    parent = CompiledPermissions(WORLD, everything, SessionConstraints(stored={"git": False}))
    assert seen(parent) == ["docs", "unseen"]
    assert seen(CompiledPermissions(WORLD, everything, SessionConstraints(parent=parent))) == ["docs", "unseen"]


def test_the_true_reason_is_known() -> None:
    """P9: for the audit log; the client hears nothing of it."""
    held = permissions_of(WORLD, discoverable=["git", "docs"], switches={"git": False})
    plugins = WORLD.catalog.plugins
    assert [why_not(held, plugins[name]).code for name in ("git", "unseen")] == ["denied_switch", "not_granted"]


TEXT = st.text(st.characters(codec="utf-8"), min_size=1)


@given(TEXT, st.text(st.characters(codec="utf-8")))
def test_an_alias_leads_back_to_the_very_uri(name: str, uri: str) -> None:
    """G10: reversible for any name and any URI."""
    assert unalias(alias(name, uri)) == (name, uri)


def resource(uri: str, **more: Any) -> dict[str, Any]:
    return {"uri": uri, "name": uri, **more}


def shelf(kind: Any, *listings: tuple[Plugin, list[dict[str, Any]]]) -> MergedList:
    return merge_lists(kind, listings)


A, B, GH = plugin("a", **SERVER), plugin("b", **SERVER), plugin("hub", prefix="gh", **SERVER)
BARE = plugin("bare", prefix="", **SERVER)


def test_of_two_equal_uris_the_first_has_it_and_the_later_an_alias() -> None:
    """G7, G10: nothing is lost, and what is not renamed is the very object."""
    first, second = resource("x://1", icons=[]), resource("x://1", size=2)
    made = shelf("resources", (A, [first, resource("x://1")]), (B, [second, resource("y://1")]))
    assert list(made.offers) == ["x://1", "pegboard://b/x://1", "y://1"]
    assert made.offers["x://1"].wire is first
    renamed = made.offers["pegboard://b/x://1"]
    assert renamed.wire == {**second, "uri": "pegboard://b/x://1"}
    assert (renamed.plugin, renamed.name) == ("b", "x://1")
    assert made.clashes == ()


def test_prompts_are_named_like_tools_and_a_clash_is_reported() -> None:
    """G10: prefix, 64 characters, no two of one name."""
    long = {"name": "n" * 70}
    made = shelf("prompts", (A, [{"name": "greet"}, long]), (GH, [{"name": "it is"}]), (BARE, [{"name": "a__greet"}]))
    assert next(iter(made.offers)) == "a__greet"
    assert list(made.offers)[2].startswith("gh__it_is_")
    assert max(map(len, made.offers)) == 64
    assert {offer.name for offer in made.offers.values()} == {"greet", "n" * 70, "it is"}
    assert [(clash.name, clash.first, clash.second) for clash in made.clashes] == [
        ("a__greet", "a/greet", "bare/a__greet")
    ]


def matches(template: str, uri: str) -> bool:
    return uri.startswith(template.partition("{")[0])


RESOURCES = shelf("resources", (A, [resource("x://1")]), (B, [resource("x://1")]))
TEMPLATES = shelf(
    "templates", (A, [{"uriTemplate": "x://{n}", "name": "n"}]), (B, [{"uriTemplate": "x://{n}", "name": "n"}])
)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("x://1", [("a", "x://1")]),
        ("pegboard://b/x://1", [("b", "x://1")]),
        ("pegboard://a/anything", [("a", "anything")]),
        ("pegboard://shut/x://1", []),
        ("x://2", [("a", "x://2")]),
        ("pegboard://b/x://2", [("b", "x://2")]),
        ("y://1", []),
        ("", []),
    ],
)
def test_a_uri_is_of_its_owner_else_of_whose_template_gives_it(uri: str, expected: list[tuple[str, str]]) -> None:
    """G7, P9: what is not visible owns nothing."""
    assert owners(uri, ["a", "b"], RESOURCES, TEMPLATES, matches) == expected


PROMPTS = shelf("prompts", (A, [{"name": "greet"}]))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"type": "ref/prompt", "name": "a__greet"}, ("a", "greet")),
        ({"type": "ref/prompt", "name": "greet"}, None),
        ({"type": "ref/resource", "uri": "x://{n}"}, ("a", "x://{n}")),
        ({"type": "ref/resource", "uri": "pegboard://b/x://{n}"}, ("b", "x://{n}")),
        ({"type": "ref/resource", "uri": "pegboard://shut/x://{n}"}, None),
        ({"type": "ref/resource", "uri": "x://{other}"}, None),
        ({"type": "ref/else"}, None),
        ({}, None),
    ],
)
def test_a_reference_is_completed_by_its_owner(reference: dict[str, Any], expected: tuple[str, str] | None) -> None:
    """G7, P9: under the name that the owner knows."""
    found = server_for_completion(reference, ["a", "b"], PROMPTS, RESOURCES, TEMPLATES)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found[0], found[1].get("name") or found[1]["uri"]) == expected
    assert found[1]["type"] == reference["type"]
