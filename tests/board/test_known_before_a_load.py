"""Plugins that are code of this process are known after a restart, before anyone loads them (X1)."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.ports import Adapters
from pegboard.stores.sql import SqliteStore

NOTES = '''
"""Keep notes."""
from pathlib import Path
Path(__file__).with_name("imported.txt").open("a").write("notes ")


def note_add(text: str) -> str:
    """Add a note to the list."""
    return f"added {text}"
'''
CHANGED = NOTES.replace("note_add(text: str)", "note_add(text: str, urgent: bool = False)") + (
    '\n\ndef note_wipe() -> str:\n    """Remove every note."""\n    return "gone"\n'
)
WAITING = """
import time
from pathlib import Path

while not Path(__file__).with_name("gate").exists():
    time.sleep(0.01)
"""
KIT = NOTES.replace("note_add", "kit_say").replace('"notes "', '"kit "').replace("Keep notes", "Say things")
ENTRY_POINTS = "[pegboard.plugins]\nkit = acme_kit\n"
SECRET = "hunter2-s3cret"
CONFIG: dict[str, Any] = {
    "plugins": {"notes": {"python": "notes"}, "helper": {"python": "helper", "requires": {"ask": ["notes/note_add"]}}},
    "toolkits": {"all": {"description": "All of it", "tools": ["notes", "kit", "calculator"]}},
    "agents": {"a": {"allowed_toolkits": ["all"], "discoverable": ["helper"], "unloaded_call": "run"}},
}
TOOLS = {"notes": "note_add", "kit": "kit_say", "calculator": "multiply"}
CALLS: Mapping[str, tuple[dict[str, Any], str]] = {
    "notes": ({"text": "milk"}, "added milk"),
    "kit": ({"text": "milk"}, "added milk"),
    "calculator": ({"a": 6, "b": 7}, '{"operation": "multiplication", "result": 42.0}'),
}

Start = Callable[..., AbstractAsyncContextManager[Pegboard]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with two modules, and with one installed package."""
    info = tmp_path / "site" / "acme_kit-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-kit\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "site" / "acme_kit.py").write_text(KIT)
    (tmp_path / "notes.py").write_text(NOTES)
    (tmp_path / "helper.py").write_text('def ask() -> str:\n    """Ask somebody."""\n    return "yes"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("acme_kit", None)


@pytest.fixture
def start(folder: Path) -> Start:
    """Return what starts again over the same store, with what was imported forgotten."""

    @asynccontextmanager
    async def started(config: Mapping[str, Any] = CONFIG) -> AsyncIterator[Pegboard]:
        sys.modules.pop("acme_kit", None)
        forget_traces(folder)
        store = SqliteStore(folder / "state.db")
        async with Pegboard.open(config, adapters=Adapters(store=store)) as board:
            yield board

    return started


def forget_traces(folder: Path) -> None:
    for trace in folder.rglob("imported.txt"):
        trace.unlink()


def stored(folder: Path) -> bytes:
    """Return all that is in the file of the store, and beside it."""
    return b"".join(file.read_bytes() for file in folder.glob("state.db*"))


def imported(folder: Path) -> set[str]:
    return {word for trace in folder.rglob("imported.txt") for word in trace.read_text().split()}


async def first(start: Start, config: Mapping[str, Any] = CONFIG) -> None:
    """Start once and let every plugin answer."""
    async with start(config) as board:
        await board.ready()
        plugins = board.world.catalog.plugins.values()
        assert {plugin.name: fault for plugin in plugins if (fault := plugin.variant("").unavailable)} == {}


def edit(file: Path, text: str) -> None:
    """Write a file so that its time changes, however coarse the clock of the file system is."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 2_000_000_000))


def stale(board: Pegboard, plugin: str) -> bool:
    return board.world.catalog.plugins[plugin].variant("").stale


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - of what has no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("plugin", TOOLS)
async def test_after_a_restart_its_tools_are_known_found_and_switched_before_it_is_imported(
    plugin: str, start: Start, folder: Path
) -> None:
    """X1, G8: they are in the catalog, in a search and behind a switch; the bill knows what they cost."""
    tool = TOOLS[plugin]
    await first(start)
    async with start() as board:
        assert board.world.catalog.by_wire(tool) is not None
        session = await board.session(agent="a", session_id="s")
        surface = await session.surface()
        assert surface.tokens.unknown == ()
        assert surface.tokens.saved is not None
        assert tool in {result.name for result in (await session.search(tool.replace("_", " "))).results}
        await board.permissions.set("a", tool, False)
        assert (await session.call(tool, CALLS[plugin][0])).status == "not_found"
        assert imported(folder) == set()


@pytest.mark.parametrize("plugin", TOOLS)
async def test_after_a_restart_its_tools_are_called_by_name(plugin: str, start: Start, folder: Path) -> None:
    """X1: the call is what brings in the plugin, and no other one."""
    await first(start)
    async with start() as board:
        session = await board.session(agent="a", session_id="s")
        arguments, text = CALLS[plugin]
        answered = await session.call(TOOLS[plugin], arguments)
        assert (answered.status, answered.result.content[0]["text"]) == ("ok", text)
        assert imported(folder) <= {plugin}


async def test_after_a_restart_its_tools_are_required_by_others(start: Start, folder: Path) -> None:
    """T8, X1: what is required comes along, and its plugin has answered by then."""
    await first(start)
    async with start() as board:
        session = await board.session(agent="a", session_id="s")
        outcome = await session.load("ask")
        assert outcome.status == "ok"
        assert {"ask", "note_add"} <= set((await session.surface()).names)
        assert imported(folder) == {"notes"}


async def test_overrides_have_a_manifest_of_their_own_and_their_secrets_do_not_reach_the_store(folder: Path) -> None:
    """X1, X5: a toolkit with settings is known after a restart; the store has nothing but digests of them."""
    (folder / "vault.py").write_text(
        "class Vault:\n    def __init__(self, pin: str) -> None:\n        self.pin = pin\n"
        '    def vault_open(self) -> str:\n        """Open it."""\n        return str(len(self.pin))\n'
    )
    config = {
        "store": "sqlite:///state.db",
        "plugins": {"vault": {"python": "vault:Vault"}},
        "agents": {"a": {"allowed_toolkits": ["safe"], "unloaded_call": "run", "dialect": "pegboard"}},
        "toolkits": {"safe": {"description": "A safe", "tools": [{"vault": {"pin": SECRET}}]}},
    }
    async with Pegboard.open(config) as board:
        assert (await (await board.session(agent="a", session_id="s")).load("safe")).status == "ok"
    async with Pegboard.open(config) as board:
        assert board.world.catalog.by_wire("vault_open") is not None
        called = await (await board.session(agent="a", session_id="t")).call("vault_open", {})
        assert called.result.content[0]["text"] == str(len(SECRET))
    assert SECRET.encode() not in stored(folder)
    other = {**config, "toolkits": {"safe": {"description": "A safe", "tools": [{"vault": {"pin": "another"}}]}}}
    async with Pegboard.open(other) as board:
        assert board.world.catalog.by_wire("vault_open") == ()


async def test_code_that_has_changed_is_known_as_it_was_until_it_answers(start: Start, folder: Path) -> None:
    """X1, G4: the old tools count, marked; the answer replaces them, and is a change of the catalog."""
    await first(start)
    edit(folder / "notes.py", CHANGED)
    async with start() as board:
        assert stale(board, "notes")
        assert not stale(board, "kit")
        assert board.world.catalog.by_wire("note_wipe") == ()
        changes: list[Mapping[str, Any]] = []
        board.on("catalog_changed", changes.append)
        session = await board.session(agent="a", session_id="s")
        assert "note_add" in {tool.wire for tool in (await session.snapshot()).permissions.permitted}
        await session.surface()  # someone looks: it is asked beside
        await until(lambda: not stale(board, "notes"))
        assert board.world.catalog.by_wire("note_wipe") is not None
        assert [change["plugin"] for change in changes] == ["notes"]
        assert (await session.call("note_add", {"text": "x", "urgent": True})).status == "ok"
    async with start() as board:
        assert board.world.catalog.by_wire("note_wipe") is not None
        assert not stale(board, "notes")


async def test_a_call_goes_to_the_code_of_now_however_it_was_known(start: Start, folder: Path) -> None:
    """X1, X2: what has gone is not found, and arguments are held against what the code takes now."""
    await first(start)
    edit(folder / "notes.py", NOTES.replace("note_add(text: str)", "note_add(text: int)").replace("note_add", "put"))
    edit(folder / "site" / "acme_kit.py", KIT.replace("kit_say(text: str)", "kit_say(text: int)"))
    async with start() as board:
        session = await board.session(agent="a", session_id="s")
        assert (await session.call("note_add", {"text": "x"})).status == "not_found"
        answered = await session.call("kit_say", {"text": "x"})
        assert (answered.status, "integer" in answered.result.content[1]["text"]) == ("not_loaded", True)


@pytest.mark.parametrize("text", ["raise RuntimeError('no')\n", "def (:\n", None], ids=["raises", "syntax", "gone"])
async def test_code_that_cannot_be_imported_any_more_is_known_as_it_was(
    text: str | None, start: Start, folder: Path
) -> None:
    """X1, P6: it stays in the catalog, unavailable with the reason, and counts in no sum."""
    await first(start)
    if text is None:
        (folder / "notes.py").unlink()
    else:
        edit(folder / "notes.py", text)
    async with start() as board:
        session = await board.session(agent="a", session_id="s")
        called = await session.call("note_add", {"text": "x"})
        assert called.status == "tool_unavailable"
        assert "notes" in called.message
        assert stale(board, "notes")
        assert "note_add" in {tool.wire for tool in (await session.snapshot()).permissions.permitted}
        surface = await session.surface()
        assert surface.tokens.saved is not None
        assert surface.tokens.catalog == board.services.prices(
            tool for tool in board.world.catalog if tool.plugin != "notes"
        )
        edit_back = NOTES + "\n# mended\n"
        (folder / "notes.py").write_text(edit_back)
        assert (await session.call("note_add", {"text": "x"})).status == "ok"
        assert not stale(board, "notes")


async def test_no_start_waits_for_code_that_takes_a_minute(start: Start, folder: Path) -> None:
    """X1: it is known as it was, in lists and searches, while it is imported."""
    await first(start)
    gate = folder / "gate"
    edit(folder / "notes.py", WAITING + CHANGED)
    async with start() as board:
        session = await board.session(agent="a", session_id="s")
        async with asyncio.timeout(4):  # less than anyone waits for a plugin that is not known
            surface = await session.surface()
            found = await session.search("add a note")
        assert "note_add" in {result.name for result in found.results}
        assert surface.tokens.saved is not None
        assert stale(board, "notes")
        gate.touch()
        await until(lambda: not stale(board, "notes"))
        assert board.world.catalog.by_wire("note_wipe") is not None


async def test_what_the_configuration_has_changed_is_not_known_by_what_was_stored(start: Start) -> None:
    """X1: another module under the same name is another plugin."""
    await first(start)
    other = {"plugins": {"notes": {"python": "helper:ask"}}, "agents": {"a": {"tools": ["notes"]}}}
    async with start(other) as board:
        assert board.world.catalog.plugins["notes"].tools == ()


async def test_a_toolkit_that_joins_at_run_time_is_known_too(start: Start) -> None:
    """T11, X1: what is stored of its plugins arrives without a load."""
    await first(start)
    bare = {"agents": {"a": {"discoverable": ["*"]}}, "plugins": CONFIG["plugins"]}
    async with start(bare) as board:
        assert "kit" not in board.world.catalog.plugins
        board.toolkits.register({"name": "more", "description": "More", "tools": ["kit"]})
        await until(lambda: board.world.catalog.by_wire("kit_say") is not None)


# -- what is in the store -----------------------------------------------------------------------


def tampered(folder: Path, plugin: str, change: Callable[[str], str]) -> int:
    """Change the stored manifests of a plugin; return how many there were."""
    with sqlite3.connect(folder / "state.db") as connection:
        rows = connection.execute("SELECT id, text FROM manifest WHERE plugin = ?", (plugin,)).fetchall()
        changed = [(change(text), row) for row, text in rows]
        connection.executemany("UPDATE manifest SET text = ? WHERE id = ?", changed)
    connection.close()
    return len(rows)


BROKEN: Mapping[str, Callable[[str], str]] = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "a list": lambda _: "[]",
    "null": lambda _: "null",
    "nothing of it": lambda _: "{}",
    "a number for a name": lambda text: text.replace('"note_add"', "7"),
    "no name": lambda text: text.replace('"note_add"', '""'),
    "a text for a schema": lambda text: json.dumps(
        {**(whole := json.loads(text)), "tools": [{**tool, "input_schema": "x"} for tool in whole["tools"]]}
    ),
    "of another plugin": lambda text: text.replace('"plugin":"notes"', '"plugin":"kit"'),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_manifest_that_cannot_be_used_stops_nothing(kind: str, start: Start, folder: Path) -> None:
    """X1, G8: the plugin is asked as on the first day."""
    await first(start)
    assert tampered(folder, "notes", BROKEN[kind]) == 1
    async with start() as board:
        assert board.world.catalog.by_wire("kit_say") is not None
        session = await board.session(agent="a", session_id="s")
        assert (await session.call("note_add", {"text": "x"})).status == "ok"
    async with start() as board:
        assert board.world.catalog.by_wire("note_add") is not None


async def test_where_the_newest_manifest_is_cut_the_one_before_counts(start: Start, folder: Path) -> None:
    """X1: marked, until the plugin answers."""
    await first(start)
    edit(folder / "notes.py", CHANGED)
    await first(start)
    with sqlite3.connect(folder / "state.db") as connection:
        newest = "(SELECT max(id) FROM manifest WHERE plugin = 'notes')"
        connection.execute(f"UPDATE manifest SET text = substr(text, 1, 40) WHERE id = {newest}")
    connection.close()
    async with start() as board:
        assert board.world.catalog.by_wire("note_add") is not None
        assert board.world.catalog.by_wire("note_wipe") == ()
        assert stale(board, "notes")
        await (await board.session(agent="a", session_id="s")).surface()
        await until(lambda: board.world.catalog.by_wire("note_wipe") is not None)
