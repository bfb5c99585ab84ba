"""What scripts read: one JSON document of a documented shape."""

import asyncio
import json
from pathlib import Path

import pytest
from command_support import OUTCOME, Run, misfits

from pegboard import Pegboard

AGENT = ("--agent", "assistant")
OPTIONAL_TEXT = (str, type(None))


def test_surface_json_has_the_tools_in_order_and_their_cost(run: Run, project: Path) -> None:
    run("session", "load", "pad", *AGENT)
    ran = run("surface", *AGENT, "--json")
    assert ran.code == 0
    surface = ran.json
    shape = {
        "agent": str, "session": str, "turn": int,
        "tools": [{"name": str, "plugin": str, "lease": str, "reason": str, "tokens": int}],
        "hints": [str], "suffix": str, "policy": str, "focus": (dict, type(None)),
        "tokens": {"tools": int, "text": int, "total": int, "catalog": int, "saved": int, "unknown": [str]},
        "missing": [{"plugin": str, "reason": str}],
    }  # fmt: skip
    assert misfits(surface, shape) == []
    assert (surface["agent"], surface["session"], surface["turn"]) == ("assistant", "default", 1)
    rows = [(row["name"], row["lease"], row["reason"]) for row in surface["tools"]]
    assert rows[0] == ("add_note", "always", "static")
    assert rows[-1] == ("pad", "unload", "loaded")
    tokens = surface["tokens"]
    assert sum(row["tokens"] for row in surface["tools"]) == tokens["tools"]
    assert tokens["total"] == tokens["tools"] + tokens["text"]
    assert tokens["saved"] == tokens["catalog"] - tokens["total"]


def test_tools_json_lists_the_catalog_or_what_an_agent_may_use(run: Run, project: Path) -> None:
    shape = [
        {
            "name": str, "plugin": str, "category": OPTIONAL_TEXT, "description": str, "tokens": int,
            "available": (bool, type(None)), "reason": str, "purpose": {"text": str, "by": str},
        }
    ]  # fmt: skip
    everything = run("tools", "--json").json
    assert misfits(everything, shape) == []
    assert [tool["name"] for tool in everything] == ["add_note", "list_notes", "leak", "pad", "broken"]
    assert everything[0]["category"] == "Memory"
    permitted = run("tools", *AGENT, "--json").json
    assert [tool["name"] for tool in permitted] == ["add_note", "list_notes", "leak", "pad"]


def test_p6_a_plugin_that_cannot_run_is_listed_with_the_reason(run: Run, project: Path) -> None:
    (project / "pads.py").write_text("import not_installed_anywhere\n")
    ran = run("tools", "--json")
    assert ran.code == 0
    (row,) = [tool for tool in ran.json if tool["plugin"] == "pads"]
    assert row["available"] is False
    assert "not_installed_anywhere" in row["reason"]


def test_search_json_names_the_query_and_what_is_loaded(run: Run, project: Path) -> None:
    shape = {
        "query": str,
        "results": [{"name": str, "kind": str, "plugin": str, "description": str, "score": float, "loaded": bool}],
        "hint": str,
    }
    found = run("search", "pad", "a", "text", *AGENT, "--json").json
    assert misfits(found, shape) == []
    assert found["query"] == "pad a text"
    assert found["results"][0]["name"] == "pad"
    assert found["results"][0]["loaded"] is False
    assert run("search", "list every note", *AGENT, "--json").json["results"][0]["loaded"] is True
    assert len(run("search", "note", "--limit", "1", *AGENT, "--json").json["results"]) == 1


def test_p9_search_does_not_find_what_is_denied(run: Run, project: Path) -> None:
    found = run("search", "fail in any case", *AGENT, "--json").json
    assert "broken" not in [result["name"] for result in found["results"]]


def test_explain_json_has_the_four_predicates_and_the_reasons(run: Run, project: Path) -> None:
    ran = run("explain", "broken", *AGENT, "--json")
    shape = {
        "tool": str, "permitted": bool, "loaded": bool, "visible": bool, "callable": bool,
        "reasons": [{"code": str, "text": str, "where": OPTIONAL_TEXT}],
    }  # fmt: skip
    assert ran.code == 0
    assert misfits(ran.json, shape) == []
    assert ran.json["reasons"][0]["code"] == "denied_switch"
    assert ran.json["reasons"][0]["where"] == "pegboard.yaml:14:19"


@pytest.mark.parametrize(
    ("command", "code", "status", "items"),
    [
        (["load", "writing"], 0, "ok", ["loaded"]),
        (["load", "pad", "nope"], 3, "partial", ["loaded", "not_found"]),
        (["load", "nope"], 3, "refused", ["not_found"]),
        (["load", "broken"], 3, "refused", ["not_found"]),
        (["load", "notes"], 0, "ok", ["already_loaded"]),
        (["unload", "writing"], 0, "ok", ["not_loaded"]),
        (["unload", "notes"], 3, "refused", ["sticky"]),
        (["fallback"], 0, "ok", ["loaded"]),
        (["end-turn"], 0, "ok", []),
    ],
)
def test_s10_session_json_answers_per_name_and_a_partial_one_exits_3(
    run: Run, project: Path, command: list[str], code: int, status: str, items: list[str]
) -> None:
    ran = run("session", *command, *AGENT, "--json")
    assert misfits(ran.json, OUTCOME) == []
    assert (ran.code, ran.json["status"]) == (code, status)
    assert [item["status"] for item in ran.json["items"]] == items
    assert {"add_note", "list_notes"} <= set(ran.json["loaded"])


def test_what_one_command_loads_the_next_one_finds(run: Run, project: Path) -> None:
    run("session", "load", "pad", "--keep", "turn", *AGENT)
    assert run("call", "pad", '{"text": "x", "width": 3}', *AGENT, "--json").json["content"][0]["text"] == "  x"
    ended = run("session", "end-turn", *AGENT, "--json").json
    assert "pad" not in ended["loaded"]
    assert run("surface", *AGENT, "--json").json["turn"] == 2


def test_session_show_has_the_turn_and_the_leases(run: Run, project: Path) -> None:
    run("session", "load", "writing", *AGENT)
    shown = run("session", "show", *AGENT, "--json").json
    shape = {
        **OUTCOME, "principal": str, "agent": str, "session": str, "turn": int, "label": OPTIONAL_TEXT,
        "loadout": OPTIONAL_TEXT,
        "leases": [
            {
                "subject": str, "until": str, "because": str, "loaded_turn": int, "used_turn": int, "without": [str],
            }
        ],
    }  # fmt: skip
    assert misfits(shown, shape) == []
    assert shown["turn"] == 1
    assert [(lease["subject"], lease["until"]) for lease in shown["leases"]] == [("toolkit:writing", "unload")]


def test_s1_session_list_has_each_principals_own_and_delete_forgets_one(run: Run, project: Path) -> None:
    for principal in ("ada", "bob"):
        run("session", "load", "pad", *AGENT, "--session", "t1", "--principal", principal)
    listed = run("session", "list", "--json").json
    shape = [
        {"session": str, "agent": str, "principal": str, "turn": int, "leases": [str], "updated_at": str},
    ]
    assert misfits(listed, shape) == []
    assert sorted(record["principal"] for record in listed) == ["ada", "bob"]
    gone = run("session", "delete", "--session", "t1", "--principal", "ada", *AGENT, "--json")
    assert gone.code == 0
    assert misfits(gone.json, OUTCOME) == []
    assert "pad" not in gone.json["loaded"]
    assert [record["principal"] for record in run("session", "list", "--json").json] == ["bob"]
    again = run("session", "delete", "--session", "t1", "--principal", "ada", *AGENT, "--json")
    assert (again.code, again.json["status"], again.json["items"][0]["status"]) == (3, "refused", "not_found")


async def remember(*principals: str) -> None:
    """Let each of these use a tool after a search, as an agent that opens this folder does."""
    async with Pegboard.open() as board:
        for principal in principals:
            for agent in ("assistant", "opener"):
                session = await board.session(agent=agent, session_id="s", principal=principal)
                await session.load("pads")
                await session.search("pad a text")
                assert (await session.call("pad", {"text": "x"})).status == "ok"


def test_s1_session_forget_counts_what_it_forgets_of_one_principal_or_agent_or_of_everyone(
    run: Run, project: Path
) -> None:
    asyncio.run(remember("local", "ada", "bob"))
    shape = {"status": str, "forgotten": int, "principal": (str, type(None)), "agent": (str, type(None))}
    gone = run("session", "forget", "--principal", "ada", "--agent", "opener", "--json")
    assert misfits(gone.json, shape) == []
    assert (gone.code, gone.json["forgotten"]) == (0, 1)
    assert run("session", "forget", "--principal", "ada").out == "1 remembered use for 'ada' deleted.\n"
    assert run("session", "forget").out == "2 remembered uses for 'local' deleted.\n"
    assert run("session", "forget", "--json").json["forgotten"] == 0
    everyone = run("session", "forget", "--everyone", "--agent", "assistant", "--json")
    assert everyone.json == {"status": "ok", "forgotten": 1, "principal": None, "agent": "assistant"}
    assert run("session", "forget", "--everyone").out == "1 remembered use for everyone deleted.\n"
    assert ("forget", "ada") in [(record["kind"], record["principal"]) for record in run("audit", "--json").json]


def test_session_forget_of_an_agent_that_is_not_configured_and_used_nothing_names_the_nearest(
    run: Run, project: Path
) -> None:
    ran = run("session", "forget", "--agent", "asistant", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (3, "unknown_agent")
    assert "assistant" in ran.json["error"]["hint"]


def test_p2_a_switch_set_by_one_command_binds_the_next_until_it_is_unset(run: Run, project: Path) -> None:
    assert run("permissions", "show", "--json").json == {"assistant": {"broken": False}, "opener": {}}
    ran = run("permissions", "set", "pad", "false", *AGENT, "--json")
    assert (ran.code, ran.json) == (0, {"assistant": {"broken": False, "pad": False}})
    refused = run("call", "pad", '{"text": "x"}', *AGENT, "--json")
    assert (refused.code, refused.json["status"]) == (3, "not_found")
    run("permissions", "set", "broken", "true", *AGENT)
    assert run("permissions", "show", "--json", *AGENT).json == {"assistant": {"broken": True, "pad": False}}
    for name in ("pad", "broken"):
        run("permissions", "set", name, "unset", *AGENT)
    assert run("permissions", "show", "--json", *AGENT).json == {"assistant": {"broken": False}}


def test_a_switch_for_an_unknown_name_is_refused_with_the_nearest_one(run: Run, project: Path) -> None:
    ran = run("permissions", "set", "writting", "false", *AGENT, "--json")
    assert ran.code == 3
    assert ran.json["error"]["code"] == "unknown_name"
    assert "writing" in ran.json["error"]["hint"]


def test_x4_audit_json_lists_what_happened_newest_first_and_by_filter(run: Run, project: Path) -> None:
    run("session", "load", "pad", *AGENT, "--session", "t1", "--principal", "ada")
    run("call", "pad", '{"text": "a secret text"}', *AGENT, "--session", "t1", "--principal", "ada")
    run("call", "broken", '{"reason": "x"}', *AGENT)
    ran = run("audit", "--json")
    shape = [
        {
            "at": str, "kind": str, "principal": str, "agent": str, "session": str, "turn": int, "subject": str,
            "decision": str, "reason": str, "duration": (float, int, type(None)), "outcome": str, "arguments": str,
            "by": str,
        }
    ]  # fmt: skip
    assert misfits(ran.json, shape) == []
    assert [record["kind"] for record in ran.json] == ["deny", "call", "load"]
    assert "a secret text" not in ran.out
    assert [record["kind"] for record in run("audit", "--json", "--kind", "call").json] == ["call"]
    assert [record["kind"] for record in run("audit", "--json", "--limit", "1").json] == ["deny"]
    assert len(run("audit", "--json", "--principal", "ada", "--session", "t1").json) == 2
    assert run("audit", "--json", "--agent", "opener").json == []


def test_call_json_has_content_structure_and_status(run: Run, project: Path) -> None:
    shape = {"status": str, "is_error": bool, "content": [dict], "structured": (dict, type(None)), "message": str}
    ran = run("call", "list_notes", *AGENT, "--json")
    assert (ran.code, misfits(ran.json, shape)) == (0, [])
    assert (ran.json["status"], ran.json["structured"]) == ("ok", {"notes": ["one", "two"]})


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("pad", {"text": 3}, "invalid_arguments", 2),
        ("broken", {"reason": "because"}, "error", 1),
        ("nope", {}, "not_found", 3),
    ],
)
def test_x2_a_call_that_is_refused_or_fails_says_why_by_text_and_exit_code(
    run: Run, project: Path, tool: str, arguments: dict[str, object], status: str, code: int
) -> None:
    run("session", "load", "plugin:pads", "--agent", "opener")
    ran = run("call", tool, json.dumps(arguments), "--agent", "opener", "--json")
    assert (ran.code, ran.json["status"], ran.json["is_error"]) == (code, status, True)
    told = run("call", tool, json.dumps(arguments), "--agent", "opener")
    assert told.code == code
    assert f"pegboard: {status}" in told.err


def test_g12_a_call_of_a_tool_that_is_not_loaded_loads_it_and_runs_it(run: Run, project: Path) -> None:
    """G12, X1: one command, one step; the load and the call stand in the audit trail."""
    ran = run("call", "pad", '{"text": "x"}', *AGENT, "--json")
    assert (ran.code, ran.json["status"]) == (0, "ok")
    assert [one["kind"] for one in run("audit", *AGENT, "--json").json] == ["call", "load"]
