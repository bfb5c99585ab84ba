"""A focus narrows one step to what is visible, and never hides the way back."""

from dataclasses import replace
from typing import Any

import pytest
from states import access_of, plugin, tool, toolkit

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.surface.focus import Choice, Directive, directive, overlay, parse_answer, rules
from pegboard.core.surface.surfaces import Surface, resolve

META = (tool("pegboard", "load_tools", wire="load_tools"),)
FORGE = plugin("forge", "check", "deploy", kind="server")
NOTES = plugin("notes", "note_add", "note_list")


def world(**profile: Any) -> tuple[CompiledPermissions, Surface]:
    kits = [
        replace(toolkit("evolution", "forge"), focus=({"when": "deploy"}, {"when": "status", "tools": ["check"]})),
        replace(toolkit("writing", "notes"), focus=({"when": "note"},)),
    ]
    profile = {"allowed_toolkits": ("evolution", "writing"), "initial_toolkits": ("evolution", "writing"), **profile}
    permissions = access_of(FORGE, NOTES, toolkits=kits, **profile)
    return permissions, resolve(permissions, DEFAULT, meta=META)


def focused(names: list[str], *, choice: Choice = "auto", **profile: Any) -> Any:
    permissions, surface = world(**profile)
    return overlay(surface, [directive(permissions, "evolution", names, choice)])


def test_a_focus_names_only_visible_tools_and_keeps_the_meta_tools() -> None:
    """SJ15, F3: by own name, wire name, plugin, in the order of the surface."""
    expected = {"allowed_tools": ["load_tools", "forge__check"], "tool_choice": "auto"}
    assert focused(["check"]) == focused(["forge__check"]) == focused(["check", "gone", "note_lost"]) == expected
    assert focused(["forge"])["allowed_tools"] == ["load_tools", "forge__check", "forge__deploy"]
    assert focused([]) == focused(["forge"])
    assert focused(["note_add"])["allowed_tools"] == ["load_tools", "note_add"]


def test_a_focus_is_null_where_nothing_it_names_is_visible() -> None:
    """SJ15, F3: denied or not there; it never leaves the model with the meta-tools alone."""
    assert focused(["gone"]) is None
    assert focused(["check"], switches={"forge": False}) is None
    permissions, surface = world()
    assert overlay(surface, []) is None
    assert permissions is not None


def test_required_beats_auto_over_the_union_of_toolkits() -> None:
    """SJ16, F3: what asks for nothing visible requires nothing."""
    permissions, surface = world()
    one = directive(permissions, "evolution", ["check"], "required")
    two = directive(permissions, "writing", [], "auto")
    assert overlay(surface, [two, one]) == {
        "allowed_tools": ["load_tools", "forge__check", "note_add", "note_list"],
        "tool_choice": "required",
    }
    nothing = Directive(tools=frozenset({"gone/tool"}), choice="required")
    found = overlay(surface, [two, nothing])
    assert found is not None
    assert found["tool_choice"] == "auto"


def test_only_the_rules_of_the_agents_toolkits_count() -> None:
    """F3, P2: a toolkit that is switched off, or not allowed, says nothing."""
    permissions, _ = world()
    assert [name for name, _ in rules(permissions)] == ["evolution", "evolution", "writing"]
    off, _ = world(switches={"evolution": False})
    assert [name for name, _ in rules(off)] == ["writing"]
    fewer, _ = world(allowed_toolkits=("writing",), initial_toolkits=())
    assert [name for name, _ in rules(fewer)] == ["writing"]


def test_what_a_hook_may_answer() -> None:
    """F3: None or no names is no focus."""
    assert parse_answer(None) is None
    assert parse_answer([]) is None
    assert parse_answer({"tools": None}) is None
    assert parse_answer(["a"]) == (("a",), "auto")
    assert parse_answer({"tools": ("a", "b"), "choice": "required"}) == (("a", "b"), "required")


@pytest.mark.parametrize("said", ["check", 5, {"tools": "check"}, {"tools": ["a"], "choice": "must"}])
def test_what_a_hook_may_not_answer(said: object) -> None:
    """F3: anything else is an error."""
    with pytest.raises(ValueError, match=r"it answers neither|its choice is neither"):
        parse_answer(said)
