"""`pegboard call` in one step: arguments in every form, what is destructive, what waits, what is large or no text."""

import base64
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_support import Run

from pegboard.cli.tool_arguments import from_words
from pegboard.errors import UsageError
from pegboard.thin.address import address_of
from sdk_servers import pegboard_command

TOOLS = '''
"""Things."""
import json
from pegboard import tool
from pegboard.core.model.tools import CallResult


def echo(text: str, count: int = 1, loud: bool = False, tags: list[str] | None = None, more: dict | None = None) -> str:
    """Return what was given, as JSON."""
    return json.dumps([text, count, loud, tags, more])


def delete_thing(name: str) -> str:
    """Delete a thing."""
    return f"deleted {name}"


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def large(size: int) -> str:
    """Return a long text."""
    return "x" * size


def fail() -> str:
    """Fail."""
    raise RuntimeError("it broke")
'''
CONFIG = """
store: sqlite:///state.db
plugins: {things: {python: things}}
agents: {worker: {dialect: pegboard, discoverable: ["*"]}}
"""


PICTURES = """
import json, sys

INFO = {"name": "pictures", "version": "1"}
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO},
    "tools/list": {"tools": [{"name": "draw", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "image", "mimeType": "image/png", "data": "DATA"}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": ANSWERS.get(asked["method"], {})}
        print(json.dumps(answer), flush=True)
"""
ALLOW = """
import asyncio, sys
from pegboard import Pegboard


async def go():
    async with Pegboard.open() as board:
        await board.approvals.allow(sys.argv[1], by="ada")

asyncio.run(go())
"""


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one plugin, of which nothing is loaded."""
    (folder / "things.py").write_text(TOOLS)
    (folder / "pegboard.yaml").write_text(CONFIG)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    return folder


@pytest.mark.parametrize(
    ("words", "got"),
    [
        (["text=a"], ["a", 1, False, None, None]),
        (["text=5"], ["5", 1, False, None, None]),
        (["text=--force", "count=3"], ["--force", 3, False, None, None]),
        (["--text", "a", "--count=2", "--loud"], ["a", 2, True, None, None]),
        (["--text", "-5", "--no-loud"], ["-5", 1, False, None, None]),
        (["--loud", "true", "text=a=b"], ["a=b", 1, True, None, None]),
        (["text=a", 'tags=["x", "y"]', "more={}"], ["a", 1, False, ["x", "y"], {}]),
        (["text=null", "tags=null"], ["null", 1, False, None, None]),
        (['text:="é"', "count:=4"], ["é", 4, False, None, None]),
        (['{"text": "a=b", "count": 2}'], ["a=b", 2, False, None, None]),
        (["text=" + "y" * 100_000], ["y" * 100_000, 1, False, None, None]),
    ],
)
def test_arguments_are_words_options_or_one_object_typed_by_the_schema(
    run: Run, here: Path, words: list[str], got: list[object]
) -> None:
    """G12, X1: one step finds the tool, loads it, and runs it."""
    ran = run("call", "echo", *words, "--out", "-")
    assert (ran.code, json.loads(ran.out)) == (0, got), ran.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["text=a", "text=b"], "'text' of 'echo' is given twice"),
        (["text=a", "--text", "b"], "'text' of 'echo' is given twice"),
        (['{"text": "a"}', "count=2"], "two ways"),
        (["text=a", "-"], "two ways"),
        (["hello"], "Write text=hello"),
        (["--txt", "a"], "Did you mean 'text'?"),
        (["--text"], "--text=VALUE"),
        (["text=a", "--loud=true", "--no-loud=1"], "takes no value"),
        (["text=a", "tags=[1"], "'tags' is not valid JSON"),
        (["text=\udcff"], "not valid UTF-8"),
    ],
)
def test_arguments_that_cannot_be_understood_name_themselves_and_run_nothing(
    run: Run, here: Path, words: list[str], named: str
) -> None:
    """X2: exit 2 in one line, with what would be right."""
    ran = run("call", "echo", *words)
    assert (ran.code, ran.out) == (2, "")
    assert named in ran.err
    assert ran.err.count("\n") == 1
    assert run("call", "echo", *words, "--json").json["error"]["code"] == "bad_arguments"


def test_x2_arguments_of_a_wrong_type_are_refused_by_the_schema_with_the_help_of_the_tool(run: Run, here: Path) -> None:
    """X2: what the schema refuses is named, and what it takes is printed."""
    ran = run("call", "echo", "text=a", "count=many")
    assert ran.code == 2
    assert '"many" is not of type "integer"' in ran.err
    assert ran.out.startswith("Usage: pegboard call echo text=")


def test_the_types_of_a_schema_are_found_behind_references_and_choices() -> None:
    """G12: a value is read as the schema has it, wherever it states the type."""
    schema = {
        "properties": {
            "where": {"$ref": "#/$defs/Place"},
            "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "level": {"enum": [1, 2]},
            "same": {"const": "x"},
            "either": {"type": ["integer", "string"]},
        },
        "$defs": {"Place": {"type": "object"}},
    }
    given = ["where={}", "size=null", "level=2", "same=x", "either=5", "unknown=5"]
    found = {"where": {}, "size": None, "level": 2, "same": "x", "either": "5", "unknown": "5"}
    assert from_words(given, schema, tool="t") == found
    with pytest.raises(UsageError):
        from_words(["a", "b"], schema, tool="t")


def test_the_help_of_a_tool_shows_its_arguments_and_a_line_that_runs(run: Run, here: Path) -> None:
    """G12: nothing is loaded by asking."""
    ran = run("call", "delete_thing", "--help")
    assert ran.code == 0
    assert ran.out.startswith("Usage: pegboard call delete_thing name=")
    assert "Delete a thing." in ran.out
    assert run("call", "delete_thing", "--help", "--json").json["input_schema"]["required"] == ["name"]
    assert run("session", "show", "--json").json["leases"] == []
    assert run("call", "nothing", "--help").code == 3


def test_x1_a_tool_that_destroys_is_run_once_its_schema_was_shown(run: Run, here: Path) -> None:
    """X1: not loaded, it answers with its schema and exit 3; `--load` loads and runs it at once."""
    first = run("call", "delete_thing", "name=a")
    assert (first.code, first.out.splitlines()[0]) == (3, "Usage: pegboard call delete_thing name=…")
    assert "was not run" in first.err
    assert run("call", "delete_thing", "name=a").out == "deleted a\n"
    run("unload", "delete_thing")
    run("session", "end-turn")
    assert run("call", "delete_thing", "name=b", "--load").out == "deleted b\n"


def test_x1_what_was_unloaded_by_name_is_loaded_again_only_with_load(run: Run, here: Path) -> None:
    """X1: an unload binds the calls of its turn."""
    assert run("load", "echo").code == 0
    assert run("unload", "echo").code == 0
    assert run("call", "echo", "text=a").code == 3
    assert run("call", "echo", "text=a", "--load").code == 0


def test_a3_the_id_of_an_approval_is_on_standard_error_and_wait_runs_the_call_once_it_is_allowed(
    run: Run, here: Path
) -> None:
    """A3: exit 4, nothing on standard output; a person decides meanwhile, in another process."""
    asked = run("call", "pay", "amount=5")
    assert (asked.code, asked.out) == (4, "")
    (waiting,) = run("approvals", "list", "--json").json
    assert f"approval {waiting['id']}" in asked.err
    command = pegboard_command("call", "pay", "amount=5", "--wait", "60")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while f"approval {waiting['id']}" not in process.stderr.readline():
        assert process.poll() is None
    subprocess.run([sys.executable, "-c", ALLOW, waiting["id"]], check=True)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "paid 5\n"), err


def test_a3_who_waits_is_answered_when_it_is_refused_and_when_the_time_is_over(run: Run, here: Path) -> None:
    """A3: exit 3 for a refusal, exit 4 where no one decided."""
    begun = time.monotonic()
    assert run("call", "pay", "amount=6", "--wait", "0.2").code == 4
    assert time.monotonic() - begun < 60
    (waiting,) = run("approvals", "list", "--json").json
    assert run("approvals", "refuse", waiting["id"], "--reason", "Too much.").code == 0
    refused = run("call", "pay", "amount=6", "--wait", "forever")
    assert refused.code == 3
    assert "Too much." in refused.err
    assert run("call", "pay", "amount=6", "--wait", "soon").code == 2


def test_a_large_result_goes_to_a_file_that_is_this_users_alone(run: Run, here: Path) -> None:
    """G12: a preview and the path on the last line; the file is removed by a later one after a day."""
    ran = run("call", "large", "size=50000")
    path = Path(ran.out.splitlines()[-1].rpartition(" ")[2].rstrip("]"))
    assert path.read_text() == "x" * 50_000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.parent == Path(address_of().folder) / "results"
    assert len(ran.out) < 2_300
    os.utime(path, (1, 1))
    run("call", "large", "size=30000")
    assert not path.exists()
    assert run("call", "large", "size=50000", "--out", "-").out == "x" * 50_000 + "\n"


def test_a_result_is_written_where_out_says_or_the_reason_is_given(run: Run, here: Path) -> None:
    """G12: text, documents of programs, and a place that cannot be written."""
    assert run("call", "echo", "text=a", "--out", "a.txt").code == 0
    assert json.loads((here / "a.txt").read_text())[0] == "a"
    document = run("call", "large", "size=50000", "--json", "--out", "b.json").json
    assert (document["content"], document["file"]) == ([], str(here / "b.json"))
    assert json.loads((here / "b.json").read_text())[0]["text"] == "x" * 50_000
    failed = run("call", "echo", "text=a", "--out", "no/such/folder")
    assert failed.code == 1
    assert "no/such/folder" in failed.err


def test_content_that_is_no_text_always_goes_to_a_file(run: Run, here: Path) -> None:
    """G12: an image is no text; its line names its kind, its size and the file."""
    server = here / "pictures.py"
    data = base64.b64encode(b"\x89PNG picture").decode()
    server.write_text(PICTURES.replace("DATA", data))
    (here / "pegboard.yaml").write_text(
        f"servers: {{pictures: {{command: {sys.executable}, args: [{server}]}}}}\n"
        "agents: {worker: {dialect: pegboard, discoverable: ['*']}}\n"
    )
    ran = run("call", "pictures__draw")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("[image image/png, 12 bytes: ")
    path = Path(ran.out.strip().rpartition(" ")[2].rstrip("]"))
    assert (path.read_bytes(), path.suffix) == (b"\x89PNG picture", ".png")
    assert run("call", "pictures__draw", "--out", "a.png").code == 0
    assert (here / "a.png").read_bytes() == b"\x89PNG picture"


def test_a_tool_that_fails_exits_with_1_and_prints_what_it_answered(run: Run, here: Path) -> None:
    """P6: its answer is on standard output, that it failed on standard error."""
    ran = run("call", "fail")
    assert ran.code == 1
    assert "it broke" in ran.out
    assert ran.err.startswith("pegboard: error")


def test_arguments_of_many_megabytes_come_by_standard_input(here: Path) -> None:
    """G12: a command line has room for less; what is too much or no UTF-8 is one clear error."""
    command = pegboard_command("call", "echo", "-", "--config", "pegboard.yaml", "--out", "-")
    text = json.dumps({"text": "z" * 2_000_000}).encode()
    assert len(subprocess.run(command, input=text, capture_output=True, check=True).stdout) > 2_000_000
    for given, named in (
        (b"\xff\xfe{}", b"not UTF-8 at byte 0"),
        (b'{"text": ', b"line 1, column 10"),
        (b"", b"line 1"),
    ):
        ran = subprocess.run(command, input=given, capture_output=True, check=False)
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert named in ran.stderr


def test_where_standard_output_is_a_file_it_takes_all_of_a_result(here: Path) -> None:
    """G12: what is redirected into a file is meant for the file."""
    with (here / "all.txt").open("wb") as file:
        command = pegboard_command("call", "large", "size=50000", "--config", "pegboard.yaml")
        subprocess.run(command, stdout=file, check=True)
    assert (here / "all.txt").read_text() == "x" * 50_000 + "\n"
