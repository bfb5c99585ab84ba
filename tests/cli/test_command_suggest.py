"""`pegboard suggest` over a real store that real sessions filled."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command_support import Run, misfits

from pegboard import Pegboard
from pegboard.core.proposals import trail as trails
from pegboard.ports import AuditRecord
from pegboard.stores.sql import SqliteStore
from pegboard.stores.sql.database import microseconds

SERVER = Path(__file__).parent.parent / "servers" / "plain_server.py"
TOTALS = {"loads": int, "model_calls": int, "tokens": int}
PROPOSAL = {
    "tools": [str],
    "initial_toolkits": [str],
    "toolkit": (dict, type(None)),
    "sessions": int,
    "of": int,
    "schema_tokens": int,
}
SHAPE = {
    "file": (str, type(None)),
    "trail": {"records": int, "damaged": int, "from": (str, type(None)), "to": (str, type(None))},
    "min_sessions": int,
    "context": int,
    "agents": [
        {
            "agent": str,
            "enough": bool,
            "sessions": int,
            "turns": int,
            "calls": int,
            "before": TOTALS,
            "after": TOTALS,
            "saved": TOTALS,
            "proposals": [{**PROPOSAL, "saved": TOTALS}],
            "declined": [{**PROPOSAL, "reason": str}],
            "unknown": [str],
            "gone": [str],
            "ignored": int,
        }
    ],
    "diff": str,
    "yaml": (str, type(None)),
}
CONFIG = """\
# ours
store: sqlite:///state/pegboard.db
plugins:
  notes: {python: notes, category: Memory}
  pads: {python: pads}   # two tools
toolkits:
  writing:
    description: Write and pad texts
    tools: [pads]
agents:
  assistant:
    dialect: pegboard
    allowed_toolkits:
      - writing   # when it is needed
    # permissions: {broken: false}
  opener:
    discoverable: ["*"]
"""


@pytest.fixture
def written(project: Path) -> Path:
    """Return a configuration in which nothing is loaded from the start."""
    path = project / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


def used(agent: str, *steps: str, sessions: int = 5, first: int = 0, config: str = "pegboard.yaml") -> None:
    """Go through sessions as a model would: ``+name`` loads, other names are called, ``/`` ends the turn."""

    async def go() -> None:
        async with Pegboard.open(config) as board:
            await board.ready()
            for number in range(first, first + sessions):
                session = await board.session(agent=agent, session_id=f"s{number}")
                for step in steps:
                    if step == "/":
                        await session.end_turn()
                    elif step.startswith("+"):
                        assert (await session.load(step[1:])).status == "ok", step
                    else:
                        answered = await session.call(step, {"text": "a"} if "pad" in step or "add" in step else {})
                        assert answered.status == "ok", answered

    asyncio.run(go())


def test_an_initial_toolkit_is_proposed_as_a_diff_that_applies_and_then_nothing_more(
    written: Path, run: Run, project: Path
) -> None:
    """X4, F4, T2: what real sessions loaded is counted, written, checked, and not proposed again."""
    used("assistant", "+writing", "/", "pad", "/", "/", sessions=6)
    before = written.read_text()
    found = run("suggest", "--agent", "assistant", "--json").json
    assert misfits(found, SHAPE) == []
    (one,) = found["agents"]
    assert (one["sessions"], one["turns"], one["calls"]) == (6, 12, 6)
    assert one["before"]["loads"] == one["saved"]["loads"] == 6
    (proposal,) = one["proposals"]
    assert proposal["tools"] == ["pads/pad"]
    assert proposal["saved"]["tokens"] > 0
    ran = run("suggest")
    assert "tools: pads/pad" in ran.out
    assert "used in 6 of 6 sessions" in ran.out
    assert written.read_text() == before, "it is the user who applies it"
    subprocess.run(["patch", "-p0"], input=ran.out, text=True, check=True, capture_output=True, cwd=project)
    assert written.read_text() == before.replace(
        "    # permissions: {broken: false}\n", "    tools: [pads/pad]\n    # permissions: {broken: false}\n"
    )
    assert run("check", "--strict").code == 0
    again = run("suggest", "--agent", "assistant", "--json").json
    assert (again["diff"], again["agents"][0]["proposals"], again["agents"][0]["before"]["loads"]) == ("", [], 0)


def test_what_is_loaded_together_becomes_a_toolkit_and_git_applies_it(written: Path, run: Run, project: Path) -> None:
    """T1, T3: the new toolkit has the members, and the agent may load it with one call in place of two."""
    used("opener", "+notes", "list_notes", "/", "+pads", "pad", "/", sessions=5)
    with_calls(project, "opener", sessions=8)
    spread(project / "state" / "pegboard.db")
    found = run("suggest", "--agent", "opener", "--json").json
    (proposal,) = found["agents"][0]["proposals"]
    assert proposal["toolkit"] == {
        "name": "notes-pads",
        "description": "Used together, of notes and pads: add_note, list_notes, leak, pad, broken",
        "tools": ["notes", "pads"],
    }
    assert proposal["saved"]["model_calls"] == proposal["sessions"] == 5
    subprocess.run(["git", "init", "-q"], check=True, cwd=project)
    subprocess.run(["git", "apply"], input=found["diff"], text=True, check=True, cwd=project)
    assert run("check", "--strict").code == 0
    assert run("session", "load", "notes-pads", "--agent", "opener", "--session", "new").code == 0
    assert run("suggest", "--agent", "opener", "--json").json["agents"][0]["proposals"] == []


def spread(path: Path) -> None:
    """Put a minute between the records of a trail, as a model takes its time."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT id FROM request ORDER BY id").fetchall()
        start = datetime.now(UTC) - timedelta(days=1)
        moved = [(microseconds(start + timedelta(minutes=n)), key) for n, (key,) in enumerate(rows)]
        connection.executemany("UPDATE request SET at = ? WHERE id = ?", moved)


def test_too_little_on_record_is_an_answer(written: Path, run: Run) -> None:
    ran = run("suggest", "--agent", "assistant")
    assert (ran.code, "too little is on record: 0 sessions" in ran.out) == (0, True)
    used("assistant", "+writing", "pad", sessions=2)
    assert "2 sessions with loads or calls, and 5 sessions are needed" in run("suggest", "--agent", "assistant").out
    assert run("suggest", "--agent", "assistant", "--min-sessions", "2", "--json").json["agents"][0]["enough"]
    assert written.read_text() == CONFIG


def test_since_excludes_what_is_older(written: Path, run: Run, project: Path) -> None:
    used("assistant", "+writing", "pad")
    spread(project / "state" / "pegboard.db")
    assert run("suggest", "--since", "30d", "--json").json["trail"]["records"] == 10
    assert run("suggest", "--since", "1h", "--json").json["trail"]["records"] == 0
    assert written.exists()


def test_an_agent_that_is_not_there_is_refused(written: Path, run: Run) -> None:
    ran = run("suggest", "--agent", "nobody")
    assert (ran.code, "There is no agent 'nobody'" in ran.err) == (3, True)
    assert written.exists()


def test_damaged_records_are_counted_and_the_rest_is_read(written: Path, run: Run, project: Path) -> None:
    used("assistant", "+writing", "pad", sessions=6)
    with closing(sqlite3.connect(project / "state" / "pegboard.db")) as connection, connection:
        connection.execute("UPDATE request SET at = 'yesterday' WHERE id = 1")
        connection.execute("UPDATE request SET turn = 'one' WHERE id = 4")
    found = run("suggest", "--agent", "assistant", "--json").json
    assert (found["trail"]["records"], found["trail"]["damaged"]) == (10, 2)
    assert "2 records could not be read" in run("suggest").out
    assert written.exists()


def test_sessions_of_more_kinds_than_are_followed_are_reported(
    written: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trail of any variety is read in bounded memory; what does not count is not passed over in silence."""
    monkeypatch.setattr(trails, "MOST_PATTERNS", 1)
    used("assistant", "+writing", "pad", sessions=5)
    used("assistant", "+writing", sessions=2, first=5)
    assert run("suggest", "--agent", "assistant", "--json").json["agents"][0]["ignored"] == 2
    assert "too many kinds of sessions: 2 sessions." in run("suggest", "--agent", "assistant").out


@pytest.mark.parametrize("change", ["duration = 'long'", "reason = x'fffe'", "at = 1.5"])
def test_no_damage_of_a_record_ends_the_reading(written: Path, run: Run, project: Path, change: str) -> None:
    used("assistant", "+writing", "pad", sessions=6)
    with closing(sqlite3.connect(project / "state" / "pegboard.db")) as connection, connection:
        connection.execute(f"UPDATE request SET {change} WHERE id = 2")
    found = run("suggest", "--json").json
    assert (found["trail"]["records"], found["trail"]["damaged"]) == (11, 1)
    assert written.exists()


def test_nothing_is_proposed_that_was_denied_since(written: Path, run: Run) -> None:
    """P1, P4: what counts is what the agent may use now, set at run time or not."""
    used("assistant", "+writing", "pad", sessions=6)
    assert run("permissions", "set", "writing", "false", "--agent", "assistant").code == 0
    one = run("suggest", "--agent", "assistant", "--json").json["agents"][0]
    assert (one["proposals"], one["gone"]) == ([], ["toolkit:writing"])
    assert written.read_text() == CONFIG


def test_nothing_is_proposed_that_would_exceed_the_budget(written: Path, run: Run) -> None:
    """S9: `check` would warn of such a start."""
    text = CONFIG.replace("    # permissions", "    discoverable: [notes]\n    # permissions")
    written.write_text(text)
    used("assistant", "+writing", "pad", sessions=6)
    written.write_text(text.replace("    # permissions", "    budget: {tools: 3}\n    # permissions"))
    one = run("suggest", "--agent", "assistant", "--json").json["agents"][0]
    assert one["proposals"] == []
    reasons = [declined["reason"] for declined in one["declined"]]
    assert reasons[0] == "What is loaded from the start would exceed the budget: 4 tools of 3."


def test_nothing_is_proposed_that_would_grant_more_than_the_agent_has(written: Path, run: Run) -> None:
    """P1: the toolkit grants one tool of the plugin, a static plugin would grant all of it."""
    written.write_text(CONFIG.replace("tools: [pads]", "tools: [{pads: {include_tools: [pad]}}]"))
    used("assistant", "+pad", "/", "pad", sessions=6)
    one = run("suggest", "--agent", "assistant", "--json").json["agents"][0]
    assert one["proposals"] == []
    assert one["declined"][0]["reason"] == "Plugin 'pads' is named with settings or a filter of its own elsewhere."


def test_a_file_that_cannot_be_changed_in_that_place_says_so(written: Path, run: Run) -> None:
    written.write_text(CONFIG.replace("  assistant:\n", "  assistant: &own\n") + "  second: *own\n")
    used("assistant", "+writing", "pad", sessions=6)
    found = run("suggest", "--agent", "assistant", "--json").json
    reasons = {declined["reason"] for declined in found["agents"][0]["declined"]}
    message = "pegboard.yaml cannot be edited without changing something else, so it was not changed."
    assert message in reasons
    assert all(not one["tools"] for one in found["agents"][0]["proposals"])


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_a_diff_keeps_line_ends_and_a_missing_last_one(written: Path, run: Run, project: Path, newline: str) -> None:
    text = CONFIG.rstrip().replace("\n", newline)
    written.write_bytes(text.encode())
    used("assistant", "+writing", "pad", sessions=6)
    diff = run("suggest", "--agent", "assistant", "--json").json["diff"]
    command = ["patch", "-p0", "--binary"]
    subprocess.run(command, input=diff.encode(), check=True, capture_output=True, cwd=project)
    changed = written.read_bytes().decode()
    assert "tools: [pads/pad]" in changed
    assert changed.count("\r\n") == (changed.count("\n") if newline == "\r\n" else 0)
    assert changed.endswith('discoverable: ["*"]')


def test_no_secret_is_in_the_diff_and_it_applies_all_the_same(written: Path, run: Run, project: Path) -> None:
    """X5: fewer lines around a change are shown where one of them has a secret."""
    secret = "hunter2-hunter2"
    token = f"tokens: {{ada: {{token: {secret}, agents: [assistant]}}}}\n"
    written.write_text(CONFIG.replace("  opener:", f"  # {secret}\n  opener:") + token)
    used("assistant", "+writing", "pad", sessions=6)
    ran = run("suggest", "--agent", "assistant")
    assert secret not in ran.out + ran.err
    subprocess.run(["patch", "-p0"], input=ran.out, text=True, check=True, capture_output=True, cwd=project)
    assert "tools: [pads/pad]" in written.read_text()


def test_the_file_of_a_client_is_not_ours_to_change(folder: Path, run: Run) -> None:
    entry = {"command": sys.executable, "args": [str(SERVER)], "env": {"API_KEY": "hunter2-hunter2"}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": entry}}))
    used("default", "+plain", "/", sessions=6, config=".mcp.json")
    before = (folder / ".mcp.json").read_text()
    ran = run("suggest", "--config", ".mcp.json")
    assert "There is no pegboard.yaml to change." in ran.out
    assert ran.out.endswith("agents:\n  default:\n    dialect: pegboard\n    discoverable: ['*']\n    tools: [plain]\n")
    assert "hunter2" not in ran.out
    found = run("suggest", "--config", ".mcp.json", "--json").json
    assert (found["file"], found["diff"]) == (None, "")
    assert found["yaml"].endswith("tools: [plain]\n")
    assert ((folder / ".mcp.json").read_text(), (folder / "pegboard.yaml").exists()) == (before, False)


def test_without_a_configuration_a_whole_one_is_shown_and_it_works(folder: Path, run: Run) -> None:
    async def go() -> None:
        async with Pegboard.open() as board:
            for number in range(6):
                session = await board.session(session_id=f"s{number}")
                await session.load("time")
                await session.end_turn()
                assert (await session.call("current_time", {"zone": "UTC"})).status == "ok"

    asyncio.run(go())
    found = run("suggest", "--json").json
    assert found["file"] is None
    (folder / "pegboard.yaml").write_text(found["yaml"])
    assert run("check", "--strict").code == 0
    shown = run("surface", "--json").json
    assert "current_time" in [tool["name"] for tool in shown["tools"]]


def test_a_file_without_agents_gets_the_one_that_it_implies(written: Path, run: Run, project: Path) -> None:
    written.write_text(CONFIG.partition("agents:")[0])
    used("default", "+writing", "pad", sessions=6)
    subprocess.run(["patch", "-p0"], input=run("suggest").out, text=True, check=True, capture_output=True, cwd=project)
    assert written.read_text().endswith(
        "\nagents:\n  default:\n    allowed_toolkits: [writing]\n    discoverable: ['*']\n    tools: [pads/pad]\n"
    )
    assert run("check", "--strict").code == 0


def test_no_server_is_started_and_what_is_not_known_is_reported(written: Path, run: Run) -> None:
    """F4: a server that was never asked has no tokens that could be counted."""
    marker = written.parent / "started.log"
    server = f"servers:\n  late: {{command: {sys.executable}, args: [{SERVER}, --log, {marker}]}}\n"
    written.write_text(server + CONFIG)
    with_trail(written.parent, "opener", "plugin:late")
    ran = run("suggest", "--agent", "opener", "--json", "--config", str(written))
    one = ran.json["agents"][0]
    assert (one["unknown"], one["proposals"]) == (["late"], [])
    assert "Not counted, since their tools are not known: late." in run("suggest", "--agent", "opener").out
    assert not marker.exists()


def with_trail(folder: Path, agent: str, subject: str) -> None:
    """Store the records of six sessions that loaded something."""
    load = AuditRecord(datetime.now(UTC), "load", "local", agent, "", 1, subject, "allowed")
    store(folder, [load._replace(session=f"loading-{number}") for number in range(6)])


def with_calls(folder: Path, agent: str, sessions: int) -> None:
    """Store the records of sessions that loaded nothing."""
    call = AuditRecord(datetime.now(UTC), "call", "local", agent, "", 1, "other", "allowed")
    store(folder, [call._replace(session=f"calling-{number}") for number in range(sessions)])


def store(folder: Path, records: Sequence[AuditRecord]) -> None:
    async def go() -> None:
        opened = SqliteStore(folder / "state" / "pegboard.db")
        await opened.open()
        await opened.record(*records)
        await opened.aclose()

    asyncio.run(go())
