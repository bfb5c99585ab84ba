"""The full example of seed 001, unmodified, with the real Agno: what the command checks, loads, calls and misses."""

import json
from pathlib import Path

import pytest
from command_support import Run

SEED = (Path(__file__).resolve().parent.parent / "fixtures" / "seeds" / "seed_001.yaml").read_text()
JOB = {"name": "daily", "cron": "0 9 * * *", "endpoint": "/agents/a/runs", "payload": '{"message": "hi"}'}
REASON = (
    "plugin 'github' could not be constructed: GitHub access token is required. "
    "Set GITHUB_ACCESS_TOKEN in the environment or give 'access_token' inline: '- github: {access_token: …}'."
)


@pytest.fixture(autouse=True)
def _without_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACCESS_TOKEN", raising=False)


def test_the_example_is_checked_loaded_and_called(run: Run, folder: Path) -> None:
    """T7, S1: nothing is missing from the start; a job is scheduled and found by the other agent."""
    (folder / "pegboard.yaml").write_text(SEED)
    checked = run("check")
    assert checked.code == 0
    assert "note: plugin 'scheduler' stores schedules, but no host runs them here" in checked.out
    assert checked.out.endswith(" 2 agents, 3 toolkits, 12 plugins.\n")
    assert run("session", "load", "data", "--agent", "researcher", "--json").json["status"] == "ok"
    assert json.loads(run("call", "create_schedule", json.dumps(JOB), "--agent", "researcher").out)["enabled"]
    assert json.loads(run("call", "list_schedules", "{}", "--agent", "assistant").out)["count"] == 1
    assert (
        json.loads(run("call", "list_schedules", "{}", "--agent", "assistant", "--principal", "bob").out)["count"] == 0
    )


def test_what_an_agent_has_from_the_start_and_cannot_run_is_named(run: Run, folder: Path) -> None:
    """P6: `check` warns at its place, `surface` lists it, and everything else works."""
    (folder / "pegboard.yaml").write_text("agents: {default: {tools: [calculator, github]}}\n")
    checked = run("check")
    assert (checked.code, checked.out.splitlines()[0]) == (
        0,
        f"pegboard.yaml:1:40: agents.default.tools: {REASON} (warning: unavailable)",
    )
    assert run("check", "--strict").code == 1
    assert run("surface", "--json").json["missing"] == [{"plugin": "github", "reason": REASON}]
    shown = run("surface").out
    assert f"Missing\ngithub: {REASON}\n" in shown
    assert "multiply" in shown


@pytest.mark.parametrize(
    ("agent", "loadouts", "told"),
    [
        ("{loadout: developer}", "", "pegboard.yaml:1:10: agents.default: plugin 'github' could not be constructed"),
        (
            "{loadout: mine}",
            "loadouts: {mine: {plugins: [github, homeassistant]}}\n",
            "pegboard.yaml:1:10: agents.default: plugin 'homeassistant' is known by name only",
        ),
    ],
)
def test_a_plugin_that_a_loadout_brought_in_and_that_cannot_run_has_the_place_of_the_agent(
    run: Run, folder: Path, agent: str, loadouts: str, told: str
) -> None:
    """P6, L4: the agent names the loadout, built-in or its own, and nothing else in the file names the plugin."""
    (folder / "pegboard.yaml").write_text(f"agents: {{default: {agent}}}\n{loadouts}")
    assert [line for line in run("check").out.splitlines() if line.startswith(told)]


def test_packaged_plugins_stand_under_the_names_of_the_seeds(run: Run, folder: Path) -> None:
    """L4: `git`, `search` and `diff` are there without being defined."""
    (folder / "pegboard.yaml").write_text("agents: {default: {tools: [git, search, diff]}}\n")
    (folder / "one.txt").write_text("a needle\n")
    assert run("check").code == 0
    surface = run("surface", "--json").json
    assert surface["missing"] == []
    owners = {tool["name"]: tool["plugin"] for tool in surface["tools"] if tool["plugin"] != "pegboard"}
    assert {"git_log": "git", "search_text": "search", "compare_files": "diff"}.items() <= owners.items()
    assert run("call", "search_text", '{"query": "needle"}').out == "one.txt:1: a needle\n"
