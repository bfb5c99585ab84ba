"""`pegboard stats`: what other commands called, by tool, agent and server."""

import re
from pathlib import Path

import pytest
from command_support import Run

AGENT = ("--agent", "assistant")


def called(run: Run) -> None:
    """Call two tools, and one that there is not."""
    for _ in range(2):
        assert run("call", "add_note", '{"text": "milk"}', *AGENT).code == 0
    assert run("call", "nothing", *AGENT).code == 3


def test_f4_stats_say_what_was_called_how_often_and_how_that_went(run: Run, project: Path) -> None:
    """F4: by tool, by agent and by server, of calls of any process on the store."""
    called(run)
    title, _, *rows = (line.split() for line in run("stats").out.splitlines())
    assert title == ["tool", "calls", "failed", "refused", "asked", "p50", "p95"]
    assert [row[:5] for row in rows] == [["notes/add_note", "2", "0", "0", "0"]]
    assert run("stats", "--by", "server").out.splitlines()[2].split()[:2] == ["notes", "2"]
    assert run("stats", "--by", "agent", "--since", "1h").out.splitlines()[2].split()[:4] == [
        "assistant",
        "2",
        "0",
        "1",
    ]
    assert run("stats", "--agent", "opener").out == "Nothing was called.\n"


def test_f4_stats_as_json_have_the_curves(run: Run, project: Path) -> None:
    """F4: one document, with each step."""
    called(run)
    found = run("stats", "--since", "2d", "--json").json
    assert (found["seconds"], len(found["steps"])) == (3_600, 48)
    assert (found["totals"]["ok"], found["totals"]["refused"]) == (2, 1)
    assert [(row["name"], row["server"], row["calls"]) for row in found["tools"]] == [("notes/add_note", "notes", 2)]


def test_f4_a_tool_that_was_called_before_it_was_known_is_one_row_and_a_duration_has_two_digits(
    run: Run, project: Path
) -> None:
    """F4: the early call is one that was refused, of no tool."""
    assert run("call", "later", "{}", "--agent", "opener").code == 3
    with (project / "pads.py").open("a") as module:
        module.write("\n\ndef later() -> str:\n    return ''\n")
    assert run("call", "later", "{}", "--agent", "opener").code == 0
    found = run("stats", "--json").json
    assert [(row["name"], row["server"], row["calls"]) for row in found["tools"]] == [("pads/later", "pads", 1)]
    assert found["totals"]["refused"] == 1
    assert re.search(r"later( +\d+){4} +(\d\.\d|[1-9]\d?0*|[1-9],\d00) ms", run("stats").out)


@pytest.mark.parametrize("since", ["", "7", "0d", "d", "7m", "401d", "10000h", "58w", "-1d", "٣d"])
def test_f4_a_time_that_is_none_is_refused(run: Run, project: Path, since: str) -> None:
    """F4: with what would be one."""
    ran = run("stats", f"--since={since}")
    assert ran.code == 2
    assert ran.out == ""
    assert f"'{since}' is not a duration." in ran.err
    assert "such as 1h, 2d or 3w; 400 days at most" in " ".join(ran.err.split())


def test_stats_list_the_busiest_and_say_how_many_more_there_are(run: Run, project: Path) -> None:
    called(run)
    run("call", "list_notes", *AGENT)
    ran = run("stats", "--limit", "1")
    assert [line.split()[0] for line in ran.out.splitlines()[2:]] == ["notes/add_note"]
    assert "1 tool more is not listed" in ran.err
