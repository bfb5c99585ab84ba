"""`pegboard eval`: for how many of one's own requests search finds the tool that is meant."""

import json
from pathlib import Path

import pytest
from command_support import Run, misfits

RESULT = {"request": str, "tools": [str], "place": (int, type(None)), "found": [str]}
SHAPE = {"cases": int, "found": float, "first": float, "required": float, "ok": bool, "results": [RESULT]}


def write(*cases: object, name: str = "requests.json") -> str:
    Path(name).write_text(json.dumps({"cases": cases}))
    return name


pytestmark = pytest.mark.usefixtures("project")

FOUND = {"request": "add a note", "tool": "add_note"}
EITHER = {"request": "list every note", "tools": ["add_note", "list_notes"]}
MISSED = {"request": "zzqx", "tool": "leak"}


def test_p3_what_is_found_and_missed_is_counted_with_its_place(run: Run) -> None:
    """P3: search ranks what the agent may use, and the first right one of several tools counts."""
    ran = run("eval", write(FOUND, EITHER, MISSED), "--agent", "assistant", "--json")
    assert (ran.code, misfits(ran.json, SHAPE)) == (0, [])
    places = [result["place"] for result in ran.json["results"]]
    assert places[:2] == [1, 1]
    assert ran.json["first"] == pytest.approx(sum(place == 1 for place in places) / 3)
    assert ran.json["found"] == pytest.approx(sum(place is not None for place in places) / 3)


def test_less_than_is_asked_for_exits_with_1_and_lists_what_was_missed(run: Run) -> None:
    file = write(FOUND, MISSED)
    share = run("eval", file, "--agent", "assistant", "--json").json["found"]
    assert share < 1
    assert run("eval", file, "--agent", "assistant", "--found", str(share)).code == 0
    missed = run("eval", file, "--agent", "assistant", "--found", "1")
    assert missed.code == 1
    assert "zzqx" in missed.out
    assert "add a note" not in missed.out


def test_a_tool_is_named_by_its_id_or_its_name(run: Run) -> None:
    """G10: an id and a wire name mean the same tool."""
    both = write({"request": "add a note", "tool": "notes/add_note"}, FOUND)
    places = [one["place"] for one in run("eval", both, "--agent", "assistant", "--json").json["results"]]
    assert places == [1, 1]


def test_x4_an_evaluation_leaves_no_record(run: Run) -> None:
    """X4: what is tried is not what was done."""
    before = run("audit", "--json").json
    run("eval", write(FOUND), "--agent", "assistant")
    assert run("audit", "--json").json == before


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ([{"request": "x", "tool": "add_nte"}], "Did you mean 'add_note'"),
        ([{"request": "x", "tool": "broken"}], "no tool 'broken'"),
        ([{"request": "x"}], "names no tool"),
        ([{"tool": "add_note"}], "request"),
        ([3], "number 3"),
        ([], "no cases"),
    ],
)
def test_a_wrong_case_is_one_error_with_its_place(run: Run, cases: list[object], says: str) -> None:
    """P9: a tool that the agent may not use is an error of the file, not a miss of the search."""
    ran = run("eval", write(*cases), "--agent", "assistant")
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err
    assert "requests.json:1:" in ran.err


@pytest.mark.parametrize("text", ["", "cases: [", "- a list", "\0"])
def test_a_file_that_cannot_be_read_is_one_error(run: Run, text: str) -> None:
    Path("requests.yaml").write_text(text)
    ran = run("eval", "requests.yaml", "--agent", "assistant")
    assert (ran.code, ran.out) == (1, "")
    assert "requests.yaml" in ran.err
    assert run("eval", "nowhere.yaml", "--agent", "assistant").code == 1
