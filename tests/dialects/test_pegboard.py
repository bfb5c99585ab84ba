"""The default dialect: search, load, unload, each over a list of names."""

import json
from dataclasses import replace
from typing import Any

import pytest
from driving import Conversation, access_of, plugin

from pegboard.core.model.leases import TURN, UNLOAD, LeaseTerm
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.surface.surfaces import resolve
from pegboard.dialects.pegboard import PegboardDialect

DIALECT = PegboardDialect()


def talk(*plugins: Any, **changes: Any) -> Conversation:
    held = plugins or (plugin("file", "read"), plugin("git", "log", "diff"), plugin("docker", "ps"))
    profile: dict[str, Any] = {"static": ["file"], "discoverable": ("*",), **changes}
    permissions = access_of(*held, **profile)
    return Conversation(DIALECT, permissions, CommandContext(until=DIALECT.lease))


def schema(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}. At once.", "arguments": {}}


def test_a_load_answers_name_by_name_with_the_schemas() -> None:
    """D2, S10: status, one entry per item, when it can be used."""
    payload = talk().call("load_tools", names=["git", "nothing", "read"])
    assert json.loads(payload.text()) == {
        "status": "partial",
        "takes_effect": "next_step",
        "items": [
            {
                "name": "git",
                "status": "loaded",
                "tools": [schema("log"), schema("diff")],
            },
            {"name": "nothing", "status": "not_found", "message": "'nothing' was not found."},
            {
                "name": "read",
                "status": "already_loaded",
                "tools": [schema("read")],
            },
        ],
    }
    assert (payload.is_error, payload.inline) == (False, True)
    assert [tool.wire for tool in payload.schemas] == ["log", "diff", "read"]


def test_a_schema_is_said_once_although_two_names_stand_for_it() -> None:
    """F4: tokens are not spent twice."""
    document = json.loads(talk().call("load_tools", names=["log", "git"]).text())
    assert [[tool["name"] for tool in item["tools"]] for item in document["items"]] == [["log"], ["diff"]]


def test_what_came_along_is_told_with_its_schema() -> None:
    """T8: required tools stand apart from those that were asked for."""
    payload = talk(plugin("auth", "key"), plugin("git", "push", requires="auth/key"), static=[])
    document = json.loads(payload.call("load_tools", names=["push"]).text())
    assert document["required_tools"] == [schema("key")]


def test_a_plain_string_is_taken_for_a_list_of_one() -> None:
    """S10: models write it so."""
    assert json.loads(talk().call("load_tools", names="git").text())["status"] == "ok"


def test_where_nothing_could_be_done_the_payload_is_an_error() -> None:
    """S10: refused, and says no time at which it takes effect."""
    conversation = talk()
    payload = conversation.call("load_tools", names=["nothing"])
    assert json.loads(payload.text()) == {
        "status": "refused",
        "items": [{"name": "nothing", "status": "not_found", "message": "'nothing' was not found."}],
    }
    assert (payload.is_error, conversation.state) == (True, DEFAULT)


@pytest.mark.parametrize(
    ("keep", "until"), [("turn", TURN), ("idle", LeaseTerm("idle", 5)), ("session", UNLOAD), (None, UNLOAD)]
)
def test_keep_says_how_long_a_load_stands(keep: str | None, until: LeaseTerm) -> None:
    """S5: turn, idle or session; without it until it is unloaded."""
    conversation = talk()
    conversation.call("load_tools", names=["git"], **({"keep": keep} if keep else {}))
    assert [lease.until for lease in conversation.state.leases] == [until]


def test_an_agents_lease_is_the_default_where_keep_is_not_said() -> None:
    """S5: the terms carry it."""
    conversation = talk()
    conversation.terms = replace(conversation.terms, until=LeaseTerm("idle", 9))
    conversation.call("load_tools", names=["git"])
    assert conversation.state.leases[0].until == LeaseTerm("idle", 9)


def test_an_unload_answers_name_by_name() -> None:
    """S10: unloaded, not_loaded, sticky, not_found."""
    conversation = talk()
    conversation.call("load_tools", names=["git"])
    payload = conversation.call("unload_tools", names=["git", "docker", "file", "nothing"])
    document = json.loads(payload.text())
    assert [item["status"] for item in document["items"]] == ["unloaded", "not_loaded", "sticky", "not_found"]
    assert document["status"] == "partial"
    assert resolve(conversation.permissions, conversation.state).names == ("read",)


def test_a_search_answers_with_names_and_how_to_go_on() -> None:
    """P3: schemas come with the load where nothing is so likely that the search loads it."""
    payload = talk(switches={"docker": False}).call("search_tools", queries="show changes", limit=2)
    assert json.loads(payload.text()) == {"status": "ok", "results": [{"name": "read"}, {"name": "log"}]}
    nothing = talk(static=[], discoverable=()).call("search_tools", queries=["x"])
    assert json.loads(nothing.text()) == {"status": "ok", "results": [], "hint": "Nothing fits."}


def test_hints_stand_in_the_definition_of_the_loading_tool() -> None:
    """F2: only where the host says them there."""
    view = talk().view()
    search, load, unload = DIALECT.tools(replace(view, hints=("git: log, diff",)))
    assert load.description.splitlines()[1:] == ["git: log, diff"]
    assert load.description.endswith("Available:\ngit: log, diff")
    assert [tool.wire for tool in (search, load, unload)] == ["search_tools", "load_tools", "unload_tools"]
    assert "Available" not in DIALECT.tools(view)[1].description
    assert (search.read_only, load.read_only, unload.read_only) == (True, False, False)
