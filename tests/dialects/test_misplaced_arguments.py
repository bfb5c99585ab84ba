"""What a model writes for a meta-tool under another name, or beside `arguments`, is not dropped without a word."""

import json
from pathlib import Path
from typing import Any

import pytest
from noting_board import GIVEN, opened

RIGHT = {"name": "purge", "arguments": GIVEN}
CALLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "purge", "args": GIVEN}, RIGHT),
    ({"name": "purge", "parameters": GIVEN}, RIGHT),
    ({"name": "purge", "params": json.dumps(GIVEN)}, RIGHT),
    ({"name": "purge", "input": GIVEN, "_note": "why"}, RIGHT),
    ({"name": "purge", **GIVEN}, RIGHT),
    ({"name": "purge", "before": "2020", "dryRun": True}, RIGHT),
    ({"name": "purge", "arguments": {"before": "2020"}, "dry_run": True}, RIGHT),
    ({"name": "purge", "arguments": {"before": "2020"}, "args": {"dry_run": True}}, RIGHT),
    ({"name": "purge", "arguments": {}, "args": GIVEN}, RIGHT),
    ({"name": "purge", "arguments": {"arguments": GIVEN}}, RIGHT),
    ({"name": "purge", "arguments": {"args": json.dumps(GIVEN)}}, RIGHT),
    ({"name": "purge", "arguments": {"input": GIVEN}}, RIGHT),
    ({"tool": "purge", "arguments": GIVEN}, RIGHT),
    ({"tool_name": "purge", "args": GIVEN}, RIGHT),
    ({"name": "purge", "dryrun_only": True}, {"name": "purge", "arguments": {}}),
    ({"name": "odd", "parameters": {"a": 1}}, {"name": "odd", "arguments": {"parameters": {"a": 1}}}),
]
OTHERS: dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "pegboard": [
        ("load_tools", {"tools": ["purge"]}, {"names": ["purge"]}),
        ("load_tools", {"toolkit": "whole"}, {"names": ["whole"]}),
        ("load_tools", {"tool": "purge"}, {"names": ["purge"]}),
        ("load_tools", {"names": ["purge"], "tools": ["odd"]}, {"names": ["purge", "odd"]}),
        ("load_tools", {"names": ["purge"], "until": "turn"}, {"names": ["purge"], "keep": "turn"}),
        ("unload_tools", {"name": "purge"}, {"names": ["purge"]}),
        ("search_tools", {"query": "delete old things"}, {"queries": ["delete old things"]}),
    ],
    "toolkits": [
        ("load_tools", {"names": ["whole"]}, {"toolkit": "whole"}),
        ("unload_tools", {"name": "whole"}, {"toolkit": "whole"}),
    ],
    "invokeother": [
        ("invokeother_tool", {"mode": "load", "names": ["purge"]}, {"mode": "load", "query": "purge"}),
        ("invokeother_tool", {"action": "load", "query": "odd"}, {"query": "odd", "mode": "load"}),
    ],
    "discovery": [
        ("activate_tool", {"name": "kit"}, {"plugin": "kit"}),
        ("discover_tools", {"query": "kit"}, {"keyword": "kit"}),
    ],
}


def right_call(text: str, name: str) -> dict[str, Any]:
    """Return the arguments that an answer says to write."""
    _, _, call = text.partition(f"Write: {name} ")
    return json.loads(call)


@pytest.mark.parametrize("through", ["call_tool", "call_read_only_tool"])
async def test_what_would_not_reach_the_tool_is_refused_with_the_right_call(tmp_path: Path, through: str) -> None:
    """X2, T4: nothing has run, and what the answer says to write runs with everything."""
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        for written, right in CALLS:
            session = await open_session()
            decided = await session.decide(through, written)
            answered = await session.call(through, written)

            assert ran == [], written
            if through == "call_read_only_tool" and answered.status == "refused":  # it may change things
                continue
            assert (decided.status, answered.status) == ("refused", "invalid_arguments"), written
            assert right_call(answered.message, through) == right
            if through == "call_tool":
                assert (await session.call(through, right)).status == "ok"
                assert len(ran) == 1
                ran.clear()


async def test_what_a_client_adds_to_every_call_changes_nothing(tmp_path: Path) -> None:
    """T4: it is no argument of the tool; nor is what says again what was said."""
    added = {"_note": "why", "task_progress": "- [x] look", "tool": "call_tool", "args": None}
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        session = await open_session()
        for more in (added, {"args": GIVEN}, {"before": "2020"}, {"tool": "purge"}):
            assert (await session.call("call_tool", {**RIGHT, **more})).status == "ok"
        assert ran == [("2020", True)] * 4
        ran.clear()
        assert (await session.call("call_tool", {"name": "nothing", "reason": "why"})).status == "not_found"
        for call in (
            {"name": "note", "arguments": {}, "_meta": {"progressToken": 1}, "_note": "why"},
            {"name": "now", "reason": "why"},
            {"name": "now", "arguments": None},
            {"name": "now", "arguments": {}, "tool": "mcp__pegboard__call_tool"},
        ):
            assert (await session.call("call_tool", call)).status == "ok", call
        assert ran == [("", ""), (), (), ()]
        for given in (
            {"names": ["now", "purge"], "name": "now"},
            {"names": ["now"], "tool": "mcp__pegboard__load_tools", "keep": None},
        ):
            assert (await session.call("load_tools", given)).status == "ok", given


async def test_a_tool_whose_parameters_are_named_as_those_of_call_tool_gets_them(tmp_path: Path) -> None:
    """X2: under `arguments`, as any other."""
    own = {"name": "n", "arguments": {"x": 1}, "parameters": {"y": 2}}
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        assert (await (await open_session()).call("call_tool", {"name": "odd", "arguments": own})).status == "ok"
        assert ran == [("n", {"x": 1}, {"y": 2})]


@pytest.mark.parametrize("dialect", OTHERS)
async def test_an_argument_of_a_meta_tool_under_another_name_is_refused_with_the_right_call(
    tmp_path: Path, dialect: str
) -> None:
    """X2, T4: nothing was loaded or unloaded by half; through `call_tool` too."""
    async with opened(tmp_path, dialect) as (open_session, _):
        for name, written, right in OTHERS[dialect]:
            session = await open_session()
            for asked, arguments in ((name, written), ("call_tool", {"name": name, "arguments": written})):
                answered = await session.call(asked, arguments)
                assert answered.status == "invalid_arguments", written
                assert right_call(answered.message, name) == right
            assert (await session.snapshot()).state.leases == ()
            assert (await session.call(name, right)).status == "ok"
