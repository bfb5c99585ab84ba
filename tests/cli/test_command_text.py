"""What people read: explanations, tables, checks."""

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest
from command_support import Run

from pegboard import Pegboard

AGENT = ("--agent", "assistant")


@pytest.mark.parametrize(
    ("tool", "verdict", "advice"),
    [
        ("broken", "may not use 'broken'. The tool 'broken' is switched off", "permissions set broken true"),
        ("pad", "may use 'pad', but it is not loaded", "session load pad --agent assistant --session default"),
        ("add_note", "can call 'add_note' now; it is always loaded", ""),
        ("load_tools", "can call 'load_tools' now; it is always loaded", ""),
        (
            "writing",
            "may use 1 of 2 tools of toolkit 'writing'; 0 are",
            "session load writing --agent assistant",
        ),
        ("notes", "may use 3 of 3 tools of plugin 'notes'; 3 are loaded.", ""),
    ],
)
def test_f5_explain_begins_with_the_verdict_and_ends_with_what_to_do(
    run: Run, project: Path, tool: str, verdict: str, advice: str
) -> None:
    ran = run("explain", tool, *AGENT)
    assert ran.code == 0
    assert verdict in ran.out.splitlines()[0]
    assert all(f"\n  {predicate}" in ran.out for predicate in ("permitted", "loaded", "visible", "callable"))
    last = ran.out.rstrip().splitlines()[-1]
    assert (last.startswith("Next: ") and advice in last) if advice else not last.startswith("Next: ")


def test_f5_explain_of_a_loaded_tool_says_since_when_and_how_to_hang_it_back(run: Run, project: Path) -> None:
    run("session", "load", "writing", *AGENT, "--principal", "ada")
    ran = run("explain", "pad", *AGENT, "--principal", "ada")
    assert ran.out.startswith("Agent 'assistant' can call 'pad' now.")
    assert "toolkit 'writing' was loaded in turn 1" in ran.out
    assert "pegboard session unload pad --agent assistant --session default --principal ada" in ran.out


def test_explain_of_an_unknown_tool_offers_the_nearest_and_exits_3(run: Run, project: Path) -> None:
    ran = run("explain", "ad_note", *AGENT)
    assert ran.code == 3
    assert "There is no tool 'ad_note'" in ran.out
    assert "Did you mean 'add_note'" in ran.out


def test_explain_of_a_tool_whose_plugin_is_denied_and_was_never_asked_says_who_denies_it(
    run: Run, project: Path
) -> None:
    """F5: docker is not asked before it is loaded, and this agent cannot load it."""
    config = project / "pegboard.yaml"
    config.write_text(
        config.read_text()
        + "  closed: {loadout: closed, allowed_toolkits: [containers]}\nloadouts: {closed: {disabled: [docker]}}\n"
    )
    config.write_text(config.read_text().replace("toolkits:\n", "toolkits:\n  containers: {tools: [docker]}\n", 1))
    ran = run("explain", "docker/list_containers", "--agent", "closed")
    assert ran.code == 0
    assert " ".join(ran.out.split()).startswith(
        "Agent 'closed' may not use 'docker/list_containers'. Loadout 'closed' disables plugin 'docker'."
    )
    assert "Its tools are not known yet" in " ".join(ran.out.split())
    assert ran.out.rstrip().splitlines()[-1].startswith("Next: Take it out of the loadout's `disabled`")
    unknown = run("explain", "list_containers", "--agent", "closed")
    assert unknown.code == 3
    assert "The tools of plugin 'docker' are not known yet." in " ".join(unknown.out.split())


def test_p6_explain_of_an_unavailable_tool_says_what_is_missing(run: Run, project: Path) -> None:
    config = project / "pegboard.yaml"
    needing = "{python: pads, needs: {pad: {env: [CLI_TEST_NOT_SET]}}}"
    config.write_text(config.read_text().replace("{python: pads}", needing))
    ran = run("explain", "pad", "--agent", "opener")
    assert ran.out.startswith("Agent 'opener' may use 'pad', but it cannot run now: ")
    assert "CLI_TEST_NOT_SET" in ran.out.splitlines()[0]


def test_t5_explain_of_a_conflict_says_what_it_clashes_with(run: Run, folder: Path) -> None:
    (folder / "counter.py").write_text(
        "class Counter:\n    def __init__(self, start: int = 0):\n        self.start = start\n\n"
        '    def count(self) -> int:\n        """Count."""\n        return self.start\n\n'
        '    def more(self) -> int:\n        """Count on."""\n        return self.start + 1\n'
    )
    (folder / "pegboard.yaml").write_text(
        "plugins: {counter: {python: 'counter:Counter'}}\n"
        "toolkits:\n  one: {tools: [{counter: {start: 1, include_tools: [count]}}]}\n"
        "  two: {tools: [{counter: {start: 2}}]}\n"
        "agents: {a: {allowed_toolkits: [one, two]}}\n"
    )
    assert run("session", "load", "one").code == 0
    refused = run("session", "load", "two", "--json")
    assert (refused.code, refused.json["items"][0]["status"]) == (3, "conflict")
    held, missing = run("explain", "count").out, run("explain", "more").out
    assert held.startswith("Agent 'a' can call 'count' now; another toolkit would bring it with other settings.")
    assert missing.startswith("Agent 'a' may use 'more', but it is not loaded, and conflicts with what is loaded")
    assert "Toolkit 'two'" in missing.splitlines()[0]
    assert "pegboard session unload NAME --agent a" in missing.splitlines()[-1]


def test_explain_of_what_nothing_grants_says_how_to_grant_it(run: Run, project: Path) -> None:
    config = project / "pegboard.yaml"
    config.write_text(config.read_text() + "  bare: {}\n")
    ran = run("explain", "pad", "--agent", "bare")
    assert "Agent 'bare' may not use 'pad'. Nothing grants it" in ran.out
    assert "pegboard permissions set pads/pad true --agent bare" in ran.out
    run("permissions", "set", "pad", "true", "--agent", "bare")
    assert run("explain", "pad", "--agent", "bare").out.startswith("Agent 'bare' can call 'pad' now")


def test_text_of_tools_cannot_steer_the_terminal_or_the_table(run: Run, project: Path) -> None:
    (project / "pads.py").write_text(
        'def pad() -> str:\n    """Pad [bold]all[/bold]\\x1b[2J things."""\n    return "\\x1b[31mred"\n'
    )
    listed = run("search", "pad", *AGENT).out
    assert "Pad [bold]all[/bold]" in listed
    run("session", "load", "pad", *AGENT)
    assert "\x1b" not in listed + run("call", "pad", *AGENT).out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": ', "line 1, column 10"),
        ('{"text": "a",\n  }', "line 2, column 3"),
        ("[1]", "an array, not a JSON object"),
        ('"text"', "a string, not a JSON object"),
        ("null", "null, not a JSON object"),
        ('{"text": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_arguments_that_are_no_json_object_are_refused_with_the_place(
    run: Run, project: Path, text: str, message: str
) -> None:
    ran = run("call", "pad", text, *AGENT)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert run("call", "pad", text, *AGENT, "--json").json["error"]["code"] == "bad_arguments"


def test_arguments_can_come_from_standard_input(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"text": "from a pipe"})))
    assert run("call", "add_note", "-", *AGENT).out == "added from a pipe\n"


def test_a_surface_and_a_bill_that_cost_more_than_listing_everything_say_so(run: Run, folder: Path) -> None:
    """F4: of one small tool, the meta-tools beside it cost more than it does."""
    agent = {"dialect": "pegboard", "discoverable": ["*"]}
    (folder / "coin.py").write_text('def flip() -> str:\n    """Flip a coin."""\n    return "heads"\n')
    plugins = {"coin": {"python": "coin"}}
    (folder / "pegboard.yaml").write_text(json.dumps({"plugins": plugins, "agents": {"default": agent}}))

    async def ask() -> None:
        async with Pegboard.open("pegboard.yaml") as board:
            await (await board.session(session_id="s")).surface()

    asyncio.run(ask())
    billed = run("bill", "--by", "agent")
    assert "-" in billed.out.splitlines()[2].split()[3]
    assert "Where 'saved' is negative, listing everything would have cost less.\n" in billed.err
    assert "without meta-tools and hints: loading all of it is cheaper." in " ".join(run("surface").out.split())
