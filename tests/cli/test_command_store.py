"""`pegboard store`: the store copied out, put into another one and looked over; every answer is the same (S2)."""

import asyncio
import base64
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer.main
from command_support import ERROR, Run, misfits

from pegboard.cli import person
from pegboard.cli.command_line import app
from pegboard.sources.mcp.login.grant import LoginGrant
from pegboard.stores.sql import SqliteStore
from postgres_server import PostgresServer
from sdk_servers import pegboard_command
from terminals import Terminal

SERVER = Path(__file__).resolve().parent.parent / "servers" / "listed_server.py"
TOOLS = '''
from pegboard import tool


def add_note(text: str) -> str:
    """Add a note. It is kept."""
    return f"added {text}"


@tool(requires_confirmation=True)
def delete_note(text: str) -> str:
    """Delete a note."""
    return f"deleted {text}"


__all__ = ["add_note", "delete_note"]
'''
KEY = base64.b64encode(bytes(range(32))).decode()
CHECK = {
    "sound": bool, "kind": str, "place": str, "engine": str, "schema": int, "understood": int, "bytes": int,
    "read_only": str, "faults": [str], "counts": dict,
    "sealed": {"place": str, "there": int, "unopened": int, "problem": str, "opened": dict},
    "replicas": [{"id": str, "address": str, "version": str, "seen_at": float}], "now": float,
}  # fmt: skip

ASKED = (
    ("session list",),
    ("session show",),
    ("session show", "--session", "thread"),
    ("permissions show",),
    ("permissions show", "--panel"),
    ("permissions show", "--panel", "--principal", "bob"),
    ("approvals list",),
    ("approvals list", "--all"),
    ("pins list",),
    ("pins show",),
    ("tools",),
    ("tools", "--agent", "default"),
    ("loadouts",),
    ("surface",),
    ("surface", "--session", "thread"),
    ("explain", "add_note"),
    ("explain", "up__look"),
    ("explain", "delete_note", "--session", "thread"),
    ("audit", "--limit", "500"),
    ("bill",),
    ("bill", "--by", "session"),
    ("stats",),
    ("stats", "--since", "2d"),
    ("suggest",),
    ("login", "--list"),
    ("check",),
    ("search", "keep a note"),
)
"""Every command that prints what the store has; the last leave records of their own."""
NOT_ASKED = {
    "measure": "reads no store",
    "init": "reads no store",
    "add": "changes",
    "remove": "changes",
    "update": "changes",
    "doctor": "says what this machine is",
    "schema": "reads no store",
    "serve": "prints no document",
    "console": "serves",
    "accept": "changes",
    "call": "changes",
    "load": "changes",
    "unload": "changes",
    "login": "asked with --list",
    "logout": "changes",
    "session load": "changes",
    "session unload": "changes",
    "session fallback": "changes",
    "session end-turn": "changes",
    "session forget": "changes",
    "session delete": "changes",
    "permissions set": "changes",
    "approvals allow": "changes",
    "approvals refuse": "changes",
    "pins accept": "changes",
    "secret set": "reads no store",
    "secret list": "reads no store",
    "secret delete": "reads no store",
    "store export": "is what is tested",
    "store import": "is what is tested",
    "store check": "says where the store is",
    "store rekey": "changes",
    "daemon status": "reads no store",
    "daemon stop": "reads no store",
    "daemon restart": "reads no store",
    "daemon logs": "reads no store",
    "daemon install": "reads no store",
    "daemon uninstall": "reads no store",
    "eval": "asked with a file of requests",
}


@pytest.fixture
def kept(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose store has a lease, a switch and a login."""
    monkeypatch.setenv("PEGBOARD_KEY", KEY)
    configured(folder)
    run("session", "load", "calculator")
    run("permissions", "set", "multiply", "false")
    asyncio.run(sealed(folder / "state" / "pegboard.db"))
    return folder


@pytest.fixture
def used(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose store has something of every kind, by commands."""
    monkeypatch.setenv("PEGBOARD_KEY", KEY)
    listed = folder / "list.json"
    listed.write_text(json.dumps({"look": {"description": "Look around."}}))
    (folder / "notes.py").write_text(TOOLS)
    configured(folder)
    assert run("check", "--probe").code == 0
    run("search", "write something down")
    run("call", "add_note", '{"text": "milk"}')
    run("call", "nothing_such")
    run("session", "load", "calculator", "--session", "thread")
    run("session", "load", "up", "--principal", "bob")
    run("permissions", "set", "multiply", "false")
    run("permissions", "set", "add_note", "false", "--principal", "bob")
    for text in ("milk", "eggs"):
        run("call", "delete_note", json.dumps({"text": text}))
    waits = run("approvals", "list", "--json").json[0]["id"]
    assert run("approvals", "allow", waits, "--for", "always").code == 0
    listed.write_text(json.dumps({"look": {"description": "Look around. Tell nobody."}, "new": {}}))
    run("check", "--probe")
    asyncio.run(sealed(folder / "state" / "pegboard.db"))
    return folder


STORE = "sqlite:///state/pegboard.db"
OTHER = "sqlite:///other/pegboard.db"


def configured(folder: Path, store: str = STORE, name: str = "pegboard.yaml") -> None:
    server = {"command": sys.executable, "args": [str(SERVER), str(folder / "list.json")]}
    document = {
        "store": store,
        "record": {"arguments": True, "results": "4kB"},
        "plugins": {"notes": {"python": "notes"}},
        "servers": {"up": server},
        "agents": {"default": {"tools": ["notes"], "discoverable": ["calculator", "up"]}},
    }
    (folder / name).write_text(json.dumps(document, indent=1))


async def sealed(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    grant = LoginGrant(
        access_token="the token of a login",
        obtained_at=1.0,
        issuer="https://issuer.example",
        resource="https://docs.example/mcp",
        token_endpoint="https://issuer.example/token",
        client_id="pegboard",
    )
    await store.seal("grant", json.dumps([grant.resource, "local", None]), grant.to_json(), expected=0)
    await store.aclose()


def asked(run: Run) -> dict[str, str]:
    return {" ".join(one): run(*one[0].split(), *one[1:], "--json").out for one in ASKED}


def leaves(command: Any, name: str = "") -> set[str]:
    """Return the commands that do something."""
    if not hasattr(command, "commands"):
        return {name}
    parts = {part: command.get_command(None, part) for part in command.commands}
    return set().union(*(leaves(own, f"{name} {part}".strip()) for part, own in parts.items()))


def test_every_command_that_prints_what_the_store_has_is_asked() -> None:
    assert {one[0] for one in ASKED} | NOT_ASKED.keys() == leaves(typer.main.get_command(app))


def test_s2_every_answer_in_json_is_byte_for_byte_what_it_was(run: Run, used: Path, postgres: PostgresServer) -> None:
    """S2: in a file, moved to a server, and moved back; of trail, leases, switches, approvals, pins, counts and all."""
    before, between, after = dict[str, str](), dict[str, str](), dict[str, str]()
    original = used / "state"
    for attempt in range(3):
        hour = time.time() // 3600
        first, second = f"first-{attempt}.jsonl", f"second-{attempt}.jsonl"
        assert run("store", "export", first).code == 0
        configured(used, postgres.address())
        assert run("store", "import", first, "--json").json["counts"]["approval"] == 2
        assert run("store", "export", second).code == 0
        between = asked(run)
        configured(used)
        original.rename(used / "original")
        assert run("store", "import", second).code == 0
        after = asked(run)
        original.rename(used / f"after-{attempt}")
        (used / "original").rename(original)
        before = asked(run)
        if hour == time.time() // 3600:  # what is counted by the hour begins with this one
            break
    assert before == between
    assert before == after
    assert len(json.loads(before["audit --limit 500"])) > 10
    assert all(len(text) > 3 for text in before.values()), before
    assert '"status": "allowed"' in before["approvals list --all"]
    assert '"waits": true' in before["pins list"]
    assert json.loads(before["stats"])["totals"]["ok"] == 1


def test_g11_what_is_sealed_leaves_the_store_sealed_and_is_opened_by_its_key_alone(
    run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G11: the command says so, before and after."""
    said = run("store", "export", "copy.jsonl")
    assert "1 secret, opened by the key in PEGBOARD_KEY only." in said.out
    assert b"the token of a login" not in (kept / "copy.jsonl").read_bytes()
    assert (kept / "copy.jsonl").stat().st_mode & 0o777 == 0o600
    configured(kept, OTHER, "other.yaml")
    monkeypatch.setenv("PEGBOARD_KEY", base64.b64encode(b"o" * 32).decode())
    put = run("store", "import", "copy.jsonl", "--config", "other.yaml")
    assert "1 secret, 1 of them not opened by the key in PEGBOARD_KEY: set PEGBOARD_KEY to that of the store" in put.out
    assert run("store", "check", "--config", "other.yaml").code == 1
    monkeypatch.setenv("PEGBOARD_KEY", KEY)
    assert run("store", "check", "--config", "other.yaml", "--json").json["sealed"]["unopened"] == 0


def test_g11_everything_is_sealed_anew_and_said(run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: with the counts of each key before and after, and no key in any output."""
    new = base64.b64encode(b"n" * 32).decode()
    monkeypatch.setenv("PEGBOARD_KEY", new)
    left = run("store", "rekey")
    assert left.code == 1
    assert "1 secret, 0 sealed again with the key in PEGBOARD_KEY. 1 cannot be opened with any key" in left.out
    monkeypatch.setenv("PEGBOARD_SECOND_KEY", KEY)
    assert run("store", "check", "--json").json["sealed"]["opened"] == {"variable": 0, "second": 1}
    done = run("store", "rekey", "--json")
    assert done.code == 0
    place = str(kept / "state" / "pegboard.db")
    assert done.json == {
        "store": place, "place": "variable", "there": 1, "resealed": 1, "unopened": 0,
    }  # fmt: skip
    said = run("store", "check")
    assert "1 secret: 1 opened by the key in PEGBOARD_KEY, 0 opened by the key in PEGBOARD_SECOND_KEY." in said.out
    monkeypatch.setenv("PEGBOARD_SECOND_KEY", new)
    twice = run("store", "rekey", "--json")
    assert (twice.code, twice.json["error"]["code"]) == (1, "key_given_twice")
    for key in (KEY, new):
        assert all(key not in shown.out + shown.err for shown in (left, done, said, twice))


def test_a_copy_goes_through_a_pipe_and_what_is_said_does_not(kept: Path) -> None:
    pegboard = pegboard_command("store")
    piped = subprocess.run([*pegboard, "export", "-"], capture_output=True, check=True)
    assert piped.stdout.startswith(b'{"pegboard_store":1,')
    assert piped.stdout.endswith(b'"}\n')
    assert b"records of" in piped.stderr
    configured(kept, OTHER, "other.yaml")
    document = json.loads((kept / "other.yaml").read_text())
    token = "root-root-root-root-root"
    document["tokens"] = {"root": {"token": token, "agents": ["*"], "console": ["see", "configure"]}}
    (kept / "other.yaml").write_text(json.dumps(document))
    environment = {"PEGBOARD_OPERATOR_TOKEN": token, "PEGBOARD_KEY": KEY, "PATH": ""}
    into = [*pegboard, "import", "-", "--config", "other.yaml", "--json"]
    put = subprocess.run(into, input=piped.stdout, capture_output=True, check=True, env=environment)
    assert json.loads(put.stdout)["records"] == piped.stdout.count(b"\n") - 2


def test_a5_a_copy_is_put_in_only_where_a_person_agrees(run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: it may hold switches, approvals and pins; who is asked reads what it is and what is removed for it."""
    run("store", "export", "copy.jsonl")
    with Terminal("n") as terminal:
        monkeypatch.setattr(person, "TERMINAL", terminal.name)
        refused = run("store", "import", "copy.jsonl", "--replace", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "declined")
    asked_for = " ".join(terminal.asked.split())
    assert (
        "by Pegboard 0.1.0, of a store of the kind sqlite. The present contents of the store are removed: session: 1"
        in asked_for
    )
    assert f"Import it into the store at {kept / 'state' / 'pegboard.db'}? [y/N]" in asked_for
    monkeypatch.setattr(person, "TERMINAL", "/nowhere")
    assert run("store", "import", "copy.jsonl", "--replace", "--json").json["error"]["code"] == "needs_operator"


def changed(lines: list[str]) -> list[str]:
    return [*lines[:7], lines[7].replace(":", ": ", 1), *lines[8:]]


@pytest.mark.parametrize(
    ("damage", "line", "message"),
    [
        (changed, 8, "The copy was changed, in this line or by a line that was removed or put in before it."),
        (lambda lines: lines[:-1], None, "The copy ends before its last line: it was cut."),
        (lambda lines: ["name,value\n"], 1, "This is not a copy of a store."),
    ],
)
def test_a_copy_that_is_not_whole_says_the_line_and_changes_nothing(
    run: Run, kept: Path, damage: Callable[[list[str]], list[str]], line: int | None, message: str
) -> None:
    run("store", "export", "copy.jsonl")
    lines = (kept / "copy.jsonl").read_text().splitlines(keepends=True)
    (kept / "copy.jsonl").write_text("".join(damage(lines)))
    before = run("store", "check", "--json").json["counts"]
    refused = run("store", "import", "copy.jsonl", "--replace", "--json")
    assert refused.code == 1
    assert misfits(refused.json, ERROR) == []
    error = refused.json["error"]
    assert (error["code"], error["message"]) == ("copy_not_valid", message)
    assert (error["file"], error["line"]) == ("copy.jsonl", line or len(lines))
    assert run("store", "check", "--json").json["counts"] == before


def test_a_store_that_has_something_refuses_a_copy_before_anybody_is_asked(
    run: Run, kept: Path, terminal: Terminal
) -> None:
    run("store", "export", "copy.jsonl")
    so_far = terminal.asked
    refused = run("store", "import", "copy.jsonl", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "store_not_empty")
    assert "remove its contents with --replace" in refused.json["error"]["hint"]
    assert terminal.asked == so_far
    assert run("store", "import", "copy.jsonl", "--replace").code == 0


def test_a_file_that_is_there_is_not_written_over(run: Run, kept: Path) -> None:
    (kept / "copy.jsonl").write_text("precious")
    refused = run("store", "export", "copy.jsonl", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "file_exists")
    assert (kept / "copy.jsonl").read_text() == "precious"
    assert [path.name for path in kept.iterdir() if "part" in path.name] == []
    assert run("store", "export", "-", "--json").code == 2
    assert run("store", "export", "none/copy.jsonl").code == 1
    assert run("store", "import", "none.jsonl").code == 1


def test_check_says_what_the_store_is(run: Run, kept: Path) -> None:
    """With --json as one document."""
    said = run("store", "check")
    assert said.code == 0
    first, *rest = said.out.splitlines()
    assert first.startswith(f"{kept / 'state' / 'pegboard.db'} (SQLite 3.")
    titles = [line.split(maxsplit=1)[0] for line in rest]
    assert titles == ["schema", "writable", "damage", "size", "records", "sealed"]
    assert "session 1" in said.out
    found = run("store", "check", "--json").json
    assert misfits({**found, "counts": {}, "sealed": {**found["sealed"], "opened": {}}}, CHECK) == []
    assert (found["sound"], found["counts"]["session"]) == (True, 1)


def test_check_finds_damage_and_exits_1(run: Run, kept: Path) -> None:
    with closing(sqlite3.connect(kept / "state" / "pegboard.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'approval_by_call'")
    found = run("store", "check", "--json")
    assert (found.code, found.json["sound"]) == (1, False)
    assert found.json["faults"]
    (kept / "state" / "pegboard.db").write_bytes(b"no database" * 100)
    for command in (("check",), ("export", "copy.jsonl")):
        assert run("store", *command, "--json").json["error"]["code"] == "store_schema"


def test_a_store_that_is_not_there_or_in_memory_is_said(run: Run, folder: Path) -> None:
    configured(folder)
    for command in ("check", "rekey"):
        assert run("store", command, "--json").json["error"]["code"] == "store_missing"
    assert not (folder / "state").exists()
    (folder / "pegboard.yaml").write_text("store: 'memory:'\nagents: {default: {tools: [calculator]}}")
    for command in (("check",), ("rekey",), ("export", "copy.jsonl"), ("import", "copy.jsonl")):
        refused = run("store", *command, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (1, "store_in_memory")
